// The Execution Summary: the composition of the time of an average step, of each rank, and of every step.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <imgui.h>

#include "traces/analysis/time/steps.h"
#include "traces/analysis/time/summary.h"
#include "viewer/draw/axis.h"
#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/model/panel.h"
#include "viewer/model/session.h"
#include "viewer/model/why_empty.h"
#include "viewer/panels/summary/summary_rows.h"
#include "viewer/tables/table.h"
#include "viewer/theme/theme.h"
#include "viewer/widgets/kept_model.h"
#include "viewer/widgets/segmented.h"
#include "viewer/widgets/toolbar.h"

namespace shardscope::viewer::panels {
namespace {

// --- Stacked bars side by side: the time of each step of a rank by category, or of the mean step of each
// rank.

struct TimeBar {
    std::int64_t number = 0;  // of the step or the rank, shown below it
    std::array<double, traces::analysis::kTimeCategories> ns{};
    double total() const;
};

void draw_tip(std::string_view what, const TimeBar& bar) {
    draw::begin_tip(fmt::format("{} {}", what, bar.number));
    draw::tip_row("Total", draw::format_duration(bar.total()));
    for (std::size_t c = 0; c < bar.ns.size(); ++c) {
        if (bar.ns[c] == 0) continue;
        draw::tip_row(traces::analysis::kTimeCategoryNames[c],
                      fmt::format("{}   {}", draw::format_duration(bar.ns[c]),
                                  draw::format_percent(100 * bar.ns[c] / bar.total())),
                      theme::time_category_color(static_cast<traces::analysis::TimeCategory>(c)));
    }
    draw::end_tip();
}

void draw_bar(const draw::Chart& chart, const TimeBar& bar, float x0, float x1) {
    double below = 0;
    for (std::size_t c = 0; c < bar.ns.size(); ++c) {
        if (bar.ns[c] == 0) continue;
        const auto bottom = static_cast<float>(chart.y.pixel(below));
        below += bar.ns[c];
        const auto top = static_cast<float>(chart.y.pixel(below));
        chart.draw->AddRectFilled({x0, top}, {x1, bottom},
                                  theme::time_category_color(static_cast<traces::analysis::TimeCategory>(c)));
    }
}

// `room`: distance to the next number. The first number has the name of what is counted, if it fits.
void draw_number(const draw::Chart& chart, const TimeBar& bar, float center, float room,
                 std::string_view what) {
    std::string label = draw::format_count(bar.number);
    if (!what.empty()) {
        const std::string named = fmt::format("{} {}", what, label);
        if (ImGui::CalcTextSize(named.c_str()).x < room) label = named;
    }
    const float x = center - ImGui::CalcTextSize(label.c_str()).x / 2;
    chart.draw->AddText({std::floor(x), chart.max.y + 2}, theme::text_dim(), label.c_str());
}

// Every n-th bar has a number, n being a round number, so that the longest number fits.
std::int64_t bars_per_number(const std::vector<TimeBar>& bars, float bar_width) {
    if (bars.empty()) return 1;
    const float widest = ImGui::CalcTextSize(draw::format_count(bars.back().number).c_str()).x;
    const float wanted = (widest + ImGui::GetFontSize() * 0.5F) / std::max(bar_width, 1.0F);
    return std::max<std::int64_t>(1, std::llround(draw::nice_step(std::max(wanted, 1.0F))));
}

double TimeBar::total() const {
    return std::accumulate(ns.begin(), ns.end(), 0.0);
}

std::vector<TimeBar> bars_of_steps(const traces::analysis::RankSummary& rank) {
    std::vector<TimeBar> bars;
    bars.reserve(rank.steps.size());
    for (const traces::analysis::StepSummary& step : rank.steps) {
        TimeBar& bar = bars.emplace_back();
        bar.number = step.number;
        std::copy(step.ns.begin(), step.ns.end(), bar.ns.begin());
    }
    return bars;
}

std::vector<TimeBar> bars_of_ranks(const traces::analysis::ExecutionSummary& summary) {
    std::vector<TimeBar> bars;
    bars.reserve(summary.ranks.size());
    for (const traces::analysis::RankSummary& rank : summary.ranks) {
        TimeBar& bar = bars.emplace_back();
        bar.number = rank.rank;
        std::transform(rank.average_us.begin(), rank.average_us.end(), bar.ns.begin(),
                       [](double us) { return us * 1e3; });
    }
    return bars;
}

// Draws the bars in `height` pixels over the whole width; bars that do not fit are reached by scrolling. A
// bar is one step or rank, never a mean of several. `what`: "Step", "Rank", in the tooltip. For scripts:
// "<item>.<number>". Returns the index of the bar that was clicked, or -1.
int draw_time_bars(std::string_view item, std::string_view what, const std::vector<TimeBar>& bars,
                   float height) {
    const float font = ImGui::GetFontSize();
    const auto count = static_cast<float>(bars.size());
    const float wanted = count * font * 0.7F + font * 6;
    int clicked = -1;
    ImGui::BeginChild("bars", {0, height}, false, ImGuiWindowFlags_HorizontalScrollbar);
    const float available = ImGui::GetContentRegionAvail().x;
    const bool scrolls = wanted > available;
    double longest = 0;
    for (const TimeBar& bar : bars) longest = std::max(longest, bar.total());

    draw::ChartAxes axes{0, std::max(1.0F, count), draw::axis_top(longest)};
    axes.y_unit = draw::AxisUnit::nanoseconds;
    axes.x_ticks = false;
    const float bottom = font * 1.5F + (scrolls ? ImGui::GetStyle().ScrollbarSize : 0.0F);
    const draw::Chart chart =
        begin_chart("chart", {std::max(wanted, available), ImGui::GetContentRegionAvail().y - bottom}, axes);
    const float step = chart.width() / std::max(1.0F, count);
    const float width = std::min(step * 0.8F, font * 5);
    const float left = ImGui::GetWindowPos().x, right = left + ImGui::GetWindowWidth();
    const std::int64_t stride = bars_per_number(bars, step);
    bool first = true;
    for (std::size_t i = 0; i < bars.size(); ++i) {
        const float x = chart.min.x + step * static_cast<float>(i);
        if (x > right || x + step < left) continue;
        const float from = x + (step - width) / 2;
        draw_bar(chart, bars[i], from, from + width);
        if (draw::items::kept())
            draw::items::place(fmt::format("{}.{}", item, bars[i].number), {from, chart.min.y},
                               {from + width, chart.max.y}, draw::format_duration(bars[i].total()));
        if (bars[i].number % stride == 0) {
            draw_number(chart, bars[i], x + step / 2, step * static_cast<float>(stride),
                        first ? what : std::string_view());
            first = false;
        }
        const float mouse = ImGui::GetIO().MousePos.x;
        if (chart.hovered && mouse >= x && mouse < x + step) {
            draw_tip(what, bars[i]);
            if (ImGui::IsMouseClicked(0)) clicked = static_cast<int>(i);
        }
    }
    ImGui::EndChild();
    return clicked;
}

using traces::analysis::ExecutionSummary;
using traces::analysis::RankSummary;
using traces::analysis::TimeCategory;

std::vector<draw::Segment> segments_of(const RankSummary& rank) {
    std::vector<draw::Segment> segments;
    for (std::size_t c = 0; c < traces::analysis::kTimeCategories; ++c) {
        const auto category = static_cast<TimeCategory>(c);
        segments.push_back({rank.average_us[c], theme::time_category_color(category),
                            std::string(traces::analysis::kTimeCategoryNames[c])});
    }
    return segments;
}

void category_tip(const RankSummary& rank, int hovered) {
    if (hovered < 0) return;
    const auto category = static_cast<TimeCategory>(hovered);
    draw::begin_tip(fmt::format("Rank {}: {}", rank.rank,
                                traces::analysis::kTimeCategoryNames[static_cast<std::size_t>(hovered)]));
    draw::tip_row("Mean of the windows",
                  draw::format_duration(rank.average_us[static_cast<std::size_t>(hovered)] * 1e3));
    draw::tip_row("Share", draw::format_percent(rank.percent(category)));
    draw::end_tip();
}

// One bar per rank on a common scale; a click chooses the rank.
void draw_ranks(model::Session& session, const ExecutionSummary& summary, float height, bool stepped) {
    const float font = ImGui::GetFontSize();
    double longest = 0;
    for (const RankSummary& rank : summary.ranks) longest = std::max(longest, rank.average_step_us);
    ImGui::BeginChild("ranks", {0, height});
    draw::text_dim(stepped ? "Average step of each rank" : "The whole time of each rank");
    ImGui::Dummy({0, font * 0.3F});
    const float label = ImGui::CalcTextSize("rank 9999").x,
                value = ImGui::CalcTextSize("9999.99 ms").x + font;
    const float width = std::max(font * 4, ImGui::GetContentRegionAvail().x - label - value - font);
    // Closer together if that shows all of them.
    const float room = ImGui::GetContentRegionAvail().y / static_cast<float>(summary.ranks.size());
    const float line = std::clamp(std::floor(room - 1), std::ceil(font * 1.45F), std::ceil(font * 1.7F));
    ImGuiListClipper clipper;
    clipper.Begin(static_cast<int>(summary.ranks.size()), line);
    while (clipper.Step()) {
        for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
            const RankSummary& rank = summary.ranks[static_cast<std::size_t>(i)];
            const ImVec2 at = ImGui::GetCursorScreenPos();
            const bool chosen = widgets::chosen_rank(summary.ranks, session) == &rank;
            const ImU32 ink = chosen ? theme::text() : theme::text_dim();
            ImDrawList* draw = ImGui::GetWindowDrawList();
            const float y = at.y + font * 0.2F;
            draw->AddText({at.x, y}, ink, fmt::format("rank {}", rank.rank).c_str());
            const int hovered = stacked_bar({at.x + label + font * 0.5F, at.y + font * 0.1F},
                                            {width, font * 1.25F}, segments_of(rank), longest, false);
            const std::string time = draw::format_duration(rank.average_step_us * 1e3);
            draw->AddText({at.x + label + width + value - ImGui::CalcTextSize(time.c_str()).x, y}, ink,
                          time.c_str());
            ImGui::PushID(i);
            if (draw::place_button("rank", {label + width + value, line - ImGui::GetStyle().ItemSpacing.y}))
                session.choose_rank(rank.rank);
            ImGui::PopID();
            if (draw::items::kept()) draw::items::mark(fmt::format("summary.rank.{}", rank.rank), time);
            category_tip(rank, hovered);
        }
    }
    ImGui::EndChild();
}

class SummaryPanel final : public model::Panel {
  public:
    std::string_view name() const override { return "summary"; }

