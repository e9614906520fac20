// Idle: why each rank's device and its streams were idle, gap by gap, and the critical path of the steps.
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/core.h>
#include <imgui.h>

#include "traces/analysis/waits/exposed.h"
#include "viewer/draw/format.h"
#include "viewer/draw/text.h"
#include "viewer/model/panel.h"
#include "viewer/model/session.h"
#include "viewer/model/trace_waits.h"
#include "viewer/model/why_empty.h"
#include "viewer/panels/idle/idle_rows.h"
#include "viewer/panels/idle/label_bars.h"
#include "viewer/panels/idle/path_view.h"
#include "viewer/tables/table.h"
#include "viewer/theme/theme.h"
#include "viewer/widgets/kept_model.h"
#include "viewer/widgets/segmented.h"
#include "viewer/widgets/toolbar.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::IdleDetails;
using traces::analysis::IdleReport;
using traces::analysis::RankIdle;
using traces::analysis::StreamIdleDetails;

constexpr std::size_t kMostGaps = 1000;  // the longest ones of each kind per stream

ImU32 busy_color() {
    return theme::kind_color(traces::store::DeviceKind::kernel);
}

LabelBar bar_of(const RankIdle& rank, bool chosen) {
    const traces::analysis::StreamIdle& device = rank.device;
    const double idle =
        device.span > 0 ? 100 * static_cast<double>(device.idle()) / static_cast<double>(device.span) : 0;
    LabelBar bar{
        fmt::format("Rank {}", rank.rank), fmt::format("{} idle", draw::format_percent(idle)), {}, chosen};
    bar.segments.push_back({static_cast<double>(device.busy), busy_color(), "Busy"});
    for (int k = 0; k < traces::analysis::kWaitsFor; ++k) {
        const auto what = static_cast<traces::analysis::WaitFor>(k);
        if (const traces::analysis::IdleWait* wait = device_wait(rank, what))
            bar.segments.push_back(
                {static_cast<double>(wait->ns), theme::wait_color(what), std::string(wait->title)});
    }
    return bar;
}

class IdlePanel final : public model::Panel {
  public:
    std::string_view name() const override { return "idle"; }

    void closed(const traces::store::Trace&, const model::TracePtr&) override { path_.forget(); }

    void draw(model::Session& session, const model::Frame&) override {
        static constexpr std::array<std::string_view, 2> kViews = {"Idle time", "Critical path"};
        widgets::draw_choosers(session);
        widgets::segmented("idle.view", kViews, view_);
        if (session.trace()->device.size() == 0) {
            return draw::note(model::why_empty("idle"));
        }
        ImGui::BeginChild("page");  // scrolls if the window is small
        view_ == 1 ? path_.draw(session) : draw_idle(session);
        ImGui::EndChild();
    }

  private:
    void draw_idle(model::Session& session) {
        const model::TracePtr trace = session.trace();
        const traces::analysis::Selection selection = model::Session::selection(*session.current());
        const auto report = session.analyses.analysis<IdleReport>(
            "idle", trace, selection,
            [](const traces::store::Trace& t, const traces::analysis::Selection& s) {
                IdleReport named = traces::analysis::idle_report(t, s);
                name_gaps(t, s, named);
                return named;
            });
        const auto details = session.analyses.analysis<IdleDetails>(
            "idle details", trace, selection,
            [](const traces::store::Trace& t, const traces::analysis::Selection& s) {
                return traces::analysis::idle_details(t, s, kMostGaps);
            });
        const auto waits = model::waits_of(session, trace);
        if (report == nullptr || details == nullptr || waits == nullptr)
            return widgets::draw_waiting(session, "the idle time");
        const RankIdle* rank = widgets::chosen_rank(report->ranks, session);
        const traces::analysis::RankIdleDetails* gaps = widgets::chosen_rank(details->ranks, session);
        if (rank == nullptr || gaps == nullptr || rank->device.events == 0)
            return draw::note("The current selection contains no event of this rank's device.");
        widgets::draw_limit_note(session);
        draw_ranks(session, *report, *rank);
        const std::size_t stream = draw_streams(report, *rank);
        draw_details(
            session, details, *waits, gaps->streams[std::min(stream, gaps->streams.size() - 1)],
            stream == 0 ? "all streams as one" : idle_stream_title(rank->streams[stream - 1], false));
    }

