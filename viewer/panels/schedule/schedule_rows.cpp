// See schedule_rows.h.
#include "viewer/panels/schedule/schedule_rows.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "traces/store/columns/trace.h"
#include "viewer/tables/result_model.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::IdleCause;
using traces::analysis::PipelineAction;
using traces::analysis::PipelineRow;
using traces::analysis::PipelineStep;
using traces::analysis::PipelineTimeline;

bool is_second(const std::vector<PipelineAction>& actions, int first_stage) {
    return actions.front().stage != first_stage;
}

// Pieces of work may overlap (streams): each begins where the one before has ended.
std::vector<ScheduleSpan> actual_spans(const PipelineRow& row, int first_stage) {
    std::vector<ScheduleSpan> work;
    for (std::size_t c = 0; c < row.cells.size(); ++c) {
        const traces::analysis::PipelineCell& cell = row.cells[c].cell;
        for (const traces::analysis::Interval& piece : cell.work)
            work.push_back({piece.start, piece.end, static_cast<int>(compute_kind(cell.actions)),
                            static_cast<int>(c), is_second(cell.actions, first_stage)});
    }
    std::sort(work.begin(), work.end(), [](const auto& a, const auto& b) { return a.start < b.start; });
    std::vector<ScheduleSpan> spans;
    auto idle = row.idle.begin();
    const auto add_idle = [&](std::int64_t until, int next) {
        for (; idle != row.idle.end() && idle->time.start < until; ++idle)
            spans.push_back({idle->time.start, idle->time.end,
                             traces::analysis::kComputeKinds + static_cast<int>(idle->cause), next, false});
    };
    for (ScheduleSpan span : work) {
        add_idle(span.start, span.cell);
        if (!spans.empty()) span.start = std::max(span.start, spans.back().end);
        if (span.start >= span.end) continue;
        if (!spans.empty() && spans.back().end == span.start && spans.back().cell == span.cell &&
            !spans.back().is_idle()) {
            spans.back().end = span.end;
        } else {
            spans.push_back(span);
        }
    }
    add_idle(INT64_MAX, -1);
    return spans;
}

std::vector<ScheduleSpan> planned_spans(const PipelineRow& row, int first_stage) {
    std::vector<ScheduleSpan> spans;
    for (std::size_t p = 0; p < row.planned.size(); ++p) {
        const traces::analysis::PlannedCell& cell = row.planned[p];
        if (cell.time.length() > 0)
            spans.push_back({cell.time.start, cell.time.end, static_cast<int>(compute_kind(cell.actions)),
                             static_cast<int>(p), is_second(cell.actions, first_stage)});
    }
    return spans;
}

ScheduleRow schedule_row(const traces::store::Trace& trace, const PipelineStep& step,
                         const PipelineRow& row) {
    ScheduleRow result;
    result.rank = trace.ranks[row.rank.at()].number;
    result.step = &step;
    result.row = &row;
    std::set<int> stages;
    for (const auto& cell : row.cells) {
        for (const PipelineAction& a : cell.cell.actions) stages.insert(a.stage);
    }
    for (const int stage : stages)
        result.stages += fmt::format("{}{}", result.stages.empty() ? "" : ", ", stage);
    result.actual = actual_spans(row, *stages.begin());
    result.planned = planned_spans(row, *stages.begin());
    result.idle_ns = step.makespan.length() - traces::analysis::length(row.busy);
    return result;
}

}  // namespace

double ScheduleRow::bubble_percent() const {
    const std::int64_t whole = step->makespan.length();
    return whole > 0 ? 100 * static_cast<double>(idle_ns) / static_cast<double>(whole) : 0;
}

double ScheduleView::share_percent(int kind) const {
    return whole_ns > 0
               ? 100 * static_cast<double>(ns[static_cast<std::size_t>(kind)]) / static_cast<double>(whole_ns)
               : 0;
}

double ScheduleView::bubble_percent() const {
    double sum = 0;
    for (int kind = traces::analysis::kComputeKinds; kind < kSpanKinds; ++kind) sum += share_percent(kind);
    return sum;
}

ScheduleView schedule_view(const traces::store::Trace& trace, const PipelineTimeline& timeline,
                           std::int64_t step, std::optional<std::size_t> pipeline) {
    ScheduleView view;
    view.step = step;
    view.makespan = {INT64_MAX, INT64_MIN};
    for (const PipelineStep& each : timeline.steps) {
        if (each.number != step || (pipeline && each.pipeline != *pipeline)) continue;
        view.makespan.from = std::min(view.makespan.from, each.makespan.start);
        view.makespan.to = std::max(view.makespan.to, each.makespan.end);
        view.planned_ns = std::max(view.planned_ns, each.planned_ns);
        for (const PipelineRow& row : each.rows) {
            view.rows.push_back(schedule_row(trace, each, row));
            view.planned = view.planned || !row.planned.empty();
            view.in_planned_order = view.in_planned_order && row.in_planned_order;
            for (const ScheduleSpan& span : view.rows.back().actual) {
                view.ns[static_cast<std::size_t>(span.kind)] += span.end - span.start;
                view.whole_ns += span.end - span.start;
            }
        }
    }
    if (view.rows.empty()) view.makespan = {0, 1};
    std::stable_sort(view.rows.begin(), view.rows.end(), [](const ScheduleRow& a, const ScheduleRow& b) {
        return a.row->place != b.row->place ? a.row->place < b.row->place : a.rank < b.rank;
    });
    return view;
}

