// Units: the cost of sharding per FSDP unit and phase: a bar for each, beside the full table.
#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <imgui.h>

#include "traces/store/columns/trace.h"
#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/model/panel.h"
#include "viewer/model/session.h"
#include "viewer/model/why_empty.h"
#include "viewer/panels/units/unit_rows.h"
#include "viewer/tables/table.h"
#include "viewer/theme/theme.h"
#include "viewer/widgets/segmented.h"
#include "viewer/widgets/toolbar.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::RankUnits;
using traces::analysis::UnitCosts;
using traces::analysis::UnitPhase;
using traces::analysis::UnitsReport;

theme::Color gather_color() {
    return theme::kind_color(traces::store::DeviceKind::communication);
}
theme::Color reduce_color() {
    return theme::shard_color(traces::analysis::ShardState::reducing);
}

class UnitsPanel final : public model::Panel {
  public:
    std::string_view name() const override { return "units"; }

    void draw(model::Session& session, const model::Frame&) override {
        widgets::draw_choosers(session, all_ranks_ == 0 && by_rank_ == 0);
        const model::TracePtr trace = session.trace();
        const auto selection = model::Session::selection(*session.current());
        const auto report = session.analyses.analysis<UnitsReport>(
            "units", trace, selection,
            [](const auto& t, const auto& s) { return traces::analysis::units_report(t, s); });
        const auto states = session.analyses.analysis<traces::analysis::ShardStates>(
            "shard_states", trace, {},
            [](const auto& t, const auto&) { return traces::analysis::shard_states(t); });
        if (report == nullptr || states == nullptr) {
            draw::flow(ImGui::GetWindowWidth());
            return widgets::draw_waiting(session, "what sharding costs");
        }
        if (!report->any_unit) {
            draw::flow(ImGui::GetWindowWidth());
            return draw::note(model::why_empty("units"));
        }
        if (trace->device.size() == 0) {
            draw::flow(ImGui::GetWindowWidth());
            return draw::note(model::why_empty("units.device"));
        }
        draw_choices(*trace);
        widgets::draw_limit_note(session);
        const RankUnits* rank = widgets::chosen_rank(report->ranks, session);
        const bool all = all_ranks_ == 1 && trace->ranks.size() > 1;
        const bool empty = report->rank_steps == 0 || (!all && (rank == nullptr || rank->steps == 0));
        if (empty) return draw::note("The current selection contains no complete step.");
        const std::vector<UnitPhase>& rows = all ? report->all_ranks : rank->rows;
        if (rows.empty()) return draw::note(model::why_empty("units.collectives"));
        const std::int64_t steps = all ? report->rank_steps : rank->steps;
        draw_headline(*report, all ? nullptr : rank, rows, steps);
        take(report, rows, steps);
        if (by_rank_ == 1) return draw_by_rank(session);
        draw_by_unit(session, *trace, *states, rows, steps);
    }

  private:
    void draw_choices(const traces::store::Trace& trace) {
        static constexpr std::string_view kBy[] = {"By unit", "By rank"},
                                          kRanks[] = {"This rank", "All ranks"},
                                          kShow[] = {"Mean per step", "Sum of the steps"};
        bool first = true;
        const auto choose = [&first](std::span<const std::string_view> names, int& chosen) {
            if (!first) ImGui::SameLine(0, ImGui::GetFontSize());
            first = false;
            widgets::segmented("units.show", names, chosen);
        };
        if (trace.ranks.size() > 1) {
            choose(kBy, by_rank_);
            if (by_rank_ == 0) choose(kRanks, all_ranks_);
        }
        if (!trace.steps.empty()) choose(kShow, sums_);
        if (first) draw::flow(ImGui::GetWindowWidth());
    }

    void draw_headline(const UnitsReport& report, const RankUnits* rank, const std::vector<UnitPhase>& rows,
                       std::int64_t steps) const {
        UnitCosts sum;
        for (const UnitPhase& row : rows) sum.add(row.sum);
        const auto mean = [&](std::int64_t ns) {
            return draw::format_duration(static_cast<double>(ns) / static_cast<double>(steps));
        };
        const ImVec2 at = ImGui::GetCursorPos();
        const float font = ImGui::GetFontSize();
        widgets::big_number(mean(sum.exposed_ns()));
        const float right = at.x + ImGui::GetItemRectSize().x + font;
        ImGui::SetCursorPos({right, at.y + font * 0.05F});
        const std::string_view a_step = report.stepped ? " per step" : "";
        ImGui::BeginGroup();
        draw::wrapped(
            fmt::format("of gathers and reductions{} outside compute, {}", a_step,
                        rank != nullptr ? fmt::format("rank {}", rank->rank) : "mean of the ranks"));
        std::string line =
            fmt::format("gathers {}, reductions {}, waits {}, limiter {}{}", mean(sum.gather_ns),
                        mean(sum.reduce_ns), mean(sum.wait_ns), mean(sum.limiter_ns), a_step);
        if (report.uneven.busy > 0) {
            line += fmt::format("; largest rank over the mean: busy {}",
                                draw::format_decimal(report.uneven.busy, 3));
            if (report.uneven.peak_bytes > 0)
                line += fmt::format(", peak {}", draw::format_decimal(report.uneven.peak_bytes, 3));
        }
        draw::note(line);
        ImGui::EndGroup();
        ImGui::SetCursorPos({at.x, std::max(at.y + font * 2.4F, ImGui::GetCursorPosY())});
        draw::items::value("units.exposed", mean(sum.exposed_ns()));
        if (const std::string again = regather_text(rows, steps, report.stepped); !again.empty())
            draw::note(again);
    }

