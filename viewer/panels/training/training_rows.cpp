// See training_rows.h.
#include "viewer/panels/training/training_rows.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/core.h>

#include "traces/store/columns/trace.h"
#include "viewer/draw/format.h"
#include "viewer/panels/query/query_table.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::MetricCurve;
using traces::analysis::MetricPoint;

constexpr std::string_view kPerSecond = "_per_second";

std::string titled(std::string_view name) {
    std::string title = draw::spaced(name);
    if (!title.empty() && title[0] >= 'a' && title[0] <= 'z') title[0] = static_cast<char>(title[0] - 32);
    return title;
}

// "accuracy", "validation_accuracy", "top1", "top_5_percent".
bool is_accuracy(std::string_view name) {
    if (name.find("accuracy") != std::string_view::npos) return true;
    const std::size_t at = name.starts_with("top") ? 0 : name.find("_top");
    if (at == std::string_view::npos) return false;
    const std::size_t digit = name.find_first_not_of("_top", at);
    return digit != std::string_view::npos && name[digit] >= '0' && name[digit] <= '9';
}

std::optional<double> x_of(const MetricPoint& point, Over over, std::int64_t zero) {
    switch (over) {
        case Over::steps:
            return point.step >= 0 ? std::optional(static_cast<double>(point.step)) : std::nullopt;
        case Over::samples:
            return point.sample >= 0 ? std::optional(static_cast<double>(point.sample)) : std::nullopt;
        case Over::time:
            break;
    }
    return static_cast<double>(point.time) - static_cast<double>(zero);
}

// The job's curve of each metric or, if only ranks report it, the wanted rank's or the lowest one's.
std::map<std::string_view, const MetricCurve*> curves_of(const RunMetrics& run) {
    std::map<std::string_view, const MetricCurve*> curves;
    for (const MetricCurve& curve : run.report->curves) {  // by name, then rank
        if (curve.from_ranks) continue;
        const MetricCurve*& kept = curves[curve.name];
        if (kept == nullptr || (kept->rank >= 0 && curve.rank == run.rank)) kept = &curve;
    }
    return curves;
}

// The first of the best values; of those that are numbers, if any is.
std::size_t best_of(const std::vector<double>& values, bool highest) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < values.size(); ++i) {
        if (std::isnan(values[best]) || (highest ? values[i] > values[best] : values[i] < values[best]))
            best = i;
    }
    return best;
}

RunCurve placed(const MetricCurve& metric, Over over, std::int64_t zero) {
    RunCurve curve{.rank = metric.rank, .metric = &metric};
    for (std::size_t i = 0; i < metric.points.size(); ++i) {
        if (x_of(metric.points[i], over, zero)) curve.points.push_back(i);
    }
    const auto x = [&](std::size_t i) { return *x_of(metric.points[i], over, zero); };
    std::stable_sort(curve.points.begin(), curve.points.end(),
                     [&](std::size_t a, std::size_t b) { return x(a) < x(b); });
    for (const std::size_t i : curve.points) {
        curve.x.push_back(x(i));
        curve.y.push_back(metric.points[i].value);
    }
    curve.best = best_of(curve.y, look_of(metric.name).highest);
    return curve;
}

double mapped(double y, bool log) {
    return log ? std::log10(y) : y;
}

}  // namespace

MetricLook look_of(std::string_view metric) {
    MetricLook look{.title = titled(metric), .unit = {}};
    if (metric == "allocated_bytes") look.title = "Allocated memory";
    if (metric == "peak_bytes") look.title = "Peak of allocated memory";
    if (metric.ends_with(kPerSecond)) {
        look.unit = draw::spaced(metric.substr(0, metric.size() - kPerSecond.size())) + "/s";
        look.from_zero = look.highest = true;
        return look;
    }
    look.unit = unit_of_name(metric);
    look.axis = axis_unit_of(look.unit);
    look.factor = axis_factor_of(look.unit);
    look.from_zero = !look.unit.empty();
    look.highest = look.from_zero || is_accuracy(metric);
    if (look.axis == draw::AxisUnit::count) look.axis = draw::AxisUnit::number;
    return look;
}

std::string value_text(const MetricLook& look, double value) {
    if (std::isnan(value)) return "not a number";
    const double base = value * look.factor;
    // What an integer cannot hold is written as a number of its unit.
    const bool fits = std::abs(base) < 9e18;
    if (look.axis == draw::AxisUnit::bytes && fits) return draw::format_size(std::llround(base));
    if (look.axis == draw::AxisUnit::nanoseconds && fits) return draw::format_duration(base);
    if (look.axis == draw::AxisUnit::percent && fits) return draw::format_percent(base);
    const double whole_from = look.unit.ends_with("/s") ? 100 : 1e4;
    std::string text = std::abs(value) >= whole_from && std::abs(value) < 1e15
                           ? draw::format_count(std::llround(value))
                           : fmt::format("{:.6g}", value);
    return look.unit.empty() ? text : text + " " + look.unit;
}

