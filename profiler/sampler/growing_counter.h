// The rate of a counter that only grows, from its readings.
#pragma once

#include <cstdint>
#include <optional>

#include "profiler/base/clock.h"

namespace shardscope::profiler {

class GrowingCounter {
  public:
    // `most_per_second`: that it can grow; 0: unknown.
    explicit GrowingCounter(double most_per_second = 0) : most_(most_per_second) {}

    // Its growth since the last reading, per second. None at the first reading, and where it has fallen: it
    // was reset, unless it may be one of 32 bits that has begun again at 0.
    std::optional<double> next(std::uint64_t value, MonotonicTime time) {
        const bool first = !known_;
        const std::uint64_t before = value_;
        const auto ns = static_cast<double>(time - time_);
        known_ = true;
        value_ = value;
        time_ = time;
        if (first || ns <= 0) return std::nullopt;
        if (value >= before) return static_cast<double>(value - before) * 1e9 / ns;
        constexpr std::uint64_t kAll = std::uint64_t{1} << 32;
        if (before >= kAll || before < kAll / 2) return std::nullopt;
        const std::uint64_t growth = value + (kAll - before);
        const double rate = static_cast<double>(growth) * 1e9 / ns;
        if (growth >= kAll / 2 || (most_ > 0 && rate > most_)) return std::nullopt;
        return rate;
    }

  private:
    double most_;
    bool known_ = false;
    std::uint64_t value_ = 0;
    MonotonicTime time_{0};
};

}  // namespace shardscope::profiler
