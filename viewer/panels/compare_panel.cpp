// Compare: a card for each open run, then every figure in a table against the first run.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <imgui.h>

#include "viewer/app/session.h"
#include "viewer/app/theme.h"
#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/text.h"
#include "viewer/panels/compare_card.h"
#include "viewer/panels/compare_rows.h"
#include "viewer/panels/panel.h"
#include "viewer/panels/toolbar.h"

namespace shardscope::viewer {
namespace {

using traces::Comparison;

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

// The value with a bar behind it in the left part of the cell, its change in the right part.
void figure_cell(const CompareCell& cell, ImU32 color) {
    const float font = ImGui::GetFontSize();
    const float width = ImGui::GetContentRegionAvail().x;
    const float room = width - std::min(font * 6, width * 0.4F);
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImDrawList* draw = ImGui::GetWindowDrawList();
    const float bar = room * static_cast<float>(std::clamp(cell.share, 0.0, 1.0));
    if (bar >= 1)
        draw->AddRectFilled(at, {at.x + bar, at.y + ImGui::GetTextLineHeight()}, faded(color, 0.3F));
    const std::string value = fit_text(cell.value, room);
    ImGui::SetCursorPosX(ImGui::GetCursorPosX() +
                         std::max(0.0F, room - ImGui::CalcTextSize(value.c_str()).x));
    text(value);
    if (value != cell.value && ImGui::IsItemHovered()) ImGui::SetTooltip("%s", cell.value.c_str());
    if (cell.change.empty()) return;
    const float change_width = ImGui::CalcTextSize(cell.change.c_str()).x;
    draw->AddText({at.x + width - change_width, at.y}, tone_color(cell.tone), cell.change.c_str());
}

class ComparePanel final : public Panel {
  public:
    std::string_view name() const override { return "compare"; }
    std::string_view title() const override { return "Compare"; }

    void draw(Session& session, const Frame&) override {
        const std::vector<TracePtr> traces = session.ready();
        const auto comparison = session.analyses.comparison(traces);
        if (comparison == nullptr || comparison->runs.size() != traces.size())
            return draw_waiting(session, "the comparison");
        if (rows_of_ != comparison) {
            rows_of_ = comparison;
            rows_ = compare_rows(*comparison);
            titles_ = run_titles(*comparison);
        }
        if (traces.size() < 2) note("One run is open. Open another to see what differs.");
        draw_legend(*comparison);
        ImGui::BeginChild("all", {0, 0}, false, ImGuiWindowFlags_HorizontalScrollbar);
        draw_cards(session, *comparison);
        draw_table(session, *comparison);
        ImGui::EndChild();
    }

  private:
    static void draw_legend(const Comparison& comparison) {
        std::vector<LegendItem> items;
        for (std::size_t c = 0; c < traces::kMemoryCategories; ++c) {
            const bool used = std::any_of(comparison.runs.begin(), comparison.runs.end(),
                                          [c](const auto& r) { return r.at_peak[c] > 0; });
            if (used)
                items.push_back({spaced(traces::kMemoryCategoryNames[c]),
                                 category_color(static_cast<traces::MemoryCategory>(c))});
        }
        if (!items.empty()) {
            dim_label("At the peak");
            legend(items);
        }
        items.clear();
        for (std::size_t k = 0; k < traces::kDeviceKinds; ++k) {
            items.push_back(
                {std::string(traces::kDeviceKindNames[k]), kind_color(static_cast<traces::DeviceKind>(k))});
        }
        dim_label("In a step");
        legend(items);
    }

    static void dim_label(std::string_view label) {
        const float left = ImGui::GetCursorPosX();
        text_dim(label);
        ImGui::SameLine(left + ImGui::GetFontSize() * 6.5F);
    }
    static void text_dim(std::string_view label) {
        ImGui::PushStyleColor(ImGuiCol_Text, theme::text_dim());
        text(label);
        ImGui::PopStyleColor();
    }

    void draw_cards(Session& session, const Comparison& comparison) {
        const float font = ImGui::GetFontSize();
        const auto count = comparison.runs.size();
        const float gap = font * 0.7F, available = ImGui::GetContentRegionAvail().x;
        const float width = std::max(
            font * 20, (available - gap * static_cast<float>(count - 1)) / static_cast<float>(count));
        const float height = std::clamp(ImGui::GetContentRegionAvail().y * 0.62F, font * 29, font * 36);
        std::vector<CompareCard::Input> inputs = card_inputs(session, comparison);
        cards_.resize(count);
        for (std::size_t i = 0; i < count; ++i) {
            if (i > 0) ImGui::SameLine(0, gap);
            ImGui::PushID(static_cast<int>(i));
            cards_[i].draw(inputs[i], width, height);
            ImGui::PopID();
        }
    }

