#include "trainer/plan/account.h"

#include <fmt/format.h>

namespace shardscope::trainer {

void AllocationCounter::change(const Plan& plan, const Op& op, int sign) {
    const Buffer& buffer = plan.buffers[static_cast<std::size_t>(op.args[0].buffer)];
    if (buffer.space != MemorySpace::device) return;
    live_ += sign * buffer.bytes;
    by_category_[static_cast<std::size_t>(buffer.category)] += sign * buffer.bytes;
    if (plan.kind == PlanKind::setup || live_ <= peak_.bytes) return;
    peak_ = {live_, by_category_,
             fmt::format("{} step, {}, allocating {}", kPlanKindNames[static_cast<std::size_t>(plan.kind)],
                         traces::name(op.phase), buffer.name)};
}

void MemoryAccount::walk(const Plan& plan) {
    for (const Op& op : plan.ops) {
        if (op.kind == OpKind::allocate) counter_.allocated(plan, op);
        if (op.kind == OpKind::free) counter_.freed(plan, op);
    }
}

}  // namespace shardscope::trainer
