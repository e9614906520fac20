// See compare_card.h.
#include "viewer/panels/compare/compare_card.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>
#include <imgui.h>

#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/text.h"
#include "viewer/panels/compare/compare_rows.h"
#include "viewer/panels/modules/module_rows.h"
#include "viewer/widgets/toolbar.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::RunColumn;
using traces::schema::MemoryCategory;

// "-59.3 %" in the colour of better or worse; nothing on the first card.
void change(double value, double base, bool inside_spread) {
    const std::string t = draw::format_change(value, base) + (inside_spread ? " ~" : "");
    const bool same = inside_spread || t.starts_with("0.0 %");
    draw::text_in(same ? theme::text_dim() : value < base ? theme::good() : theme::bad(), t);
}

void draw_title(const CompareCard::Input& input) {
    const float font = ImGui::GetFontSize();
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImGui::GetWindowDrawList()->AddRectFilled({at.x, at.y + font * 0.1F},
                                              {at.x + font * 0.3F, at.y + font * 2.2F}, input.color);
    ImGui::Indent(font * 0.8F);
    const float width = ImGui::GetContentRegionAvail().x;
    draw::text(draw::fit_text(input.title, width));
    draw::text_dim(draw::fit_text(
        fmt::format("{}, {} rank{}", input.file, input.run->ranks, input.run->ranks == 1 ? "" : "s"), width));
    ImGui::Unindent(font * 0.8F);
}

void draw_memory(const CompareCard::Input& input) {
    const float font = ImGui::GetFontSize();
    const RunColumn& run = *input.run;
    if (run.peak_bytes == 0) return draw::text_dim("This trace holds no allocations.");
    const ImVec2 at = ImGui::GetCursorPos();
    widgets::big_number(draw::format_mb(run.peak_bytes));
    const float right = ImGui::GetItemRectSize().x + font * 0.9F;
    ImGui::SetCursorPos({at.x + right, at.y + font * 0.05F});
    draw::text_dim(run.space == traces::schema::MemorySpace::host ? "peak allocated on the host"
                                                                  : "peak allocated");
    ImGui::SetCursorPos({at.x + right, at.y + font * 1.05F});
    if (input.run != input.first && input.first->peak_bytes > 0) {
        change(static_cast<double>(run.peak_bytes), static_cast<double>(input.first->peak_bytes), false);
    } else {
        draw::text_dim("largest rank");
    }
    ImGui::SetCursorPos({at.x, at.y + font * 2.4F});

    std::vector<draw::Segment> segments;
    for (std::size_t c = 0; c < run.at_peak.size(); ++c) {
        segments.push_back({static_cast<double>(run.at_peak[c]),
                            theme::category_color(static_cast<MemoryCategory>(c)),
                            draw::format_mb(run.at_peak[c])});
    }
    const ImVec2 bar = ImGui::GetCursorScreenPos();
    const float width = ImGui::GetContentRegionAvail().x;
    const int hovered =
        stacked_bar(bar, {width, font * 1.7F}, segments, static_cast<double>(input.largest_peak), true);
    ImGui::Dummy({width, font * 1.7F});
    if (hovered < 0) return;
    const auto c = static_cast<std::size_t>(hovered);
    draw::begin_tip(draw::spaced(traces::schema::kMemoryCategoryNames[c]));
    draw::tip_row("At the peak", draw::format_mb(run.at_peak[c]));
    draw::tip_row("Bytes", draw::format_count(run.at_peak[c]));
    draw::end_tip();
}