    void take(const std::shared_ptr<const UnitsReport>& report, const std::vector<UnitPhase>& rows,
              std::int64_t steps) {
        const Shown wanted{rows.data(), steps, sums_, theme::appearance()};
        if (report_ == report && shown_ == wanted) return;
        report_ = report;
        shown_ = wanted;
        const bool means = means_of(*report);
        table_ = unit_table(rows, means ? std::optional(steps) : std::nullopt);
        ranks_ = unit_rank_table(*report, means);
    }

    // Without steps, means and sums are equal, and steps are not mentioned.
    bool means_of(const UnitsReport& report) const { return report.stepped && sums_ == 0; }

    void draw_by_rank(model::Session& session) {
        const tables::TableEvents events =
            draw_table("units.ranks_table", ranks_, ranks_state_, {.filter = false, .name = "units by rank"});
        if (events.clicked) session.choose_rank(report_->ranks[*events.clicked].rank);
    }

    void draw_by_unit(model::Session& session, const traces::store::Trace& trace,
                      const traces::analysis::ShardStates& states, const std::vector<UnitPhase>& rows,
                      std::int64_t steps) {
        const float font = ImGui::GetFontSize();
        const ImVec2 room = ImGui::GetContentRegionAvail();
        const bool beside = room.x > font * 84;
        legend(
            std::vector<draw::LegendItem>{{"gather, hidden by compute", draw::faded(gather_color(), 0.45F)},
                                          {"gather, exposed", gather_color()},
                                          {"reduction, hidden", draw::faded(reduce_color(), 0.45F)},
                                          {"reduction, exposed", reduce_color()},
                                          {"waiting for the gather", theme::waiting_color()}});
        std::optional<std::size_t> clicked, opened;
        const float left = ImGui::GetContentRegionAvail().y;
        const ImVec2 chart =
            beside ? ImVec2{room.x * 0.36F, left}
                   : ImVec2{0, std::min(left * 0.42F, font * 1.5F * static_cast<float>(rows.size()) + font)};
        ImGui::BeginChild("bars", chart);
        draw_bars(rows, means_of(*report_) ? steps : 1, clicked, opened);
        ImGui::EndChild();
        if (beside) ImGui::SameLine(0, font);
        ImGui::BeginChild("table");
        const tables::TableEvents events = draw_table("units", table_, state_, {.name = "units"});
        ImGui::EndChild();
        if (events.clicked) clicked = events.clicked;
        if (events.opened) opened = events.opened;
        if (clicked) {
            state_.chosen = clicked;
            select(session, trace, rows[*clicked].name);
        }
        if (opened) open(session, trace, states, rows[*opened]);
    }

