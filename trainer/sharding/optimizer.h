// The optimizer's half of a Plan: one update kernel per slot. A slot is what one rank updates in one piece, a
// shard of a flat parameter or a whole parameter.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/job/job.h"
#include "trainer/plan/builder.h"

namespace shardscope::trainer {

struct OptimizerSlot {
    std::string name;
    std::int64_t elements = 0;
    int unit = -1, module = -1;
    BufferId parameter = -1, gradient = -1;  // persistent; the gradient lives from its backward to zero_grad
    std::vector<BufferId> state;             // persistent; allocated by the first step, as PyTorch does
};

class OptimizerPlanner {
  public:
    explicit OptimizerPlanner(const OptimizerSection& options) : options_(options) {}

    // Declares a slot's buffers in `persistent`; returns its index.
    std::size_t add_slot(std::vector<Buffer>& persistent, const std::string& name, std::int64_t elements,
                         int unit, int module);
    const OptimizerSlot& slot(std::size_t index) const { return slots_[index]; }
    const std::vector<OptimizerSlot>& slots() const { return slots_; }

    void allocate_parameters(PlanBuilder& builder) const;
    void zero_grad(PlanBuilder& builder);  // sets gradients to None: frees those of the step before
    void step(PlanBuilder& builder);

    // What the next Plan depends on.
    bool has_state() const { return has_state_; }
    bool has_gradients() const { return has_gradients_; }

  private:
    std::string class_name() const;

    OptimizerSection options_;
    std::vector<OptimizerSlot> slots_;
    bool has_state_ = false, has_gradients_ = false;
};

}  // namespace shardscope::trainer
