// Per-step figures of each run, then their means and spreads; see compare.h.
#include "traces/analysis/compare/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <span>

#include <fmt/core.h>

#include "traces/analysis/base/intervals.h"
#include "traces/analysis/base/percentile.h"
#include "traces/analysis/base/shown_ranks.h"
#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/communication/host_collectives.h"
#include "traces/analysis/communication/matching.h"
#include "traces/analysis/time/device_time.h"
#include "traces/analysis/training/metrics.h"
#include "traces/schema/metric_kinds.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// Figures of one step of one rank, in us (busy in percent of the window).
struct StepFigures {
    double window = 0, communication = 0, exposed = 0, memcpy = 0, busy = 0;
    std::array<double, kTimeCategories> categories{};
};

using FiguresByStep = std::map<std::int64_t, std::vector<StepFigures>>;  // step number -> one per rank

// The mean of the known values.
class Mean {
  public:
    void add(double value, double weight = 1) {
        if (std::isnan(value)) return;
        sum_ += value * weight;
        weights_ += weight;
    }
    double value() const { return weights_ > 0 ? sum_ / weights_ : kUnknown; }

  private:
    double sum_ = 0, weights_ = 0;
};

// `on_host`: the time of the rank's collectives on host threads, if its device did not communicate.
std::vector<StepFigures> rank_figures(const RankSummary& summary, const KindUnions& unions,
                                      const IntervalSet& on_host) {
    std::vector<Interval> windows;
    for (const StepSummary& step : summary.steps) windows.push_back({step.window_start, step.window_end});
    const bool hosts = !on_host.empty();
    const IntervalSet& communication = hosts ? on_host : of(unions, store::DeviceKind::communication);
    const auto communicating = length_inside(communication, windows);
    const auto exposed =
        length_inside(subtract(communication, of(unions, store::DeviceKind::kernel)), windows);
    const auto copying = length_inside(of(unions, store::DeviceKind::memcpy), windows);
    const auto working = length_inside(busy(unions), windows);
    const auto us = [](std::int64_t ns) { return static_cast<double>(ns) * 1e-3; };
    const auto on_device = [&](double value) { return summary.on_device ? value : kUnknown; };
    std::vector<StepFigures> figures(windows.size());
    for (std::size_t s = 0; s < figures.size(); ++s) {
        StepFigures& f = figures[s];
        f.window = us(windows[s].length());
        f.communication = hosts ? us(communicating[s]) : on_device(us(communicating[s]));
        f.exposed = hosts ? kUnknown : on_device(us(exposed[s]));
        f.memcpy = on_device(us(copying[s]));
        f.busy = on_device(f.window > 0 ? 100.0 * us(working[s]) / f.window : 0);
        for (std::size_t c = 0; c < f.categories.size(); ++c) {
            const bool known = summary.knows(static_cast<TimeCategory>(c));
            f.categories[c] = known ? us(summary.steps[s].ns[c]) : kUnknown;
        }
    }
    return figures;
}

template <typename Get>
Spread spread_over_steps(const FiguresByStep& steps, Get get) {
    std::vector<double> values;
    for (const auto& [number, ranks] : steps) {
        Mean mean;
        for (const StepFigures& f : ranks) mean.add(get(f));
        if (!std::isnan(mean.value())) values.push_back(mean.value());
    }
    return spread_of(std::move(values));
}

// The mean over the ranks of the mean over their steps.
template <typename Get>
double mean_of_ranks(const std::vector<std::vector<StepFigures>>& ranks, Get get) {
    Mean mean;
    for (const std::vector<StepFigures>& steps : ranks) {
        Mean own;
        for (const StepFigures& f : steps) own.add(get(f));
        mean.add(own.value());
    }
    return mean.value();
}

// A figure of every step, and the members of the column for its mean and spread.
struct StepFigure {
    double StepFigures::*of;
    double RunColumn::*mean;
    Spread RunColumn::*spread;
};
constexpr std::array<StepFigure, 3> kStepFigures = {{
    {&StepFigures::communication, &RunColumn::communication_us, &RunColumn::communication_spread},
    {&StepFigures::exposed, &RunColumn::exposed_communication_us, &RunColumn::exposed_communication_spread},
    {&StepFigures::memcpy, &RunColumn::memcpy_us, &RunColumn::memcpy_spread},
}};

