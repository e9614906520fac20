// The Execution Summary: where the time of an average step went, of each rank, and of every step.
#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <imgui.h>

#include "viewer/app/session.h"
#include "viewer/app/theme.h"
#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/text.h"
#include "viewer/panels/panel.h"
#include "viewer/panels/step_bars.h"
#include "viewer/panels/toolbar.h"

namespace shardscope::viewer {
namespace {

using traces::ExecutionSummary;
using traces::RankSummary;
using traces::TimeCategory;

std::vector<Segment> segments_of(const RankSummary& rank) {
    std::vector<Segment> segments;
    for (std::size_t c = 0; c < traces::kTimeCategories; ++c) {
        const auto category = static_cast<TimeCategory>(c);
        segments.push_back(
            {rank.average_us[c], time_category_color(category), std::string(traces::kTimeCategoryNames[c])});
    }
    return segments;
}

void category_tip(const RankSummary& rank, int hovered) {
    if (hovered < 0) return;
    const auto category = static_cast<TimeCategory>(hovered);
    begin_tip(
        fmt::format("Rank {}: {}", rank.rank, traces::kTimeCategoryNames[static_cast<std::size_t>(hovered)]));
    tip_row("Time of a step", format_duration(rank.average_us[static_cast<std::size_t>(hovered)] * 1e3));
    tip_row("Share", format_percent(rank.percent(category)));
    end_tip();
}

void summary_row(std::string_view name, double us, double percent, ImU32 color) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    if (color != 0) swatch(color);
    text(name);
    ImGui::TableNextColumn();
    text_right(format_decimal(us, 1));
    ImGui::TableNextColumn();
    cell_bar(color != 0 ? percent / 100 : 0, color, format_decimal(percent, 2));
}

void draw_table(const RankSummary& rank, float width) {
    const float font = ImGui::GetFontSize();
    constexpr ImGuiTableFlags kFlags =
        ImGuiTableFlags_RowBg | ImGuiTableFlags_PadOuterX | ImGuiTableFlags_NoSavedSettings;
    if (!ImGui::BeginTable("summary", 3, kFlags, {width, 0})) return;
    ImGui::TableSetupColumn("Category", ImGuiTableColumnFlags_WidthStretch);
    ImGui::TableSetupColumn("Time of a step\n\u00b5s", ImGuiTableColumnFlags_WidthFixed, font * 8);
    ImGui::TableSetupColumn("Share\n%", ImGuiTableColumnFlags_WidthFixed, font * 8);
    headers_row(1);
    summary_row("Average Step Time", rank.average_step_us, rank.average_step_us > 0 ? 100 : 0, 0);
    for (std::size_t c = 0; c < traces::kTimeCategories; ++c) {
        const auto category = static_cast<TimeCategory>(c);
        summary_row(traces::kTimeCategoryNames[c], rank.average_us[c], rank.percent(category),
                    time_category_color(category));
    }
    ImGui::EndTable();
}

void choose(Session& session, int rank_number) {
    const auto& ranks = session.trace()->ranks;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        if (ranks[i].number == rank_number) session.rank = static_cast<int>(i);
    }
}

// One bar a rank on a common scale; a click chooses the rank.
void draw_ranks(Session& session, const ExecutionSummary& summary, float height) {
    const float font = ImGui::GetFontSize();
    double longest = 0;
    for (const RankSummary& rank : summary.ranks) longest = std::max(longest, rank.average_step_us);
    ImGui::BeginChild("ranks", {0, height});
    ImGui::PushStyleColor(ImGuiCol_Text, theme::text_dim());
    text("Average step of each rank");
    ImGui::PopStyleColor();
    ImGui::Dummy({0, font * 0.3F});
    const float label = ImGui::CalcTextSize("rank 9999").x,
                value = ImGui::CalcTextSize("9999.99 ms").x + font;
    const float width = std::max(font * 4, ImGui::GetContentRegionAvail().x - label - value - font);
    ImGuiListClipper clipper;
    clipper.Begin(static_cast<int>(summary.ranks.size()), font * 1.7F);
    while (clipper.Step()) {
        for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
            const RankSummary& rank = summary.ranks[static_cast<std::size_t>(i)];
            const ImVec2 at = ImGui::GetCursorScreenPos();
            const bool chosen = chosen_rank(summary.ranks, session) == &rank;
            const ImU32 ink = chosen ? theme::text() : theme::text_dim();
            ImDrawList* draw = ImGui::GetWindowDrawList();
            const float y = at.y + font * 0.2F;
            draw->AddText({at.x, y}, ink, fmt::format("rank {}", rank.rank).c_str());
            const int hovered = stacked_bar({at.x + label + font * 0.5F, at.y + font * 0.1F},
                                            {width, font * 1.25F}, segments_of(rank), longest, false);
            const std::string time = format_duration(rank.average_step_us * 1e3);
            draw->AddText({at.x + label + width + value - ImGui::CalcTextSize(time.c_str()).x, y}, ink,
                          time.c_str());
            ImGui::PushID(i);
            if (ImGui::InvisibleButton(
                    "rank", {label + width + value, font * 1.7F - ImGui::GetStyle().ItemSpacing.y}))
                choose(session, rank.rank);
            ImGui::PopID();
            category_tip(rank, hovered);
        }
    }
    ImGui::EndChild();
}

