// See step_alignment.h.
#include "viewer/timeline/step_alignment.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace shardscope::viewer::timeline {

StepAlignment::StepAlignment(std::span<const traces::store::Step> here,
                             std::span<const traces::store::Step> there, std::int64_t apart)
    : apart_(apart) {
    std::unordered_map<std::int64_t, const traces::store::Step*> by_number;
    for (const traces::store::Step& step : there) by_number.emplace(step.number, &step);
    for (const traces::store::Step& step : here) {
        const auto same = by_number.find(step.number);
        if (same == by_number.end()) continue;
        const traces::store::Step& other = *same->second;
        const bool grows =
            pairs_.empty() || (step.start > pairs_.back().here && other.start > pairs_.back().there);
        if (grows)
            pairs_.push_back(
                {step.number, step.start, other.start, step.end - step.start, other.end - other.start});
    }
}

AlignedPart StepAlignment::part_of(const Pair& pair) const {
    return {{}, pair.here - pair.there, pair.number, pair.there_length, pair.there_length - pair.here_length,
            0};
}

AlignedParts StepAlignment::parts(model::TimeRange visible, std::size_t most) const {
    if (pairs_.empty()) return {{{visible, apart_}}};
    const auto begins = [](const Pair& pair, std::int64_t time) { return pair.here < time; };
    const auto first = std::lower_bound(pairs_.begin(), pairs_.end(), visible.from, begins);
    const auto last = std::lower_bound(first, pairs_.end(), visible.to, begins);
    if (static_cast<std::size_t>(last - first) > most) {
        AlignedPart whole = part_of(*first);
        whole.here = visible;
        return {{whole}, false};
    }
    std::vector<AlignedPart> parts;
    for (auto pair = first == pairs_.begin() ? first : first - 1;
         pair != pairs_.end() && (pair == pairs_.begin() || pair < last); ++pair) {
        AlignedPart part = part_of(*pair);
        // What is before the first step in common belongs to it.
        const std::int64_t from = pair == pairs_.begin() ? visible.from : pair->here;
        std::int64_t to = visible.to;
        if (const auto next = pair + 1; next != pairs_.end()) {
            const std::int64_t room = next->here - pair->here, needed = next->there - pair->there;
            to = pair->here + std::min(room, needed);
            if (to <= visible.to) part.cut = std::max<std::int64_t>(0, needed - room);
        }
        part.here = {std::max(from, visible.from), std::min(to, visible.to)};
        if (part.here.length() > 0) parts.push_back(part);
    }
    return {std::move(parts)};
}

}  // namespace shardscope::viewer::timeline