// Time of host threads' collectives, by rank: empty if the rank communicated on its device.
std::vector<IntervalSet> communication_of_hosts(const store::Trace& trace, const Selection& selection) {
    std::vector<std::vector<Interval>> all(trace.ranks.size());
    for (const SelectedHostCollective& part :
         selected_host_collectives(trace, find_steps(trace), match_communications(trace), selection))
        all[part.collective.rank].push_back({part.collective.start, part.collective.end});
    std::vector<IntervalSet> unions;
    unions.reserve(all.size());
    for (std::vector<Interval>& own : all) unions.push_back(make_union(std::move(own)));
    return unions;
}

void fill_times(const store::Trace& trace, const Selection& selection, RunColumn& run) {
    const ExecutionSummary summary = summarize(trace, selection);
    const std::vector<store::RankIndex> selected =
        selected_ranks(trace, selection);  // in the summary's order
    run.ranks = static_cast<int>(selected.size());
    run.stepped = !trace.steps.empty();
    const std::vector<KindUnions> unions = device_unions(trace);
    const std::vector<IntervalSet> hosts = communication_of_hosts(trace, selection);
    FiguresByStep by_step;
    std::vector<std::vector<StepFigures>> by_rank;
    Mean average_step, steps_kept, busy_percent;
    for (std::size_t r = 0; r < summary.ranks.size(); ++r) {
        const RankSummary& rank = summary.ranks[r];
        if (rank.steps.empty()) continue;
        const std::size_t at = selected[r].at();
        run.steps = std::max(run.steps, static_cast<std::int64_t>(rank.steps.size()));
        steps_kept.add(static_cast<double>(rank.steps.size()));
        average_step.add(rank.average_step_us);
        by_rank.push_back(rank_figures(rank, unions[at], hosts[at]));
        Mean busy;
        for (std::size_t s = 0; s < by_rank.back().size(); ++s) {
            const StepFigures& f = by_rank.back()[s];
            busy.add(f.busy, f.window);
            by_step[rank.steps[s].number].push_back(f);
        }
        busy_percent.add(busy.value());
    }
    if (by_rank.empty()) return;
    run.mean_steps = steps_kept.value();
    run.average_step_us = average_step.value();
    run.device_busy_percent = busy_percent.value();
    run.device_busy_spread = spread_over_steps(by_step, [](const StepFigures& f) { return f.busy; });
    for (const StepFigure& figure : kStepFigures) {
        const auto get = [&figure](const StepFigures& f) { return f.*figure.of; };
        run.*figure.mean = mean_of_ranks(by_rank, get);
        run.*figure.spread = spread_over_steps(by_step, get);
    }
    for (std::size_t c = 0; c < run.categories_us.size(); ++c) {
        const auto get = [c](const StepFigures& f) { return f.categories[c]; };
        run.categories_us[c] = mean_of_ranks(by_rank, get);
        run.categories_spread[c] = spread_over_steps(by_step, get);
    }
    FiguresByStep settled = std::move(by_step);
    if (const auto warm_up = warm_up_step(trace); warm_up && settled.size() > 2)
        run.first_left_out = settled.erase(*warm_up) > 0;
    const Spread step = spread_over_steps(settled, [](const StepFigures& f) { return f.window; });
    run.median_step_us = step.median;
    run.spread_step_us = step.spread;
}

void fill_memory(const store::Trace& trace, const Selection& selection, RunColumn& run) {
    const MemoryReport memory = memory_report(trace, selection, space_in_use(trace));
    run.space = memory.space;
    const auto most = std::max_element(
        memory.ranks.begin(), memory.ranks.end(),
        [](const RankMemory& a, const RankMemory& b) { return a.peak_bytes < b.peak_bytes; });
    if (most == memory.ranks.end()) return;
    run.peak_bytes = most->peak_bytes;
    run.at_peak = most->at_peak;
    const bool whole = most->prediction_applies || most->predicted_of_steps < 0;
    run.predicted_peak_bytes = whole ? most->predicted_peak_bytes : most->predicted_of_steps;
}

