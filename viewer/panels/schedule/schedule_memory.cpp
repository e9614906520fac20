// See schedule_memory.h.
#include "viewer/panels/schedule/schedule_memory.h"

#include <algorithm>
#include <limits>

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
    if (!recorded_ || complete_) return;
    curves_.resize(view.rows.size());
    complete_ = true;
    const auto limit = session.current()->limit.value_or(model::TimeRange{});
    for (std::size_t i = 0; i < curves_.size(); ++i) {
        const traces::store::RankIndex rank = view.rows[i].row->rank;
        curves_[i] = session.analyses.derived<draw::LineCurve>(
            fmt::format("pipeline memory/{}/{}:{}", rank.value, limit.from, limit.to), {session.trace()},
            [rank, timeline](const auto& t) {
                return draw::line_curve(
                    memory_at_work(traces::analysis::allocated_curve(*t.front(), rank), *timeline, rank));
            });
        complete_ = complete_ && curves_[i] != nullptr;
    }
}

void ScheduleMemory::fold(model::TimeRange visible, int columns) {
    const bool folded =
        !columns_.empty() && folded_ == visible && static_cast<int>(columns_.front().size()) == columns;
    if (folded) return;
    folded_ = visible;
    columns_.clear();
    most_ = 1;
    for (const auto& curve : curves_) {
        columns_.push_back(fold_line(*curve, visible.from, visible.to, columns));
        for (const draw::LineColumn& column : columns_.back()) most_ = std::max(most_, column.highest);
    }
}

ImU32 ScheduleMemory::line_color(std::size_t row) const {
    return is_band() ? theme::accent() : theme::run_color(static_cast<int>(row));
}

bool ScheduleMemory::is_band() const {
    return curves_.size() > kMostLines;
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
    std::vector<draw::LineColumn> band = columns_.front();
    for (const auto& line : columns_) {
        for (std::size_t c = 0; c < line.size(); ++c) {
            band[c].lowest = std::min(band[c].lowest, line[c].lowest);
            band[c].highest = std::max(band[c].highest, line[c].highest);
        }
    }
    const float step = chart.width() / static_cast<float>(band.size());
    for (std::size_t c = 0; c < band.size(); ++c) {
        const float x = chart.min.x + step * static_cast<float>(c);
        const auto top = static_cast<float>(chart.y.pixel(static_cast<double>(band[c].highest)));
        const auto bottom = static_cast<float>(chart.y.pixel(static_cast<double>(band[c].lowest)));
        chart.draw->AddRectFilled({x, top}, {x + step, bottom + 1}, band_color());
    }
}

void ScheduleMemory::draw_tip(const ScheduleView& view, std::int64_t time, int chosen_rank) const {
    draw::begin_tip(fmt::format("{} after the step's begin",
                                draw::format_duration(static_cast<double>(time - view.makespan.from))));
    std::int64_t low = std::numeric_limits<std::int64_t>::max(), high = 0;
    for (std::size_t i = 0; i < curves_.size(); ++i) {
        const std::int64_t bytes = line_at(*curves_[i], time);
        low = std::min(low, bytes);
        high = std::max(high, bytes);
        if (!is_band() || view.rows[i].rank == chosen_rank)
            draw::tip_row(fmt::format("rank {}", view.rows[i].rank), draw::format_mb(bytes), line_color(i));
    }
    if (is_band()) {
        draw::tip_row("Lowest", draw::format_mb(low));
        draw::tip_row("Highest", draw::format_mb(high));
    }
    draw::end_tip();
}

ScheduleMemory::Events ScheduleMemory::draw(const ScheduleView& view, model::TimeRange visible, Sides sides,
                                            int chosen_rank, float height) {
    const float font = ImGui::GetFontSize();
    const ImVec2 at = ImGui::GetCursorScreenPos();
    if (!complete_) {
        draw::note("Computing the memory of the ranks ...");
        return {};
    }
    fold(visible, static_cast<int>(std::max(1.0F, (sides.right - sides.left) / 2)));
    draw::text("Allocated when the device runs what allocates; highest in sight:");
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
