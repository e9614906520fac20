// Step windows on the device side; see step_windows.h.
#include "traces/analysis/base/step_windows.h"

#include <algorithm>
#include <limits>

#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// The extent of a step's device work.
struct DeviceSpan {
    std::int64_t first_start = kNever;
    std::int64_t last_end = std::numeric_limits<std::int64_t>::min();
};

// The extent of all events of a rank, for a trace without steps.
std::vector<Interval> extents(const store::Trace& trace) {
    std::vector<Interval> all(trace.ranks.size(), {kNever, std::numeric_limits<std::int64_t>::min()});
    const auto grow = [&](store::RankIndex rank, std::int64_t start, std::int64_t end) {
        if (!rank.known()) return;
        Interval& extent = all[rank.at()];
        extent.start = std::min(extent.start, start);
        extent.end = std::max(extent.end, end);
    };
    const store::DeviceEvents& device = trace.device;
    for (std::size_t i = 0; i < device.size(); ++i)
        grow(store::RankIndex(device.rank[i]), device.start[i], device.end[i]);
    const auto rank_of = [&](std::uint16_t thread) { return trace.threads[thread].rank; };
    const store::HostRanges& ranges = trace.ranges;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        grow(rank_of(ranges.thread[i]), ranges.start[i], ranges.end[i]);
    }
    const store::RuntimeCalls& calls = trace.runtime;
    for (std::size_t i = 0; i < calls.size(); ++i) {
        grow(rank_of(calls.thread[i]), calls.start[i], calls.end[i]);
    }
    return all;
}

void add_host_steps(const store::Trace& trace, TraceSteps& result) {
    if (trace.steps.empty()) {
        const std::vector<Interval> all = extents(trace);
        for (std::size_t r = 0; r < all.size(); ++r) {
            if (all[r].start > all[r].end) continue;
            result.ranks[r].steps.push_back({.number = 0, .host = all[r], .window = all[r]});
        }
        return;
    }
    for (const store::Step& step : trace.steps) {
        const Interval host{step.start, std::max(step.start, step.end)};
        result.ranks[step.rank.at()].steps.push_back({.number = step.number, .host = host, .window = host});
    }
}

// Number of steps at the end that a stopped capture cut off: those without any device work, then one with
// less than 80 % of the previous step's device events.
std::int64_t count_cut(const std::vector<StepWindow>& steps) {
    std::size_t kept = steps.size();
    const bool any =
        std::any_of(steps.begin(), steps.end(), [](const auto& s) { return s.device_events > 0; });
    if (!any) return 0;
    while (kept > 1 && steps[kept - 1].device_events == 0) --kept;
    if (kept > 1 && steps[kept - 1].device_events * 5 < steps[kept - 2].device_events * 4) --kept;
    return static_cast<std::int64_t>(steps.size() - kept);
}

// Work that was launched before the recording began and was still queued or running then: no call or
// operator of the trace launched it, and it ended before the first work that one of them launched. It
// belongs to no step.
std::vector<bool> backlog_of(const store::Trace& trace) {
    const store::DeviceEvents& device = trace.device;
    std::vector<std::int64_t> first_launched(trace.ranks.size(), std::numeric_limits<std::int64_t>::min());
    std::vector<bool> is_backlog(device.size(), false);
    const auto launched = [&](std::size_t i) { return device.launch[i] >= 0 || device.range[i] >= 0; };
    for (std::size_t i = device.size(); i-- > 0;) {  // sorted by start
        if (launched(i)) first_launched[device.rank[i]] = device.start[i];
    }
    for (std::size_t i = 0; i < device.size(); ++i) {
        is_backlog[i] = !launched(i) && device.end[i] <= first_launched[device.rank[i]];
    }
    return is_backlog;
}

}  // namespace

std::int64_t count_backlog(const store::Trace& trace) {
    const std::vector<bool> backlog = backlog_of(trace);
    return std::count(backlog.begin(), backlog.end(), true);
}

int RankSteps::step_at(std::int64_t t) const {
    const auto after =
        std::upper_bound(steps.begin(), steps.end(), t,
                         [](std::int64_t at, const StepWindow& s) { return at < s.host.start; });
    if (after == steps.begin()) return -1;
    const auto step = after - 1;
    return t < step->host.end || t == step->host.start ? static_cast<int>(step - steps.begin()) : -1;
}

const StepWindow* find_step(const std::vector<StepWindow>& steps, std::int64_t number) {
    auto at = std::lower_bound(steps.begin(), steps.end(), number,
                               [](const StepWindow& s, std::int64_t n) { return s.number < n; });
    if (at == steps.end() || at->number != number) {
        at = std::find_if(steps.begin(), steps.end(),
                          [number](const StepWindow& s) { return s.number == number; });
    }
    return at == steps.end() ? nullptr : &*at;
}

std::optional<std::int64_t> warm_up_step(const store::Trace& trace) {
    const auto first =
        std::min_element(trace.steps.begin(), trace.steps.end(),
                         [](const store::Step& a, const store::Step& b) { return a.number < b.number; });
    return first != trace.steps.end() ? std::optional(first->number) : std::nullopt;
}

