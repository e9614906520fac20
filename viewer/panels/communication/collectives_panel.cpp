// Collectives: by operation with bandwidths and sizes, one by one, and which ranks arrive last.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <imgui.h>

#include "traces/analysis/time/overlap.h"
#include "traces/store/columns/trace.h"
#include "traces/store/grouped.h"
#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/model/panel.h"
#include "viewer/model/session.h"
#include "viewer/model/why_empty.h"
#include "viewer/panels/communication/bandwidth_chart.h"
#include "viewer/panels/communication/collective_rows.h"
#include "viewer/tables/table.h"
#include "viewer/theme/theme.h"
#include "viewer/widgets/segmented.h"
#include "viewer/widgets/toolbar.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::CollectiveTimes;

class CollectivesPanel final : public model::Panel {
  public:
    std::string_view name() const override { return "collectives"; }

    void draw(model::Session& session, const model::Frame&) override {
        widgets::draw_choosers(session, part_ == operations);
        static constexpr std::string_view kParts[] = {"By operation", "Each", "Stragglers", "Bandwidth"};
        widgets::segmented("collectives.show", kParts, part_);
        const model::TracePtr trace = session.trace();
        const auto selection = model::Session::selection(*session.current());
        const auto report = session.analyses.collectives(trace, selection);
        const auto distributed = session.analyses.analysis<traces::analysis::DistributedReport>(
            "distributed", trace, selection,
            [](const auto& t, const auto& s) { return traces::analysis::distributed_report(t, s); });
        if (report == nullptr || distributed == nullptr)
            return widgets::draw_waiting(session, "the collectives");
        if (distributed->collectives == 0) return say_why_empty(session);
        widgets::draw_limit_note(session);
        if (part_ == operations) return draw_operations(session, report, distributed, selection);
        if (part_ == each) return draw_each(session, selection);
        if (part_ == bandwidth) return draw_bandwidth(session, selection);
        draw_stragglers(session, selection);
    }

  private:
    enum Part { operations, each, stragglers, bandwidth };  // indices of the buttons

    static void say_why_empty(const model::Session& session) {
        if (session.current()->limit) return draw::note("No collective lies in the time filter.");
        draw::note(model::why_empty("collectives"));
    }

    // --- by operation ---

    void draw_operations(model::Session& session,
                         const std::shared_ptr<const traces::analysis::CollectivesReport>& report,
                         const std::shared_ptr<const traces::analysis::DistributedReport>& distributed,
                         const traces::analysis::Selection& selection) {
        const traces::analysis::RankCollectives* rank = widgets::chosen_rank(report->ranks, session);
        if (rank == nullptr || rank->operations.empty())
            return draw::note("This rank takes part in no collective in the current selection.");
        const auto overlap = session.analyses.analysis<traces::analysis::OverlapReport>(
            "overlap", session.trace(), selection,
            [](const auto& t, const auto& s) { return traces::analysis::overlap_report(t, s); });
        draw_headline(*rank, overlap != nullptr ? widgets::chosen_rank(overlap->ranks, session) : nullptr,
                      *distributed, !session.trace()->steps.empty());
        if (operations_of_ != rank || report_ != report || appearance_ != theme::appearance()) {
            report_ = report;
            operations_of_ = rank;
            appearance_ = theme::appearance();
            operations_ = operation_table(*rank, !session.trace()->steps.empty());
            traffic_ = traffic_table(*distributed);
            histogram_ = size_histogram(*distributed);
        }
        const float font = ImGui::GetFontSize();
        const float rows = static_cast<float>(rank->operations.size());
        ImGui::BeginChild("page");  // scrolls if the window is small
        const float height = std::min(std::max(ImGui::GetContentRegionAvail().y * 0.4F, font * 12),
                                      font * (3.2F + 1.6F * rows));
        draw_table("collectives", operations_, operations_state_,
                   {.size = {0, height}, .filter = false, .name = "collectives by operation"});
        ImGui::Dummy({0, font * 0.3F});
        const ImVec2 room = ImGui::GetContentRegionAvail();
        const bool beside = room.x > font * 76;
        const float sizes = font * (4.5F + 1.6F * static_cast<float>(kHistogramClasses));
        const float below = std::max(font * 14, beside ? room.y : room.y - sizes);
        ImGui::BeginChild("sizes", beside ? ImVec2{room.x * 0.36F, below} : ImVec2{0, sizes});
        draw::heading("Collectives by size");
        draw_histogram();
        ImGui::EndChild();
        if (beside) ImGui::SameLine(0, font);
        ImGui::BeginChild("traffic", {0, below});
        draw::heading("By group and size, each collective once");
        draw_table("collectives.traffic", traffic_, traffic_state_,
                   {.filter = false, .name = "collectives by group and size"});
        ImGui::EndChild();
        ImGui::EndChild();
    }

