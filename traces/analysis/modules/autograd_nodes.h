// Which operators are autograd's backward nodes, and the operator of the forward pass that each belongs to.
// Also for trainer/lift.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardscope::traces {

struct Trace;

// A node is an operator "autograd::engine::evaluate_function: X", with all that runs inside it; in traces of
// older PyTorch, which have no such operators, an operator that is tied to one of the forward pass, or
// "...AccumulateGrad". Nodes may lie inside others (a checkpoint's recomputation has its own backward).
class AutogradNodes {
  public:
    explicit AutogradNodes(const Trace& trace);

    bool any() const { return !forward_.empty(); }
    bool is_node(std::size_t range) const { return any() && forward_[range] != kNoNode; }
    // Of a node: the forward operator's row in HostRanges; -1: unknown. Known where HostRanges::forward ties
    // the node or an operator inside it; a node that only accumulates a gradient has that of the node before
    // it on its thread, whose gradient it is.
    std::int32_t forward_of(std::size_t node) const { return forward_[node]; }

  private:
    static constexpr std::int32_t kUnknown = -1, kNoNode = -2;

    std::vector<std::int32_t> forward_;  // by row of HostRanges; empty: the trace has no nodes
};

}  // namespace shardscope::traces
