// The split of each step's window by priority; see summary.h.
#include "traces/analysis/time/summary.h"

#include <algorithm>
#include <span>
#include <utility>

#include "traces/analysis/base/intervals.h"
#include "traces/analysis/base/percentile.h"
#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/time/device_time.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

using CategoryUnions = std::array<IntervalSet, kTimeCategories>;  // that of `other` stays empty

constexpr std::size_t index(TimeCategory c) {
    return static_cast<std::size_t>(c);
}

TimeCategory category_of(store::DeviceKind kind) {
    switch (kind) {
        case store::DeviceKind::kernel:
            return TimeCategory::kernel;
        case store::DeviceKind::memcpy:
            return TimeCategory::memcpy;
        case store::DeviceKind::memset:
            return TimeCategory::memset;
        case store::DeviceKind::communication:
            return TimeCategory::communication;
    }
    return TimeCategory::other;
}

// `other` for kinds that are not work of their own: steps, modules and frames of the program.
TimeCategory category_of(store::RangeKind kind) {
    switch (kind) {
        case store::RangeKind::data_loader:
            return TimeCategory::data_loader;
        case store::RangeKind::annotation:
        case store::RangeKind::operation:
        case store::RangeKind::communication:
            return TimeCategory::cpu_exec;
        case store::RangeKind::module:
        case store::RangeKind::backward:
        case store::RangeKind::step:
        case store::RangeKind::function:
            break;
    }
    return TimeCategory::other;
}

// The time that each category covers, by rank. Each kind of event is sorted by start, so one pass merges.
std::vector<CategoryUnions> category_unions(const store::Trace& trace) {
    std::vector<CategoryUnions> ranks(trace.ranks.size());
    std::vector<KindUnions> device = device_unions(trace);
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        for (int k = 0; k < store::kDeviceKinds; ++k) {
            const auto kind = static_cast<store::DeviceKind>(k);
            ranks[r][index(category_of(kind))] = std::move(device[r][static_cast<std::size_t>(k)]);
        }
    }
    const auto add = [&](std::uint16_t thread, TimeCategory category, Interval time) {
        const store::RankIndex rank = trace.threads[thread].rank;
        if (!rank.known() || category == TimeCategory::other) return;
        append_merged(ranks[rank.at()][index(category)], time);
    };
    const store::RuntimeCalls& calls = trace.runtime;
    for (std::size_t i = 0; i < calls.size(); ++i) {
        add(calls.thread[i], TimeCategory::runtime, {calls.start[i], calls.end[i]});
    }
    const store::HostRanges& ranges = trace.ranges;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        add(ranges.thread[i], category_of(ranges.kind[i]), {ranges.start[i], ranges.end[i]});
    }
    return ranks;
}

// Merges communication into the kernel category.
void fold_communication(CategoryUnions& unions) {
    IntervalSet& kernel = unions[index(TimeCategory::kernel)];
    IntervalSet& communication = unions[index(TimeCategory::communication)];
    kernel.insert(kernel.end(), communication.begin(), communication.end());
    kernel = make_union(std::move(kernel));
    communication.clear();
}

// Each instant of the windows goes to the first category that covers it and is then not available to the
// later ones; what no category covers is Other.
void split(const CategoryUnions& unions, RankSummary& summary) {
    std::vector<Interval> windows;
    IntervalSet remaining;
    for (const StepSummary& step : summary.steps) {
        windows.push_back({step.window_start, step.window_end});
        append_merged(remaining, windows.back());
    }
    for (int c = 0; c < kTimeCategories; ++c) {
        const auto at = static_cast<std::size_t>(c);
        const bool last = static_cast<TimeCategory>(c) == TimeCategory::other;
        const IntervalSet taken = last ? remaining : intersect(remaining, unions[at]);
        const std::vector<std::int64_t> inside = length_inside(taken, windows);
        for (std::size_t s = 0; s < inside.size(); ++s) summary.steps[s].ns[at] = inside[s];
        if (!last) remaining = subtract(remaining, unions[at]);
    }
}

