#include "trainer/sharding/optimizer.h"

#include <utility>

#include "trainer/kernels/cost.h"

namespace shardscope::trainer {

std::string OptimizerPlanner::class_name() const {
    return options_.type == OptimizerType::sgd ? "SGD" : "AdamW";
}

std::size_t OptimizerPlanner::add_slot(std::vector<Buffer>& persistent, const std::string& name,
                                       std::int64_t elements, int unit, int module) {
    const std::int64_t bytes = elements * std::int64_t{sizeof(float)};
    auto declare = [&](const char* what, MemoryCategory category) {
        persistent.push_back({name + what, category, MemorySpace::device, bytes, unit, module});
        return static_cast<BufferId>(persistent.size() - 1);
    };
    OptimizerSlot slot{name, elements, unit, module};
    slot.parameter = declare("", MemoryCategory::parameters);
    slot.gradient = declare(".grad", MemoryCategory::gradients);
    if (options_.type == OptimizerType::adamw) {
        slot.state = {declare(".exp_avg", MemoryCategory::optimizer_state),
                      declare(".exp_avg_sq", MemoryCategory::optimizer_state)};
    } else if (options_.momentum != 0) {
        slot.state = {declare(".momentum_buffer", MemoryCategory::optimizer_state)};
    }
    slots_.push_back(std::move(slot));
    return slots_.size() - 1;
}

void OptimizerPlanner::allocate_parameters(PlanBuilder& builder) const {
    for (const OptimizerSlot& slot : slots_) {
        const PlanBuilder::Scope scope(builder, Phase::setup, slot.module, slot.unit);
        builder.allocate(slot.parameter, Stream::compute);
    }
}

void OptimizerPlanner::zero_grad(PlanBuilder& builder) {
    const PlanBuilder::Range range(builder, "Optimizer.zero_grad#" + class_name() + ".zero_grad");
    if (!has_gradients_) return;
    for (const OptimizerSlot& slot : slots_) builder.free(slot.gradient);
    has_gradients_ = false;
}

void OptimizerPlanner::step(PlanBuilder& builder) {
    const PlanBuilder::Range range(builder, "Optimizer.step#" + class_name() + ".step");
    for (const OptimizerSlot& slot : slots_) {
        const PlanBuilder::Scope scope(builder, Phase::optimizer, slot.module, slot.unit);
        if (!has_state_) {
            for (const BufferId state : slot.state) {
                builder.allocate(state, Stream::compute);
                builder.memset(builder.whole(state));
            }
        }
        std::vector<Arg> args = {builder.whole(slot.parameter), builder.whole(slot.gradient)};
        for (const BufferId state : slot.state) args.push_back(builder.whole(state));
        if (options_.type == OptimizerType::sgd) {
            Op& op = builder.kernel(Kernel::sgd, "sgd_step", std::move(args), {slot.elements},
                                    kernels::sgd_cost(slot.elements, options_.momentum != 0).flops);
            op.scalars = {options_.lr, options_.momentum, options_.weight_decay};
        } else {
            Op& op = builder.kernel(Kernel::adamw, "adamw_step", std::move(args), {slot.elements},
                                    kernels::adamw_cost(slot.elements).flops);
            op.scalars = {options_.lr, options_.betas[0], options_.betas[1], options_.eps,
                          options_.weight_decay};
        }
    }
    has_state_ = true;
    has_gradients_ = true;
}

}  // namespace shardscope::trainer