    static void draw_headline(const traces::analysis::RankCollectives& rank,
                              const traces::analysis::RankOverlap* overlap,
                              const traces::analysis::DistributedReport& distributed, bool stepped) {
        std::string line =
            fmt::format("{} collectives, each counted once", draw::format_count(distributed.collectives));
        if (overlap != nullptr && !overlap->steps.empty()) {
            line += fmt::format(
                ". {} of rank {}: {} of communication ran beside compute, {} was exposed (overlap {})",
                stepped ? "A step" : "The whole time", rank.rank,
                draw::format_duration(overlap->mean_us(overlap->sum.overlapped) * 1e3),
                draw::format_duration(overlap->mean_us(overlap->sum.exposed_communication) * 1e3),
                draw::format_percent(overlap->sum.overlap_percent()));
        }
        line += ".";
        if (distributed.unmatched > 0)
            line += fmt::format(" {} no counterpart on another rank.",
                                traces::store::counted(distributed.unmatched, "part has", "parts have"));
        if (distributed.without_metadata > 0) {
            line += fmt::format(" {} without metadata: bytes unknown, matched by order.",
                                traces::store::counted(distributed.without_metadata, "part is", "parts are"));
        }
        draw::wrapped(line);
        draw::items::value("collectives.headline", line);
    }

    // One line for each size class, its operations side by side.
    void draw_histogram() const {
        const float font = ImGui::GetFontSize();
        std::vector<draw::LegendItem> labels;
        for (const auto& o : histogram_.operations)
            labels.push_back({std::string(traces::schema::name(o.operation)), operation_color(o.operation)});
        legend(labels);
        ImGui::Dummy({0, font * 0.2F});
        const float label = ImGui::CalcTextSize("16 MiB - 256 MiB").x + font * 0.8F;
        const float value = ImGui::CalcTextSize("999,999").x + font * 0.4F;
        const float width = std::max(font * 2, ImGui::GetContentRegionAvail().x - label - value);
        for (std::size_t size = 0; size < kHistogramClasses; ++size) {
            std::vector<draw::Segment> segments;
            std::int64_t sum = 0;
            for (const auto& o : histogram_.operations) {
                segments.push_back({static_cast<double>(o.count[size]), operation_color(o.operation), {}});
                sum += o.count[size];
            }
            if (size + 1 == kHistogramClasses && sum == 0) continue;
            const ImVec2 at = ImGui::GetCursorScreenPos();
            ImDrawList* draw = ImGui::GetWindowDrawList();
            draw->AddText(at, sum > 0 ? theme::text() : theme::text_dim(), size_class_text(size).c_str());
            const int hovered = stacked_bar({at.x + label, at.y + font * 0.05F}, {width, font}, segments,
                                            static_cast<double>(histogram_.most), false);
            const std::string count = draw::format_count(sum);
            draw->AddText({at.x + label + width + value - ImGui::CalcTextSize(count.c_str()).x, at.y},
                          sum > 0 ? theme::text() : theme::text_dim(), count.c_str());
            ImGui::Dummy({label + width + value, font * 1.25F});
            draw::items::mark("collectives.size." + size_class_text(size), count);
            if (hovered < 0) continue;
            const auto& o = histogram_.operations[static_cast<std::size_t>(hovered)];
            draw::begin_tip(
                fmt::format("{}, {}", std::string(traces::schema::name(o.operation)), size_class_text(size)));
            draw::tip_row("Collectives", draw::format_count(o.count[size]));
            draw::tip_row("Full buffers", draw::format_size(o.bytes[size]));
            draw::end_tip();
        }
    }

    // --- each collective ---

    void draw_each(model::Session& session, const traces::analysis::Selection& selection) {
        const model::TracePtr trace = session.trace();
        const auto list = session.analyses.analysis<std::vector<CollectiveTimes>>(
            "collective_list", trace, selection,
            [](const auto& t, const auto& s) { return traces::analysis::collective_list(t, s); });
        if (list == nullptr) return widgets::draw_waiting(session, "every collective");
        if (list_ != list) {
            list_ = list;
            each_ = std::make_shared<const CollectiveTable>(list, *trace);
        }
        draw::note(
            "A click marks it, a double-click shows it on the timeline. Waiting, exposed and overlapped time "
            "are sums over the ranks.");
        const tables::TableEvents events =
            draw_table("collectives.each", each_, each_state_, {.name = "collectives"});
        if (events.clicked) mark(session, *trace, (*list)[*events.clicked]);
        if (events.opened) open(session, *trace, (*list)[*events.opened]);
    }

    static void mark(model::Session& session, const traces::store::Trace& trace, const CollectiveTimes& c) {
        session.selected = {model::EventKind::device, c.event};
        session.rank = traces::store::RankIndex(trace.device.rank[static_cast<std::size_t>(c.event)]);
        session.current()->cursor = c.start_ns;
    }

