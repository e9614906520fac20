// See steps.h: the summary's steps with the other data of each.
#include "traces/analysis/time/steps.h"

#include <algorithm>
#include <map>

#include "traces/analysis/base/intervals.h"
#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/time/device_time.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces {
namespace {

// Losses by (rank's number, step).
using Losses = std::map<std::pair<int, std::int64_t>, double>;

Losses losses_of(const Trace& trace) {
    Losses losses;
    for (const Step& step : trace.steps) {
        const int rank = trace.ranks[static_cast<std::size_t>(step.rank)].number;
        if (step.loss) losses.emplace(std::pair(rank, step.number), *step.loss);
    }
    return losses;
}

// Counts of the selected device events, by rank index and the step's start on the host.
using EventCounts = std::map<std::pair<std::size_t, std::int64_t>, std::int64_t>;

EventCounts count_events(const Trace& trace, const TraceSteps& steps, const std::vector<bool>& selected) {
    EventCounts counts;
    for (std::size_t i = 0; i < selected.size(); ++i) {
        const std::int32_t step = steps.event[i];
        if (!selected[i] || step < 0) continue;
        const std::size_t rank = trace.device.rank[i];
        ++counts[{rank, steps.ranks[rank].steps[static_cast<std::size_t>(step)].host.start}];
    }
    return counts;
}

void find_slowest(RankStepDetails& rank) {
    if (rank.steps.empty()) return;
    std::vector<std::int64_t> windows;
    for (const StepDetail& step : rank.steps) windows.push_back(step.window());
    const auto [shortest, longest] = std::minmax_element(windows.begin(), windows.end());
    if (!are_alike(static_cast<double>(*longest), static_cast<double>(*shortest)))
        rank.slowest = std::find(windows.begin(), windows.end(), *longest) - windows.begin();
}

std::vector<StepAcrossRanks> across(const std::vector<RankStepDetails>& ranks) {
    std::map<std::int64_t, StepAcrossRanks> by_number;
    for (const RankStepDetails& rank : ranks) {
        for (const StepDetail& step : rank.steps) {
            const std::int64_t window = step.window();
            const auto [at, added] =
                by_number.try_emplace(step.summary.number, StepAcrossRanks{.number = step.summary.number,
                                                                           .slowest_rank = rank.rank,
                                                                           .longest = window,
                                                                           .shortest = window});
            if (added) continue;
            StepAcrossRanks& known = at->second;
            known.shortest = std::min(known.shortest, window);
            if (window > known.longest) {
                known.longest = window;
                known.slowest_rank = rank.rank;
            }
        }
    }
    std::vector<StepAcrossRanks> all;
    all.reserve(by_number.size());
    for (auto& [number, step] : by_number) {
        if (are_alike(static_cast<double>(step.longest), static_cast<double>(step.shortest)))
            step.slowest_rank = -1;
        all.push_back(step);
    }
    return all;
}

}  // namespace

StepsReport steps_report(const Trace& trace, const Selection& selection) {
    const ExecutionSummary summary = summarize(trace, selection);
    const TraceSteps steps = find_steps(trace);
    const std::vector<KindUnions> unions = device_unions(trace);
    const std::vector<int> ranks = selected_ranks(trace, selection);
    EventCounts events = count_events(trace, steps, selected_events(trace, steps, selection));
    const Interval time = selected_time(selection);
    const Losses losses = losses_of(trace);
    StepsReport report;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        const auto at = static_cast<std::size_t>(ranks[i]);
        const RankSummary& split = summary.ranks[i];
        const std::vector<StepWindow> windows = selected_windows(steps.ranks[at], selection);
        std::vector<Interval> clipped;
        clipped.reserve(windows.size());
        for (const StepWindow& step : windows) clipped.push_back(step.window);
        const std::vector<std::int64_t> device = length_inside(busy(unions[at]), clipped);

        RankStepDetails rank;
        rank.rank = split.rank;
        rank.cut_steps = split.cut_steps;
        rank.median_window = split.median_step_us * 1e3;
        rank.on_device = split.on_device;
        for (std::size_t s = 0; s < split.steps.size(); ++s) {
            const auto loss = losses.find({rank.rank, split.steps[s].number});
            rank.steps.push_back({.summary = split.steps[s],
                                  .host_start = std::clamp(windows[s].host.start, time.start, time.end),
                                  .host_end = std::clamp(windows[s].host.end, time.start, time.end),
                                  .device_events = events[{at, windows[s].host.start}],
                                  .device_busy = device[s],
                                  .loss = loss != losses.end() ? std::optional(loss->second) : std::nullopt});
        }
        find_slowest(rank);
        report.ranks.push_back(std::move(rank));
    }
    if (report.ranks.size() > 1) report.across = across(report.ranks);
    return report;
}

}  // namespace shardscope::traces
