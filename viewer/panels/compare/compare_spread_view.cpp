// See compare_pages.h.
#include <algorithm>
#include <cmath>

#include <fmt/core.h>
#include <imgui.h>

#include "traces/analysis/time/steps.h"
#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/panels/compare/compare_pages.h"
#include "viewer/panels/compare/compare_runs.h"
#include "viewer/theme/theme.h"
#include "viewer/widgets/toolbar.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::CompareBy;

constexpr int kBins = 48;
constexpr std::size_t kColumns = 400;  // of the durations in order

void draw_histogram(const Histogram& histogram, const ComparedRuns& runs, ImVec2 size) {
    draw::ChartAxes axes{histogram.low * 1e3, histogram.high * 1e3, draw::axis_top(histogram.largest)};
    axes.y_unit = draw::AxisUnit::percent;
    const draw::Chart chart = begin_chart("histogram", size, axes);
    draw::items::mark("compare.histogram");
    const float width = chart.width() / static_cast<float>(kBins);
    for (std::size_t r = 0; r < histogram.percent.size(); ++r) {
        const ImU32 color = runs.heads[r].color;
        float before = chart.max.y;
        for (int bin = 0; bin < kBins; ++bin) {
            const double percent = histogram.percent[r][static_cast<std::size_t>(bin)];
            const float left = chart.min.x + width * static_cast<float>(bin);
            const auto top = static_cast<float>(chart.y.pixel(percent));
            if (percent > 0)
                chart.draw->AddRectFilled({left, top}, {left + width, chart.max.y},
                                          draw::faded(color, 0.28F));
            // The outline shows a run's shape where several overlap.
            if (top != before)
                chart.draw->AddRectFilled({left - 0.75F, std::min(top, before)},
                                          {left + 0.75F, std::max(top, before)}, color);
            if (percent > 0)
                chart.draw->AddRectFilled({left, top - 0.75F}, {left + width, top + 0.75F}, color);
            before = top;
        }
        if (before < chart.max.y)
            chart.draw->AddRectFilled({chart.max.x - 0.75F, before}, {chart.max.x + 0.75F, chart.max.y},
                                      color);
        if (!std::isnan(histogram.medians[r])) marker_line(chart, histogram.medians[r] * 1e3, color, "");
    }
    if (!chart.hovered) return;
    const auto bin =
        std::clamp(static_cast<int>((ImGui::GetIO().MousePos.x - chart.min.x) / width), 0, kBins - 1);
    const double step = (histogram.high - histogram.low) / kBins;
    draw::begin_tip(fmt::format("{} to {}", draw::format_duration((histogram.low + step * bin) * 1e3),
                                draw::format_duration((histogram.low + step * (bin + 1)) * 1e3)));
    for (std::size_t r = 0; r < histogram.percent.size(); ++r)
        draw::tip_row(runs.heads[r].name,
                      draw::format_percent(histogram.percent[r][static_cast<std::size_t>(bin)]),
                      runs.heads[r].color);
    draw::end_tip();
}

// The duration of every step (`what`) by its position in the run, as a line for each run.
void draw_in_order(const std::vector<Durations>& durations,
                   const std::vector<std::vector<DurationColumn>>& folded, const ComparedRuns& runs,
                   std::string_view what, ImVec2 size) {
    std::size_t most = 1;
    double longest = 0;
    for (std::size_t r = 0; r < durations.size(); ++r) {
        most = std::max(most, durations[r].us.size());
        for (const DurationColumn& column : folded[r]) longest = std::max(longest, column.longest);
    }
    // The first is at 1, with half a position free on both sides.
    draw::ChartAxes axes{0.5, static_cast<double>(most) + 0.5, draw::axis_top(longest * 1e3)};
    axes.x_unit = draw::AxisUnit::count;
    axes.y_unit = draw::AxisUnit::nanoseconds;
    const draw::Chart chart = begin_chart("in order", size, axes);
    for (std::size_t r = 0; r < folded.size(); ++r) {
        const ImU32 color = runs.heads[r].color;
        ImVec2 before{};
        for (std::size_t c = 0; c < folded[r].size(); ++c) {
            const DurationColumn& column = folded[r][c];
            const auto x = static_cast<float>(chart.x.pixel(static_cast<double>(column.first) + 1));
            const ImVec2 top{x, static_cast<float>(chart.y.pixel(column.longest * 1e3))};
            const ImVec2 bottom{x, static_cast<float>(chart.y.pixel(column.shortest * 1e3))};
            if (c > 0) chart.draw->AddLine(before, top, color, 1.5F);
            if (bottom.y > top.y) chart.draw->AddLine(top, bottom, color, 1.5F);
            if (folded[r].size() <= 100) chart.draw->AddCircleFilled(top, 2.5F, color, 8);
            before = bottom;
        }
    }
    crosshair(chart);
    if (!chart.hovered) return;
    const auto at = static_cast<std::size_t>(std::max(0.0, chart.x.value(ImGui::GetIO().MousePos.x) - 0.5));
    draw::begin_tip(
        fmt::format("{} {} of the run", what, draw::format_count(static_cast<std::int64_t>(at) + 1)));
    for (std::size_t r = 0; r < durations.size(); ++r) {
        if (at < durations[r].us.size())
            draw::tip_row(runs.heads[r].name, draw::format_duration(durations[r].us[at] * 1e3),
                          runs.heads[r].color);
    }
    draw::end_tip();
}

}  // namespace