// Three figures beside each other: label, value, change.
void draw_times(const CompareCard::Input& input) {
    struct Figure {
        const char *label, *short_label;
        std::string value, addition;  // the addition is omitted if it does not fit: a number is never cut
        double now, base;
        bool inside_spread;
    };
    const RunColumn &run = *input.run, &first = *input.first;
    const bool stepped = !input.trace->steps.empty();
    if (run.steps == 0) return draw::text_dim("No complete step in the current selection.");
    const char* time = stepped ? "Median step" : "Whole trace";
    const Figure figures[] = {
        {time, time, draw::format_duration(run.median_step_us * 1e3),
         stepped ? " \u00b1 " + draw::format_duration(run.spread_step_us * 1e3) : "", run.median_step_us,
         first.median_step_us, traces::analysis::inside_spread(first, run)},
        {"Communication", "Comm.", draw::format_duration(run.communication_us * 1e3), "",
         run.communication_us, first.communication_us,
         traces::analysis::inside_spread(first.communication_us, first.communication_spread.spread,
                                         run.communication_us, run.communication_spread.spread)},
        {"of it exposed", "exposed", draw::format_duration(run.exposed_communication_us * 1e3), "",
         run.exposed_communication_us, first.exposed_communication_us,
         traces::analysis::inside_spread(
             first.exposed_communication_us, first.exposed_communication_spread.spread,
             run.exposed_communication_us, run.exposed_communication_spread.spread)},
    };
    if (!ImGui::BeginTable("times", 3, ImGuiTableFlags_NoSavedSettings)) return;
    ImGui::TableSetupColumn("a", ImGuiTableColumnFlags_WidthStretch, 1.4F);
    ImGui::TableSetupColumn("b", ImGuiTableColumnFlags_WidthStretch, 1.15F);
    ImGui::TableSetupColumn("c", ImGuiTableColumnFlags_WidthStretch, 1);
    for (const Figure& figure : figures) {
        ImGui::TableNextColumn();
        const float room = ImGui::GetContentRegionAvail().x;
        const auto fits = [room](const std::string& t) { return ImGui::CalcTextSize(t.c_str()).x <= room; };
        draw::text_dim(fits(figure.label) ? figure.label : figure.short_label);
        const std::string whole = figure.value + figure.addition;
        draw::text(fits(whole) ? whole : figure.value);
        if (std::isnan(figure.now) || std::isnan(figure.base)) {
            draw::text_dim("");
        } else if (&run != &first && first.steps > 0 && input.comparable) {
            change(figure.now, figure.base, figure.inside_spread);
        } else {
            draw::text_dim(stepped ? "per step" : "total");
        }
    }
    ImGui::EndTable();
}

// Wide enough for every stream of the first rank, at most `limit`.
float stream_label_width(const traces::store::Trace& trace, float limit) {
    const float gap = ImGui::GetFontSize() * 0.5F;
    float width = 0;
    for (const traces::store::DeviceStream& stream : trace.streams) {
        if (stream.rank == traces::store::RankIndex(0))
            width = std::max(width, ImGui::CalcTextSize(draw::stream_title(stream).c_str()).x + gap);
    }
    return std::min(width, limit);
}

void draw_tree(const CompareCard::Input& input) {
    if (input.modules == nullptr) return draw::text_dim("Computing the module tree ...");
    if (input.modules->modules.empty()) return draw::text_dim("This trace names no modules.");
    const float line = ImGui::GetTextLineHeight();
    const auto room = static_cast<std::size_t>(std::max(0.0F, ImGui::GetContentRegionAvail().y / line));
    if (room == 0) return;
    ImDrawList* draw = ImGui::GetWindowDrawList();
    ImVec2 at = ImGui::GetCursorScreenPos();
    const float step = ImGui::GetFontSize() * 0.85F, width = ImGui::GetContentRegionAvail().x;
    for (const TreeLine& row : compact_tree(input.modules->modules, room)) {
        const float indent = step * static_cast<float>(row.depth);
        const std::string shown = draw::fit_text(row.text, width - indent);
        for (int level = 0; level < row.depth; ++level) {
            const float x = std::floor(at.x + step * (static_cast<float>(level) + 0.3F));
            draw->AddRectFilled({x, at.y}, {x + 1, at.y + line}, theme::line());
        }
        const bool sharded = row.text.starts_with("FullyShardedDataParallel");
        draw->AddText({at.x + indent, at.y}, sharded ? theme::text() : theme::text_dim(), shown.c_str());
        at.y += line;
    }
}

}  // namespace

const std::vector<draw::StripRow>& CompareCard::folded(const Input& input,
                                                       const traces::analysis::StepSummary& step,
                                                       int columns) {
    if (trace_ != input.trace || from_ != step.window_start || to_ != step.window_end ||
        columns_ != columns) {
        rows_ = draw::fold_streams(*input.trace, traces::store::RankIndex(0), step.window_start,
                                   step.window_end, columns);
        trace_ = input.trace;
        from_ = step.window_start;
        to_ = step.window_end;
        columns_ = columns;
    }
    return rows_;
}