    void draw(model::Session& session, const model::Frame&) override {
        widgets::draw_choosers(session);
        widgets::toggle_button("summary.fold_communication", "Communication as Kernel", folded_);
        if (ImGui::IsItemHovered()) {
            ImGui::SetTooltip(
                "Seven rows, as profilers show that take NCCL's kernels for compute: communication then "
                "counts\n"
                "as Kernel and stands before the copies.");
        }
        const std::shared_ptr<const ExecutionSummary> summary = ask(session);
        if (summary == nullptr) return widgets::draw_waiting(session, "the execution summary");
        const RankSummary* rank = widgets::chosen_rank(summary->ranks, session);
        if (rank == nullptr || rank->steps.empty()) {
            return draw::note(model::why_empty(session.trace()->ranks.empty() ? "summary.ranks" : "summary"));
        }
        widgets::draw_limit_note(session);
        ImGui::BeginChild("page");  // scrolls if the window is small
        draw_average(session, summary, *rank);
        draw_below(session, summary, *rank);
        ImGui::EndChild();
    }

  private:
    enum View { kSteps, kStepTable, kRanks, kRankTable };

    std::shared_ptr<const ExecutionSummary> ask(model::Session& session) const {
        const traces::analysis::Selection selection = model::Session::selection(*session.current());
        if (!folded_) return session.analyses.summary(session.trace(), selection);
        return session.analyses.analysis<ExecutionSummary>(
            "summary with communication as kernel", session.trace(), selection,
            [](const traces::store::Trace& trace, const traces::analysis::Selection& s) {
                return traces::analysis::summarize(trace, s, traces::analysis::CommunicationAs::kernel);
            });
    }

