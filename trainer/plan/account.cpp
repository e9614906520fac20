#include "trainer/plan/account.h"

#include <algorithm>

#include <fmt/core.h>

namespace shardscope::trainer::plan {

namespace {

std::int64_t& at(std::vector<std::int64_t>& bytes, int id) {
    const auto place = static_cast<std::size_t>(id) + 1;  // -1 is index 0
    if (bytes.size() <= place) bytes.resize(place + 1);
    return bytes[place];
}

}  // namespace

void AllocationCounter::change(const Plan& plan, const Op& op, int sign) {
    const Buffer& buffer = plan.buffers[static_cast<std::size_t>(op.args[0].buffer)];
    const std::int64_t bytes = sign * buffer.bytes;
    const auto space = static_cast<std::size_t>(buffer.space);
    if (buffer.space != MemorySpace::device) {
        of_hosts_[space] += bytes;
        peak_.spaces[space] = std::max(peak_.spaces[space], of_hosts_[space]);
        return;
    }
    live_ += bytes;
    by_category_[static_cast<std::size_t>(buffer.category)] += bytes;
    at(by_unit_, buffer.unit) += bytes;
    at(by_module_, buffer.module) += bytes;
    recent_ = std::max(recent_, live_);
    if (plan.kind == PlanKind::setup || live_ <= peak_.bytes) return;
    peak_ = {live_,
             by_category_,
             by_unit_,
             by_module_,
             fmt::format("{} step, {}, allocating {}", kPlanKindNames[static_cast<std::size_t>(plan.kind)],
                         traces::schema::name(op.phase), buffer.name),
             peak_.spaces};
    peak_.spaces[space] = live_;
}

void MemoryAccount::walk(const Plan& plan) {
    for (const Op& op : plan.ops) {
        if (op.kind == OpKind::allocate) counter_.allocated(plan, op);
        if (op.kind == OpKind::free) counter_.freed(plan, op);
    }
}

}  // namespace shardscope::trainer::plan
