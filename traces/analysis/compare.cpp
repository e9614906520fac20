// Per-step figures of each run, then their means and spreads; see compare.h.
#include "traces/analysis/compare.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <span>

#include "traces/analysis/device_time.h"
#include "traces/analysis/intervals.h"
#include "traces/analysis/step_windows.h"
#include "traces/store/trace.h"

namespace shardscope::traces {
namespace {

// What one step of one rank did, in us (busy in percent of the window).
struct StepFigures {
    double window = 0, communication = 0, exposed = 0, memcpy = 0, busy = 0;
    std::array<double, kTimeCategories> categories{};
};

using FiguresByStep = std::map<std::int64_t, std::vector<StepFigures>>;  // step number -> one for each rank

std::vector<StepFigures> rank_figures(const RankSummary& summary, const KindUnions& unions) {
    std::vector<Interval> windows;
    for (const StepSummary& step : summary.steps) windows.push_back({step.window_start, step.window_end});
    const IntervalSet& communication = of(unions, DeviceKind::communication);
    const auto communicating = length_inside(communication, windows);
    const auto exposed = length_inside(subtract(communication, of(unions, DeviceKind::kernel)), windows);
    const auto copying = length_inside(of(unions, DeviceKind::memcpy), windows);
    const auto working = length_inside(busy(unions), windows);
    const auto us = [](std::int64_t ns) { return static_cast<double>(ns) * 1e-3; };
    std::vector<StepFigures> figures(windows.size());
    for (std::size_t s = 0; s < figures.size(); ++s) {
        StepFigures& f = figures[s];
        f.window = us(windows[s].length());
        f.communication = us(communicating[s]);
        f.exposed = us(exposed[s]);
        f.memcpy = us(copying[s]);
        f.busy = f.window > 0 ? 100.0 * us(working[s]) / f.window : 0;
        for (std::size_t c = 0; c < f.categories.size(); ++c) f.categories[c] = us(summary.steps[s].ns[c]);
    }
    return figures;
}

template <typename Get>
Spread spread_over_steps(const FiguresByStep& steps, Get get) {
    std::vector<double> values;
    for (const auto& [number, ranks] : steps) {
        double sum = 0;
        for (const StepFigures& f : ranks) sum += get(f);
        values.push_back(sum / static_cast<double>(ranks.size()));
    }
    return spread_of(std::move(values));
}

void fill_times(const Trace& trace, const Selection& selection, RunColumn& run) {
    const ExecutionSummary summary = summarize(trace, selection);
    const std::vector<int> selected = selected_ranks(trace, selection);  // in the summary's order
    run.ranks = static_cast<int>(selected.size());
    run.stepped = !trace.steps.empty();
    const std::vector<KindUnions> unions = device_unions(trace);
    FiguresByStep by_step;
    double ranks = 0;
    for (std::size_t r = 0; r < summary.ranks.size(); ++r) {
        const RankSummary& rank = summary.ranks[r];
        if (rank.steps.empty()) continue;
        ++ranks;
        const auto steps = static_cast<double>(rank.steps.size());
        run.steps = std::max(run.steps, static_cast<std::int64_t>(rank.steps.size()));
        run.mean_steps += steps;
        run.average_step_us += rank.average_step_us;
        for (std::size_t c = 0; c < run.categories_us.size(); ++c) run.categories_us[c] += rank.average_us[c];
        const std::vector<StepFigures> figures =
            rank_figures(rank, unions[static_cast<std::size_t>(selected[r])]);
        double busy_us = 0;
        for (std::size_t s = 0; s < figures.size(); ++s) {
            const StepFigures& f = figures[s];
            run.communication_us += f.communication / steps;
            run.exposed_communication_us += f.exposed / steps;
            run.memcpy_us += f.memcpy / steps;
            busy_us += f.busy * f.window;
            by_step[rank.steps[s].number].push_back(f);
        }
        const double windows = rank.average_step_us * steps;
        if (windows > 0) run.device_busy_percent += busy_us / windows;
    }
    if (ranks == 0) return;
    for (double* sum : {&run.average_step_us, &run.communication_us, &run.exposed_communication_us,
                        &run.memcpy_us, &run.device_busy_percent, &run.mean_steps}) {
        *sum /= ranks;
    }
    for (double& sum : run.categories_us) sum /= ranks;
    FiguresByStep settled = by_step;
    if (const auto warm_up = warm_up_step(trace); warm_up && settled.size() > 2) settled.erase(*warm_up);
    const Spread step = spread_over_steps(settled, [](const StepFigures& f) { return f.window; });
    run.median_step_us = step.median;
    run.spread_step_us = step.spread;
    for (std::size_t c = 0; c < run.categories_us.size(); ++c) {
        run.categories_spread[c] =
            spread_over_steps(by_step, [c](const StepFigures& f) { return f.categories[c]; });
    }
    run.communication_spread =
        spread_over_steps(by_step, [](const StepFigures& f) { return f.communication; });
    run.exposed_communication_spread =
        spread_over_steps(by_step, [](const StepFigures& f) { return f.exposed; });
    run.memcpy_spread = spread_over_steps(by_step, [](const StepFigures& f) { return f.memcpy; });
    run.device_busy_spread = spread_over_steps(by_step, [](const StepFigures& f) { return f.busy; });
}

void fill_memory(const Trace& trace, const Selection& selection, RunColumn& run) {
    const MemoryReport memory = memory_report(trace, selection);
    const auto most = std::max_element(
        memory.ranks.begin(), memory.ranks.end(),
        [](const RankMemory& a, const RankMemory& b) { return a.peak_bytes < b.peak_bytes; });
    if (most == memory.ranks.end()) return;
    run.peak_bytes = most->peak_bytes;
    run.at_peak = most->at_peak;
    const bool whole = most->prediction_applies || most->predicted_of_steps < 0;
    run.predicted_peak_bytes = whole ? most->predicted_peak_bytes : most->predicted_of_steps;
}

void fill_collectives(const Trace& trace, const Selection& selection, RunColumn& run) {
    const CollectivesReport report = collectives_report(trace, selection);
    if (report.ranks.empty()) return;
    const double share = 1.0 / static_cast<double>(report.ranks.size());
    std::map<Operation, OperationStats> means;
    std::map<Operation, double> alg_bytes,
        bus_bytes;  // what makes the bandwidth: bytes moved in the transfers
    for (const RankCollectives& rank : report.ranks) {
        for (const OperationStats& stats : rank.operations) {
            OperationStats& mean = means[stats.operation];
            mean.operation = stats.operation;
            mean.count += stats.count;
            mean.bytes += stats.bytes;
            mean.us += stats.us * share;
            mean.transfer_us += stats.transfer_us * share;
            mean.waiting_us += stats.waiting_us * share;
            mean.exposed_us += stats.exposed_us * share;
            mean.count_per_step += stats.count_per_step * share;
            mean.bytes_per_step += stats.bytes_per_step * share;
            mean.us_per_step += stats.us_per_step * share;
            alg_bytes[stats.operation] += stats.algbw_gbps * stats.transfer_us * share;
            bus_bytes[stats.operation] += stats.busbw_gbps * stats.transfer_us * share;
        }
    }
    const auto ranks = static_cast<std::int64_t>(report.ranks.size());
    for (auto& [operation, mean] : means) {
        mean.count = (mean.count + ranks / 2) / ranks;
        mean.bytes = (mean.bytes + ranks / 2) / ranks;
        if (mean.transfer_us > 0) {
            mean.algbw_gbps = alg_bytes[operation] / mean.transfer_us;
            mean.busbw_gbps = bus_bytes[operation] / mean.transfer_us;
        }
        run.collectives.push_back(mean);
    }
}

const std::string* find_value(const Trace& trace, std::string_view key) {
    for (const auto& [name, value] : trace.config) {
        if (name == key) return &value;
    }
    return nullptr;
}

}  // namespace

std::vector<std::string> differing_keys(const std::vector<const Trace*>& traces) {
    std::vector<std::string> differing;
    std::set<std::string, std::less<>> seen = {"run.trace", "run.overwrite"};
    for (const Trace* trace : traces) {
        for (const auto& pair : trace->config) {
            if (!seen.insert(pair.first).second) continue;
            const bool same = std::all_of(traces.begin(), traces.end(), [&pair](const Trace* other) {
                const std::string* value = find_value(*other, pair.first);
                return value != nullptr && *value == pair.second;
            });
            if (!same) differing.push_back(pair.first);
        }
    }
    return differing;
}

Spread spread_of(std::vector<double> values) {
    if (values.empty()) return {};
    std::sort(values.begin(), values.end());
    const auto quantile = [&](double q) {
        const double at = q * static_cast<double>(values.size() - 1);
        const auto below = static_cast<std::size_t>(at);
        const std::size_t above = std::min(below + 1, values.size() - 1);
        return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
    };
    return {quantile(0.5), (quantile(0.75) - quantile(0.25)) / 2};
}

Comparison compare(const std::vector<const Trace*>& traces, const Selection& selection) {
    return compare(traces, std::vector<Selection>(traces.size(), selection));
}

Comparison compare(const std::vector<const Trace*>& traces, const std::vector<Selection>& selections) {
    Comparison comparison;
    const std::vector<std::string> keys = differing_keys(traces);
    for (std::size_t i = 0; i < traces.size(); ++i) {
        const Trace& trace = *traces[i];
        const Selection& selection = selections[i];
        RunColumn run;
        run.file = trace.path;
        for (const std::string& key : keys) run.config.emplace_back(key, trace.config_value(key));
        fill_times(trace, selection, run);
        fill_memory(trace, selection, run);
        fill_collectives(trace, selection, run);
        comparison.runs.push_back(std::move(run));
    }
    return comparison;
}

bool inside_spread(double a, double a_spread, double b, double b_spread) {
    return std::abs(a - b) <= std::max(a_spread, b_spread);
}

bool inside_spread(const RunColumn& a, const RunColumn& b) {
    return inside_spread(a.median_step_us, a.spread_step_us, b.median_step_us, b.spread_step_us);
}

}  // namespace shardscope::traces
