// The flame chart of one call of a module: the ranges nested in it, the runtime calls made inside and the
// device work launched inside, as lanes of bars that do not overlap; and the choice among a module's calls.
// Pure arithmetic over a trace, no drawing; any thread. Times in nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/analysis/modules/modules.h"
#include "traces/store/columns/trace.h"
#include "viewer/model/session.h"
#include "viewer/model/time_view.h"

namespace shardscope::viewer::panels {

struct FlameBar {
    std::int64_t start = 0, end = 0;
    std::int32_t index = -1;  // into the table for the lane's kind of event
};

struct FlameLane {
    model::EventKind kind = model::EventKind::range;
    std::string title;  // "host", "runtime calls", the stream's name; empty for further lanes of a kind
    std::vector<FlameBar> bars;  // sorted by start, not overlapping
};

struct FlameChart {
    std::int32_t range = -1;  // the call: a row of HostRanges
    traces::store::RankIndex rank;
    model::TimeRange call;    // the call's time on the host
    model::TimeRange time;    // the call and the device work launched inside
    std::int64_t ranges = 0;  // nested in the call and shown
    std::int64_t frames = 0;  // frames of the host program nested in the call, shown or hidden
    std::int64_t device_events = 0, device_ns = 0;  // launched inside: count and summed durations
    std::vector<FlameLane> lanes;                   // ranges by depth, then runtime calls, then streams
};

// Frames of the host program (Python's functions, in traces with stacks) are many, and most lie between one
// module and the next.
enum class Frames { hidden, shown };

// Scans the columns of the trace once: use a worker thread for long traces.
FlameChart make_flame(const traces::store::Trace& trace, std::int32_t range, Frames frames = Frames::hidden);

// The bars of a lane in `view`, in columns of a pixel: bars shorter than a column are merged with those that
// end in the same column. At most two for each column.
struct ShownBar {
    double x0 = 0, x1 = 0;  // pixels from the left edge; x1 - x0 is at least 1
    std::size_t first = 0, count = 1;
};
std::vector<ShownBar> shown_bars(const FlameLane& lane, const model::TimeView& view);

// --- which call ------------------------------------------------------------------------------------

enum class CallDirection { forward, backward };

// Rows of HostRanges, in the order of their start.
std::vector<std::int32_t> calls_in(const traces::analysis::CallsOfModule& module, CallDirection direction);

// Indices into `calls` by the host's time in them; none if there are no calls. Among equals the first; for an
// even number of calls the median is the shorter of the two in the middle.
std::optional<std::size_t> slowest_call(const traces::store::Trace& trace,
                                        const std::vector<std::int32_t>& calls);
std::optional<std::size_t> median_call(const traces::store::Trace& trace,
                                       const std::vector<std::int32_t>& calls);

// The longest call of each column when n calls share `columns` columns equally; 0 columns if there are no
// calls, and never more columns than calls.
std::vector<std::int64_t> longest_by_column(const traces::store::Trace& trace,
                                            const std::vector<std::int32_t>& calls, int columns);

}  // namespace shardscope::viewer::panels
