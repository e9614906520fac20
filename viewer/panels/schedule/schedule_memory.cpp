// See schedule_memory.h.
#include "viewer/panels/schedule/schedule_memory.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "traces/analysis/memory/memory_curves.h"
#include "traces/store/columns/trace.h"
#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::PipelineTimeline;

constexpr std::size_t kMostLines = 16;  // more ranks are a band

ImU32 band_color() {
    return draw::faded(theme::text_dim(), 0.45F);
}

}  // namespace

std::string ScheduleMemory::why_unknown() {
    return "The trace has no allocations, so the memory of its stages is unknown: record the allocator's "
           "events "
           "(trace.memory of ours, profile_memory=True of PyTorch's profiler).";
}

void ScheduleMemory::gather(model::Session& session, const std::shared_ptr<const PipelineTimeline>& timeline,
                            const ScheduleView& view) {
    recorded_ = session.trace()->memory.size() > 0;
    if (!recorded_ || curves_ != nullptr) return;
    const auto limit = session.current()->limit.value_or(model::TimeRange{});
    std::string key = fmt::format("pipeline memory/{}:{}", limit.from, limit.to);
    std::vector<traces::store::RankIndex> ranks;
    for (const ScheduleRow& row : view.rows) {
        ranks.push_back(row.row->rank);
        key += fmt::format("/{}", row.row->rank.value);
    }
    curves_ = session.analyses.derived<Curves>(key, {session.trace()}, [ranks, timeline](const auto& t) {
        return curves_of(*t.front(), *timeline, ranks);
    });
}

ScheduleMemory::Curves ScheduleMemory::curves_of(const traces::store::Trace& trace,
                                                 const PipelineTimeline& timeline,
                                                 const std::vector<traces::store::RankIndex>& ranks) {
    std::vector<traces::analysis::ByteCurve> allocated = traces::analysis::allocated_curves(trace), rows;
    for (const traces::store::RankIndex rank : ranks)
        rows.push_back(memory_at_work(std::move(allocated[rank.at()]), timeline, rank));
    Curves curves;
    if (rows.size() > kMostLines) {
        MemoryBand band = memory_band(rows);
        curves.lowest = draw::line_curve(std::move(band.lowest));
        curves.highest = draw::line_curve(std::move(band.highest));
    }
    for (traces::analysis::ByteCurve& row : rows) curves.rows.push_back(draw::line_curve(std::move(row)));
    return curves;
}

void ScheduleMemory::fold(const ScheduleView& view, model::TimeRange visible, int columns, int chosen_rank) {
    if (folded_columns_ == columns && folded_ == visible && (!is_band() || folded_rank_ == chosen_rank))
        return;
    folded_ = visible;
    folded_columns_ = columns;
    folded_rank_ = chosen_rank;
    columns_.assign(curves_->rows.size(), {});
    most_ = 1;
    const auto folded = [&](const draw::LineCurve& curve) {
        std::vector<draw::LineColumn> line = fold_line(curve, visible.from, visible.to, columns);
        for (const draw::LineColumn& column : line) most_ = std::max(most_, column.highest);
        return line;
    };
    if (is_band()) {
        lowest_ = folded(curves_->lowest);
        highest_ = folded(curves_->highest);
    }
    for (std::size_t i = 0; i < columns_.size(); ++i) {
        if (!is_band() || view.rows[i].rank == chosen_rank) columns_[i] = folded(curves_->rows[i]);
    }
}

ImU32 ScheduleMemory::line_color(std::size_t row) const {
    return is_band() ? theme::accent() : theme::run_color(static_cast<int>(row));
}

bool ScheduleMemory::is_band() const {
    return curves_->rows.size() > kMostLines;
}

