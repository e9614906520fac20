#include "trainer/sharding/local_steps.h"

#include <utility>

#include "trainer/kernels/cost.h"
#include "trainer/sharding/values.h"

namespace shardscope::trainer::sharding {

LocalSteps::LocalSteps(const job::TrainSection& train, const plan::Mesh& mesh,
                       std::vector<plan::Buffer>& persistent, const OptimizerSlot& slot)
    : steps_(train.local_steps),
      has_outer_step_(train.has_outer_step()),
      lr_(train.outer_lr),
      momentum_(train.outer_momentum),
      group_(mesh.all_data()),
      ranks_(mesh.size(group_)) {
    if (!has_outer_step_) return;
    persistent.push_back({"parameters at the last average", plan::MemoryCategory::optimizer_state,
                          plan::MemorySpace::device, slot.parameter.bytes, slot.unit, slot.module});
    together_ = static_cast<plan::BufferId>(persistent.size() - 1);
}

std::optional<std::int64_t> LocalSteps::next_change(std::int64_t step) const {
    if (steps_ == 1) return std::nullopt;
    if (averages_after(step) || averages_after(step - 1)) return step;
    return step + steps_ - 1 - step % steps_;
}

// Once, before the first step changes the parameters, which are those of the checkpoint if one is loaded.
void LocalSteps::begin(plan::PlanBuilder& builder, const OptimizerSlot& slot) {
    if (!has_outer_step_ || std::exchange(has_begun_, true)) return;
    builder.allocate(together_, plan::Stream::compute);
    builder.memcpy(builder.whole(together_), slot.parameter, traces::schema::kCopyDeviceToDevice);
}

void LocalSteps::average(plan::PlanBuilder& builder, const OptimizerSlot& slot) {
    const plan::PlanBuilder::Scope scope(builder, plan::Phase::optimizer, slot.module, slot.unit);
    const plan::PlanBuilder::Range range(builder, "PeriodicModelAverager.average_parameters");
    const plan::Arg& parameters = slot.parameter;
    builder.order(plan::Stream::compute, plan::Stream::post_backward);
    builder.collective({.operation = plan::Operation::all_reduce, .group = group_, .divisor = ranks_},
                       parameters, parameters, parameters.bytes, plan::Stream::post_backward);
    builder.order(plan::Stream::post_backward, plan::Stream::compute);
    if (!has_outer_step_) return;
    const std::int64_t n = slot.elements;
    const plan::Arg together = builder.whole(together_);
    builder.kernel(plan::Kernel::scale, "aten::neg_", {parameters}, {n}, n).kernel().scalars = {-1};
    builder.kernel(plan::Kernel::accumulate, "aten::add_", {parameters, together}, {n}, n);
    std::vector<plan::Arg> args = {together, parameters};
    if (momentum_ > 0) args.push_back(slot.state.back());
    plan::Op& op = builder.kernel(plan::Kernel::sgd, "outer_sgd_step", std::move(args), {n, 0},
                                  kernels::sgd_cost(n, momentum_ > 0).flops);
    op.kernel().scalars = {momentum_, 0, 1, lr_};
    op.kernel().segments = builder.add_segments(slot.segments);
    builder.memcpy(parameters, together, traces::schema::kCopyDeviceToDevice);
}

}  // namespace shardscope::trainer::sharding
