// Distributed: the ranks compared: how much of a step each computes, communicates and waits, the traffic
// between them, and which collectives held them up.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <imgui.h>

#include "traces/analysis/communication/distributed.h"
#include "traces/analysis/time/steps.h"
#include "traces/store/columns/trace.h"
#include "traces/store/grouped.h"
#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/model/panel.h"
#include "viewer/model/session.h"
#include "viewer/model/why_empty.h"
#include "viewer/panels/communication/collective_rows.h"
#include "viewer/tables/table.h"
#include "viewer/theme/theme.h"
#include "viewer/widgets/segmented.h"
#include "viewer/widgets/toolbar.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::DistributedReport;
using traces::analysis::RankTraffic;

theme::Color compute_color() {
    return theme::kind_color(traces::store::DeviceKind::kernel);
}
theme::Color other_color() {
    return theme::line();
}

class DistributedPanel final : public model::Panel {
  public:
    std::string_view name() const override { return "distributed"; }

    void draw(model::Session& session, const model::Frame&) override {
        widgets::draw_choosers(session, false);
        const model::TracePtr trace = session.trace();
        const auto selection = model::Session::selection(*session.current());
        const auto report = session.analyses.analysis<DistributedReport>(
            "distributed", trace, selection,
            [](const auto& t, const auto& s) { return traces::analysis::distributed_report(t, s); });
        if (report == nullptr) {
            draw::flow(ImGui::GetWindowWidth());
            return widgets::draw_waiting(session, "the ranks together");
        }
        if (report->ranks.empty() || trace->device.size() == 0) {
            draw::flow(ImGui::GetWindowWidth());
            return draw::note(model::why_empty("distributed"));
        }
        static constexpr std::string_view kParts[] = {"Traffic", "By axis", "Where ranks waited", "Ranks",
                                                      "Hosts"};
        widgets::segmented("distributed.show", kParts, part_);
        widgets::draw_limit_note(session);
        take(report, !trace->steps.empty());
        if (report->stopped.stopped) draw::note(traces::analysis::stop_sentence(report->stopped));
        widgets::draw_shown_ranks(*trace);
        draw_headline(*trace, *report);
        const float font = ImGui::GetFontSize();
        const float wanted = font * (2.4F + 1.7F * static_cast<float>(report->ranks.size()));
        draw_bars(session, *report, std::min(wanted, ImGui::GetContentRegionAvail().y * 0.5F));
        draw_part(session, *trace, *report);
    }

  private:
    enum Part { traffic, axes, slowest, ranks, hosts };  // indices of the buttons

    void take(const std::shared_ptr<const DistributedReport>& report, bool stepped) {
        if (report_ == report && appearance_ == theme::appearance()) return;
        report_ = report;
        appearance_ = theme::appearance();
        ranks_ = rank_table(*report, stepped);
        traffic_ = traffic_table(*report);
        axes_ = axis_table(*report);
        slowest_ = slowest_table(*report);
        hosts_ = host_table(report->hosts);
        host_traffic_ = host_traffic_table(report->hosts);
    }

    static void draw_headline(const traces::store::Trace& trace, const DistributedReport& report) {
        const float font = ImGui::GetFontSize();
        const traces::analysis::RankSkew skew = traces::analysis::rank_skew(report);
        traces::analysis::OverlapParts sum;
        for (const RankTraffic& rank : report.ranks) {
            sum.overlapped += rank.parts.overlapped;
            sum.exposed_communication += rank.parts.exposed_communication;
        }
        const ImVec2 at = ImGui::GetCursorPos();
        widgets::big_number(sum.communication() > 0 ? draw::format_percent(sum.overlap_percent()) : "-");
        const float right = at.x + ImGui::GetItemRectSize().x + font;
        ImGui::SetCursorPos({right, at.y + font * 0.05F});
        ImGui::BeginGroup();
        draw::wrapped(fmt::format(
            "of the communication ran beside compute; {}, {}",
            traces::store::counted(static_cast<std::int64_t>(report.ranks.size()), "rank", "ranks"),
            traces::store::counted(report.collectives, "collective", "collectives")));
        draw::note(skew_text(trace, report, skew));
        ImGui::EndGroup();
        ImGui::SetCursorPos({at.x, std::max(at.y + font * 2.4F, ImGui::GetCursorPosY())});
        draw::items::value("distributed.overlap", draw::format_percent(sum.overlap_percent()));
    }

