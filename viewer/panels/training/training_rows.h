// The metrics of training of several runs as charts: one for each metric, with a curve for each run, over
// steps, samples or time, and smoothed. Pure; any thread. Definition: docs/definitions.md, "Metrics".
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/training/metrics.h"
#include "viewer/draw/axis.h"
#include "viewer/draw/plot.h"

namespace shardscope::viewer::panels {

// --- how a metric is written ---

struct MetricLook {
    std::string title;  // "Tokens per second"
    std::string unit;   // "tokens/s", "bytes"; empty: it has none
    draw::AxisUnit axis = draw::AxisUnit::number;
    double factor = 1;       // to the axis's base unit (bytes, nanoseconds, percent)
    bool from_zero = false;  // of sizes and rates, whose axis begins at zero
    bool highest = false;    // whether its highest value is told, not its lowest: also of accuracy and top-k
};
// By the ending of its name: _per_second, or that of a column of a query (unit_of_name).
MetricLook look_of(std::string_view metric);
// With its unit; "not a number" if it is none.
std::string value_text(const MetricLook& look, double value);

// --- curves ---

enum class Over { steps, samples, time };
// Where a point lies, with the unit.
std::string place_text(Over over, double x);

enum class Smooth { none, exponential, mean };
struct Smoothing {
    Smooth how = Smooth::none;
    double weight = 0.6;  // exponential: the share of the values before; at least 0, below 1
    int window = 10;      // mean: the values that it is over, this one and those before it
    bool operator==(const Smoothing&) const = default;
};
// A value for each of `values`. The first exponential means are divided by the sum of their weights, so that
// they do not lean to zero. What is not a number counts in no mean.
std::vector<double> smoothed(std::span<const double> values, const Smoothing& smoothing);

// A run's curve of one metric, by x. All vectors have the same length, at least 1.
struct RunCurve {
    std::size_t run = 0;              // index into the runs
    int rank = -1;                    // -1: of the whole job
    std::vector<double> x, y;         // y may be not a number
    std::vector<double> smooth;       // empty: not smoothed
    std::vector<std::size_t> points;  // of MetricCurve::points
    std::size_t best = 0;             // the first of its best values: MetricLook says which those are
    const traces::analysis::MetricCurve* metric = nullptr;
    std::optional<double> profile_from, profile_to;  // x of the run's recorded steps

    const traces::analysis::MetricPoint& point(std::size_t i) const { return metric->points[points[i]]; }
    // The point nearest to x, of several with one x the last: a resumed run repeats steps. None if x is
    // further outside the curve than `slack`.
    std::optional<std::size_t> nearest(double at, double slack) const;
};

struct MetricChart {
    std::string metric;
    std::vector<RunCurve> curves;  // by run
    std::size_t placeless = 0;     // runs that have the metric, but not where it lies: no step, no sample
};

struct StepsOfRun {
    std::int64_t first = 0, last = -1;  // numbers of the recorded steps; last below first: none
    std::int64_t start = std::numeric_limits<std::int64_t>::max();  // ns: when the first of them begins
    std::int64_t end = std::numeric_limits<std::int64_t>::min();    // and the last of them ends
};
StepsOfRun steps_of_run(const traces::store::Trace& trace);

struct RunMetrics {
    const traces::analysis::MetricsReport* report = nullptr;
    int rank = 0;  // whose curve is taken of a metric that only ranks report; else the lowest rank's
    StepsOfRun steps;
    // The zero of its time: when its first step begins, or its first value if that is earlier.
    std::int64_t zero() const;
};

// Where recorded steps lie: at their numbers, in their time from start to end, or over the samples of any
// metric in them. None if there is no such sample. `zero`: of the run's time.
struct PlaceOfSteps {
    double from = 0, to = 0;
};
std::optional<PlaceOfSteps> place_of_steps(const RunMetrics& run, Over over, std::int64_t zero,
                                           const StepsOfRun& steps);

// Losses first, then by name; not smoothed.
std::vector<MetricChart> metric_charts(std::span<const RunMetrics> runs, Over over);
void smooth_charts(std::vector<MetricChart>& charts, const Smoothing& smoothing);

// --- what is drawn ---

struct XRange {
    double low = 0, high = 1;
    bool operator==(const XRange&) const = default;
};
// Of all charts, so that they are above each other; never empty.
XRange whole_range(std::span<const MetricChart> charts);

// The values in sight with a margin; `log`: of the positive ones alone. False: there are none.
bool y_range(const MetricChart& chart, const MetricLook& look, XRange x, bool log, draw::PlotRange& range);

// A curve's line within the range, to its edges, as fold_plot() folds it. `log`: of the logarithms of y. It
// is broken where the curve is not a number and where a logarithmic axis has no place for the value.
std::vector<draw::PlotColumn> fold_curve_of(const RunCurve& curve, std::span<const double> values,
                                            const draw::PlotRange& range, bool log, int columns);

// The pixel columns, from first to last, of neighbouring ones in each of which a value is not a number.
struct ColumnsWithoutNumber {
    int first = 0, last = 0;
    bool operator==(const ColumnsWithoutNumber&) const = default;
};
std::vector<ColumnsWithoutNumber> columns_without_number(const RunCurve& curve, XRange x, int columns);

}  // namespace shardscope::viewer::panels
