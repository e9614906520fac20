// Finds the stretch that a time belongs to, and interpolates between its pairs.
#include "profiler/recorder/cuda_clock.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include <fmt/core.h>

namespace shardscope::profiler {

std::optional<std::int64_t> CudaClock::add(RealTime time, std::int64_t trace) {
    const Pair pair{time, time.ns - trace};
    if (stretches_.empty()) {
        stretches_.push_back({{pair}});
        return std::nullopt;
    }
    std::vector<Pair>& pairs = stretches_.back().pairs;
    const std::int64_t step = pair.offset - pairs.back().offset;
    if (std::abs(step) > kStep) {
        if (stretches_.size() == kMostStretches) stretches_.erase(stretches_.begin());
        stretches_.push_back({{pair}});
        return step;
    }
    if (time <= pairs.back().time) return std::nullopt;
    pairs.push_back(pair);
    if (pairs.size() > kMostPairs) {
        const std::size_t half = pairs.size() / 2;
        std::size_t kept = 0;
        for (std::size_t i = 0; i < half; i += 2) pairs[kept++] = pairs[i];
        pairs.erase(pairs.begin() + static_cast<std::ptrdiff_t>(kept),
                    pairs.begin() + static_cast<std::ptrdiff_t>(half));
    }
    return std::nullopt;
}

bool CudaClock::place(RealTime start, RealTime end, std::int64_t* trace_start,
                      std::int64_t* trace_end) const {
    const bool is_sane = start.ns > 0 && end >= start && end <= kLatest;
    const auto from = is_sane ? to_trace(start) : std::nullopt;
    if (!from) return false;
    *trace_start = *from;
    // The duration is kept, even if the system's clock was set in between.
    *trace_end = *from + (end - start);
    return true;
}

std::string CudaClock::describe_step(std::int64_t step, std::int64_t trace) {
    return fmt::format(
        "the system's clock was set {:.3f} s {} within the second before {:.3f} s; CUDA events of that "
        "second "
        "may be off by as much",
        static_cast<double>(std::abs(step)) / 1e9, step < 0 ? "back" : "ahead",
        static_cast<double>(trace) / 1e9);
}

std::int64_t CudaClock::offset_at(const Stretch& stretch, RealTime time) {
    const auto& pairs = stretch.pairs;
    const auto after = std::upper_bound(pairs.begin(), pairs.end(), time,
                                        [](RealTime t, const Pair& pair) { return t < pair.time; });
    if (after == pairs.begin()) return pairs.front().offset;
    if (after == pairs.end()) return pairs.back().offset;
    const Pair& a = *std::prev(after);
    const Pair& b = *after;
    const double share = static_cast<double>(time - a.time) / static_cast<double>(b.time - a.time);
    return a.offset + std::llround(share * static_cast<double>(b.offset - a.offset));
}

std::optional<std::int64_t> CudaClock::to_trace(RealTime time) const {
    if (stretches_.empty()) return std::nullopt;
    const Stretch* nearest = &stretches_.back();
    std::int64_t shortest = std::numeric_limits<std::int64_t>::max();
    for (auto stretch = stretches_.rbegin(); stretch != stretches_.rend() && shortest > 0; ++stretch) {
        const RealTime first = stretch->pairs.front().time, last = stretch->pairs.back().time;
        const std::int64_t distance = time < first ? first - time : time > last ? time - last : 0;
        if (distance >= shortest) continue;
        shortest = distance;
        nearest = &*stretch;
    }
    return time.ns - offset_at(*nearest, time);
}

}  // namespace shardscope::profiler