std::vector<std::int64_t> schedule_steps(const PipelineTimeline& timeline) {
    std::set<std::int64_t> numbers;
    for (const PipelineStep& step : timeline.steps) numbers.insert(step.number);
    return {numbers.begin(), numbers.end()};
}

std::size_t pipeline_of_rank(const PipelineTimeline& timeline, traces::store::RankIndex rank) {
    for (const PipelineStep& step : timeline.steps) {
        for (const PipelineRow& row : step.rows)
            if (row.rank == rank) return step.pipeline;
    }
    return 0;
}

FoldedSpans fold_spans(std::span<const ScheduleSpan> spans, const model::TimeView& view, double least) {
    FoldedSpans folded;
    std::int64_t open = -1;  // the column that the next narrow span may share
    auto span = std::partition_point(spans.begin(), spans.end(),
                                     [&](const ScheduleSpan& s) { return s.end <= view.from; });
    for (; span != spans.end() && span->start < view.to; ++span) {
        const double x0 = std::max(view.pixel(span->start), 0.0),
                     x1 = std::min(view.pixel(span->end), view.width);
        if (x1 - x0 >= least) {
            folded.boxes.push_back({x0, x1, span->kind, span->second});
            open = -1;
            continue;
        }
        for (auto c = static_cast<std::int64_t>(x0 / least); static_cast<double>(c) * least < x1; ++c) {
            const double left = std::max(x0, static_cast<double>(c) * least);
            const double right = std::min(x1, static_cast<double>(c + 1) * least);
            if (open != c) folded.columns.push_back({left, right, {}});
            open = c;
            folded.columns.back().x1 = right;
            folded.columns.back().pixels[static_cast<std::size_t>(span->kind)] +=
                static_cast<float>(right - left);
        }
    }
    return folded;
}

const ScheduleSpan* span_at(std::span<const ScheduleSpan> spans, std::int64_t time) {
    const auto at = std::partition_point(spans.begin(), spans.end(),
                                         [&](const ScheduleSpan& s) { return s.end <= time; });
    return at != spans.end() && at->start <= time ? &*at : nullptr;
}

std::string action_text(const std::vector<PipelineAction>& actions) {
    std::string text;
    for (const PipelineAction& a : actions)
        text += fmt::format("{}{} of stage {}, micro-batch {}", text.empty() ? "" : " and ", a.kind, a.stage,
                            a.micro_batch);
    return text;
}

std::string micro_batch_text(const std::vector<PipelineAction>& actions) {
    std::string text;
    for (const PipelineAction& a : actions)
        text += fmt::format("{}{}", text.empty() ? "" : "|", a.micro_batch);
    return text;
}

std::string_view idle_meaning(IdleCause cause) {
    static constexpr std::array<std::string_view, traces::analysis::kIdleCauses> kMeanings = {
        "the rank has not begun",
        "another stage still computes what it waits for",
        "the result is there, and a transfer runs",
        "the host has not launched the next work",
        "none of the other causes",
        "the rank has finished, others have not"};
    return kMeanings[static_cast<std::size_t>(cause)];
}

traces::analysis::ByteCurve memory_at_work(traces::analysis::ByteCurve curve,
                                           const PipelineTimeline& timeline, traces::store::RankIndex rank) {
    std::vector<std::pair<std::int64_t, std::int64_t>> anchors;  // host, device: both rising
    const auto add = [&](std::int64_t host, std::int64_t device) {
        if (!anchors.empty() && host <= anchors.back().first) return;
        anchors.emplace_back(host, anchors.empty() ? device : std::max(device, anchors.back().second));
    };
    for (const PipelineStep& step : timeline.steps) {
        for (const PipelineRow& row : step.rows) {
            if (row.rank != rank) continue;
            for (const auto& c : row.cells) {
                add(c.cell.range.start, c.cell.start());
                add(c.cell.range.end, c.cell.end());
            }
        }
    }
    if (anchors.empty()) return curve;
    for (std::int64_t& time : curve.time) {
        const auto after = std::upper_bound(anchors.begin(), anchors.end(), std::pair(time, INT64_MAX));
        if (after == anchors.begin()) {
            time += anchors.front().second - anchors.front().first;
        } else if (after == anchors.end()) {
            time += anchors.back().second - anchors.back().first;
        } else {
            const auto& [h0, d0] = *std::prev(after);
            const double share = static_cast<double>(time - h0) / static_cast<double>(after->first - h0);
            time = d0 + std::llround(share * static_cast<double>(after->second - d0));
        }
    }
    return curve;
}

