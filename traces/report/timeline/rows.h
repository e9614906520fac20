// The rows of the HTML timeline: those of the viewer, in its order. Each rank is a group with its memory, its
// tracks and its counters; collectives joined across ranks come first, threads of no rank and counters of
// hosts last. Pure. Times in nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "traces/analysis/base/intervals.h"
#include "traces/analysis/base/selection.h"
#include "traces/lanes/tracks.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::report {

struct TimelineGroup {
    std::string label, note;  // note: the rank's device
    store::RankIndex rank;    // none: no rank, or several
};

struct TimelineCurve {  // a step function
    std::size_t group = 0;
    std::string label;
    std::string unit;  // of a counter (lanes/counter_words.h): "W", "bytes"
    bool is_bytes = false;
    bool is_counter = false;  // else the rank's memory, above its tracks
    std::vector<std::int64_t> time;
    std::vector<double> value;  // from the time on
};

struct TimelineTrack {
    std::size_t group = 0;
    std::size_t track = 0;  // index into Tracks::tracks
};

struct TimelineRows {
    analysis::Interval time;  // what the page shows
    lanes::Tracks tracks;
    std::vector<TimelineGroup> groups;
    std::vector<TimelineCurve> curves;  // by group
    std::vector<TimelineTrack> rows;    // by group
};

TimelineRows timeline_rows(const store::Trace& trace, const analysis::Selection& selection);

}  // namespace shardscope::traces::report