    static std::string skew_text(const traces::store::Trace& trace, const DistributedReport& report,
                                 const traces::analysis::RankSkew& skew) {
        if (trace.ranks.size() < 2) return "One rank alone: merge the traces of all ranks to compare them.";
        if (skew.waited_for < 0) return "Not every rank has a complete step in the current selection.";
        const std::string a_step = trace.steps.empty() ? "" : " per step";
        const std::string most = draw::format_duration(skew.most_waiting_us * 1e3);
        std::string line = "No rank waited for another";
        if (traces::analysis::are_alike(skew.most_waiting_us, skew.least_waiting_us) &&
            skew.most_waiting_us > 0) {
            line = fmt::format("Waiting for other ranks: {}{}, equally long on all", most, a_step);
        } else if (skew.most_waiting_us > 0) {
            line = fmt::format(
                "Waiting for other ranks: {} to {}{}; rank {} waits least, so the others wait for it",
                draw::format_duration(skew.least_waiting_us * 1e3), most, a_step, skew.waited_for);
        }
        if (skew.computation > 0 && skew.slowest_rank < 0) {
            line += "; all compute equally long";
        } else if (skew.computation > 0) {
            line += fmt::format("; rank {} computes longest, {} times the mean", skew.slowest_rank,
                                draw::format_decimal(skew.computation, 3));
        }
        if (report.unmatched > 0)
            line += fmt::format("; {} without counterpart",
                                traces::store::counted(report.unmatched, "part", "parts"));
        return line;
    }

    // --- one line per rank ---

