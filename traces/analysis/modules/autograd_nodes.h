// Finds autograd's backward nodes among the operators, and the forward operator that each belongs to. Also
// used by trainer/lift.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

// A node is an operator "autograd::engine::evaluate_function: X", with everything that runs inside it. In
// traces of older PyTorch, which do not have such operators, it is an operator that is linked to one of the
// forward pass, or "...AccumulateGrad". Nodes may be nested (a checkpoint's recomputation has its own
// backward).
class AutogradNodes {
  public:
    explicit AutogradNodes(const store::Trace& trace);

    bool any() const { return !forward_.empty(); }
    bool is_node(std::size_t range) const { return any() && forward_[range] != kNoNode; }
    // For a node: the forward operator's row in HostRanges; -1: unknown. Known if HostRanges::forward links
    // the node or an operator inside it. A node that only accumulates a gradient has the forward operator of
    // the previous node on its thread, which computed the gradient.
    std::int32_t forward_of(std::size_t node) const { return forward_[node]; }

  private:
    static constexpr std::int32_t kUnknown = -1, kNoNode = -2;

    std::vector<std::int32_t> forward_;  // by row of HostRanges; empty: the trace has no nodes
};

}  // namespace shardscope::traces::analysis