    // Gathers what the cards need; results that are not there yet stay nullptr. Keeps them alive for the
    // frame.
    std::vector<CompareCard::Input> card_inputs(Session& session, const Comparison& comparison) {
        const std::vector<TracePtr> traces = session.ready();
        summaries_.clear();
        modules_.clear();
        reports_.clear();
        curves_.clear();
        std::vector<CompareCard::Input> inputs(traces.size());
        std::int64_t longest = 1;
        for (std::size_t i = 0; i < traces.size(); ++i) {
            summaries_.push_back(session.analyses.summary(traces[i]));
            modules_.push_back(session.analyses.modules(traces[i]));
            CompareCard::Input& input = inputs[i];
            const OpenTrace& entry = entry_of(session, traces[i]);
            input.title = titles_[i];
            input.file = entry.name;
            input.color = run_color(entry.color);
            input.run = &comparison.runs[i];
            input.first = &comparison.runs.front();
            input.trace = traces[i].get();
            if (summaries_[i] != nullptr && !summaries_[i]->ranks.empty())
                input.rank0 = &summaries_[i]->ranks.front();
            if (modules_[i] != nullptr && !modules_[i]->ranks.empty())
                input.modules = &modules_[i]->ranks.front();
            input.largest_peak = largest_peak(comparison);
            add_memory(session, traces[i], input);
            if (input.rank0 == nullptr) continue;
            if (const auto* step = steady_step(*input.rank0))
                longest = std::max(longest, step->window_end - step->window_start);
        }
        for (CompareCard::Input& input : inputs) input.longest_step = longest;
        return inputs;
    }

    // The curve of the rank with the largest peak.
    void add_memory(Session& session, const TracePtr& trace, CompareCard::Input& input) {
        const auto report = session.analyses.memory(trace);
        if (report == nullptr || report->ranks.empty()) return;
        const auto& memory =
            *std::max_element(report->ranks.begin(), report->ranks.end(),
                              [](const auto& a, const auto& b) { return a.peak_bytes < b.peak_bytes; });
        const auto rank = std::find_if(trace->ranks.begin(), trace->ranks.end(),
                                       [&](const auto& r) { return r.number == memory.rank; });
        if (rank == trace->ranks.end()) return;
        input.memory_rank = static_cast<int>(rank - trace->ranks.begin());
        const auto curve = session.analyses.curve(trace, input.memory_rank);
        if (curve == nullptr) return;
        reports_.push_back(report);
        curves_.push_back(curve);
        input.memory = &memory;
        input.curve = *curve;
    }

    static const OpenTrace& entry_of(const Session& session, const TracePtr& trace) {
        return *std::find_if(session.open.begin(), session.open.end(),
                             [&](const OpenTrace& o) { return o.trace == trace; });
    }

    void draw_table(Session& session, const Comparison& comparison) {
        const float font = ImGui::GetFontSize();
        ImGui::Dummy({0, font * 0.3F});
        constexpr ImGuiTableFlags kFlags = ImGuiTableFlags_RowBg | ImGuiTableFlags_PadOuterX |
                                           ImGuiTableFlags_BordersInnerV | ImGuiTableFlags_NoSavedSettings;
        // Another number of runs is another table: widths start anew.
        const std::string id = fmt::format("figures {}", comparison.runs.size());
        if (!ImGui::BeginTable(id.c_str(), static_cast<int>(comparison.runs.size()) + 1, kFlags)) return;
        ImGui::TableSetupColumn("##figure", ImGuiTableColumnFlags_WidthFixed, font * 15);
        for (std::size_t i = 0; i < comparison.runs.size(); ++i)
            ImGui::TableSetupColumn(fmt::format("##{}", i).c_str(), ImGuiTableColumnFlags_WidthStretch);
        draw_table_head(session);
        const std::vector<TracePtr> traces = session.ready();
        for (const CompareRow& row : rows_) {
            ImGui::TableNextRow();
            ImGui::TableNextColumn();
            if (row.heading) {
                ImGui::TableSetBgColor(ImGuiTableBgTarget_RowBg0, theme::raised());
                text(row.label);
                continue;
            }
            text_dim(row.label);
            for (std::size_t i = 0; i < row.cells.size(); ++i) {
                ImGui::TableNextColumn();
                figure_cell(row.cells[i], run_color(entry_of(session, traces[i]).color));
            }
        }
        ImGui::EndTable();
        note(
            "Change against the first run; ~: inside the spread of the steps, so no difference can be "
            "claimed.");
    }

    void draw_table_head(const Session& session) {
        ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
        ImGui::TableNextColumn();
        text("Figure");
        const std::vector<TracePtr> traces = session.ready();
        for (std::size_t i = 0; i < titles_.size(); ++i) {
            ImGui::TableNextColumn();
            swatch(run_color(entry_of(session, traces[i]).color));
            text_fit(titles_[i]);
        }
    }

    std::vector<CompareCard> cards_;
    std::shared_ptr<const Comparison> rows_of_;
    std::vector<CompareRow> rows_;
    std::vector<std::string> titles_;
    std::vector<std::shared_ptr<const traces::ExecutionSummary>> summaries_;
    std::vector<std::shared_ptr<const traces::ModuleView>> modules_;
    std::vector<std::shared_ptr<const traces::MemoryReport>> reports_;
    std::vector<std::shared_ptr<const std::vector<traces::MemoryPoint>>> curves_;
};

}  // namespace

std::unique_ptr<Panel> make_compare_panel() {
    return std::make_unique<ComparePanel>();
}

}  // namespace shardscope::viewer