void CompareCard::draw_strip(const Input& input) {
    const float font = ImGui::GetFontSize();
    const traces::analysis::StepSummary* step = input.rank0 != nullptr ? steady_step(*input.rank0) : nullptr;
    if (step == nullptr)
        return draw::text_dim(input.rank0 == nullptr ? "Computing the steps ..." : "No complete step.");
    const auto length = static_cast<double>(step->window_end - step->window_start);
    draw::text_dim(
        input.trace->steps.empty()
            ? fmt::format("Streams of rank {} over {}", input.rank0->rank, draw::format_duration(length))
            : fmt::format("Step {} of rank {}, its streams over {}", step->number, input.rank0->rank,
                          draw::format_duration(length)));

    const float label = stream_label_width(*input.trace, ImGui::GetContentRegionAvail().x * 0.3F);
    const float whole = std::max(font * 4, ImGui::GetContentRegionAvail().x - label);
    // The longest step of all cards takes the whole width: lengths compare across cards.
    const auto longest = static_cast<double>(std::max<std::int64_t>(1, input.longest_step));
    const auto width = static_cast<float>(whole * std::min(1.0, length / longest));
    const int columns = std::max(1, static_cast<int>(width));
    ImDrawList* draw = ImGui::GetWindowDrawList();
    ImVec2 at = ImGui::GetCursorScreenPos();
    const float row_height = font * 1.15F, bar = font * 0.95F;
    for (const draw::StripRow& row : folded(input, *step, columns)) {
        const std::string shown = draw::fit_text(row.name, label - font * 0.5F);
        draw->AddText({at.x, std::floor(at.y - font * 0.05F)}, theme::text_dim(), shown.c_str());
        const float left = at.x + label;
        draw->AddRectFilled({left, at.y}, {left + width, at.y + bar}, theme::raised());
        for (const draw::StripRun& run : row.runs) {
            const float x = left + static_cast<float>(run.first);
            draw->AddRectFilled({x, at.y + bar * (1 - run.busy)},
                                {x + static_cast<float>(run.count), at.y + bar}, theme::kind_color(run.kind));
        }
        at.y += row_height;
        ImGui::Dummy({whole + label, row_height - ImGui::GetStyle().ItemSpacing.y});
    }
}

// If there is room: the memory of the peak's step, allocation by allocation, on a scale common to all cards.
void CompareCard::draw_curve(const Input& input) {
    const float font = ImGui::GetFontSize();
    if (input.memory == nullptr || input.curve.empty()) return;
    if (ImGui::GetContentRegionAvail().y < font * 7.5F) return;
    const CurvePart part =
        part_of_peak(*input.trace, input.memory_rank, input.curve, input.memory->peak_time_ns);
    draw::text_dim(fmt::format("Memory of rank {}{}, in the order of allocations", input.memory->rank,
                               part.step >= 0 ? fmt::format(" in step {}", part.step) : " around its peak"));
    MemoryChart::Input chart{input.trace, input.memory_rank, input.curve.subspan(part.first, part.count),
                             input.memory};
    chart.top = input.largest_peak;
    chart_.draw_in_order(chart, ImGui::GetContentRegionAvail());
}

float CompareCard::figures_height(const Input& input) const {
    const float line = ImGui::GetTextLineHeightWithSpacing(), font = ImGui::GetFontSize();
    const auto streams = std::count_if(
        input.trace->streams.begin(), input.trace->streams.end(),
        [](const traces::store::DeviceStream& s) { return s.rank == traces::store::RankIndex(0); });
    return line * 6.5F + font * 6.2F + font * 1.3F * static_cast<float>(streams);
}

void CompareCard::draw(const Input& input, float width, float height) {
    const float font = ImGui::GetFontSize();
    ImGui::PushStyleColor(ImGuiCol_ChildBg, theme::surface());
    ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {font * 0.8F, font * 0.6F});
    ImGui::PushStyleVar(ImGuiStyleVar_ChildRounding, font * 0.3F);
    ImGui::BeginChild("card", {width, height}, false,
                      ImGuiWindowFlags_AlwaysUseWindowPadding | ImGuiWindowFlags_NoScrollbar |
                          ImGuiWindowFlags_NoScrollWithMouse);
    // A wide card has its tree on the right, a narrow one below.
    const bool wide = width > font * 40;
    const float tree_gap = font * 1.5F;
    const float figures = wide ? (ImGui::GetContentRegionAvail().x - tree_gap) * 0.64F : 0;
    ImGui::BeginChild("figures", {figures, wide ? 0 : figures_height(input)}, false,
                      ImGuiWindowFlags_NoScrollbar);
    const ImVec2 gap = {0, font * 0.25F};
    draw_title(input);
    ImGui::Dummy(gap);
    draw_memory(input);
    ImGui::Dummy(gap);
    draw_times(input);
    ImGui::Dummy(gap);
    draw_strip(input);
    if (wide) {
        ImGui::Dummy(gap);
        draw_curve(input);
    }
    ImGui::EndChild();
    if (wide) ImGui::SameLine(0, tree_gap);
    ImGui::BeginChild("tree", {0, 0}, false, ImGuiWindowFlags_NoScrollbar);
    draw_tree(input);
    ImGui::EndChild();
    ImGui::EndChild();
    ImGui::PopStyleVar(2);
    ImGui::PopStyleColor();
}

}  // namespace shardscope::viewer::panels
