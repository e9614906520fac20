// See compare_pages.h.
#include <algorithm>
#include <numeric>

#include <fmt/core.h>
#include <imgui.h>

#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/panels/compare/compare_pages.h"
#include "viewer/tables/table.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::Comparison;

ImU32 tone_color(Tone tone) {
    switch (tone) {
        case Tone::better:
            return theme::good();
        case Tone::worse:
            return theme::bad();
        case Tone::neutral:
            return theme::text_dim();
    }
    return theme::text_dim();
}

// Blanks indent the parts of a figure.
std::string trimmed(const std::string& label) {
    return label.substr(std::min(label.find_first_not_of(' '), label.size()));
}

// The value with a bar behind it in the left part of the cell, its change in the right part.
void figure_cell(const CompareCell& cell, ImU32 color) {
    const float font = ImGui::GetFontSize();
    const float width = ImGui::GetContentRegionAvail().x;
    const float room = width - std::min(font * 6, width * 0.4F);
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImDrawList* draw = ImGui::GetWindowDrawList();
    const float bar = room * static_cast<float>(std::clamp(cell.share, 0.0, 1.0));
    if (bar >= 1)
        draw->AddRectFilled(at, {at.x + bar, at.y + ImGui::GetTextLineHeight()}, draw::faded(color, 0.3F));
    const std::string value = draw::fit_text(cell.value, room);
    ImGui::SetCursorPosX(ImGui::GetCursorPosX() +
                         std::max(0.0F, room - ImGui::CalcTextSize(value.c_str()).x));
    draw::text(value);
    if (value != cell.value && ImGui::IsItemHovered()) ImGui::SetTooltip("%s", cell.value.c_str());
    if (cell.change.empty()) return;
    const float change_width = ImGui::CalcTextSize(cell.change.c_str()).x;
    draw->AddText({at.x + width - change_width, at.y}, tone_color(cell.tone), cell.change.c_str());
}

void dim_label(std::string_view label) {
    const float left = ImGui::GetCursorPosX();
    draw::text_dim(label);
    ImGui::SameLine(left + ImGui::GetFontSize() * 6.5F);
}

// Further lines begin at the same x as the first one.
void legend_here(const std::vector<draw::LegendItem>& entries) {
    ImGui::BeginGroup();
    legend(entries);
    ImGui::EndGroup();
}

void draw_legend(const Comparison& comparison, bool any_stepped) {
    std::vector<draw::LegendItem> entries;
    for (std::size_t c = 0; c < traces::schema::kMemoryCategories; ++c) {
        const bool used = std::any_of(comparison.runs.begin(), comparison.runs.end(),
                                      [c](const auto& r) { return r.at_peak[c] > 0; });
        if (used)
            entries.push_back({draw::spaced(traces::schema::kMemoryCategoryNames[c]),
                               theme::category_color(static_cast<traces::schema::MemoryCategory>(c))});
    }
    if (!entries.empty()) {
        dim_label("At the peak");
        legend_here(entries);
    }
    entries.clear();
    for (std::size_t k = 0; k < traces::store::kDeviceKinds; ++k) {
        entries.push_back({std::string(traces::store::kDeviceKindNames[k]),
                           theme::kind_color(static_cast<traces::store::DeviceKind>(k))});
    }
    dim_label(any_stepped ? "Per step" : "Total");
    legend_here(entries);
    dim_label("~");
    draw::note("within the spread of the steps: no difference can be claimed.");
}

