// A stretch of time between two instants chosen with the mouse, each snapped to the edge of an event if one
// is near, and its text. Pure; nanoseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "viewer/timeline/tracks.h"

namespace shardscope::viewer::timeline {

struct Measure {
    std::int64_t from = 0, to = 0;  // where the drag began; `to` may be before it
    std::int64_t first() const { return from < to ? from : to; }
    std::int64_t last() const { return from < to ? to : from; }
    std::int64_t length() const { return last() - first(); }
    bool operator==(const Measure&) const = default;
};

// The start or end of an event of the lane that is nearest to `time`, at most `reach` away; nullopt if there
// is none.
std::optional<std::int64_t> nearest_edge(const Lane& lane, std::int64_t time, std::int64_t reach);

// The nearest of some instants (edges of ranges, marks), at most `reach` away.
std::optional<std::int64_t> nearest_of(std::span<const std::int64_t> times, std::int64_t time,
                                       std::int64_t reach);

// "1.234567 ms from 10.5 ms to 11.734567 ms", to the nanosecond: the text that is copied.
std::string measure_text(const Measure& measure);

// An instant as on the ruler, to the nanosecond: "10.500000 ms".
std::string instant_text(std::int64_t ns);

}  // namespace shardscope::viewer::timeline
