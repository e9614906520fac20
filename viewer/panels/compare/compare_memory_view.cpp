// See compare_pages.h.
#include <algorithm>
#include <cmath>

#include <fmt/core.h>
#include <imgui.h>

#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/model/rank_steps.h"
#include "viewer/panels/compare/compare_pages.h"
#include "viewer/panels/compare/compare_runs.h"
#include "viewer/theme/theme.h"
#include "viewer/widgets/toolbar.h"

namespace shardscope::viewer::panels {

// The curve of each run's rank with the largest peak, and the visible part of it.
void CompareMemoryView::take_curves(model::Session& session, const ComparedRuns& runs) {
    curves_.resize(runs.traces.size());
    for (std::size_t r = 0; r < runs.traces.size(); ++r) {
        Curve& curve = curves_[r];
        const model::TracePtr& trace = runs.traces[r];
        if (ranks_[r] == nullptr) {
            curve = {};
            continue;
        }
        curve.trace = trace;
        curve.rank = trace->rank_of_number(ranks_[r]->rank);
        curve.points = session.analyses.category_curve(trace, curve.rank);
        curve.peak = static_cast<double>(ranks_[r]->peak_bytes);
        const traces::analysis::Selection& selection = runs.selections[r];
        curve.time = {selection.from_ns.value_or(trace->first_ns), selection.to_ns.value_or(trace->last_ns)};
        if (whole_) continue;
        if (const traces::store::Step* step = model::step_at(*trace, curve.rank, ranks_[r]->peak_time_ns))
            curve.time = {step->start, step->end};
    }
}

// Labels the peaks' sizes at the right above their lines; side by side where they are close.
void CompareMemoryView::draw_peaks(const draw::Chart& chart, const ComparedRuns& runs) const {
    const float font = ImGui::GetFontSize(), gap = font * 0.5F;
    std::vector<ImVec4> taken;  // left, top, right, bottom
    for (std::size_t r = 0; r < curves_.size(); ++r) {
        if (curves_[r].points == nullptr) continue;
        const std::string label = draw::format_mb(static_cast<std::int64_t>(curves_[r].peak));
        const ImVec2 size = ImGui::CalcTextSize(label.c_str());
        const float y = std::max(chart.min.y, static_cast<float>(chart.y.pixel(curves_[r].peak)) - size.y);
        float x = chart.max.x - size.x - gap;
        for (const ImVec4& other : taken) {
            if (y < other.w && y + size.y > other.y) x = std::min(x, other.x - size.x - gap);
        }
        taken.push_back({x, y, x + size.x, y + size.y});
        chart.draw->AddRectFilled({x - 2, y}, {x + size.x + 2, y + size.y},
                                  draw::faded(theme::ground(), 0.8F));
        chart.draw->AddText({std::floor(x), std::floor(y)}, runs.heads[r].color, label.c_str());
    }
}

void CompareMemoryView::draw_curves(const ComparedRuns& runs, float height) {
    std::int64_t longest = 1;
    double highest = 0;
    for (const Curve& curve : curves_) {
        if (curve.points == nullptr) continue;
        longest = std::max(longest, curve.time.length());
        highest = std::max(highest, curve.peak);
    }
    const draw::ChartAxes axes{0, static_cast<double>(longest), draw::axis_top(highest)};
    const draw::Chart chart = begin_chart("curves", {ImGui::GetContentRegionAvail().x, height}, axes);
    draw::items::mark("compare.curves");
    for (std::size_t r = 0; r < curves_.size(); ++r) {
        Curve& curve = curves_[r];
        if (curve.points == nullptr || curve.time.length() <= 0) continue;
        const auto right = static_cast<float>(chart.x.pixel(static_cast<double>(curve.time.length())));
        const int count = std::max(1, static_cast<int>((right - chart.min.x) / 2));
        if (curve.folded_of != curve.points.get() || curve.folded_time != curve.time ||
            static_cast<int>(curve.columns.size()) != count) {
            curve.columns = fold_curve(*curve.points, curve.time.from, curve.time.to, count);
            curve.folded_of = curve.points.get();
            curve.folded_time = curve.time;
        }
        const float width = (right - chart.min.x) / static_cast<float>(count);
        const ImU32 color = runs.heads[r].color;
        float before = chart.max.y;
        for (int c = 0; c < count; ++c) {
            const draw::FoldedColumn& column = curve.columns[static_cast<std::size_t>(c)];
            const auto top = static_cast<float>(chart.y.pixel(static_cast<double>(column.highest)));
            const auto low = static_cast<float>(chart.y.pixel(static_cast<double>(column.lowest)));
            const float x = chart.min.x + width * static_cast<float>(c);
            chart.draw->AddRectFilled({x, top}, {x + width, chart.max.y}, draw::faded(color, 0.10F));
            chart.draw->AddRectFilled({x, std::min(top, before) - 0.75F},
                                      {x + width, std::max(low, std::min(before, low)) + 0.75F}, color);
            before = low;
        }
        level_line(chart, curve.peak, draw::faded(color, 0.6F), "");
    }
    draw_peaks(chart, runs);
    crosshair(chart);
    if (!chart.hovered) return;
    const auto after = static_cast<std::int64_t>(chart.x.value(ImGui::GetIO().MousePos.x));
    draw::begin_tip(draw::format_duration(static_cast<double>(after)) + " after the start");
    for (std::size_t r = 0; r < curves_.size(); ++r) {
        if (curves_[r].points == nullptr || after > curves_[r].time.length()) continue;
        const auto* point = draw::point_at(curves_[r].points->points, curves_[r].time.from + after);
        draw::tip_row(runs.heads[r].name, draw::format_mb(point != nullptr ? point->total : 0),
                      runs.heads[r].color);
    }
    draw::end_tip();
}

void CompareMemoryView::draw(model::Session& session, const ComparedRuns& runs) {
    std::vector<std::shared_ptr<const traces::analysis::MemoryReport>> of;
    for (std::size_t r = 0; r < runs.traces.size(); ++r)
        of.push_back(session.analyses.memory(runs.traces[r], runs.selections[r]));
    if (std::find(of.begin(), of.end(), nullptr) != of.end())
        return widgets::draw_waiting(session, "the memory of each run");
    const std::vector<std::string> names = names_of(runs);
    if (of != of_ || table_ == nullptr || table_by_ != by_ || names_ != names) {
        of_ = of;
        table_by_ = by_;
        names_ = names;
        ranks_.clear();
        for (const auto& report : of_) ranks_.push_back(largest_rank(*report));
        table_ = std::make_shared<MemoryModel>(runs.heads, ranks_, by_);
    }
    if (std::all_of(ranks_.begin(), ranks_.end(), [](const auto* rank) { return rank == nullptr; })) {
        return draw::note(
            "None of these traces holds allocations. shardscope-train records them; PyTorch's profiler does "
            "with profile_memory=True, and memory snapshots hold nothing else.");
    }
    draw_run_legend(runs);
    if (choice_button("Step of the peak", !whole_, "compare.memory_step")) whole_ = false;
    ImGui::SameLine(0, 2);
    if (choice_button("Whole run", whole_, "compare.memory_whole")) whole_ = true;
    ImGui::SameLine(0, ImGui::GetFontSize() * 1.5F);
    ImGui::AlignTextToFramePadding();
    ImGui::TextDisabled("Table by");
    for (const auto& [label, by] :
         {std::pair("category", MemoryBy::category), std::pair("unit", MemoryBy::unit),
          std::pair("module", MemoryBy::module), std::pair("buffer", MemoryBy::buffer)}) {
        ImGui::SameLine(0, by == MemoryBy::category ? ImGui::GetFontSize() * 0.5F : 2);
        if (choice_button(label, by_ == by, fmt::format("compare.memory_by.{}", label))) by_ = by;
    }
    take_curves(session, runs);
    draw_curves(runs, std::max(ImGui::GetFontSize() * 8, ImGui::GetContentRegionAvail().y * 0.46F));
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
        if (ranks_[r] == nullptr) draw::note(fmt::format("{} holds no allocations.", runs.heads[r].name));
    }
    tables::TableOptions options;
    options.filter = by_ != MemoryBy::category;
    options.name = "compare-memory";
    const tables::TableEvents events = draw_table("compare.memory", table_, state_, options);
    if (!events.opened) return;
    // Goes to the instant of the peak, in the run with the largest one.
    const auto most = std::max_element(ranks_.begin(), ranks_.end(), [](const auto* a, const auto* b) {
        return (a != nullptr ? a->peak_bytes : -1) < (b != nullptr ? b->peak_bytes : -1);
    });
    const auto run = static_cast<std::size_t>(most - ranks_.begin());
    session.set_active(runs.entries[run]);
    if (model::OpenTrace* entry = session.current()) entry->cursor = (*most)->peak_time_ns;
    session.rank = curves_[run].rank;
    session.wanted_panel = "memory";
}

}  // namespace shardscope::viewer::panels