    void draw_average(model::Session& session, const std::shared_ptr<const ExecutionSummary>& summary,
                      const RankSummary& rank) {
        const float font = ImGui::GetFontSize();
        const float line = ImGui::GetTextLineHeight() + 2 * ImGui::GetStyle().CellPadding.y;
        // The header (two lines), the mean and the categories.
        const float height =
            line * static_cast<float>(traces::analysis::kTimeCategories + 2) + ImGui::GetTextLineHeight() + 2;
        const bool stepped = !session.trace()->steps.empty();
        const float room = ImGui::GetContentRegionAvail().x;
        const bool narrow = room < font * 34;  // the numbers are needed more than the ring
        const float table = std::min(font * 32, narrow ? room : std::max(font * 23, room * 0.56F));
        draw::heading(stepped ? fmt::format("Rank {}: mean of {} step{}", rank.rank, rank.steps.size(),
                                            rank.steps.size() == 1 ? "" : "s")
                              : fmt::format("Rank {}: the whole trace, which has no steps", rank.rank));
        draw::items::value("summary.value.average_step_us", fmt::format("{}", rank.average_step_us));
        draw::items::value("summary.value.steps", fmt::format("{}", rank.steps.size()));
        const ImVec2 top = ImGui::GetCursorScreenPos();
        draw_table("summary.categories",
                   categories_model_.of(summary, fmt::format("{}", rank.rank),
                                        [&] { return category_times(*summary, rank, stepped); }),
                   categories_, {.size = {table, height}, .filter = false, .name = "execution summary"});
        if (narrow) return;
        const float donut_size = std::min(height * 0.86F, room * 0.24F);
        ImGui::SetCursorScreenPos({top.x + table + font * 2, top.y + font * 0.5F});
        category_tip(
            rank, donut("donut", donut_size, segments_of(rank),
                        draw::format_duration(rank.average_step_us * 1e3), stepped ? "a window" : "in all"));
        const float left = table + donut_size + font * 4;
        if (summary->ranks.size() > 1 && room - left > font * 16) {
            ImGui::SetCursorScreenPos({top.x + left, top.y});
            draw_ranks(session, *summary, height, stepped);
        }
        ImGui::SetCursorScreenPos({top.x, top.y + height});
    }