// The rows as a table for export: a group's name is in a column of its own.
std::shared_ptr<const tables::TableModel> export_of(const std::vector<CompareRow>& rows,
                                                    const ComparedRuns& runs) {
    using Kind = tables::TableColumn::Kind;
    std::vector<tables::TableColumn> columns = {{"group", "Group", "", Kind::text, 12},
                                                {"figure", "Figure", "", Kind::text, 14}};
    for (std::size_t r = 0; r < runs.heads.size(); ++r) {
        const std::string n = fmt::format("run{}", r + 1);
        columns.push_back({n, runs.heads[r].name, "", Kind::text, 8});
        if (r > 0) columns.push_back({n + "_change", "against 1", "", Kind::text, 8});
    }
    auto table = std::make_shared<tables::CellTable>(std::move(columns));
    std::string group;
    for (const CompareRow& row : rows) {
        if (row.heading) {
            group = row.label;
            continue;
        }
        std::vector<tables::CellTable::Cell> cells = {tables::text_cell(group),
                                                      tables::text_cell(trimmed(row.label))};
        for (std::size_t r = 0; r < row.cells.size(); ++r) {
            cells.push_back(tables::text_cell(row.cells[r].value));
            if (r > 0) cells.push_back(tables::text_cell(row.cells[r].change));
        }
        table->add(std::move(cells));
    }
    return table;
}

}  // namespace

void CompareOverview::draw(model::Session& session, const ComparedRuns& runs,
                           const std::shared_ptr<const Comparison>& comparison) {
    if (rows_of_ != comparison) {
        rows_of_ = comparison;
        rows_ = compare_rows(*comparison, stepped_runs(runs));
        table_ = export_of(rows_, runs);
        std::vector<std::uint32_t> order(table_->rows());
        std::iota(order.begin(), order.end(), 0U);
        order_ = std::make_shared<const std::vector<std::uint32_t>>(std::move(order));
    }
    const std::vector<bool> stepped = stepped_runs(runs);
    draw_legend(*comparison, std::find(stepped.begin(), stepped.end(), true) != stepped.end());
    ImGui::BeginChild("all", {0, 0}, false, ImGuiWindowFlags_HorizontalScrollbar);
    draw_cards(session, runs, *comparison);
    draw_table(runs);
    ImGui::EndChild();
    tables::offer_table({"compare", table_, order_});
}

void CompareOverview::draw_cards(model::Session& session, const ComparedRuns& runs,
                                 const Comparison& comparison) {
    const float font = ImGui::GetFontSize();
    const auto count = comparison.runs.size();
    const float gap = font * 0.7F, available = ImGui::GetContentRegionAvail().x;
    const float width =
        std::max(font * 20, (available - gap * static_cast<float>(count - 1)) / static_cast<float>(count));
    std::vector<CompareCard::Input> inputs = card_inputs(session, runs, comparison);
    // Without memory and modules a card has figures and streams only.
    const bool full = std::any_of(inputs.begin(), inputs.end(), [](const CompareCard::Input& input) {
        return input.memory != nullptr || (input.modules != nullptr && !input.modules->modules.empty());
    });
    const float height =
        full ? std::clamp(ImGui::GetContentRegionAvail().y * 0.62F, font * 29, font * 36) : font * 19;
    cards_.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
        if (i > 0) ImGui::SameLine(0, gap);
        ImGui::PushID(static_cast<int>(i));
        cards_[i].draw(inputs[i], width, height);
        ImGui::PopID();
    }
}

// Gathers what the cards need; missing results stay nullptr. Keeps them alive for the frame.
std::vector<CompareCard::Input> CompareOverview::card_inputs(model::Session& session,
                                                             const ComparedRuns& runs,
                                                             const Comparison& comparison) {
    const std::vector<model::TracePtr>& traces = runs.traces;
    summaries_.clear();
    modules_.clear();
    reports_.clear();
    curves_.clear();
    std::vector<CompareCard::Input> inputs(traces.size());
    std::int64_t longest = 1;
    for (std::size_t i = 0; i < traces.size(); ++i) {
        summaries_.push_back(session.analyses.summary(traces[i], runs.selections[i]));
        modules_.push_back(session.analyses.modules(traces[i], runs.selections[i]));
        CompareCard::Input& input = inputs[i];
        input.title = runs.heads[i].name;
        input.file = session.open[runs.entries[i]].name;
        input.color = runs.heads[i].color;
        input.run = &comparison.runs[i];
        input.first = &comparison.runs.front();
        input.comparable = comparable_with_base(runs, i);
        input.trace = traces[i].get();
        if (summaries_[i] != nullptr && !summaries_[i]->ranks.empty())
            input.rank0 = &summaries_[i]->ranks.front();
        if (modules_[i] != nullptr && !modules_[i]->ranks.empty())
            input.modules = &modules_[i]->ranks.front();
        input.largest_peak = largest_peak(comparison);
        add_memory(session, runs, i, input);
        const bool any_steps = std::any_of(
            traces.begin(), traces.end(), [](const model::TracePtr& trace) { return !trace->steps.empty(); });
        if (input.rank0 == nullptr || (any_steps && traces[i]->steps.empty())) continue;
        if (const auto* step = steady_step(*input.rank0))
            longest = std::max(longest, step->window_end - step->window_start);
    }
    for (CompareCard::Input& input : inputs) input.longest_step = longest;
    return inputs;
}

