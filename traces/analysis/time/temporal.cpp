// See temporal.h.
#include "traces/analysis/time/temporal.h"

#include <algorithm>
#include <functional>

#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/time/device_time.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

// A rank's device time in disjoint parts.
struct DeviceParts {
    IntervalSet busy, compute, communication, memory;
};

DeviceParts device_parts(const KindUnions& unions) {
    DeviceParts parts;
    parts.busy = busy(unions);
    parts.compute = of(unions, store::DeviceKind::kernel);
    parts.communication = subtract(of(unions, store::DeviceKind::communication), parts.compute);
    parts.memory = subtract(subtract(parts.busy, parts.compute), parts.communication);
    return parts;
}

std::vector<TemporalParts> split(const DeviceParts& device, std::span<const Interval> times) {
    const auto busy = length_inside(device.busy, times);
    const auto compute = length_inside(device.compute, times);
    const auto communication = length_inside(device.communication, times);
    const auto memory = length_inside(device.memory, times);
    std::vector<TemporalParts> parts(times.size());
    for (std::size_t i = 0; i < times.size(); ++i) {
        parts[i] = {.time = times[i],
                    .idle = times[i].length() - busy[i],
                    .compute = compute[i],
                    .exposed_communication = communication[i],
                    .exposed_memory = memory[i]};
    }
    return parts;
}

void add(TemporalParts& sum, const TemporalParts& parts) {
    sum.time = sum.whole() == 0 ? parts.time
                                : Interval{std::min(sum.time.start, parts.time.start),
                                           std::max(sum.time.end, parts.time.end)};
    sum.idle += parts.idle;
    sum.compute += parts.compute;
    sum.exposed_communication += parts.exposed_communication;
    sum.exposed_memory += parts.exposed_memory;
}

}  // namespace

TemporalReport temporal_breakdown(const store::Trace& trace, const Selection& selection) {
    const TraceSteps steps = find_steps(trace);
    const std::vector<KindUnions> unions = device_unions(trace);
    const std::vector<IntervalSet> presence = device_presence(trace);
    const bool by_step = selection.first_step || selection.last_step;
    const Interval time = selected_time(selection);
    TemporalReport report;
    for (const store::RankIndex r : selected_ranks(trace, selection)) {
        const std::size_t at = r.at();
        const DeviceParts device = device_parts(unions[at]);
        RankTemporal rank;
        rank.rank = trace.ranks[at].number;
        rank.cut_steps = steps.ranks[at].cut_steps;
        const std::vector<StepWindow> selected = selected_windows(steps.ranks[at], selection);
        std::vector<Interval> windows;
        windows.reserve(selected.size());
        for (const StepWindow& step : selected) windows.push_back(step.window);
        const auto parts = split(device, active_times(presence[at], windows));
        for (std::size_t s = 0; s < parts.size(); ++s) {
            if (parts[s].whole() == 0) continue;
            if (by_step) add(rank.whole, parts[s]);
            rank.steps.push_back({.number = selected[s].number, .parts = parts[s]});
        }
        if (!by_step) rank.whole = split(device, active_times(presence[at], std::span(&time, 1)))[0];
        if (rank.whole.whole() == 0) rank.whole.time = {};
        report.ranks.push_back(std::move(rank));
    }
    return report;
}

namespace {

template <auto Part>
store::Cell part_of(const TemporalParts& parts) {
    return us_cell(static_cast<double>(std::invoke(Part, parts)));
}
template <auto Part>
store::Cell share_of(const TemporalParts& parts) {
    const auto whole = static_cast<double>(parts.whole());
    return whole > 0 ? 100.0 * static_cast<double>(std::invoke(Part, parts)) / whole : 0.0;
}

}  // namespace

Fields<TemporalParts> temporal_fields() {
    using P = TemporalParts;
    static constexpr Field<P> kFields[] = {
        {{"total_us", "Total", Unit::us, "From the first to the last device event."}, part_of<&P::whole>},
        {{"idle_us", "Idle", Unit::us, "No device event ran."}, part_of<&P::idle>},
        {{"idle_percent", "%", Unit::percent, "Share of the total.", in_table}, share_of<&P::idle>},
        {{"compute_us", "Compute", Unit::us, "Union of compute kernels."}, part_of<&P::compute>},
        {{"compute_percent", "%", Unit::percent, "Share of the total.", in_table}, share_of<&P::compute>},
        {{"exposed_communication_us", "Comm.", Unit::us, "Communication outside compute kernels."},
         part_of<&P::exposed_communication>},
        {{"exposed_communication_percent", "%", Unit::percent, "Share of the total.", in_table},
         share_of<&P::exposed_communication>},
        {{"exposed_memory_us", "Memory", Unit::us, "Copies and fills outside compute and communication."},
         part_of<&P::exposed_memory>},
        {{"exposed_memory_percent", "%", Unit::percent, "Share of the total.", in_table},
         share_of<&P::exposed_memory>},
        {{"non_compute_us", "", Unit::us, "Exposed communication and memory.", in_json},
         part_of<&P::non_compute>},
        {{"start_ns", "", Unit::ns, "Where the time begins.", in_json},
         [](const P& parts) { return store::Cell(parts.time.start); }},
        {{"end_ns", "", Unit::ns, "Where it ends.", in_json},
         [](const P& parts) { return store::Cell(parts.time.end); }},
    };
    return kFields;
}

}  // namespace shardscope::traces::analysis