class SummaryPanel final : public Panel {
  public:
    std::string_view name() const override { return "summary"; }
    std::string_view title() const override { return "Execution Summary"; }

    void draw(Session& session, const Frame& frame) override {
        draw_choosers(session);
        ImGui::NewLine();
        const auto summary =
            session.analyses.summary(session.trace(), Session::selection(*session.current()));
        if (summary == nullptr) return draw_waiting(session, "the execution summary");
        const RankSummary* rank = chosen_rank(summary->ranks, session);
        if (rank == nullptr || rank->steps.empty()) {
            return note("This rank has no complete step in what is looked at.");
        }
        draw_limit_note(session);
        draw_average(session, *summary, *rank);
        draw_steps(session, *rank, frame);
    }

  private:
    static void draw_average(Session& session, const ExecutionSummary& summary, const RankSummary& rank) {
        const float font = ImGui::GetFontSize();
        const float height = font * 16.5F;
        const float table = std::min(font * 32, ImGui::GetContentRegionAvail().x * 0.48F);
        heading(fmt::format("Rank {}: mean of {} step{}", rank.rank, rank.steps.size(),
                            rank.steps.size() == 1 ? "" : "s"));
        const ImVec2 top = ImGui::GetCursorScreenPos();
        draw_table(rank, table);
        const float donut_size = std::min(height * 0.86F, ImGui::GetContentRegionAvail().x * 0.24F);
        ImGui::SetCursorScreenPos({top.x + table + font * 2, top.y + font * 0.5F});
        category_tip(rank, donut("donut", donut_size, segments_of(rank),
                                 format_duration(rank.average_step_us * 1e3), "a step"));
        const float left = table + donut_size + font * 4;
        if (summary.ranks.size() > 1 && ImGui::GetContentRegionAvail().x - left > font * 16) {
            ImGui::SetCursorScreenPos({top.x + left, top.y});
            draw_ranks(session, summary, height);
        }
        ImGui::SetCursorScreenPos({top.x, top.y + height});
    }

    static void draw_steps(Session& session, const RankSummary& rank, const Frame&) {
        heading("Every step");
        std::vector<LegendItem> items;
        for (std::size_t c = 0; c < traces::kTimeCategories; ++c) {
            if (rank.average_us[c] > 0)
                items.push_back({std::string(traces::kTimeCategoryNames[c]),
                                 time_category_color(static_cast<TimeCategory>(c))});
        }
        legend(items);
        if (rank.cut_steps > 0) {
            note(fmt::format("{} last step{} cut off and left out.", rank.cut_steps,
                             rank.cut_steps == 1 ? " was" : "s were"));
        }
        const float height = std::max(ImGui::GetFontSize() * 8, ImGui::GetContentRegionAvail().y);
        const int clicked = draw_step_bars(rank, height);
        if (clicked >= 0) show_in_timeline(session, rank.steps[static_cast<std::size_t>(clicked)]);
    }

    static void show_in_timeline(Session& session, const traces::StepSummary& step) {
        session.current()->visible = {step.window_start, step.window_end};
        session.wanted_panel = "timeline";
    }
};

}  // namespace

std::unique_ptr<Panel> make_summary_panel() {
    return std::make_unique<SummaryPanel>();
}

}  // namespace shardscope::viewer