std::string place_text(Over over, double x) {
    if (over == Over::time) return draw::format_duration(x);
    const std::string number = draw::format_count(std::llround(x));
    return over == Over::steps ? "step " + number : number + " samples";
}

std::vector<double> smoothed(std::span<const double> values, const Smoothing& smoothing) {
    std::vector<double> smooth;
    smooth.reserve(values.size());
    if (smoothing.how == Smooth::exponential) {
        double sum = 0, weights = 0;  // both decay by the weight from value to value
        for (const double value : values) {
            if (std::isfinite(value)) {
                sum = smoothing.weight * sum + (1 - smoothing.weight) * value;
                weights = smoothing.weight * weights + (1 - smoothing.weight);
            }
            smooth.push_back(weights > 0 ? sum / weights : value);
        }
        return smooth;
    }
    std::vector<double> kept;  // the finite values, of which the last `window` count
    std::copy_if(values.begin(), values.end(), std::back_inserter(kept),
                 [](double value) { return std::isfinite(value); });
    // A window is the end of one block of that many values and the start of the next. The sums from a block's
    // start and to its end are added; none is subtracted, so that a value counts in no mean after its last.
    const auto window =
        static_cast<std::size_t>(smoothing.how == Smooth::mean ? std::max(1, smoothing.window) : 1);
    std::vector<double> from_start(kept), to_end(kept);
    for (std::size_t i = 1; i < kept.size(); ++i) {
        if (i % window != 0) from_start[i] += from_start[i - 1];
        const std::size_t back = kept.size() - 1 - i;
        if ((back + 1) % window != 0) to_end[back] += to_end[back + 1];
    }
    std::size_t seen = 0;
    for (const double value : values) {
        if (std::isfinite(value)) ++seen;
        if (seen == 0) {
            smooth.push_back(value);
            continue;
        }
        const std::size_t count = std::min(window, seen), last = seen - 1, first = seen - count;
        const double sum = from_start[last] + (first % window == 0 ? 0 : to_end[first]);
        smooth.push_back(sum / static_cast<double>(count));
    }
    return smooth;
}

std::optional<std::size_t> RunCurve::nearest(double at, double slack) const {
    if (x.empty() || at < x.front() - slack || at > x.back() + slack) return {};
    const auto after = std::lower_bound(x.begin(), x.end(), at);
    const bool before = after != x.begin() && (after == x.end() || at - *(after - 1) <= *after - at);
    const auto beyond = std::upper_bound(x.begin(), x.end(), before ? *(after - 1) : *after);
    return static_cast<std::size_t>(beyond - x.begin()) - 1;
}

StepsOfRun steps_of_run(const traces::store::Trace& trace) {
    StepsOfRun steps;
    for (const traces::store::Step& step : trace.steps) {
        steps.first = steps.last < steps.first ? step.number : std::min(steps.first, step.number);
        steps.last = std::max(steps.last, step.number);
        steps.start = std::min(steps.start, step.start);
        steps.end = std::max(steps.end, step.end);
    }
    return steps;
}

std::int64_t RunMetrics::zero() const {
    std::int64_t first = steps.start;
    for (const MetricCurve& curve : report->curves) {
        for (const MetricPoint& point : curve.points) first = std::min(first, point.time);
    }
    return first;
}

std::optional<PlaceOfSteps> place_of_steps(const RunMetrics& run, Over over, std::int64_t zero,
                                           const StepsOfRun& steps) {
    if (steps.last < steps.first) return {};
    if (over == Over::steps)
        return PlaceOfSteps{static_cast<double>(steps.first), static_cast<double>(steps.last)};
    if (over == Over::time) {
        const auto from_zero = [&](std::int64_t time) {
            return static_cast<double>(time) - static_cast<double>(zero);
        };
        return PlaceOfSteps{from_zero(steps.start), from_zero(steps.end)};
    }
    std::optional<PlaceOfSteps> place;
    for (const MetricCurve& curve : run.report->curves) {
        auto point = std::partition_point(curve.points.begin(), curve.points.end(),
                                          [&](const MetricPoint& p) { return p.step < steps.first; });
        for (; point != curve.points.end() && point->step <= steps.last; ++point) {
            if (point->sample < 0) continue;
            const auto x = static_cast<double>(point->sample);
            place =
                place ? PlaceOfSteps{std::min(place->from, x), std::max(place->to, x)} : PlaceOfSteps{x, x};
        }
    }
    return place;
}

