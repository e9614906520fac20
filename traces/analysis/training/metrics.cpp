// See metrics.h.
#include "traces/analysis/training/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "traces/schema/marked_metrics.h"
#include "traces/schema/metric_kinds.h"
#include "traces/schema/sort_rows.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

constexpr std::string_view kLoss = "loss", kValidationLoss = "validation_loss", kTestLoss = "test_loss",
                           kDiverged = "diverged";

// Losses first, then by name, then by rank.
using CurveKey = std::tuple<int, std::string, int>;
using Curves = std::map<CurveKey, std::vector<MetricPoint>>;

CurveKey key_of(std::string_view name, int rank) {
    const int order = name == kLoss ? 0 : name == kValidationLoss ? 1 : name == kTestLoss ? 2 : 3;
    return {order, std::string(name), rank};
}

// The losses of steps, at the sample of another metric of the job or, without one, at the step's end.
void add_losses(const store::Trace& trace, Curves& curves) {
    std::map<std::int64_t, MetricPoint> losses;
    for (const store::Step& step : trace.steps) {
        if (!step.loss) continue;
        MetricPoint& point = losses[step.number];
        point = {step.number, -1, std::max(point.time, step.end), *step.loss};
    }
    for (const schema::MetricRow& row : trace.metrics) {
        const auto loss = losses.find(row.step);
        if (loss == losses.end() || row.rank >= 0 || loss->second.sample >= 0) continue;
        loss->second.sample = row.sample;
        loss->second.time = row.time;
    }
    for (const auto& [step, point] : losses) curves[key_of(kLoss, -1)].push_back(point);
}

// The rank of a thread and the number of its step at a time; -1: none.
struct Owner {
    int rank = -1;
    std::int64_t step = -1;
};
Owner owner_of(const store::Trace& trace, std::uint16_t thread, std::int64_t time) {
    const store::RankIndex rank = trace.threads[thread].rank;
    if (!rank.known()) return {};
    Owner owner{trace.ranks[rank.at()].number, -1};
    const auto after = std::partition_point(  // sorted by rank, then start
        trace.steps.begin(), trace.steps.end(),
        [&](const store::Step& step) { return std::tie(step.rank, step.start) <= std::tie(rank, time); });
    if (after == trace.steps.begin()) return owner;
    const store::Step& step = *(after - 1);
    if (step.rank == rank && time < step.end) owner.step = step.number;
    return owner;
}

// A finished file has its marks' metrics as rows, too (store/write/metric_rows.h).
class StoredMarks {
  public:
    explicit StoredMarks(const store::Trace& trace) {
        for (const schema::MetricRow& row : trace.metrics)
            if (row.rank >= 0) rows_.emplace(trace.strings[row.name], row.rank, row.time);
    }
    bool has(std::string_view metric, int rank, std::int64_t time) const {
        return rows_.contains({metric, rank, time});
    }

  private:
    std::set<std::tuple<std::string_view, int, std::int64_t>> rows_;
};

void add_marks(const store::Trace& trace, Curves& curves) {
    std::map<schema::StringId, schema::MarkedMetrics> marked;
    for (std::size_t i = 0; i < trace.strings.size(); ++i) {
        const auto id = static_cast<schema::StringId>(i);
        if (!trace.strings[id].starts_with(schema::kMetricMark)) continue;
        if (schema::MarkedMetrics metrics = schema::marked_metrics(trace.strings[id]);
            !metrics.values.empty())
            marked.emplace(id, std::move(metrics));
    }
    if (marked.empty()) return;
    const StoredMarks stored(trace);
    const auto add = [&](schema::StringId name, std::uint16_t thread, std::int64_t time) {
        const auto found = marked.find(name);
        if (found == marked.end()) return;
        const Owner owner = owner_of(trace, thread, time);
        const std::int64_t step = found->second.step >= 0 ? found->second.step : owner.step;
        for (const auto& [metric, value] : found->second.values) {
            if (stored.has(metric, owner.rank, time)) continue;
            curves[key_of(metric, owner.rank)].push_back({step, found->second.sample, time, value});
        }
    };
    for (std::size_t i = 0; i < trace.marks.size(); ++i)
        add(trace.marks.name[i], trace.marks.thread[i], trace.marks.time[i]);
    for (std::size_t i = 0; i < trace.ranges.size(); ++i)
        add(trace.ranges.name[i], trace.ranges.thread[i], trace.ranges.start[i]);
}