    static void open(model::Session& session, const traces::store::Trace& trace, const CollectiveTimes& c) {
        session.go_to({c.start_ns, c.start_ns + c.longest_ns},
                      traces::store::RankIndex(trace.device.rank[static_cast<std::size_t>(c.event)]),
                      {model::EventKind::device, c.event});
    }

    // --- bus bandwidth over size ---

    void draw_bandwidth(model::Session& session, const traces::analysis::Selection& selection) {
        const auto report = session.analyses.analysis<traces::analysis::BusBandwidthReport>(
            "bus bandwidth", session.trace(), selection,
            [](const auto& t, const auto& s) { return traces::analysis::bus_bandwidth(t, s); });
        if (report == nullptr) return widgets::draw_waiting(session, "the bus bandwidth");
        if (report->curves.empty()) return draw::note(model::why_empty("collectives.bandwidth"));
        bandwidth_.draw(report);
    }

    // --- stragglers ---

    void draw_stragglers(model::Session& session, const traces::analysis::Selection& selection) {
        const auto report = session.analyses.analysis<traces::analysis::StragglersReport>(
            "stragglers", session.trace(), selection,
            [](const auto& t, const auto& s) { return traces::analysis::straggler_report(t, s); });
        if (report == nullptr) return widgets::draw_waiting(session, "which ranks come last");
        if (report->trace_ranks < 2) {
            return draw::note(model::why_empty("collectives.one_rank"));
        }
        if (report->collectives == 0)
            return draw::note("No collective in the current selection has its counterparts on other ranks.");
        kind_ = std::min(kind_, static_cast<int>(report->kinds.size()) - 1);
        std::vector<std::string> names = {"All operations"};
        for (const traces::analysis::KindStragglers& kind : report->kinds)
            names.push_back(draw::spaced(traces::schema::name(kind.operation)));
        int chosen = kind_ + 1;
        widgets::segmented("collectives.stragglers",
                           std::vector<std::string_view>(names.begin(), names.end()), chosen);
        kind_ = chosen - 1;
        if (stragglers_of_ != report || kind_ != stragglers_kind_ ||
            stragglers_look_ != theme::appearance()) {
            stragglers_of_ = report;
            stragglers_kind_ = kind_;
            stragglers_look_ = theme::appearance();
            stragglers_ = straggler_table(*report, kind_);
        }
        const auto& ranks = kind_ < 0 ? report->ranks : report->kinds[static_cast<std::size_t>(kind_)].ranks;
        if (ranks.size() > 1 && !traces::analysis::equally_late(ranks)) draw_latest(ranks.front());
        draw::note(
            "All ranks of a collective end together, so the rank with the shortest duration "
            "arrived last. Durations are compared, not clocks.");
        if (report->warm_up) draw::note(traces::analysis::sentence(*report->warm_up));
        const tables::TableEvents events =
            draw_table("collectives.stragglers", stragglers_, stragglers_state_,
                       {.filter = false, .name = "stragglers"});
        if (events.clicked) session.choose_rank(ranks[*events.clicked].rank);
    }

    static void draw_latest(const traces::analysis::Arrivals& latest) {
        const ImVec2 at = ImGui::GetCursorPos();
        const float font = ImGui::GetFontSize();
        widgets::big_number(fmt::format("rank {}", latest.rank));
        ImGui::SetCursorPos({at.x + ImGui::GetItemRectSize().x + font, at.y + font * 0.55F});
        draw::text(fmt::format("arrives last most often: in {} of {}, {} late in total",
                               draw::format_count(latest.last),
                               traces::store::counted(latest.collectives, "collective", "collectives"),
                               draw::format_duration(static_cast<double>(latest.late_ns))));
        ImGui::SetCursorPos({at.x, at.y + font * 2.4F});
        draw::items::value("collectives.latest", fmt::format("{}", latest.rank));
    }

    int part_ = operations;
    std::shared_ptr<const traces::analysis::CollectivesReport> report_;
    const void* operations_of_ = nullptr;
    theme::Appearance appearance_ = theme::Appearance::dark, stragglers_look_ = theme::Appearance::dark;
    std::shared_ptr<const tables::CellTable> operations_, traffic_, stragglers_;
    SizeHistogram histogram_;
    std::shared_ptr<const std::vector<CollectiveTimes>> list_;
    std::shared_ptr<const CollectiveTable> each_;
    std::shared_ptr<const traces::analysis::StragglersReport> stragglers_of_;
    int kind_ = -1, stragglers_kind_ = -2;
    tables::TableState operations_state_, traffic_state_, each_state_, stragglers_state_;
    BandwidthChart bandwidth_;
};

}  // namespace

std::unique_ptr<model::Panel> make_collectives_panel() {
    return std::make_unique<CollectivesPanel>();
}

}  // namespace shardscope::viewer::panels
