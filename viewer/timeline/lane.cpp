// See lane.h.
#include "viewer/timeline/lane.h"

#include <algorithm>

namespace shardscope::viewer {

bool Lane::add(std::int64_t start, std::int64_t end, SelectedEvent event, Paint paint) {
    if (start < last_end()) return false;
    start_.push_back(start);
    end_.push_back(std::max(start, end));
    index_.push_back(static_cast<std::int32_t>(event.index));
    kind_.push_back(event.kind);
    paint_.push_back(paint);
    return true;
}

void Lane::finish() {
    const std::size_t n = size();
    sum_.assign(n + 1, 0);
    longest_.assign(n / kBlock + 1, -1);
    longest_super_.assign(n / kSuperBlock + 1, -1);
    std::array<bool, kPaints> used{};
    for (std::size_t i = 0; i < n; ++i) {
        const std::int64_t length = end_[i] - start_[i];
        sum_[i + 1] = sum_[i] + length;
        longest_[i / kBlock] = std::max(longest_[i / kBlock], length);
        longest_super_[i / kSuperBlock] = std::max(longest_super_[i / kSuperBlock], length);
        used[paint_[i]] = true;
    }
    by_paint_.clear();
    if (std::count(used.begin(), used.end(), true) < 2) return;
    for (Paint paint = 0; paint < kPaints; ++paint) {
        if (!used[paint]) continue;
        PaintSum sums{paint, std::vector<std::int64_t>(n + 1, 0)};
        for (std::size_t i = 0; i < n; ++i) {
            sums.sum[i + 1] = sums.sum[i] + (paint_[i] == paint ? end_[i] - start_[i] : 0);
        }
        by_paint_.push_back(std::move(sums));
    }
}

std::size_t Lane::first_ending_after(std::int64_t time) const {
    // Events do not overlap, so their ends are sorted as their starts are.
    return static_cast<std::size_t>(std::upper_bound(end_.begin(), end_.end(), time) - end_.begin());
}

std::size_t Lane::first_starting_from(std::size_t at, std::int64_t time) const {
    std::size_t step = 1, low = at, high = at;
    while (high < size() && start_[high] < time) {
        low = high + 1;
        high += step;
        step *= 2;
    }
    high = std::min(high, size());
    const auto begin = start_.begin();
    return static_cast<std::size_t>(std::lower_bound(begin + static_cast<std::ptrdiff_t>(low),
                                                     begin + static_cast<std::ptrdiff_t>(high), time) -
                                    begin);
}

std::size_t Lane::next_lasting(std::size_t at, std::int64_t ns) const {
    std::size_t i = at;
    while (i < size()) {
        if (i % kSuperBlock == 0 && longest_super_[i / kSuperBlock] < ns) {
            i += kSuperBlock;
        } else if (i % kBlock == 0 && longest_[i / kBlock] < ns) {
            i += kBlock;
        } else if (end_[i] - start_[i] >= ns) {
            return i;
        } else {
            ++i;
        }
    }
    return size();
}

Paint Lane::dominant(std::size_t first, std::size_t last) const {
    if (first >= last) return 0;
    if (by_paint_.empty()) return paint_[first];
    Paint best = paint_[first];
    std::int64_t most = -1;
    for (const PaintSum& sums : by_paint_) {
        const std::int64_t ns = sums.sum[last] - sums.sum[first];
        // Among events without length the first one's paint stays.
        if (ns > most && (ns > 0 || sums.paint == paint_[first])) {
            most = ns;
            best = sums.paint;
        }
    }
    return best;
}

}  // namespace shardscope::viewer