// The job's points from those of the ranks, of which there are two or more: the last of each step.
std::vector<MetricPoint> over_ranks(std::string_view metric,
                                    std::span<const std::vector<MetricPoint>* const> ranks) {
    std::map<std::int64_t, std::vector<const MetricPoint*>> by_step;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        for (const MetricPoint& point : *ranks[r]) {
            if (point.step < 0) continue;
            auto& of = by_step[point.step];
            of.resize(ranks.size());
            if (of[r] == nullptr || of[r]->time <= point.time) of[r] = &point;
        }
    }
    std::vector<MetricPoint> points;
    for (const auto& [step, of] : by_step) {
        if (std::find(of.begin(), of.end(), nullptr) != of.end()) continue;
        MetricPoint& point = points.emplace_back(MetricPoint{step, -1, of.front()->time, 0});
        std::vector<double> values;
        for (const MetricPoint* one : of) {
            values.push_back(one->value);
            point.sample = std::max(point.sample, one->sample);
            point.time = std::max(point.time, one->time);
        }
        point.value = schema::reduced(schema::reduction_of(metric), values);
    }
    return points;
}

// Adds the job's curve to metrics that two or more ranks report; returns the names of these.
std::set<std::string, std::less<>> add_jobs_curves(Curves& curves) {
    std::set<std::string, std::less<>> names;
    for (auto first = curves.begin(); first != curves.end();) {
        const std::string name = std::get<1>(first->first);
        std::vector<const std::vector<MetricPoint>*> ranks;
        auto next = first;
        bool has_jobs = false;
        for (; next != curves.end() && std::get<1>(next->first) == name; ++next) {
            has_jobs |= std::get<2>(next->first) < 0;
            ranks.push_back(&next->second);
        }
        if (!has_jobs && ranks.size() > 1) {
            curves[key_of(name, -1)] = over_ranks(name, ranks);
            names.insert(name);
        }
        first = next;
    }
    return names;
}

bool is_kept(const Selection& selection, int rank, const MetricPoint& point) {
    return (!selection.rank || rank < 0 || rank == *selection.rank) &&
           (point.step < 0 || selection.has_step(point.step)) &&
           (!selection.from_ns || point.time >= *selection.from_ns) &&
           (!selection.to_ns || point.time < *selection.to_ns);
}

template <class Less>
const MetricPoint& extreme(const std::vector<MetricPoint>& points, Less less) {
    const MetricPoint* best = &points.front();
    for (const MetricPoint& point : points) {
        if (!std::isnan(point.value) && (std::isnan(best->value) || less(point.value, best->value)))
            best = &point;
    }
    return *best;
}

store::Cell known_number(std::int64_t value) {
    return value >= 0 ? store::Cell(value) : store::Cell();
}
store::Cell number_cell(double value) {
    return std::isnan(value) ? store::Cell() : store::Cell(value);
}

}  // namespace

const MetricPoint& MetricCurve::lowest() const {
    return extreme(points, [](double a, double b) { return a < b; });
}
const MetricPoint& MetricCurve::highest() const {
    return extreme(points, [](double a, double b) { return a > b; });
}

std::vector<PointOfCurve> points_of(const MetricCurve& curve) {
    std::vector<PointOfCurve> rows;
    rows.reserve(curve.points.size());
    for (const MetricPoint& point : curve.points) rows.push_back({curve, point});
    return rows;
}

const MetricCurve* MetricsReport::find(std::string_view name) const {
    const auto found = std::find_if(curves.begin(), curves.end(),
                                    [&](const MetricCurve& curve) { return curve.name == name; });
    return found == curves.end() ? nullptr : &*found;
}

