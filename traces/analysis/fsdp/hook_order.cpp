// See hook_order.h.
#include "traces/analysis/fsdp/hook_order.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include <fmt/core.h>

#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {

HookOrder::HookOrder(const store::Trace& trace, UnitTable& units, bool second_generation)
    : trace_(trace),
      units_(units),
      pattern_(second_generation ? "FSDP unit {}" : "FullyShardedDataParallel_{}") {}

void HookOrder::add(MarkedRange& mark) {
    switch (mark.kind) {
        case UnitMark::forward:
        case UnitMark::pre_forward:
        case UnitMark::module_frame:
            enter(mark);
            break;
        case UnitMark::post_forward:
            if (mark.unit == kUnnamed && !open_.empty()) mark.unit = open_.back().unit;
            leave(mark.unit);
            break;
        case UnitMark::pre_backward:
            backward_ = true;
            before_.push_back(&mark);
            hook_ = &mark;
            break;
        case UnitMark::post_backward:
            backward_ = true;
            after_.push_back(&mark);
            hook_ = &mark;
            break;
        case UnitMark::forward_prefetch:
        case UnitMark::backward_prefetch:
            prefetches_.push_back({&mark, hook_});
            break;
        default:
            break;
    }
}

void HookOrder::finish() {
    close_before(std::numeric_limits<std::int64_t>::max());
    while (!open_.empty()) leave(open_.back().unit);
    const Order backward(ended_.rbegin(), ended_.rend());
    give(before_, backward, true);
    give(after_, {started_.rbegin(), started_.rend()}, false);
    Order inner = backward;  // recomputations run in the reverse order of the forwards
    std::erase_if(inner, [this](store::UnitIndex unit) { return enclosing_.contains(unit); });
    for (std::size_t i = 0; i < std::min(again_.size(), inner.size()); ++i) {
        if (again_[i]->unit == kUnnamed) again_[i]->unit = inner[i];
    }
    const Next forward_next = next_of(started_), backward_next = next_of(backward);
    for (const auto& [mark, hook] : prefetches_) {
        if (mark->unit != kUnnamed || hook == nullptr) continue;
        const Next& next = mark->kind == UnitMark::forward_prefetch ? forward_next : backward_next;
        const auto it = next.find(hook->unit);
        if (it != next.end()) mark->unit = it->second;
    }
    started_.clear();
    ended_.clear();
    has_started_.clear();
    has_ended_.clear();
    enclosing_.clear();
    before_.clear();
    after_.clear();
    prefetches_.clear();
    again_.clear();
    hook_ = nullptr;
    backward_ = false;
}

HookOrder::Next HookOrder::next_of(const Order& order) {
    Next next;
    for (std::size_t i = 0; i + 1 < order.size(); ++i) next.emplace(order[i], order[i + 1]);
    return next;
}

void HookOrder::enter(MarkedRange& mark) {
    close_before(trace_.ranges.start[mark.range]);
    if (mark.again) {
        again_.push_back(&mark);
        return;
    }
    const bool whole = open_.empty() && !ended_.empty() && enclosing_.contains(ended_.back());
    if (backward_ || whole) finish();
    if (mark.unit == kUnnamed) mark.unit = units_[fmt::format(fmt::runtime(pattern_), started_.size())];
    if (!open_.empty()) enclosing_.insert(open_.back().unit);
    if (has_started_.insert(mark.unit).second) started_.push_back(mark.unit);
    const bool scope = mark.kind != UnitMark::pre_forward;
    if (open_.size() >= kMostOpenUnits) open_.erase(open_.begin());
    open_.push_back(
        {mark.unit, scope ? trace_.ranges.end[mark.range] : std::numeric_limits<std::int64_t>::max()});
    hook_ = &mark;
}

void HookOrder::close_before(std::int64_t time) {
    while (!open_.empty() && open_.back().end <= time) leave(open_.back().unit);
}

void HookOrder::leave(store::UnitIndex unit) {
    const auto it = std::find_if(open_.rbegin(), open_.rend(), [&](const Open& o) { return o.unit == unit; });
    if (it != open_.rend()) open_.erase(std::next(it).base());
    if (has_ended_.insert(unit).second) ended_.push_back(unit);
}

void HookOrder::give(std::vector<MarkedRange*>& hooks, Order order, bool outer_first) const {
    if (std::none_of(hooks.begin(), hooks.end(), [](const MarkedRange* m) { return m->unit == kUnnamed; }))
        return;
    if (!outer_first) std::reverse(order.begin(), order.end());
    std::size_t many = order.size() > hooks.size() ? order.size() - hooks.size() : 0;
    std::erase_if(order, [&](store::UnitIndex unit) {
        if (many == 0 || !enclosing_.contains(unit)) return false;
        --many;
        return true;
    });
    if (!outer_first) std::reverse(order.begin(), order.end());
    if (order.size() > hooks.size()) return;
    const std::size_t extra = hooks.size() - order.size();
    if (extra > 0 && (order.empty() || !outer_first)) return;
    for (std::size_t i = 0; i < hooks.size(); ++i) {
        if (hooks[i]->unit == kUnnamed) hooks[i]->unit = order[i < extra ? 0 : i - extra];
    }
}

}  // namespace shardscope::traces::analysis
