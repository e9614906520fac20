// See overlap.h: lengths of unions inside the windows, one pass over each.
#include "traces/analysis/time/overlap.h"

#include <algorithm>
#include <functional>

#include "traces/analysis/base/intervals.h"
#include "traces/analysis/base/percentile.h"
#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/time/device_time.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

// The parts of each window; windows are sorted and disjoint.
std::vector<OverlapParts> parts_of(const IntervalSet& compute, const IntervalSet& communication,
                                   const IntervalSet& both, std::span<const Interval> windows) {
    const auto k = length_inside(compute, windows);
    const auto c = length_inside(communication, windows);
    const auto overlapped = length_inside(both, windows);
    std::vector<OverlapParts> parts(windows.size());
    for (std::size_t w = 0; w < windows.size(); ++w) {
        parts[w] = {.computation = k[w] - overlapped[w],
                    .overlapped = overlapped[w],
                    .exposed_communication = c[w] - overlapped[w],
                    .other = windows[w].length() - (k[w] + c[w] - overlapped[w])};
    }
    return parts;
}

void add(OverlapParts& sum, const OverlapParts& parts) {
    sum.computation += parts.computation;
    sum.overlapped += parts.overlapped;
    sum.exposed_communication += parts.exposed_communication;
    sum.other += parts.other;
}

}  // namespace

OverlapReport overlap_report(const store::Trace& trace, const Selection& selection) {
    const TraceSteps steps = find_steps(trace);
    const std::vector<KindUnions> unions = device_unions(trace);
    const std::vector<IntervalSet> presence = device_presence(trace);
    const Interval time = selected_time(selection);
    OverlapReport report;
    for (const store::RankIndex r : selected_ranks(trace, selection)) {
        const std::size_t at = r.at();
        const IntervalSet& compute = of(unions[at], store::DeviceKind::kernel);
        const IntervalSet& communication = of(unions[at], store::DeviceKind::communication);
        const IntervalSet both = intersect(compute, communication);

        RankOverlap rank;
        rank.rank = trace.ranks[at].number;
        rank.cut_steps = steps.ranks[at].cut_steps;
        std::vector<Interval> windows;
        for (const StepWindow& step : selected_windows(steps.ranks[at], selection)) {
            rank.steps.push_back({.number = step.number, .parts = {}});
            windows.push_back(step.window);
        }
        const auto parts = parts_of(compute, communication, both, windows);
        for (std::size_t s = 0; s < parts.size(); ++s) {
            rank.steps[s].parts = parts[s];
            add(rank.sum, parts[s]);
        }
        const std::vector<Interval> active = active_times(presence[at], std::span(&time, 1));
        if (!presence[at].empty()) rank.device_time = parts_of(compute, communication, both, active)[0];
        report.ranks.push_back(std::move(rank));
    }
    return report;
}

bool OverlapReport::any_communication() const {
    return std::any_of(ranks.begin(), ranks.end(),
                       [](const RankOverlap& rank) { return rank.sum.communication() > 0; });
}

double OverlapReport::mean_exposed_us() const {
    return mean_over(ranks,
                     [](const RankOverlap& rank) { return rank.mean_us(rank.sum.exposed_communication); });
}

double OverlapReport::mean_overlap_percent() const {
    return mean_over(ranks, [](const RankOverlap& rank) { return rank.sum.overlap_percent(); });
}

namespace {

template <auto Part>
store::Cell mean_of(const MeanOverlap& mean) {
    const OverlapParts& parts = mean.parts;
    return static_cast<double>(std::invoke(Part, parts)) * 1e-3 / mean.steps;
}

}  // namespace

Fields<MeanOverlap> overlap_fields() {
    using P = OverlapParts;
    static constexpr Field<MeanOverlap> kFields[] = {
        {{"window_us", "Window", Unit::us, "The step's window.", in_table | in_csv}, mean_of<&P::whole>},
        {{"computation_us", "Computation", Unit::us, "Compute kernels without overlapping communication."},
         mean_of<&P::computation>},
        {{"overlapped_us", "Overlapped", Unit::us, "Communication that overlaps compute kernels."},
         mean_of<&P::overlapped>},
        {{"exposed_communication_us", "Exposed comm.", Unit::us, "Communication outside compute kernels."},
         mean_of<&P::exposed_communication>},
        {{"other_us", "Other", Unit::us, "Neither: copies, and nothing at all."}, mean_of<&P::other>},
        {{"communication_us", "", Unit::us, "Overlapped and exposed communication.", in_json},
         mean_of<&P::communication>},
        {{"window_us", "", Unit::us, "The step's window.", in_json}, mean_of<&P::whole>},
        {{"overlap_percent", "Overlap", Unit::percent,
          "Share of communication that overlaps compute kernels."},
         [](const MeanOverlap& mean) {
             return mean.parts.communication() > 0 ? store::Cell(mean.parts.overlap_percent())
                                                   : store::Cell();
         }},
    };
    return kFields;
}

}  // namespace shardscope::traces::analysis
