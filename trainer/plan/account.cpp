#include "trainer/plan/account.h"

#include <fmt/format.h>

namespace shardscope::trainer {

void MemoryAccount::walk(const Plan& plan) {
    for (const Op& op : plan.ops) {
        if (op.kind != OpKind::allocate && op.kind != OpKind::free) continue;
        const Buffer& buffer = plan.buffers[static_cast<std::size_t>(op.args[0].buffer)];
        if (buffer.space != MemorySpace::device) continue;
        const std::int64_t change = op.kind == OpKind::allocate ? buffer.bytes : -buffer.bytes;
        live_ += change;
        by_category_[static_cast<std::size_t>(buffer.category)] += change;
        if (plan.kind != PlanKind::setup && live_ > peak_.bytes) {
            peak_ = {live_, by_category_,
                     fmt::format("{} step, {}, allocating {}", kPlanKindNames[static_cast<std::size_t>(plan.kind)],
                                 traces::name(op.phase), buffer.name)};
        }
    }
}

}  // namespace shardscope::trainer