std::vector<MetricChart> metric_charts(std::span<const RunMetrics> runs, Over over) {
    std::vector<MetricChart> charts;
    std::map<std::string, std::size_t, std::less<>> at;  // by metric
    for (std::size_t r = 0; r < runs.size(); ++r) {
        const std::int64_t zero = over == Over::time ? runs[r].zero() : 0;
        const auto recorded = place_of_steps(runs[r], over, zero, runs[r].steps);
        for (const auto& [name, metric] : curves_of(runs[r])) {
            const auto [found, is_new] = at.emplace(name, charts.size());
            if (is_new) charts.push_back({.metric = std::string(name), .curves = {}});
            MetricChart& chart = charts[found->second];
            RunCurve curve = placed(*metric, over, zero);
            curve.run = r;
            if (recorded) {
                curve.profile_from = recorded->from;
                curve.profile_to = recorded->to;
            }
            if (curve.x.empty()) {
                ++chart.placeless;
            } else {
                chart.curves.push_back(std::move(curve));
            }
        }
    }
    const auto order = [](const MetricChart& chart) {
        return std::pair(chart.metric == "loss"              ? 0
                         : chart.metric == "validation_loss" ? 1
                         : chart.metric == "test_loss"       ? 2
                                                             : 3,
                         std::string_view(chart.metric));
    };
    std::sort(charts.begin(), charts.end(),
              [&](const MetricChart& a, const MetricChart& b) { return order(a) < order(b); });
    return charts;
}

void smooth_charts(std::vector<MetricChart>& charts, const Smoothing& smoothing) {
    for (MetricChart& chart : charts) {
        for (RunCurve& curve : chart.curves)
            curve.smooth =
                smoothing.how == Smooth::none ? std::vector<double>() : smoothed(curve.y, smoothing);
    }
}

XRange whole_range(std::span<const MetricChart> charts) {
    XRange range;
    bool any = false;
    for (const MetricChart& chart : charts) {
        for (const RunCurve& curve : chart.curves) {
            range.low = any ? std::min(range.low, curve.x.front()) : curve.x.front();
            range.high = any ? std::max(range.high, curve.x.back()) : curve.x.back();
            any = true;
        }
    }
    if (range.high <= range.low) range = {range.low - 0.5, range.low + 0.5};
    return range;
}

bool y_range(const MetricChart& chart, const MetricLook& look, XRange x, bool log, draw::PlotRange& range) {
    double low = std::numeric_limits<double>::infinity(), high = -low;
    const auto take = [&](double y) {
        if (!std::isfinite(y) || (log && y <= 0)) return;
        low = std::min(low, y);
        high = std::max(high, y);
    };
    for (const RunCurve& curve : chart.curves) {
        for (std::size_t i = 0; i < curve.x.size(); ++i) {
            if (curve.x[i] < x.low || curve.x[i] > x.high || !std::isfinite(curve.y[i])) continue;
            take(curve.y[i]);
            if (!curve.smooth.empty()) take(curve.smooth[i]);
        }
    }
    range = {x.low, x.high, 0, 1};
    if (low > high) return false;
    if (log) {
        const double margin = std::max(std::pow(high / low, 0.05), 1.02);
        range.y_low = low / margin;
        range.y_high = high * margin;
        return true;
    }
    double margin = (high - low) * 0.06;
    if (!(margin > 0)) margin = high != 0 ? std::abs(high) * 0.06 : 1;
    range.y_low = look.from_zero && low >= 0 ? 0 : low - margin;
    range.y_high = look.from_zero && high <= 0 ? 0 : high + margin;
    if (range.y_high <= range.y_low) range.y_high = range.y_low + 1;
    return true;
}

std::vector<draw::PlotColumn> fold_curve_of(const RunCurve& curve, std::span<const double> values,
                                            const draw::PlotRange& range, bool log, int columns) {
    std::vector<draw::PlotPoint> inside;
    const double nan = std::numeric_limits<double>::quiet_NaN();
    draw::PlotPoint before{nan, nan};
    const auto between = [](const draw::PlotPoint& a, const draw::PlotPoint& b, double x) {
        return draw::PlotPoint{x, a.y + (b.y - a.y) * (x - a.x) / (b.x - a.x)};
    };
    for (std::size_t i = 0; i < curve.x.size(); ++i) {
        const bool drawn = std::isfinite(curve.y[i]) && std::isfinite(values[i]) && (!log || values[i] > 0);
        if (!drawn) {
            if (!std::isnan(before.x)) inside.push_back({curve.x[i], nan});
            before = {nan, nan};
            continue;
        }
        const draw::PlotPoint point{curve.x[i], mapped(values[i], log)};
        const auto cross = [&](double edge) {
            if (before.x < edge && point.x > edge) inside.push_back(between(before, point, edge));
        };
        cross(range.x_low);
        if (point.x > range.x_high) {
            cross(range.x_high);
            break;
        }
        if (point.x >= range.x_low) inside.push_back(point);
        before = point;
    }
    return draw::fold_plot(inside, range, columns);
}

std::vector<ColumnsWithoutNumber> columns_without_number(const RunCurve& curve, XRange x, int columns) {
    std::vector<ColumnsWithoutNumber> found;
    for (std::size_t i = 0; i < curve.x.size(); ++i) {
        if (std::isfinite(curve.y[i]) || curve.x[i] < x.low || curve.x[i] > x.high) continue;
        const int at = std::clamp(static_cast<int>((curve.x[i] - x.low) / (x.high - x.low) * columns), 0,
                                  std::max(0, columns - 1));
        if (found.empty() || at > found.back().last + 1) found.push_back({at, at});
        found.back().last = at;
    }
    return found;
}

}  // namespace shardscope::viewer::panels
