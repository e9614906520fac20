#include "traces/watch/history.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace shardscope::traces::watch {

void History::add(double value) {
    if (!std::isfinite(value)) return;
    sum_ += value;
    if (++pending_ < each_) return;
    points_.push_back(sum_ / static_cast<double>(pending_));
    sum_ = 0;
    pending_ = 0;
    if (points_.size() < kMost) return;
    for (std::size_t i = 0; i < kMost / 2; ++i) points_[i] = (points_[2 * i] + points_[2 * i + 1]) / 2;
    points_.resize(kMost / 2);
    each_ *= 2;
}

std::string History::sparkline(std::size_t width) const {
    static constexpr std::array kBars = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    std::vector<double> points = points_;
    if (pending_ > 0) points.push_back(sum_ / static_cast<double>(pending_));
    const std::size_t bars = std::min(width, points.size());
    std::vector<double> means;
    for (std::size_t i = 0; i < bars; ++i) {
        const auto first = points.begin() + static_cast<std::ptrdiff_t>(i * points.size() / bars);
        const auto last = points.begin() + static_cast<std::ptrdiff_t>((i + 1) * points.size() / bars);
        means.push_back(std::accumulate(first, last, 0.0) / static_cast<double>(last - first));
    }
    if (means.empty()) return {};
    const auto [low, high] = std::minmax_element(means.begin(), means.end());
    std::string text;
    for (const double mean : means) {
        const double place = *high > *low ? (mean - *low) / (*high - *low) : 0.5;
        text += kBars[std::min(static_cast<std::size_t>(place * kBars.size()), kBars.size() - 1)];
    }
    return text;
}

}  // namespace shardscope::traces::watch
