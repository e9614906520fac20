// Interprets the names of host ranges that concern FSDP units: PyTorch's names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace shardscope::traces::analysis {

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
    copy_out,           // "FSDP::all_gather_copy_out (x)": of the gathered parameters
    other,              // "FSDP::all_gather (x)" and similar
    unshard,            // "_unshard": of our own traces; prepares the shard and gathers it
    limiter,            // "FullyShardedDataParallel.rate_limiter"
    autograd,           // "autograd::engine::evaluate_function: ...": backward
    recompute,          // of our own traces: repeats a checkpointed forward
    outside,            // an optimizer's call: no unit's hooks extend beyond it
};

struct UnitName {
    UnitMark mark = UnitMark::none;
    std::string unit;  // empty: no name
};

// "FSDP::all_gather (layers.3) [pg=1], seq = 4" -> other, "layers.3".
UnitName unit_name(std::string_view range);

}  // namespace shardscope::traces::analysis
