// Steps moved to the device side, and which step a device event belongs to: shared by the analyses.
// Definition: docs/definitions.md, "Kinds of event" and "Execution Summary". Times in nanoseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "traces/analysis/base/intervals.h"
#include "traces/analysis/base/selection.h"

namespace shardscope::traces {

struct Trace;

// A step has two lengths, and whatever shows one says which: its host step and its window.
struct StepWindow {
    std::int64_t number = 0;
    Interval host;                   // the host step: the step's range on the rank's host thread
    Interval window;                 // from the end of earlier device work to the end of its own
    std::int64_t device_events = 0;  // launched in it
};

struct RankSteps {
    std::vector<StepWindow> steps;  // sorted by host start; windows are disjoint
    std::int64_t cut_steps = 0;     // steps at the end that were cut off and are not in `kept`
    std::int64_t kept() const { return static_cast<std::int64_t>(steps.size()) - cut_steps; }

    // Index of the step whose host interval holds t, -1 none.
    int step_at(std::int64_t t) const;
};

struct TraceSteps {
    std::vector<RankSteps> ranks;     // by index into Trace::ranks
    std::vector<std::int32_t> event;  // device event -> index into its rank's steps, -1 none
};

// A trace without any step is one step (number 0) a rank, from the rank's first to its last event.
TraceSteps find_steps(const Trace& trace);

// The number of the trace's first step, which warms up (memory pools, caches, compilation); none in a trace
// without steps. Headline medians leave it out where two or more others are kept.
std::optional<std::int64_t> warm_up_step(const Trace& trace);

// The first step of that number, nullptr where there is none. Numbers rise as a rule: log n then, else n.
const StepWindow* find_step(const std::vector<StepWindow>& steps, std::int64_t number);

// Device events that were launched before the recording began and ended before the first work of their rank
// that was launched in it: they belong to no step and delay the first.
std::int64_t count_backlog(const Trace& trace);

// When a device event was launched; its own start where no launch is known.
std::int64_t launched_at(const Trace& trace, std::size_t device_event);

// --- what a selection leaves -----------------------------------------------------------------------

std::vector<int> selected_ranks(const Trace& trace, const Selection& selection);  // indices into Trace::ranks

// The selection's time range; open ends reach as far as time does.
Interval selected_time(const Selection& selection);

// Host time of a rank that is selected: its selected steps' host intervals, within the time range.
IntervalSet selected_host_time(const RankSteps& steps, const Selection& selection);

// The kept steps of a rank that are selected, their windows clipped to the time range; steps outside it are
// left out.
std::vector<StepWindow> selected_windows(const RankSteps& steps, const Selection& selection);

// Which device events a selection leaves: of a selected rank, launched in a selected step (all where no step
// is selected), starting in the time range.
std::vector<bool> selected_events(const Trace& trace, const TraceSteps& steps, const Selection& selection);

}  // namespace shardscope::traces
