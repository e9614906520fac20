// See lane_paints.h.
#include "viewer/timeline/lane_paints.h"

#include <algorithm>

#include "viewer/timeline/lane.h"

namespace shardscope::viewer {

void LanePaints::finish(const Lane& lane) {
    paint_.shrink_to_fit();
    std::array<bool, kPaints> is_used{};
    for (const Paint paint : paint_) is_used[paint] = true;
    used_.clear();
    for (Paint paint = 0; paint < kPaints; ++paint) {
        if (is_used[paint]) used_.push_back(paint);
    }
    sums_.clear();
    if (used_.size() < 2) return;
    sums_.reserve((paint_.size() / kGroup + 1) * used_.size());
    PaintTimes times{};
    for (std::size_t i = 0; i <= paint_.size(); i += kGroup) {
        for (const Paint paint : used_) sums_.push_back(times[paint]);
        walk(lane, i, std::min(i + kGroup, paint_.size()), times);
    }
}

void LanePaints::walk(const Lane& lane, std::size_t first, std::size_t last, PaintTimes& times) const {
    for (std::size_t i = first; i < last; ++i) times[paint_[i]] += lane.length(i);
}

void LanePaints::add_times(const Lane& lane, std::size_t first, std::size_t last, PaintTimes& times) const {
    if (first >= last) return;
    if (used_.size() < 2) {
        times[paint_[first]] += lane.busy(first, last);
        return;
    }
    const std::size_t from = (first + kGroup - 1) / kGroup, to = last / kGroup;
    if (from >= to) return walk(lane, first, last, times);
    walk(lane, first, from * kGroup, times);
    const std::size_t n = used_.size();
    for (std::size_t u = 0; u < n; ++u) times[used_[u]] += sums_[to * n + u] - sums_[from * n + u];
    walk(lane, to * kGroup, last, times);
}

Paint LanePaints::dominant(const Lane& lane, std::size_t first, std::size_t last) const {
    if (first >= last) return 0;
    if (used_.size() < 2 || last - first == 1) return paint_[first];
    PaintTimes times{};
    add_times(lane, first, last, times);
    Paint best = paint_[first];
    for (const Paint paint : used_) {
        if (times[paint] > times[best]) best = paint;
    }
    return best;
}

std::size_t LanePaints::memory() const {
    return paint_.capacity() + used_.capacity() + sums_.capacity() * sizeof(std::int64_t);
}

}  // namespace shardscope::viewer