MemoryBand memory_band(std::span<const traces::analysis::ByteCurve> curves) {
    struct Point {
        std::int64_t time = 0;
        std::size_t curve = 0;
        std::int64_t bytes = 0;
    };
    std::vector<Point> points;
    for (std::size_t c = 0; c < curves.size(); ++c) {
        for (std::size_t i = 0; i < curves[c].size(); ++i)
            points.push_back({curves[c].time[i], c, curves[c].bytes[i]});
    }
    std::stable_sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
        return std::pair(a.time, a.curve) < std::pair(b.time, b.curve);
    });
    MemoryBand band;
    const auto add = [](traces::analysis::ByteCurve& curve, std::int64_t time, std::int64_t bytes) {
        if ((curve.empty() ? 0 : curve.bytes.back()) == bytes) return;
        curve.time.push_back(time);
        curve.bytes.push_back(bytes);
    };
    std::vector<std::int64_t> now(curves.size(), 0);
    std::multiset<std::int64_t> sorted(now.begin(), now.end());
    for (std::size_t begin = 0, end = 0; begin < points.size(); begin = end) {
        const std::int64_t time = points[begin].time;
        std::int64_t least = points[begin].bytes, most = least;
        for (; end < points.size() && points[end].time == time; ++end) {
            const Point& point = points[end];
            least = std::min(least, point.bytes);
            most = std::max(most, point.bytes);
            const bool last_of_curve = end + 1 == points.size() || points[end + 1].time != time ||
                                       points[end + 1].curve != point.curve;
            if (!last_of_curve) continue;
            sorted.erase(sorted.find(now[point.curve]));
            now[point.curve] = point.bytes;
            sorted.insert(point.bytes);
        }
        add(band.lowest, time, std::min(least, *sorted.begin()));
        add(band.lowest, time, *sorted.begin());
        add(band.highest, time, std::max(most, *sorted.rbegin()));
        add(band.highest, time, *sorted.rbegin());
    }
    return band;
}

std::shared_ptr<const tables::CellTable> pipeline_rank_table(const traces::analysis::PipelineReport& report) {
    const auto color = [](IdleCause cause) { return theme::idle_color(cause); };
    const tables::ColumnLook looks[] = {
        {.key = "rank", .width = 4},
        {.key = "place", .width = 10, .priority = 5, .where_known = true},
        {.key = "stages", .width = 5},
        {.key = "busy_us",
         .width = 7,
         .priority = 8,
         .bar = theme::compute_color(traces::analysis::ComputeKind::forward)},
        {.key = "idle_us", .width = 7, .priority = 9},
        {.key = "bubble_percent", .width = 6, .bar = theme::accent()},
        {.key = "warm_up_us", .width = 6.5F, .priority = 7, .bar = color(IdleCause::warm_up)},
        {.key = "peer_us", .width = 6.5F, .priority = 8, .bar = color(IdleCause::peer)},
        {.key = "communication_us", .width = 6.5F, .priority = 8, .bar = color(IdleCause::transfer)},
        {.key = "host_us", .width = 6.5F, .priority = 7, .bar = color(IdleCause::host)},
        {.key = "imbalance_us", .width = 6.5F, .priority = 7, .bar = color(IdleCause::imbalance)},
        {.key = "drain_us", .width = 6.5F, .priority = 7, .bar = color(IdleCause::drain)},
        {.key = "in_flight_peak", .width = 5, .priority = 6},
    };
    return result_model(
        traces::analysis::result_table(traces::analysis::pipeline_rank_fields(), report.ranks), looks);
}

std::shared_ptr<const tables::CellTable> stage_work_table(const traces::analysis::PipelineReport& report) {
    const tables::ColumnLook looks[] = {
        {.key = "stage", .width = 5},
        {.key = "rank", .width = 4},
        {.key = "kind", .width = 5},
        {.key = "count", .width = 6},
        {.key = "mean_us", .width = 8, .bar = theme::accent()},
        {.key = "longest_us", .width = 8},
    };
    return result_model(traces::analysis::result_table(traces::analysis::stage_work_fields(), report.stages),
                        looks);
}

std::shared_ptr<const tables::CellTable> stage_memory_table(const traces::analysis::PipelineReport& report) {
    const tables::ColumnLook looks[] = {
        {.key = "stage", .width = 5},
        {.key = "rank", .width = 4},
        {.key = "in_flight_peak", .width = 6, .unit = "chunks"},
        {.key = "in_flight_bytes", .width = 8, .bar = theme::accent()},
        {.key = "bytes_per_chunk", .width = 8},
    };
    return result_model(
        traces::analysis::result_table(traces::analysis::stage_memory_fields(), report.memory), looks);
}

}  // namespace shardscope::viewer::panels