    static void draw_ranks(model::Session& session, const IdleReport& report, const RankIdle& rank) {
        draw::heading("Where the devices' time went, all streams of a rank as one");
        std::vector<draw::LegendItem> kinds = {{"Busy", busy_color()}};
        for (int k = 0; k < traces::analysis::kWaitsFor; ++k) {
            const auto what = static_cast<traces::analysis::WaitFor>(k);
            if (std::any_of(report.ranks.begin(), report.ranks.end(),
                            [what](const RankIdle& one) { return device_wait(one, what) != nullptr; }))
                kinds.push_back({std::string(title(what)), theme::wait_color(what)});
        }
        legend(kinds);
        std::vector<LabelBar> bars;
        double longest = 0;
        for (const RankIdle& one : report.ranks) {
            bars.push_back(bar_of(one, &one == &rank));
            longest = std::max(longest, static_cast<double>(one.device.span));
        }
        const float font = ImGui::GetFontSize();
        const float most = std::max(4.0F, std::floor(ImGui::GetContentRegionAvail().y / (font * 5.5F)));
        const float rows = std::min(static_cast<float>(bars.size()), most);
        const LabelBarsHit hit =
            draw_label_bars("idle.ranks", bars, longest, rows * font * 1.6F + font * 0.2F);
        if (hit.row) {
            const LabelBar& bar = bars[*hit.row];
            const draw::Segment& segment = bar.segments[*hit.segment];
            const auto span = static_cast<double>(report.ranks[*hit.row].device.span);
            draw::begin_tip(fmt::format("{}: {}", bar.label, segment.label));
            draw::tip_row("Time", draw::format_duration(segment.value), segment.color);
            draw::tip_row("Share", draw::format_percent(span > 0 ? 100 * segment.value / span : 0));
            for (const traces::analysis::IdleWait& wait : report.ranks[*hit.row].waits) {
                if (!wait.stream && wait.title == segment.label)
                    draw::tip_row("Longest for", draw::shorten_middle(wait.longest_for, 80));
            }
            draw::end_tip();
        }
        if (hit.clicked) session.choose_rank(report.ranks[*hit.clicked].rank);
    }

    // Returns the chosen row, which the rest of the page is about.
    std::size_t draw_streams(const std::shared_ptr<const IdleReport>& report, const RankIdle& rank) {
        draw::heading(fmt::format("Rank {}: its streams", rank.rank));
        const auto model =
            streams_model_.of(report, fmt::format("{}", rank.rank), [&] { return idle_stream_table(rank); });
        const float line = ImGui::GetTextLineHeight() + 2 * ImGui::GetStyle().CellPadding.y;
        const float rows = std::min(static_cast<float>(model->rows()), 6.0F);
        draw_table("idle.streams", model, streams_,
                   {.size = {0, line * (rows + 2.2F)}, .filter = false, .name = "idle_streams"});
        return std::min(streams_.chosen.value_or(0), rank.streams.size());
    }

    void draw_details(model::Session& session, const std::shared_ptr<const IdleDetails>& details,
                      const traces::analysis::TraceWaits& waits, const StreamIdleDetails& stream,
                      const std::string& title) {
        const float font = ImGui::GetFontSize();
        draw::heading(fmt::format("The longest gaps and the launches of {} (choose a stream above)", title));
        ImVec2 room = ImGui::GetContentRegionAvail();
        room.y = std::max(room.y, font * 17);  // the page scrolls if the window has less
        const bool beside = room.x > font * 36;
        const float charts = beside ? std::clamp(room.x * 0.4F, font * 20, font * 44) : room.x;
        const auto model =
            gaps_model_.of(details, fmt::format("{}/{}", session.rank.value, stream.stream.value),
                           [&] { return idle_gap_table(*session.trace(), waits, stream); });
        ImGui::BeginChild("gaps", {beside ? room.x - charts - font * 1.5F : 0, room.y});
        if (model->rows() == 0) {
            draw::note("There is no gap between its events.");
        } else {
            const tables::TableEvents events = draw_table("idle.gaps", model, gaps_, {.name = "idle_gaps"});
            if (const auto row = events.go_to()) go_to(session, stream.gaps[*row]);
        }
        ImGui::EndChild();
        if (beside) ImGui::SameLine(0, font * 1.5F);
        ImGui::BeginChild("launches", {0, room.y});
        const float gap = ImGui::GetStyle().ItemSpacing.y,
                    height = (ImGui::GetContentRegionAvail().y - gap) / 2;
        draw_histogram("idle.delays", "Launches by delay (call to start)", delay_histogram(stream),
                       draw::AxisUnit::count, theme::runtime_color(), {charts, height});
        draw_histogram("idle.queue", "Time by launches not yet started", queue_histogram(stream),
                       draw::AxisUnit::nanoseconds,
                       theme::time_category_color(traces::analysis::TimeCategory::cpu_exec),
                       {charts, height});
        ImGui::EndChild();
    }

    static void go_to(model::Session& session, const traces::analysis::IdleGap& gap) {
        const traces::store::RankIndex rank(
            session.trace()->device.rank[static_cast<std::size_t>(gap.event)]);
        session.go_to({gap.from, gap.to}, rank, {model::EventKind::device, gap.event});
    }

    int view_ = 0;
    PathView path_;
    tables::TableState streams_, gaps_;
    widgets::KeptModel streams_model_, gaps_model_;
};

}  // namespace

std::unique_ptr<model::Panel> make_idle_panel() {
    return std::make_unique<IdlePanel>();
}

}  // namespace shardscope::viewer::panels