    void draw_below(model::Session& session, const std::shared_ptr<const ExecutionSummary>& summary,
                    const RankSummary& rank) {
        const float font = ImGui::GetFontSize();
        ImGui::Dummy({0, font * 0.2F});
        constexpr std::array<std::string_view, 4> kViews = {"Every step", "Table of steps", "Every rank",
                                                            "Table of ranks"};
        const bool ranks = summary->ranks.size() > 1, steps = !session.trace()->steps.empty();
        if (!ranks && !steps) return;  // everything is shown above
        if (!ranks && view_ > kStepTable) view_ = kSteps;
        if (!steps && view_ < kRanks) view_ = kRanks;
        int shown = view_ - (steps ? 0 : kRanks);
        widgets::segmented("summary.view", std::span(kViews).subspan(steps ? 0 : 2, ranks && steps ? 4 : 2),
                           shown);
        view_ = shown + (steps ? 0 : kRanks);
        ImGui::SameLine(0, font * 1.5F);
        draw::flow(font * 16);
        ImGui::AlignTextToFramePadding();
        draw::text_fit_dim(about(rank));
        if (view_ == kStepTable) return draw_step_table(session, summary, rank);
        if (view_ == kRankTable) return draw_rank_table(session, summary);
        draw_legend(*summary);
        const float height = std::max(font * 8, ImGui::GetContentRegionAvail().y);
        if (view_ == kRanks) {
            const int clicked = draw_time_bars("summary.rank_bar", "Rank", bars_.of_ranks(summary), height);
            if (clicked >= 0) session.choose_rank(summary->ranks[static_cast<std::size_t>(clicked)].rank);
            return;
        }
        const int clicked =
            draw_time_bars("summary.step_bar", "Window of step", bars_.of_steps(summary, rank), height);
        if (clicked >= 0) show_in_timeline(session, rank.steps[static_cast<std::size_t>(clicked)]);
    }

