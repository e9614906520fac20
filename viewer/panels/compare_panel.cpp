// Compare: a card for each open run, then every figure in a table against the first run.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <imgui.h>

#include "viewer/app/session.h"
#include "viewer/app/theme.h"
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
            return theme::kGood;
        case Tone::worse:
            return theme::kBad;
        case Tone::neutral:
            return theme::kTextDim;
    }
    return theme::kTextDim;
}

// Value right-aligned in the left part of the cell, its change in the right part.
void figure_cell(const CompareCell& cell, bool first) {
    const float font = ImGui::GetFontSize();
    const float width = ImGui::GetContentRegionAvail().x;
    const float change = first ? 0 : std::min(font * 5.5F, width * 0.45F);
    const float left = ImGui::GetCursorPosX();
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImDrawList* draw = ImGui::GetWindowDrawList();
    const std::string value = fit_text(cell.value, width - change);
    const float value_width = ImGui::CalcTextSize(value.c_str()).x;
    ImGui::SetCursorPosX(left + std::max(0.0F, width - change - value_width));
    text(value);
    if (value != cell.value && ImGui::IsItemHovered()) ImGui::SetTooltip("%s", cell.value.c_str());
    if (!cell.change.empty()) {
        const float change_width = ImGui::CalcTextSize(cell.change.c_str()).x;
        draw->AddText({at.x + width - change_width, at.y}, tone_color(cell.tone), cell.change.c_str());
    }
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
        dim_label("At the peak");
        legend(items);
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
        ImGui::PushStyleColor(ImGuiCol_Text, theme::kTextDim);
        text(label);
        ImGui::PopStyleColor();
    }

    void draw_cards(Session& session, const Comparison& comparison) {
        const float font = ImGui::GetFontSize();
        const auto count = comparison.runs.size();
        const float gap = font * 0.7F, available = ImGui::GetContentRegionAvail().x;
        const float width = std::max(
            font * 20, (available - gap * static_cast<float>(count - 1)) / static_cast<float>(count));
        const float height = std::clamp(ImGui::GetContentRegionAvail().y * 0.62F, font * 22, font * 34);
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
            if (input.rank0 == nullptr) continue;
            if (const auto* step = steady_step(*input.rank0))
                longest = std::max(longest, step->window_end - step->window_start);
        }
        for (CompareCard::Input& input : inputs) input.longest_step = longest;
        return inputs;
    }

    static const OpenTrace& entry_of(const Session& session, const TracePtr& trace) {
        return *std::find_if(session.open.begin(), session.open.end(),
                             [&](const OpenTrace& o) { return o.trace == trace; });
    }

    void draw_table(Session& session, const Comparison& comparison) {
        const float font = ImGui::GetFontSize();
        ImGui::Dummy({0, font * 0.3F});
        constexpr ImGuiTableFlags kFlags =
            ImGuiTableFlags_RowBg | ImGuiTableFlags_BordersInnerV | ImGuiTableFlags_NoSavedSettings;
        ImGui::PushID(static_cast<int>(comparison.runs.size()));
        const bool shown = ImGui::BeginTable("figures", static_cast<int>(comparison.runs.size()) + 1, kFlags);
        ImGui::PopID();
        if (!shown) return;
        ImGui::TableSetupColumn("##figure", ImGuiTableColumnFlags_WidthFixed, font * 15);
        for (std::size_t i = 0; i < comparison.runs.size(); ++i)
            ImGui::TableSetupColumn(fmt::format("##{}", i).c_str(), ImGuiTableColumnFlags_WidthStretch);
        draw_table_head(session);
        for (const CompareRow& row : rows_) {
            ImGui::TableNextRow();
            ImGui::TableNextColumn();
            if (row.heading) {
                ImGui::TableSetBgColor(ImGuiTableBgTarget_RowBg0, theme::kRaised);
                text(row.label);
                continue;
            }
            text_dim(row.label);
            for (std::size_t i = 0; i < row.cells.size(); ++i) {
                ImGui::TableNextColumn();
                figure_cell(row.cells[i], i == 0);
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
};

}  // namespace

std::unique_ptr<Panel> make_compare_panel() {
    return std::make_unique<ComparePanel>();
}

}  // namespace shardscope::viewer