    static void draw_bars(model::Session& session, const DistributedReport& report, float height) {
        const float font = ImGui::GetFontSize(), line = font * 1.7F;
        legend(std::vector<draw::LegendItem>{{"computation", compute_color()},
                                             {"overlapped", theme::overlapped_color()},
                                             {"exposed communication", theme::exposed_color()},
                                             {"other", other_color()},
                                             {"below: transfer", theme::transfer_color()},
                                             {"waiting for other ranks", theme::waiting_color()}});
        double longest = 0;
        for (const RankTraffic& rank : report.ranks) longest = std::max(longest, step_ns(rank));
        ImGui::BeginChild("ranks", {0, height - font * 1.6F});
        const float label = ImGui::CalcTextSize("rank 9999").x + font * 0.5F;
        const float value = ImGui::CalcTextSize("9999.99 ms").x + font * 0.5F;
        const float width = std::max(font * 4, ImGui::GetContentRegionAvail().x - label - value);
        ImGuiListClipper clipper;
        clipper.Begin(static_cast<int>(report.ranks.size()), line);
        while (clipper.Step()) {
            for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
                const RankTraffic& rank = report.ranks[static_cast<std::size_t>(i)];
                draw_bar(session, rank, i, longest, {label, width, value, line});
            }
        }
        ImGui::EndChild();
    }

    static double step_ns(const RankTraffic& rank) {
        return rank.steps > 0 ? static_cast<double>(rank.parts.whole()) / static_cast<double>(rank.steps) : 0;
    }

    struct Widths {
        float label, bar, value, line;
    };
    static void draw_bar(model::Session& session, const RankTraffic& rank, int index, double longest,
                         const Widths& widths) {
        const float font = ImGui::GetFontSize();
        const ImVec2 at = ImGui::GetCursorScreenPos();
        const double n = static_cast<double>(std::max<std::int64_t>(rank.steps, 1));
        const auto& ranks = session.trace()->ranks;
        const std::size_t chosen = session.rank.at();
        const ImU32 ink =
            chosen < ranks.size() && ranks[chosen].number == rank.rank ? theme::text() : theme::text_dim();
        ImGui::PushID(index);
        if (draw::place_button("rank", {widths.label + widths.bar + widths.value,
                                        widths.line - ImGui::GetStyle().ItemSpacing.y}))
            session.choose_rank(rank.rank);
        ImGui::PopID();
        const bool hovered = ImGui::IsItemHovered();
        draw::items::mark(fmt::format("distributed.bar.{}", rank.rank), draw::format_duration(step_ns(rank)));
        ImDrawList* draw = ImGui::GetWindowDrawList();
        draw->AddText({at.x, at.y}, ink, fmt::format("rank {}", rank.rank).c_str());
        const auto mean = [&](std::int64_t ns) { return static_cast<double>(ns) / n; };
        const std::vector<draw::Segment> parts = {
            {mean(rank.parts.computation), compute_color(), {}},
            {mean(rank.parts.overlapped), theme::overlapped_color(), {}},
            {mean(rank.parts.exposed_communication), theme::exposed_color(), {}},
            {mean(rank.parts.other), other_color(), {}}};
        stacked_bar({at.x + widths.label, at.y}, {widths.bar, font * 0.85F}, parts, longest, false);
        const std::vector<draw::Segment> wires = {
            {mean(rank.transfer_ns), theme::transfer_color(), {}},
            {mean(rank.ns - rank.transfer_ns), theme::waiting_color(), {}}};
        stacked_bar({at.x + widths.label, at.y + font * 0.95F}, {widths.bar, font * 0.3F}, wires, longest,
                    false);
        const std::string time = rank.steps > 0 ? draw::format_duration(step_ns(rank)) : "no step";
        draw->AddText(
            {at.x + widths.label + widths.bar + widths.value - ImGui::CalcTextSize(time.c_str()).x, at.y},
            ink, time.c_str());
        if (!hovered) return;
        draw::begin_tip(session.trace()->steps.empty() ? fmt::format("Rank {}, the whole time", rank.rank)
                                                       : fmt::format("Rank {}, mean of {} step{}", rank.rank,
                                                                     rank.steps, rank.steps == 1 ? "" : "s"));
        draw::tip_row("Computation", draw::format_duration(parts[0].value), compute_color());
        draw::tip_row("Overlapped", draw::format_duration(parts[1].value), theme::overlapped_color());
        draw::tip_row("Exposed communication", draw::format_duration(parts[2].value), theme::exposed_color());
        draw::tip_row("Other", draw::format_duration(parts[3].value), other_color());
        draw::tip_row("Transfer", draw::format_duration(wires[0].value), theme::transfer_color());
        draw::tip_row("Waiting for other ranks", draw::format_duration(wires[1].value),
                      theme::waiting_color());
        if (!rank.host.empty()) draw::tip_row("Host", rank.host);
        draw::end_tip();
    }

    // --- the table below ---

    void draw_part(model::Session& session, const traces::store::Trace& trace,
                   const DistributedReport& report) {
        switch (part_) {
            case ranks: {
                draw::heading(trace.steps.empty() ? "The whole time by rank" : "Mean per step by rank");
                const tables::TableEvents events =
                    draw_table("distributed", ranks_, ranks_state_, {.filter = false, .name = "ranks"});
                if (events.clicked) session.choose_rank(report.ranks[*events.clicked].rank);
                return;
            }
            case traffic:
                draw::heading("Traffic by operation, group and size, each collective once");
                if (report.traffic.empty())
                    return draw::note(
                        "There are no collectives in the current selection: the ranks do not communicate, or "
                        "it was not recorded.");
                draw_table("distributed.traffic", traffic_, traffic_state_,
                           {.filter = false, .name = "traffic"});
                return;
            case axes:
                draw::heading(trace.steps.empty() ? "Axes of the mesh: a rank's mean over the whole time"
                                                  : "Axes of the mesh: a rank's mean per step");
                if (axes_ == nullptr) return draw::note(traces::analysis::kNoKnownAxis);
                draw_table("distributed.axes", axes_, axes_state_, {.filter = false, .name = "axes"});
                return;
            case slowest: {
                draw::heading("Longest waits: summed over ranks, with the rank that arrived last");
                if (report.slowest.empty())
                    return draw::note("No rank waited for another in the current selection.");
                draw::note("A double-click shows it on the timeline.");
                const tables::TableEvents events =
                    draw_table("distributed.slowest", slowest_, slowest_state_,
                               {.filter = false, .name = "slowest collectives"});
                if (events.opened) {
                    const traces::analysis::SlowCollective& slow = report.slowest[*events.opened];
                    session.go_to({slow.start_ns, slow.start_ns + slow.longest_ns});
                }
                return;
            }
            case hosts:
                return draw_hosts(report.hosts);
            default:
                return;
        }
    }

    void draw_hosts(const traces::analysis::HostsReport& report) {
        draw::heading("Hosts, and which of them the others wait for");
        if (report.skewed > 0) {
            draw::note(fmt::format(
                "The last host is complete {} after the first (median of {} between hosts; {} at worst).",
                draw::format_duration(static_cast<double>(report.median_skew_ns)),
                traces::store::counted(report.skewed, "collective", "collectives"),
                draw::format_duration(static_cast<double>(report.worst_skew_ns))));
        }
        if (report.clocks && report.clocks->collectives > 0) {
            draw::note(
                fmt::format("Collectives end within {} of one another on the clocks of all parts (median).",
                            draw::format_duration(static_cast<double>(report.clocks->residual_ns))));
        }
        const float rows = 2.5F + static_cast<float>(report.hosts.size());
        const float half = ImGui::GetContentRegionAvail().y * 0.5F;
        if (ImGui::BeginChild("hosts", {0, std::min(rows * ImGui::GetFrameHeightWithSpacing(), half)}))
            draw_table("distributed.hosts", hosts_, hosts_state_, {.filter = false, .name = "hosts"});
        ImGui::EndChild();
        draw::heading("Traffic within a host and between hosts");
        draw_table("distributed.host_traffic", host_traffic_, host_traffic_state_,
                   {.filter = false, .name = "traffic of hosts"});
    }

    int part_ = traffic;
    std::shared_ptr<const DistributedReport> report_;
    theme::Appearance appearance_ = theme::Appearance::dark;
    std::shared_ptr<const tables::CellTable> ranks_, traffic_, axes_, slowest_, hosts_, host_traffic_;
    tables::TableState ranks_state_, traffic_state_, axes_state_, slowest_state_, hosts_state_,
        host_traffic_state_;
};

}  // namespace

std::unique_ptr<model::Panel> make_distributed_panel() {
    return std::make_unique<DistributedPanel>();
}

}  // namespace shardscope::viewer::panels
