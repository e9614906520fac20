// Steps on the device side, and the step that a device event belongs to: shared by the analyses. Definition:
// docs/definitions.md, "Kinds of event" and "Execution Summary". Times in nanoseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "traces/analysis/base/intervals.h"
#include "traces/analysis/base/selection.h"
#include "traces/store/columns/index.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

// A step has two lengths, its host step and its window; every output says which one it shows.
struct StepWindow {
    std::int64_t number = 0;
    Interval host;                   // the host step: the step's range on the rank's host thread
    Interval window;                 // from the end of earlier device work to the end of its own
    std::int64_t device_events = 0;  // launched in the step
};

struct RankSteps {
    std::vector<StepWindow> steps;  // sorted by host start; windows are disjoint
    std::int64_t cut_steps = 0;     // steps at the end that were cut off and are not in `kept`
    std::int64_t kept() const { return static_cast<std::int64_t>(steps.size()) - cut_steps; }

    // Index of the step whose host interval contains t, -1 none.
    int step_at(std::int64_t t) const;
};

struct TraceSteps {
    std::vector<RankSteps> ranks;     // by rank index
    std::vector<std::int32_t> event;  // device event -> index into its rank's steps, -1 none
};

// In a trace without steps each rank has one step (number 0), from its first to its last event.
TraceSteps find_steps(const store::Trace& trace);

// The number of the trace's first step, which warms up (memory pools, caches, compilation); none in a trace
// without steps. Headline medians exclude it if at least two other steps are kept.
std::optional<std::int64_t> warm_up_step(const store::Trace& trace);

// The first step with that number, nullptr if there is none. O(log n) if the numbers rise, as they usually
// do, else O(n).
const StepWindow* find_step(const std::vector<StepWindow>& steps, std::int64_t number);

// Device events that were launched before the recording began and ended before the rank's first work that was
// launched in it: they belong to no step and delay the first.
std::int64_t count_backlog(const store::Trace& trace);

// When a device event was launched; its own start if no launch is known.
std::int64_t launched_at(const store::Trace& trace, std::size_t device_event);

// --- selection -------------------------------------------------------------------------------------

std::vector<store::RankIndex> selected_ranks(const store::Trace& trace, const Selection& selection);

// The selection's time range; open ends extend to the limits of time.
Interval selected_time(const Selection& selection);

// The selected host time of a rank: the host intervals of its selected steps, within the time range.
IntervalSet selected_host_time(const RankSteps& steps, const Selection& selection);

// The same for each rank; empty for ranks that are not selected.
std::vector<IntervalSet> selected_host_times(const store::Trace& trace, const TraceSteps& steps,
                                             const Selection& selection);

// The selected kept steps of a rank, their windows clipped to the time range; steps outside it are omitted.
std::vector<StepWindow> selected_windows(const RankSteps& steps, const Selection& selection);

// Which device events are selected: those of a selected rank, launched in a selected step (any if no step is
// selected), that start in the time range.
std::vector<bool> selected_events(const store::Trace& trace, const TraceSteps& steps,
                                  const Selection& selection);

}  // namespace shardscope::traces::analysis
