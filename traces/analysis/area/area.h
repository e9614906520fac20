// The events of an area of rows x time, or all of one name: how many, how long, and how much of their
// communication is exposed. Definition: docs/definitions.md, "Area". Pure; any thread. Times in nanoseconds.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/analysis/area/event_groups.h"
#include "traces/analysis/base/intervals.h"
#include "traces/analysis/base/result_table.h"
#include "traces/store/columns/event_columns.h"

namespace shardscope::traces::analysis {

struct Area {
    std::vector<bool> streams;             // by index into Trace::streams: their device events
    std::vector<bool> threads;             // by index into Trace::threads: their ranges and calls
    std::vector<bool> marks;               // likewise: their marks
    std::vector<bool> waits;               // by rank index: waiting for events, streams and devices
    std::vector<std::int64_t> groups;      // process groups: all ranks' parts; -1: of no known group
    Interval time;                         // half-open
    std::optional<schema::StringId> name;  // only events of this name
};

// All rows of a trace, for all of its time.
Area whole_area(const store::Trace& trace);

struct AreaGroup {
    std::string name;
    int group = -1;  // of the grouping
    std::int64_t count = 0, cut = 0;
    std::int64_t sum = 0, busy = 0;  // inside the area
    std::int64_t whole = 0, shortest = 0, longest = 0;
    std::int64_t communication = 0, exposed = 0;  // unions of each rank, inside the area
    double mean() const { return count > 0 ? static_cast<double>(whole) / static_cast<double>(count) : 0; }
    double exposed_percent() const {
        return communication > 0 ? 100.0 * static_cast<double>(exposed) / static_cast<double>(communication)
                                 : 0;
    }
};

Fields<AreaGroup> area_fields();

struct AreaReport {
    AreaGroup all;
    std::vector<AreaGroup> groups;  // the largest sum first; then by name
};

// Ends early, with the events so far, once `cancel` is set.
AreaReport area_report(const store::Trace& trace, const Area& area, GroupBy by,
                       const std::atomic<bool>& cancel);

// The events that the report counts: all, or those of one group (AreaGroup::group).
store::EventList area_events(const store::Trace& trace, const Area& area, GroupBy by,
                             std::optional<int> group, const std::atomic<bool>& cancel);

// Durations in bins of equal width, or of equal ratio if the longest is many times the shortest.
struct DurationBins {
    bool logarithmic = false;
    double low = 0, high = 1;          // of the first and the last bin
    std::vector<std::int64_t> counts;  // by bin
    std::size_t bin_of(std::int64_t duration) const;
    double edge(std::size_t bin) const;  // its lower end; of counts.size(): `high`
};
DurationBins duration_bins(const store::Trace& trace, const store::EventList& events, std::size_t bins);

}  // namespace shardscope::traces::analysis