void ScheduleMemory::draw_legend(const ScheduleView& view, int chosen_rank) const {
    std::vector<draw::LegendItem> items;
    if (is_band())
        items.push_back({fmt::format("lowest to highest of {} ranks", view.rows.size()), band_color()});
    for (std::size_t i = 0; i < columns_.size(); ++i) {
        if (is_band() && view.rows[i].rank != chosen_rank) continue;
        std::int64_t peak = 0;
        for (const draw::LineColumn& column : columns_[i]) peak = std::max(peak, column.highest);
        items.push_back(
            {fmt::format("rank {}: {}", view.rows[i].rank, draw::format_size(peak)), line_color(i)});
        draw::items::value(fmt::format("schedule.memory.{}", view.rows[i].rank), draw::format_size(peak));
    }
    draw::legend(items);
}

void ScheduleMemory::draw_band(const draw::Chart& chart) const {
    const float step = chart.width() / static_cast<float>(highest_.size());
    for (std::size_t c = 0; c < highest_.size(); ++c) {
        const float x = chart.min.x + step * static_cast<float>(c);
        const auto top = static_cast<float>(chart.y.pixel(static_cast<double>(highest_[c].highest)));
        const auto bottom = static_cast<float>(chart.y.pixel(static_cast<double>(lowest_[c].lowest)));
        chart.draw->AddRectFilled({x, top}, {x + step, bottom + 1}, band_color());
    }
}

void ScheduleMemory::draw_tip(const ScheduleView& view, std::int64_t time, int chosen_rank) const {
    draw::begin_tip(fmt::format("{} after the step's begin",
                                draw::format_duration(static_cast<double>(time - view.makespan.from))));
    for (std::size_t i = 0; i < curves_->rows.size(); ++i) {
        if (is_band() && view.rows[i].rank != chosen_rank) continue;
        draw::tip_row(fmt::format("rank {}", view.rows[i].rank),
                      draw::format_mb(line_at(curves_->rows[i], time)), line_color(i));
    }
    if (is_band()) {
        draw::tip_row("Lowest", draw::format_mb(line_at(curves_->lowest, time)));
        draw::tip_row("Highest", draw::format_mb(line_at(curves_->highest, time)));
    }
    draw::end_tip();
}

ScheduleMemory::Events ScheduleMemory::draw(const ScheduleView& view, model::TimeRange visible, Sides sides,
                                            int chosen_rank, float height) {
    const float font = ImGui::GetFontSize();
    const ImVec2 at = ImGui::GetCursorScreenPos();
    if (curves_ == nullptr) {
        draw::note("Computing the memory of the ranks ...");
        return {};
    }
    fold(view, visible, static_cast<int>(std::max(1.0F, (sides.right - sides.left) / 2)), chosen_rank);
    draw::text("Allocated memory, on the device's time axis; peak in the visible time:");
    ImGui::SameLine(0, font);
    draw_legend(view, chosen_rank);
    draw::ChartAxes axes{static_cast<double>(visible.from), static_cast<double>(visible.to),
                         draw::axis_top(static_cast<double>(most_)) * 1.04};
    axes.x_ticks = false;
    axes.label_room = sides.left - at.x - font * 0.5F;
    const float top = ImGui::GetCursorScreenPos().y;
    const draw::Chart chart =
        begin_chart("memory", {sides.right - at.x, std::max(font * 3, at.y + height - top)}, axes);
    const bool active = ImGui::IsItemActive();
    draw::items::place("schedule.memory", chart.min, chart.max);
    if (is_band()) draw_band(chart);
    for (std::size_t i = 0; i < columns_.size(); ++i) {
        const bool chosen = view.rows[i].rank == chosen_rank;
        if (chosen || !is_band()) stepped_line(chart, columns_[i], line_color(i), chosen ? 2.5F : 1.5F);
    }
    crosshair(chart);
    const ImGuiIO& io = ImGui::GetIO();
    if (chart.hovered && !ImGui::IsMouseDown(0))
        draw_tip(view, static_cast<std::int64_t>(chart.x.value(io.MousePos.x)), chosen_rank);
    const bool moved = io.MouseDragMaxDistanceSqr[0] > io.MouseDragThreshold * io.MouseDragThreshold;
    return {chart.hovered, active && moved ? io.MouseDelta.x : 0};
}

}  // namespace shardscope::viewer::panels
