// Actions of a pipeline schedule, as the names of ranges and SHARD_SCHEDULE write them: PyTorch's "PP:3F2", a
// stage, a kind and a micro-batch; "PP:(0F7;7B3)OVERLAP_F_B" are two that run together.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::traces::analysis {

struct PipelineAction {
    int stage = 0;
    std::string kind;      // "F", "B", "I" and "W" compute; "SEND_F", "RECV_B", "UNSHARD" ...
    int micro_batch = -1;  // -1: it has none

    bool is_forward() const { return kind == "F"; }
    bool gives_input_gradient() const { return kind == "B" || kind == "I"; }
    bool ends_backward() const { return kind == "B" || kind == "W"; }
    bool is_compute() const { return is_forward() || gives_input_gradient() || ends_backward(); }
    bool receives() const { return kind.starts_with("RECV_"); }

    bool operator==(const PipelineAction&) const = default;
};

// What computations that run together are, for colours and sums.
enum class ComputeKind : std::uint8_t { forward, backward, input, weight, overlapped };
inline constexpr int kComputeKinds = 5;
std::string_view name(ComputeKind kind);  // "backward for input"
// `actions` is not empty and each one computes.
ComputeKind compute_kind(const std::vector<PipelineAction>& actions);

// The actions that a range's name says it runs: none, one, or several that run together.
std::vector<PipelineAction> pipeline_actions(std::string_view range_name);

}  // namespace shardscope::traces::analysis