std::int64_t launched_at(const store::Trace& trace, std::size_t device_event) {
    const std::int32_t launch = trace.device.launch[device_event];
    return launch >= 0 ? trace.runtime.start[static_cast<std::size_t>(launch)]
                       : trace.device.start[device_event];
}

TraceSteps find_steps(const store::Trace& trace) {
    TraceSteps result;
    result.ranks.resize(trace.ranks.size());
    add_host_steps(trace, result);

    const store::DeviceEvents& device = trace.device;
    result.event.assign(device.size(), -1);
    const std::vector<bool> backlog = backlog_of(trace);
    std::vector<std::vector<DeviceSpan>> spans(trace.ranks.size());
    for (std::size_t r = 0; r < spans.size(); ++r) spans[r].resize(result.ranks[r].steps.size());
    for (std::size_t i = 0; i < device.size(); ++i) {
        RankSteps& rank = result.ranks[device.rank[i]];
        // In a trace without steps everything belongs to the one step.
        const int step = trace.steps.empty() ? 0 : backlog[i] ? -1 : rank.step_at(launched_at(trace, i));
        result.event[i] = step;
        if (step < 0) continue;
        ++rank.steps[static_cast<std::size_t>(step)].device_events;
        DeviceSpan& span = spans[device.rank[i]][static_cast<std::size_t>(step)];
        span.first_start = std::min(span.first_start, device.start[i]);
        span.last_end = std::max(span.last_end, device.end[i]);
    }

    // Device work that belongs to no step (set-up, backlog) delays the first step if it ended before the
    // step's own work began.
    std::vector<std::int64_t> ready(trace.ranks.size(), std::numeric_limits<std::int64_t>::min());
    for (std::size_t i = 0; i < device.size(); ++i) {
        const std::uint16_t rank = device.rank[i];
        if (result.event[i] >= 0 || spans[rank].empty()) continue;
        const std::int64_t first = spans[rank].front().first_start;
        if (first != kNever && device.end[i] <= first) ready[rank] = std::max(ready[rank], device.end[i]);
    }
    for (std::size_t r = 0; r < result.ranks.size(); ++r) {
        std::int64_t free_from = ready[r];
        for (std::size_t s = 0; s < result.ranks[r].steps.size(); ++s) {
            StepWindow& step = result.ranks[r].steps[s];
            step.window.start = std::max(step.host.start, free_from);
            step.window.end = std::max({step.host.end, spans[r][s].last_end, step.window.start});
            free_from = step.window.end;
        }
        result.ranks[r].cut_steps = count_cut(result.ranks[r].steps);
    }
    return result;
}

std::vector<store::RankIndex> selected_ranks(const store::Trace& trace, const Selection& selection) {
    std::vector<store::RankIndex> indices;
    for (std::size_t r = 0; r < trace.ranks.size(); ++r) {
        if (!selection.rank || trace.ranks[r].number == *selection.rank) indices.emplace_back(r);
    }
    return indices;
}

Interval selected_time(const Selection& selection) {
    return {selection.from_ns.value_or(std::numeric_limits<std::int64_t>::min()),
            selection.to_ns.value_or(kNever)};
}

std::vector<IntervalSet> selected_host_times(const store::Trace& trace, const TraceSteps& steps,
                                             const Selection& selection) {
    std::vector<IntervalSet> times(trace.ranks.size());
    for (const store::RankIndex rank : selected_ranks(trace, selection))
        times[rank.at()] = selected_host_time(steps.ranks[rank.at()], selection);
    return times;
}

IntervalSet selected_host_time(const RankSteps& steps, const Selection& selection) {
    const Interval time = selected_time(selection);
    if (!selection.first_step && !selection.last_step) return {time};
    IntervalSet selected;
    for (const StepWindow& step : steps.steps) {
        if (selection.has_step(step.number)) append_merged(selected, step.host);
    }
    return intersect(selected, std::span(&time, 1));
}

std::vector<StepWindow> selected_windows(const RankSteps& steps, const Selection& selection) {
    const Interval time = selected_time(selection);
    std::vector<StepWindow> selected;
    for (std::int64_t s = 0; s < steps.kept(); ++s) {
        StepWindow step = steps.steps[static_cast<std::size_t>(s)];
        if (!selection.has_step(step.number)) continue;
        if (step.window.end <= time.start || step.window.start >= time.end) continue;
        step.window = {std::max(step.window.start, time.start), std::min(step.window.end, time.end)};
        selected.push_back(step);
    }
    return selected;
}

std::vector<bool> selected_events(const store::Trace& trace, const TraceSteps& steps,
                                  const Selection& selection) {
    const Interval time = selected_time(selection);
    const bool by_step = selection.first_step || selection.last_step;
    const store::DeviceEvents& device = trace.device;
    std::vector<bool> selected(device.size(), false);
    for (std::size_t i = 0; i < device.size(); ++i) {
        if (selection.rank && trace.ranks[device.rank[i]].number != *selection.rank) continue;
        if (device.start[i] < time.start || device.start[i] >= time.end) continue;
        if (by_step) {
            const std::int32_t step = steps.event[i];
            if (step < 0) continue;
            const auto& window = steps.ranks[device.rank[i]].steps[static_cast<std::size_t>(step)];
            if (!selection.has_step(window.number)) continue;
        }
        selected[i] = true;
    }
    return selected;
}

}  // namespace shardscope::traces::analysis