    std::string about(const RankSummary& rank) const {
        if (view_ == kRanks || view_ == kRankTable) return "A click chooses the rank.";
        const std::string cut = rank.cut_steps > 0
                                    ? fmt::format("  {} incomplete last step{} excluded.", rank.cut_steps,
                                                  rank.cut_steps == 1 ? "" : "s")
                                    : "";
        // Not the ruler's host step, which ends with the host's range.
        constexpr std::string_view kWindow =
            "Times are of a step's window, which ends with its device work. ";
        return fmt::format("{}{} a step to see it on the timeline.{}", kWindow,
                           view_ == kSteps ? "Click" : "Double-click", cut);
    }

    void draw_step_table(model::Session& session, const std::shared_ptr<const ExecutionSummary>& summary,
                         const RankSummary& rank) {
        const auto report = session.analyses.analysis<traces::analysis::StepsReport>(
            "steps", session.trace(), model::Session::selection(*session.current()),
            traces::analysis::steps_report);
        const traces::analysis::RankStepDetails* details =
            report != nullptr ? widgets::chosen_rank(report->ranks, session) : nullptr;
        const auto model =
            steps_model_.of(summary, fmt::format("{}/{}", rank.rank, static_cast<const void*>(details)),
                            [&] { return step_times(*summary, rank, details); });
        const tables::TableEvents events =
            draw_table("summary.steps", model, steps_, {.filter = false, .name = "steps"});
        if (events.opened) show_in_timeline(session, rank.steps[*events.opened]);
    }

    void draw_rank_table(model::Session& session, const std::shared_ptr<const ExecutionSummary>& summary) {
        const auto model = ranks_model_.of(summary, "", [&] { return rank_times(*summary); });
        const tables::TableEvents events =
            draw_table("summary.ranks", model, ranks_, {.filter = false, .name = "ranks"});
        if (events.clicked) session.choose_rank(summary->ranks[*events.clicked].rank);
    }

    static void draw_legend(const ExecutionSummary& summary) {
        std::vector<draw::LegendItem> items;
        for (std::size_t c = 0; c < traces::analysis::kTimeCategories; ++c) {
            const bool any = std::any_of(summary.ranks.begin(), summary.ranks.end(),
                                         [c](const RankSummary& r) { return r.average_us[c] > 0; });
            if (any)
                items.push_back({std::string(traces::analysis::kTimeCategoryNames[c]),
                                 theme::time_category_color(static_cast<TimeCategory>(c))});
        }
        legend(items);
    }

    static void show_in_timeline(model::Session& session, const traces::analysis::StepSummary& step) {
        session.current()->visible = {step.window_start, step.window_end};
        session.current()->lit = session.current()->visible;
        session.wanted_panel = "timeline";
    }

    // The bars of the previous frame, made again when their contents change.
    class Bars {
      public:
        const std::vector<TimeBar>& of_steps(const std::shared_ptr<const ExecutionSummary>& summary,
                                             const RankSummary& rank) {
            if (source_ != summary || shown_ != &rank) bars_ = bars_of_steps(rank);
            source_ = summary;
            shown_ = &rank;
            return bars_;
        }
        const std::vector<TimeBar>& of_ranks(const std::shared_ptr<const ExecutionSummary>& summary) {
            if (source_ != summary || shown_ != summary.get()) bars_ = bars_of_ranks(*summary);
            source_ = summary;
            shown_ = summary.get();
            return bars_;
        }

      private:
        std::shared_ptr<const ExecutionSummary> source_;
        const void* shown_ = nullptr;
        std::vector<TimeBar> bars_;
    };

    bool folded_ = false;
    int view_ = kSteps;
    Bars bars_;
    widgets::KeptModel categories_model_, steps_model_, ranks_model_;
    tables::TableState categories_, steps_, ranks_;
};

}  // namespace

std::unique_ptr<model::Panel> make_summary_panel() {
    return std::make_unique<SummaryPanel>();
}

}  // namespace shardscope::viewer::panels