MetricsReport metrics_report(const store::Trace& trace, const Selection& selection, std::string_view name,
                             std::optional<double> loss) {
    Curves all;
    add_losses(trace, all);
    for (const schema::MetricRow& row : trace.metrics)
        all[key_of(trace.strings[row.name], row.rank)].push_back({row.step, row.sample, row.time, row.value});
    add_marks(trace, all);
    const auto from_ranks = add_jobs_curves(all);
    MetricsReport report;
    report.one_metric = !name.empty();
    for (auto& [key, points] : all) {
        const auto& [order, metric, rank] = key;
        if (!name.empty() && metric != name && !(loss && metric == kLoss)) continue;
        std::erase_if(points, [&, of = rank](const MetricPoint& p) { return !is_kept(selection, of, p); });
        const bool reduced = rank < 0 && from_ranks.contains(metric);
        if (points.empty() || (reduced && selection.rank)) continue;  // one rank's own is asked for
        schema::sort_rows(points, [](const MetricPoint& a, const MetricPoint& b) {
            return std::tie(a.step, a.time) < std::tie(b.step, b.time);
        });
        report.curves.push_back({metric, rank, std::move(points), reduced});
    }
    if (!loss) return report;
    report.reached = ReachedLoss{.asked = *loss, .point = {}, .has_steps = !trace.steps.empty()};
    if (const MetricCurve* curve = report.find(kLoss)) {
        for (const MetricPoint& point : curve->points) {  // those of no step are not in the order of time
            auto& first = report.reached->point;
            if (point.value <= *loss && (!first || point.time < first->time)) first = point;
        }
        std::int64_t start = trace.steps.empty() ? 0 : std::numeric_limits<std::int64_t>::max();
        for (const store::Step& step : trace.steps) start = std::min(start, step.start);
        if (const auto& at = report.reached->point)
            report.reached->since_start = at->time - std::min(start, at->time);
    }
    if (!name.empty())
        std::erase_if(report.curves, [&](const MetricCurve& curve) { return curve.name != name; });
    return report;
}

std::optional<std::int64_t> diverged_step(const store::Trace& trace) {
    std::optional<std::int64_t> first;
    const auto add = [&](std::int64_t step) { first = std::min(first.value_or(step), step); };
    for (const schema::MetricRow& row : trace.metrics)
        if (trace.strings[row.name] == kDiverged && row.value != 0) add(row.step);
    for (const store::Step& step : trace.steps)
        if (step.loss && !std::isfinite(*step.loss)) add(step.number);
    return first;
}

Fields<MetricCurve> metric_fields() {
    using R = MetricCurve;
    static const Field<R> kFields[] = {
        {{"name", "Metric", Unit::text, "Its name, with its unit where it has one."}, value_of<&R::name>},
        {{"rank", "Rank", Unit::index, "The rank that reports it; none: it is the whole job's."},
         [](const R& r) { return known_number(r.rank); }},
        {{"over_ranks", "Over ranks", Unit::text,
          "How the ranks' values became the job's; none: it is one rank's, or the same on all."},
         [](const R& r) {
             return r.rank >= 0 ? store::Cell()
                                : known_text(std::string(words_of(schema::reduction_of(r.name))));
         }},
        {{"count", "Points", Unit::count, "Its values."},
         [](const R& r) { return store::Cell(static_cast<std::int64_t>(r.points.size())); }},
        {{"first", "First", Unit::digits6, "The value of the first step."},
         [](const R& r) { return number_cell(r.points.front().value); }},
        {{"last", "Last", Unit::digits6, "The value of the last step."},
         [](const R& r) { return number_cell(r.points.back().value); }},
        {{"lowest", "Lowest", Unit::digits6, "The lowest value."},
         [](const R& r) { return number_cell(r.lowest().value); }},
        {{"lowest_step", "at step", Unit::index, "The first step with the lowest value."},
         [](const R& r) { return known_number(r.lowest().step); }},
        {{"highest", "Highest", Unit::digits6, "The highest value."},
         [](const R& r) { return number_cell(r.highest().value); }},
        {{"highest_step", "at step", Unit::index, "The first step with the highest value."},
         [](const R& r) { return known_number(r.highest().step); }},
    };
    return kFields;
}

Fields<PointOfCurve> metric_point_fields() {
    using R = PointOfCurve;
    static const Field<R> kFields[] = {
        {{"name", "Metric", Unit::text, "The metric."}, [](const R& r) { return store::Cell(r.curve.name); }},
        {{"rank", "Rank", Unit::index, "The rank that reports it; none: it is the whole job's."},
         [](const R& r) { return known_number(r.curve.rank); }},
        {{"step", "Step", Unit::index, "The step's number; none: it belongs to no step."},
         [](const R& r) { return known_number(r.point.step); }},
        {{"sample", "Samples", Unit::count, "Samples used by the end of the step; none: unknown."},
         [](const R& r) { return known_number(r.point.sample); }},
        {{"time_ns", "Time", Unit::ns, "When it was known, since the start of the capture."},
         [](const R& r) { return store::Cell(r.point.time); }},
        {{"value", "Value", Unit::digits6, "Its value; none where it was not a number."},
         [](const R& r) { return number_cell(r.point.value); }},
    };
    return kFields;
}

}  // namespace shardscope::traces::analysis