    // One line per row: the time on the device above, the wait below it. Times are divided by `steps`.
    void draw_bars(const std::vector<UnitPhase>& rows, std::int64_t steps,
                   std::optional<std::size_t>& clicked, std::optional<std::size_t>& opened) const {
        const float font = ImGui::GetFontSize(), line = font * 1.5F;
        double longest = 0;
        float label = 0;
        for (const UnitPhase& row : rows) {
            longest = std::max(longest, static_cast<double>(std::max(row.sum.gather_ns + row.sum.reduce_ns,
                                                                     row.sum.wait_ns)));
            label = std::max(label, ImGui::CalcTextSize(unit_row_name(row).c_str()).x);
        }
        const float room = ImGui::GetContentRegionAvail().x;
        label = std::min(label, room * 0.36F) + font * 0.6F;
        const float value = ImGui::CalcTextSize("999.99 ms").x + font * 0.4F;
        const float width = std::max(font * 2, room - label - value);
        const double n = static_cast<double>(steps);
        ImGuiListClipper clipper;
        clipper.Begin(static_cast<int>(rows.size()), line);
        while (clipper.Step()) {
            for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
                const UnitPhase& row = rows[static_cast<std::size_t>(i)];
                const UnitCosts& c = row.sum;
                const ImVec2 at = ImGui::GetCursorScreenPos();
                const std::string row_name = unit_row_name(row);
                ImGui::PushID(i);
                constexpr ImGuiSelectableFlags kFlags = ImGuiSelectableFlags_AllowDoubleClick;
                if (ImGui::Selectable("##bar", state_.chosen == static_cast<std::size_t>(i), kFlags,
                                      {room, line - ImGui::GetStyle().ItemSpacing.y})) {
                    clicked = static_cast<std::size_t>(i);
                    if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) opened = clicked;
                }
                ImGui::PopID();
                draw::items::mark("units.bar." + row_name,
                                  draw::format_duration(static_cast<double>(c.gather_ns + c.reduce_ns) / n));
                const bool hovered = ImGui::IsItemHovered();
                ImDrawList* draw = ImGui::GetWindowDrawList();
                draw->AddText(at, theme::text(), draw::fit_text(row_name, label - font * 0.6F).c_str());
                const std::vector<draw::Segment> segments = {
                    {static_cast<double>(c.gather_ns - c.gather_exposed_ns),
                     draw::faded(gather_color(), 0.45F),
                     {}},
                    {static_cast<double>(c.gather_exposed_ns), gather_color(), {}},
                    {static_cast<double>(c.reduce_ns - c.reduce_exposed_ns),
                     draw::faded(reduce_color(), 0.45F),
                     {}},
                    {static_cast<double>(c.reduce_exposed_ns), reduce_color(), {}}};
                stacked_bar({at.x + label, at.y + font * 0.05F}, {width, font * 0.7F}, segments, longest,
                            false);
                const std::vector<draw::Segment> wait = {
                    {static_cast<double>(c.wait_ns), theme::waiting_color(), {}}};
                stacked_bar({at.x + label, at.y + font * 0.8F}, {width, font * 0.25F}, wait, longest, false);
                const std::string time =
                    draw::format_duration(static_cast<double>(c.gather_ns + c.reduce_ns) / n);
                draw->AddText({at.x + room - ImGui::CalcTextSize(time.c_str()).x, at.y}, theme::text_dim(),
                              time.c_str());
                if (hovered) bar_tip(row, n);
            }
        }
    }

    void bar_tip(const UnitPhase& row, double steps) const {
        const UnitCosts& c = row.sum;
        const auto mean = [&](std::int64_t ns) {
            return draw::format_duration(static_cast<double>(ns) / steps);
        };
        draw::begin_tip(unit_row_name(row) + (!report_->stepped ? ""
                                              : sums_ == 0      ? ", mean per step"
                                                                : ", sum of the steps"));
        if (c.gathers > 0) {
            draw::tip_row("Gather", mean(c.gather_ns), gather_color());
            draw::tip_row("  of it exposed", mean(c.gather_exposed_ns));
            draw::tip_row("Waiting for it", mean(c.wait_ns), theme::waiting_color());
            draw::tip_row("Limiter", mean(c.limiter_ns));
            draw::tip_row("Held", mean(c.held_ns));
        }
        if (c.reductions > 0) {
            draw::tip_row("Reduction", mean(c.reduce_ns), reduce_color());
            draw::tip_row("  of it exposed", mean(c.reduce_exposed_ns));
        }
        if (!row.hidden_by.empty()) draw::tip_row("Mainly hidden by", row.hidden_by);
        draw::tip_row("Double-click", "go to its first collective");
        draw::end_tip();
    }

    static void select(model::Session& session, const traces::store::Trace& trace, const std::string& unit) {
        session.selected_unit = {};
        for (std::size_t u = 0; u < trace.units.size(); ++u) {
            if (trace.units[u].name == unit) session.selected_unit = traces::store::UnitIndex(u);
        }
    }

    static void open(model::Session& session, const traces::store::Trace& trace,
                     const traces::analysis::ShardStates& states, const UnitPhase& row) {
        const auto limit = session.current()->limit;
        const std::int32_t event = first_gather(trace, states, session.rank, row.name, row.phase,
                                                limit ? limit->from : trace.first_ns);
        if (event < 0) return;
        const auto at = static_cast<std::size_t>(event);
        session.go_to({trace.device.start[at], trace.device.end[at]}, session.rank,
                      {model::EventKind::device, event});
    }

    struct Shown {
        const void* rows = nullptr;
        std::int64_t steps = 0;
        int sums = 0;
        theme::Appearance appearance = theme::Appearance::dark;
        bool operator==(const Shown&) const = default;
    };
    int by_rank_ = 0, all_ranks_ = 0, sums_ = 0;  // 0 or 1: the second of two choices is on
    std::shared_ptr<const UnitsReport> report_;
    Shown shown_;
    std::shared_ptr<const tables::CellTable> table_, ranks_;
    tables::TableState state_, ranks_state_;
};

}  // namespace

std::unique_ptr<model::Panel> make_units_panel() {
    return std::make_unique<UnitsPanel>();
}

}  // namespace shardscope::viewer::panels