bool CompareSpreadView::choose_kernel(model::Session& session, const ComparedRuns& runs) {
    const auto parts = parts_of(session, runs, CompareBy::kernel);
    if (parts == nullptr) {
        widgets::draw_waiting(session, "the kernels' names");
        return false;
    }
    if (parts->parts.empty()) {
        draw::note("None of these traces holds kernels.");
        return false;
    }
    const auto time = [](const traces::analysis::ComparedPart& part) {
        double most = 0;
        for (const traces::analysis::PartFigures& run : part.runs) most = std::max(most, run.us);
        return most;
    };
    const bool known = std::any_of(parts->parts.begin(), parts->parts.end(),
                                   [&](const auto& part) { return part.name == kernel_; });
    if (!known) {  // the kernel that takes the most time
        kernel_ =
            std::max_element(parts->parts.begin(), parts->parts.end(), [&](const auto& a, const auto& b) {
                return time(a) < time(b);
            })->name;
    }
    ImGui::SameLine(0, ImGui::GetFontSize());
    ImGui::SetNextItemWidth(std::min(ImGui::GetFontSize() * 30, ImGui::GetContentRegionAvail().x));
    const bool open = ImGui::BeginCombo("##kernel", draw::shorten_middle(kernel_, 70).c_str());
    draw::items::mark("compare.kernel_name", kernel_);
    if (open) {
        ImGuiListClipper clipper;
        clipper.Begin(static_cast<int>(parts->parts.size()));
        while (clipper.Step()) {
            for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
                const std::string& name = parts->parts[static_cast<std::size_t>(i)].name;
                ImGui::PushID(i);
                if (ImGui::Selectable(draw::shorten_middle(name, 90).c_str(), name == kernel_))
                    kernel_ = name;
                ImGui::PopID();
            }
        }
        ImGui::EndCombo();
    }
    return true;
}

void CompareSpreadView::draw(model::Session& session, const ComparedRuns& runs) {
    draw_run_legend(runs);
    if (choice_button("Steps", !kernels_, "compare.of_steps")) kernels_ = false;
    ImGui::SameLine(0, 2);
    if (choice_button("One kernel", kernels_, "compare.of_kernel")) kernels_ = true;
    if (kernels_ && !choose_kernel(session, runs)) return;

    std::vector<std::shared_ptr<const Durations>> of;
    for (std::size_t r = 0; r < runs.traces.size(); ++r) {
        const std::string name = kernels_ ? "kernel durations/" + kernel_ : std::string("step durations");
        of.push_back(session.analyses.analysis<Durations>(
            name, runs.traces[r], runs.selections[r],
            [kernels = kernels_, kernel = kernel_](const traces::store::Trace& trace,
                                                   const traces::analysis::Selection& selection) {
                return kernels ? kernel_durations(trace, selection, kernel)
                               : step_durations(trace, traces::analysis::steps_report(trace, selection));
            }));
    }
    if (std::find(of.begin(), of.end(), nullptr) != of.end())
        return widgets::draw_waiting(session, "the durations");
    if (of != of_ || table_ == nullptr || table_->rows() != of.size() ||
        table_->text(0, 0) != runs.heads[0].name) {
        of_ = of;
        durations_.clear();
        for (const auto& one : of) durations_.push_back(*one);
        // A trace without steps counts as one step, which does not compare with the steps of others.
        const std::vector<bool> stepped = stepped_runs(runs);
        const bool any = std::find(stepped.begin(), stepped.end(), true) != stepped.end();
        for (std::size_t r = 0; r < durations_.size() && any && !kernels_; ++r) {
            if (!stepped[r]) durations_[r] = {};
        }
        histogram_ = make_histogram(durations_, kBins);
        folded_.clear();
        for (const Durations& run : durations_) folded_.push_back(fold_durations(run, kColumns));
        table_ = durations_table(runs.heads, durations_, kernels_ ? "Kernels" : "Steps");
    }
    const bool any =
        std::any_of(durations_.begin(), durations_.end(), [](const auto& d) { return !d.us.empty(); });
    if (!any) return draw::note("The current selection contains no kept step of these runs.");
    const float font = ImGui::GetFontSize();
    const float table =
        ImGui::GetTextLineHeightWithSpacing() * (static_cast<float>(runs.traces.size()) + 3.5F);
    const float height = std::max(font * 9, ImGui::GetContentRegionAvail().y - table - font * 2.5F);
    const float width = ImGui::GetContentRegionAvail().x, gap = font * 1.5F;
    const bool both = width > font * 60;
    const float left = both ? (width - gap) * 0.55F : width;
    ImGui::BeginGroup();
    ImGui::TextDisabled("%s", kernels_
                                  ? "How long the kernel takes, share of each run's calls; lines: medians"
                                  : "How long a step takes, share of each run's steps; lines: medians");
    draw_histogram(histogram_, runs, {left, height});
    ImGui::EndGroup();
    if (both) {
        ImGui::SameLine(0, gap);
        ImGui::BeginGroup();
        ImGui::TextDisabled("%s", kernels_ ? "Calls in order, from 1" : "Steps in order, from 1");
        draw_in_order(durations_, folded_, runs, kernels_ ? "Call" : "Step", {width - left - gap, height});
        ImGui::EndGroup();
    }
    tables::TableOptions options;
    options.filter = false;
    options.name = kernels_ ? "compare-kernel-durations" : "compare-steps";
    const tables::TableEvents events = draw_table("compare.spread", table_, state_, options);
    if (!events.opened || *events.opened >= durations_.size()) return;
    const Durations& run = durations_[*events.opened];
    if (run.us.empty()) return;
    session.set_active(runs.entries[*events.opened]);
    session.go_to(run.longest, run.longest_rank, run.longest_event);
}

}  // namespace shardscope::viewer::panels