void average(RankSummary& summary, std::optional<std::int64_t> warm_up) {
    if (summary.steps.empty()) return;
    const double to_us = 1e-3 / static_cast<double>(summary.steps.size());
    std::int64_t windows = 0, host = 0;
    std::vector<std::int64_t> settled;
    std::array<std::int64_t, kTimeCategories> sums{};
    for (const StepSummary& step : summary.steps) {
        windows += step.window_end - step.window_start;
        host += step.host_ns;
        if (summary.steps.size() < 3 || step.number != warm_up)
            settled.push_back(step.window_end - step.window_start);
        else
            summary.first_left_out = true;
        for (std::size_t c = 0; c < sums.size(); ++c) sums[c] += step.ns[c];
    }
    summary.average_step_us = static_cast<double>(windows) * to_us;
    summary.average_host_step_us = static_cast<double>(host) * to_us;
    summary.median_step_us = percentile(std::span(settled), 0.5) * 1e-3;
    for (std::size_t c = 0; c < sums.size(); ++c) {
        summary.average_us[c] = static_cast<double>(sums[c]) * to_us;
    }
}

}  // namespace

ExecutionSummary summarize(const store::Trace& trace, const Selection& selection,
                           CommunicationAs communication) {
    const TraceSteps steps = find_steps(trace);
    std::vector<CategoryUnions> unions = category_unions(trace);
    const std::optional<std::int64_t> warm_up = warm_up_step(trace);
    const Interval time = selected_time(selection);
    ExecutionSummary result{.ranks = {}, .communication = communication, .stepped = !trace.steps.empty()};
    std::vector<bool> on_device(trace.ranks.size(), false);
    for (const std::uint16_t rank : trace.device.rank) on_device[rank] = true;
    for (const store::RankIndex r : selected_ranks(trace, selection)) {
        const std::size_t at = r.at();
        RankSummary summary;
        summary.rank = trace.ranks[at].number;
        summary.cut_steps = steps.ranks[at].cut_steps;
        summary.on_device = on_device[at];
        for (const StepWindow& step : selected_windows(steps.ranks[at], selection)) {
            StepSummary kept;
            kept.number = step.number;
            kept.window_start = step.window.start;
            kept.window_end = step.window.end;
            kept.host_ns = std::clamp(step.host.end, time.start, time.end) -
                           std::clamp(step.host.start, time.start, time.end);
            summary.steps.push_back(kept);
        }
        if (communication == CommunicationAs::kernel) fold_communication(unions[at]);
        split(unions[at], summary);
        average(summary, warm_up);
        result.ranks.push_back(std::move(summary));
    }
    return result;
}

double ExecutionSummary::mean_step_us() const {
    return mean_over(ranks, [](const RankSummary& rank) { return rank.average_step_us; });
}

Fields<CategoryTime> category_time_fields() {
    using C = CategoryTime;
    static constexpr Field<C> kFields[] = {
        {{"category", "Category", Unit::text, "The step, or a part of its time."}, value_of<&C::name>},
        {{"us", "Time", Unit::us, "Mean of the kept steps."}, [](const C& c) { return c.us; }},
        {{"percent", "Percent", Unit::number, "Share of the step."}, [](const C& c) { return c.percent; }},
    };
    return kFields;
}

std::vector<CategoryTime> category_times(const ExecutionSummary& summary, const RankSummary& rank) {
    std::vector<CategoryTime> times = {
        {"Average Step Time", rank.average_step_us, rank.average_step_us > 0 ? 100.0 : 0.0}};
    for (int c = 0; c < kTimeCategories; ++c) {
        const auto category = static_cast<TimeCategory>(c);
        const auto at = static_cast<std::size_t>(c);
        if (!summary.has(category)) continue;
        times.push_back({kTimeCategoryNames[at], {}, {}});
        if (rank.knows(category))
            times.back() = {kTimeCategoryNames[at], rank.average_us[at], rank.percent(category)};
    }
    return times;
}

}  // namespace shardscope::traces::analysis