void fill_collectives(const store::Trace& trace, const Selection& selection, RunColumn& run) {
    const CollectivesReport report = collectives_report(trace, selection);
    if (report.ranks.empty()) return;
    const double share = 1.0 / static_cast<double>(report.ranks.size());
    std::map<schema::Operation, OperationStats> means;
    std::map<schema::Operation, double> alg_bytes,
        bus_bytes;  // for the bandwidth: bytes moved in the transfers
    for (const RankCollectives& rank : report.ranks) {
        for (const OperationStats& stats : rank.operations) {
            OperationStats& mean = means[stats.operation];
            mean.operation = stats.operation;
            mean.on_host = stats.on_host;
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

const std::string* find_value(const store::Trace& trace, std::string_view key) {
    for (const auto& [name, value] : trace.config) {
        if (name == key) return &value;
    }
    return nullptr;
}

}  // namespace

bool is_setting(std::string_view key) {
    return key != "run.trace" && key != "run.overwrite" && key != "run.counters" &&
           !key.starts_with(kRanksLikeIt) && !key.starts_with("merge.") && !key.starts_with("host.") &&
           !key.starts_with("sampler.");
}

std::vector<std::string> differing_keys(const std::vector<const store::Trace*>& traces) {
    std::vector<std::string> differing;
    std::set<std::string, std::less<>> seen;
    for (const store::Trace* trace : traces) {
        for (const auto& pair : trace->config) {
            if (!is_setting(pair.first) || !seen.insert(pair.first).second) continue;
            const bool same = std::all_of(traces.begin(), traces.end(), [&pair](const store::Trace* other) {
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
    const auto quantile = [&](double q) { return percentile(std::span(values), q); };
    return {quantile(0.5), (quantile(0.75) - quantile(0.25)) / 2};
}

std::vector<std::string> run_names(const std::vector<std::string>& files) {
    const auto base = [](const std::string& file) {
        const std::string name = file.substr(file.find_last_of('/') + 1);
        return name.empty() ? file : name;
    };
    std::map<std::string, int> times;
    for (const std::string& file : files) ++times[base(file)];
    std::vector<std::string> names;
    names.reserve(files.size());
    for (const std::string& file : files) names.push_back(times[base(file)] == 1 ? base(file) : file);
    return names;
}

// The last values of the job's metrics. One that a single rank reports, as where only rank 0 marks the loss,
// is the job's.
void fill_metrics(const store::Trace& trace, const Selection& selection, RunColumn& run) {
    const MetricsReport report = metrics_report(trace, selection);
    for (std::size_t i = 0; i < report.curves.size(); ++i) {  // the job's comes before those of ranks
        const MetricCurve& curve = report.curves[i];
        const bool first = i == 0 || report.curves[i - 1].name != curve.name;
        const bool last = i + 1 == report.curves.size() || report.curves[i + 1].name != curve.name;
        if (first && (curve.rank < 0 || last))
            run.metrics.push_back({curve.name, curve.points.back().value, curve.rank >= 0});
    }
}

Comparison compare(const std::vector<const store::Trace*>& traces, const Selection& selection) {
    return compare(traces, std::vector<Selection>(traces.size(), selection));
}

Comparison compare(const std::vector<const store::Trace*>& traces, const std::vector<Selection>& selections) {
    Comparison comparison;
    const std::vector<std::string> keys = differing_keys(traces);
    for (std::size_t i = 0; i < traces.size(); ++i) {
        const store::Trace& trace = *traces[i];
        const Selection& selection = selections[i];
        RunColumn run;
        run.file = trace.path;
        for (const std::string& key : keys) run.config.emplace_back(key, trace.config_value(key));
        fill_times(trace, selection, run);
        fill_memory(trace, selection, run);
        fill_collectives(trace, selection, run);
        if (const auto step = diverged_step(trace)) run.diverged_step = static_cast<double>(*step);
        fill_metrics(trace, selection, run);
        comparison.runs.push_back(std::move(run));
    }
    return comparison;
}

void add_times_to_loss(Comparison& comparison, const std::vector<const store::Trace*>& traces, double loss) {
    comparison.loss = loss;
    for (std::size_t i = 0; i < traces.size(); ++i) {
        const auto reached = metrics_report(*traces[i], {}, {}, loss).reached;
        comparison.runs[i].to_loss_us =
            reached->point ? static_cast<double>(reached->since_start) * 1e-3 : kUnknown;
    }
}

namespace {

template <Spread RunColumn::*Of>
store::Cell spread_cell(const RunColumn& run) {
    return (run.*Of).spread;
}

}  // namespace

Fields<RunColumn> run_fields() {
    using R = RunColumn;
    static constexpr Field<R> kFields[] = {
        {{"file", "", Unit::text, "The trace."}, value_of<&R::file>},
        {{"config", "", Unit::text, "The settings that differ between the runs.", in_json}, nested<R>},
        {{"ranks", "", Unit::count, "Selected ranks."}, value_of<&R::ranks>},
        {{"stepped", "", Unit::text, "Whether the trace has steps; if not, figures are of all of it.",
          in_json},
         value_of<&R::stepped>},
        {{"steps", "", Unit::count, "Kept steps, of the rank with the most."}, value_of<&R::steps>},
        {{"average_step_us", "", Unit::us, "Mean step time."}, value_of<&R::average_step_us>},
        {{"median_step_us", "", Unit::us, "Median step time, without the trace's first step."},
         value_of<&R::median_step_us>},
        {{"spread_step_us", "", Unit::us, "Half the interquartile range of the step times."},
         value_of<&R::spread_step_us>},
        {{"categories", "", Unit::text, "Each category's mean, median and spread.", in_json}, nested<R>},
        {{"space", "", Unit::text, "Whose memory it is: the device's, or the host's if no device allocated.",
          in_json},
         [](const R& run) { return to_cell(name(run.space)); }},
        {{"peak_bytes", "", Unit::bytes, "Peak of the rank with the largest."},
         known_value_of<&R::peak_bytes>},
        {{"at_peak", "", Unit::bytes, "What was live at the peak, by category.", in_json}, nested<R>},
        {{"predicted_peak_bytes", "", Unit::bytes, "That rank's peak as the memory account predicts it.",
          in_json},
         [](const R& run) {
             return run.predicted_peak_bytes >= 0 ? store::Cell(run.predicted_peak_bytes) : store::Cell();
         }},
        {{"communication_us", "", Unit::us, "Union of communication in a step."},
         value_of<&R::communication_us>},
        {{"communication_spread_us", "", Unit::us, "Its spread over the steps.", in_json},
         spread_cell<&R::communication_spread>},
        {{"exposed_communication_us", "", Unit::us, "Communication outside compute kernels."},
         value_of<&R::exposed_communication_us>},
        {{"exposed_communication_spread_us", "", Unit::us, "Its spread over the steps.", in_json},
         spread_cell<&R::exposed_communication_spread>},
        {{"memcpy_us", "", Unit::us, "Union of copies in a step."}, value_of<&R::memcpy_us>},
        {{"memcpy_spread_us", "", Unit::us, "Its spread over the steps.", in_json},
         spread_cell<&R::memcpy_spread>},
        {{"device_busy_percent", "", Unit::percent, "Share of the steps with any work on the device."},
         value_of<&R::device_busy_percent>},
        {{"device_busy_spread_percent", "", Unit::percent, "Its spread over the steps.", in_json},
         spread_cell<&R::device_busy_spread>},
        {{"to_loss_us", "", Unit::us,
          "From the start of the first step until the loss of --to-loss; none: not reached, or not asked "
          "for.",
          in_json},
         value_of<&R::to_loss_us>},
        {{"diverged_step", "", Unit::index,
          "The step from which its losses diverged; none: they did not, or it has none.", in_json},
         value_of<&R::diverged_step>},
        {{"metrics", "", Unit::number, "The last value of each of the job's metrics, by name.", in_json},
         nested<R>},
        {{"collectives", "", Unit::text, "The collectives, mean of the ranks; the keys of `collectives`.",
          in_json},
         nested<R>},
    };
    return kFields;
}

bool Comparison::any_stepped() const {
    return std::any_of(runs.begin(), runs.end(), [](const RunColumn& run) { return run.stepped; });
}

std::optional<double> ComparedValue::change_percent(const ComparedValue& first) const {
    if (first.mean == 0 || std::isnan(mean - first.mean)) return std::nullopt;
    return 100.0 * (mean - first.mean) / std::abs(first.mean);
}

bool ComparedValue::inside_spread(const ComparedValue& first) const {
    return analysis::inside_spread(mean, spread, first.mean, first.spread);
}

namespace {

class FigureList {
  public:
    explicit FigureList(const Comparison& comparison)
        : runs_(comparison.runs), stepped_(comparison.any_stepped()) {}

    void add_times() {
        const std::string per_step = stepped_ ? "us/step" : "us";
        add(stepped_ ? "Step time, median (µs)" : "Whole trace (µs)", Unit::us,
            [](const RunColumn& r) -> ComparedValue {
                return {r.median_step_us, r.spread_step_us};
            });
        if (stepped_) {
            add("Step time, mean (µs)", Unit::us, [](const RunColumn& r) -> ComparedValue {
                return {r.average_step_us, r.spread_step_us};
            });
            add(
                "Step time, spread (µs)", Unit::us,
                [](const RunColumn& r) -> ComparedValue {
                    return {r.spread_step_us, 0};
                },
                false);
        }
        for (std::size_t c = 0; c < kTimeCategoryNames.size(); ++c) {
            add(fmt::format("  {} (µs)", kTimeCategoryNames[c]), Unit::us,
                [c](const RunColumn& r) -> ComparedValue {
                    return {r.categories_us[c], r.categories_spread[c].spread};
                });
        }
        constexpr std::string_view kTitles[] = {"Communication", "  exposed", "Memcpy"};
        for (std::size_t f = 0; f < kStepFigures.size(); ++f) {
            const StepFigure& figure = kStepFigures[f];
            add(fmt::format("{} ({})", kTitles[f], per_step), Unit::us,
                [&](const RunColumn& r) -> ComparedValue {
                    return {r.*figure.mean, (r.*figure.spread).spread};
                });
        }
        add(
            "Device busy (%)", Unit::percent,
            [](const RunColumn& r) -> ComparedValue {
                return {r.device_busy_percent, r.device_busy_spread.spread};
            },
            false);
    }

    void add_time_to_loss(double loss) {
        add(fmt::format("Time to loss {} (µs)", loss), Unit::us, [](const RunColumn& r) -> ComparedValue {
            return {r.to_loss_us, 0};
        });
    }

    void add_divergence() {
        if (any([](const RunColumn& r) { return !std::isnan(r.diverged_step); }))
            add(
                "Diverged from step", Unit::digits6,
                [](const RunColumn& r) -> ComparedValue {
                    return {r.diverged_step, 0};
                },
                false);
    }

    // The last values of the job's metrics, but for those that other rows have.
    void add_metrics() {
        std::vector<std::string> names;  // in the order of the runs
        for (const RunColumn& run : runs_) {
            for (const RunColumn::Metric& metric : run.metrics) {
                const std::string& name = metric.name;
                const bool elsewhere = name == "diverged" || name.ends_with("_bytes");
                if (!elsewhere && std::find(names.begin(), names.end(), name) == names.end())
                    names.push_back(name);
            }
        }
        for (const std::string& name : names) {
            const auto metric_of = [&](const RunColumn& r) {
                return std::find_if(r.metrics.begin(), r.metrics.end(),
                                    [&](const RunColumn::Metric& metric) { return metric.name == name; });
            };
            const bool of_rank = std::any_of(runs_.begin(), runs_.end(), [&](const RunColumn& r) {
                return metric_of(r) != r.metrics.end() && metric_of(r)->is_of_rank;
            });
            const std::string_view over = of_rank ? "of one rank" : words_of(schema::reduction_of(name));
            add(
                fmt::format("{}, last{}", name, over.empty() ? "" : fmt::format(" ({})", over)),
                Unit::digits6,
                [&](const RunColumn& r) -> ComparedValue {
                    const auto own = metric_of(r);
                    return {own == r.metrics.end() ? kUnknown : own->value, 0};
                },
                name.ends_with("loss"));
        }
    }

    void add_memory() {
        group_ = ComparedFigure::Group::memory;
        const auto bytes = [](const RunColumn& run, std::int64_t of) -> ComparedValue {
            return {run.peak_bytes > 0 ? static_cast<double>(of) : kUnknown, 0};
        };
        add("Peak memory (MiB)", Unit::bytes, [&](const RunColumn& r) { return bytes(r, r.peak_bytes); });
        for (std::size_t c = 0; c < schema::kMemoryCategoryNames.size(); ++c) {
            if (any([c](const RunColumn& r) { return r.at_peak[c] != 0; }))
                add(fmt::format("  {} (MiB)", schema::kMemoryCategoryNames[c]), Unit::bytes,
                    [&](const RunColumn& r) { return bytes(r, r.at_peak[c]); });
        }
    }

    void add_collectives() {
        group_ = ComparedFigure::Group::collectives;
        for (int o = 0; o < schema::kOperations; ++o) {
            const auto of = [o](const RunColumn& run) -> const OperationStats* {
                for (const OperationStats& stats : run.collectives) {
                    if (stats.operation == static_cast<schema::Operation>(o)) return &stats;
                }
                return nullptr;
            };
            // An operation that no run has in its steps (only in the set-up) has no figures per step.
            if (!any([&](const RunColumn& r) { return of(r) != nullptr && of(r)->count_per_step > 0; }))
                continue;
            const auto figure = [&](std::string_view what, Unit unit, double OperationStats::*member) {
                add(
                    fmt::format("{} ({}{})", name(static_cast<schema::Operation>(o)), what,
                                stepped_ ? "/step" : ""),
                    unit,
                    [&](const RunColumn& r) -> ComparedValue {
                        const OperationStats* stats = of(r);
                        if (stats == nullptr) return {};
                        return {unit == Unit::bytes && stats->bytes == 0 ? kUnknown : stats->*member, 0};
                    },
                    false);
            };
            figure("count", Unit::number, &OperationStats::count_per_step);
            figure("MiB", Unit::bytes, &OperationStats::bytes_per_step);
            figure("us", Unit::us, &OperationStats::us_per_step);
        }
    }

    std::vector<ComparedFigure> take() { return std::move(figures_); }

  private:
    template <class Test>
    bool any(Test test) const {
        return std::any_of(runs_.begin(), runs_.end(), test);
    }
    template <class Get>
    void add(std::string title, Unit unit, Get get, bool less_is_better = true) {
        ComparedFigure& figure = figures_.emplace_back();
        figure.title = std::move(title);
        figure.unit = unit;
        figure.group = group_;
        figure.less_is_better = less_is_better;
        for (const RunColumn& run : runs_) figure.runs.push_back(get(run));
    }

    const std::vector<RunColumn>& runs_;
    bool stepped_;
    ComparedFigure::Group group_ = ComparedFigure::Group::time;
    std::vector<ComparedFigure> figures_;
};

}  // namespace

std::vector<ComparedFigure> compared_figures(const Comparison& comparison) {
    FigureList list(comparison);
    list.add_times();
    if (comparison.loss) list.add_time_to_loss(*comparison.loss);
    list.add_divergence();
    list.add_metrics();
    list.add_memory();
    list.add_collectives();
    return list.take();
}

bool inside_spread(double a, double a_spread, double b, double b_spread) {
    return std::abs(a - b) <= std::max(a_spread, b_spread);
}

bool inside_spread(const RunColumn& a, const RunColumn& b) {
    return inside_spread(a.median_step_us, a.spread_step_us, b.median_step_us, b.spread_step_us);
}

}  // namespace shardscope::traces::analysis
