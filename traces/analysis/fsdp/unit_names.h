// What the name of a host range says about FSDP units: PyTorch's names, in one place. Inside the room only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace shardscope::traces {

enum class UnitMark : std::uint8_t {
    none,
    module_frame,       // "nn.Module: FullyShardedDataParallel_3"
    forward,            // "FullyShardedDataParallel.forward": lasts as long as the unit's forward
    pre_forward,        // "FSDP::pre_forward (x)": the forward begins
    post_forward,       // "FSDP::post_forward (x)": it has ended
    pre_backward,       // "FullyShardedDataParallel._pre_backward_hook", "FSDP::pre_backward (x)"
    post_backward,      // "FullyShardedDataParallel._post_backward_hook", "FSDP::post_backward_reduce (x)"
    forward_prefetch,   // of another unit
    backward_prefetch,  // of another unit
    copy_out,           // "FSDP::all_gather_copy_out (x)": of what was gathered
    other,              // "FSDP::all_gather (x)" and its kin
    unshard,            // "_unshard": ours; the shard is made ready and gathered
    limiter,            // "FullyShardedDataParallel.rate_limiter"
    autograd,           // "autograd::engine::evaluate_function: ...": backward
    recompute,          // ours: a checkpointed forward again
    outside,            // an optimizer's call: no unit's hooks reach beyond it
};

struct UnitName {
    UnitMark mark = UnitMark::none;
    std::string unit;  // empty: not named
};

// "FSDP::all_gather (layers.3) [pg=1], seq = 4" -> other, "layers.3".
UnitName unit_name(std::string_view range);

}  // namespace shardscope::traces
