// Converts CUPTI's clock, CLOCK_REALTIME, to trace time. Both advance alike except when the system's clock is
// set. Pairs of both, measured in the program before each batch of records, form stretches without such a
// step; a time belongs to the stretch that contains it, else to the nearest. One thread; nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profiler/base/clock.h"

namespace shardscope::profiler {

class CudaClock {
  public:
    // Two pairs that differ by more have a step between them. (A measurement is good to a few hundred ns.)
    static constexpr std::int64_t kStep = 50'000;

    // Adds a pair, later than all before. Returns the step that precedes it, if there is one: positive if the
    // system's clock was set ahead.
    std::optional<std::int64_t> add(RealTime time, std::int64_t trace);

    static constexpr RealTime kLatest{4'000'000'000'000'000'000};  // in the year 2096: nothing is later

    // Converts both ends of an event to trace time. False before the first pair, and for times that no clock
    // can have shown.
    bool place(RealTime start, RealTime end, std::int64_t* trace_start, std::int64_t* trace_end) const;

    // A sentence about a step that add() found at that trace time.
    static std::string describe_step(std::int64_t step, std::int64_t trace);

    // std::nullopt before the first pair.
    std::optional<std::int64_t> to_trace(RealTime time) const;

  private:
    struct Pair {
        RealTime time;
        std::int64_t offset;  // trace time = time - offset
    };
    struct Stretch {
        std::vector<Pair> pairs;  // increasing time; never empty
    };
    static constexpr std::size_t kMostPairs = 4096;    // per stretch; then every second older one is dropped
    static constexpr std::size_t kMostStretches = 64;  // then the oldest are dropped
    static std::int64_t offset_at(const Stretch& stretch, RealTime time);

    std::vector<Stretch> stretches_;
};

}  // namespace shardscope::profiler