// The curve of the rank with the largest peak.
void CompareOverview::add_memory(model::Session& session, const ComparedRuns& runs, std::size_t run,
                                 CompareCard::Input& input) {
    const model::TracePtr& trace = runs.traces[run];
    const auto report = session.analyses.memory(trace, runs.selections[run]);
    const traces::analysis::RankMemory* memory = report == nullptr ? nullptr : largest_rank(*report);
    if (memory == nullptr) return;
    input.memory_rank = trace->rank_of_number(memory->rank);
    const auto curve = session.analyses.curve(trace, input.memory_rank);
    if (curve == nullptr) return;
    reports_.push_back(report);
    curves_.push_back(curve);
    input.memory = memory;
    input.curve = *curve;
}

void CompareOverview::draw_table(const ComparedRuns& runs) {
    const float font = ImGui::GetFontSize();
    ImGui::Dummy({0, font * 0.3F});
    constexpr ImGuiTableFlags kFlags = ImGuiTableFlags_RowBg | ImGuiTableFlags_PadOuterX |
                                       ImGuiTableFlags_BordersInnerV | ImGuiTableFlags_NoSavedSettings;
    // Another number of runs needs another table, which starts with fresh column widths.
    const std::string id = fmt::format("figures {}", runs.heads.size());
    if (!ImGui::BeginTable(id.c_str(), static_cast<int>(runs.heads.size()) + 1, kFlags)) return;
    ImGui::TableSetupColumn("##figure", ImGuiTableColumnFlags_WidthFixed, font * 15);
    for (std::size_t i = 0; i < runs.heads.size(); ++i)
        ImGui::TableSetupColumn(fmt::format("##{}", i).c_str(), ImGuiTableColumnFlags_WidthStretch);
    ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
    ImGui::TableNextColumn();
    draw::text("Figure");
    for (const RunHead& head : runs.heads) {
        ImGui::TableNextColumn();
        draw::swatch(head.color);
        draw::text_fit(head.name);
    }
    for (const CompareRow& row : rows_) {
        ImGui::TableNextRow();
        ImGui::TableNextColumn();
        if (row.heading) {
            ImGui::TableSetBgColor(ImGuiTableBgTarget_RowBg0, theme::raised());
            // Over all columns: it is longer than the first.
            ImDrawList* over = ImGui::GetWindowDrawList();
            const ImVec2 from = ImGui::GetWindowPos(), size = ImGui::GetWindowSize();
            over->PushClipRect(from, {from.x + size.x, from.y + size.y});
            draw::text(row.label);
            over->PopClipRect();
            continue;
        }
        draw::text_dim(row.label);
        for (std::size_t i = 0; i < row.cells.size(); ++i) {
            ImGui::TableNextColumn();
            figure_cell(row.cells[i], runs.heads[i].color);
            if (!draw::items::kept()) continue;
            const std::string name = fmt::format("compare.{}.{}", trimmed(row.label), i + 1);
            draw::items::mark(name, row.cells[i].value);
            draw::items::value(name + ".change", row.cells[i].change);
        }
    }
    ImGui::EndTable();
    for (std::size_t r = 0; r < runs.traces.size(); ++r) {
        if (runs.traces[r]->steps.empty())
            draw::note(fmt::format("{} names no steps: its card shows figures of the whole trace.",
                                   runs.heads[r].name));
    }
}

}  // namespace shardscope::viewer::panels
