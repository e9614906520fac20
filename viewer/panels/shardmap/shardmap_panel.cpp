// The shard map: where the parameters of every FSDP unit are on every rank at the cursor's time, above the
// memory curve of the chosen rank; scrubbed with the mouse, stepped with keys, or played.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <imgui.h>

#include "viewer/draw/chart.h"
#include "viewer/draw/fold.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/model/panel.h"
#include "viewer/model/session.h"
#include "viewer/model/why_empty.h"
#include "viewer/panels/shardmap/shard_grid.h"
#include "viewer/panels/shardmap/shard_rows.h"
#include "viewer/theme/theme.h"
#include "viewer/widgets/segmented.h"
#include "viewer/widgets/toolbar.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::MemoryPoint;
using traces::analysis::ShardState;
using traces::analysis::ShardStates;
using traces::store::RankIndex;
using traces::store::UnitIndex;

constexpr double kChangesASecond = 4;  // while it plays

class ShardMapPanel final : public model::Panel {
  public:
    std::string_view name() const override { return "shardmap"; }

    void draw(model::Session& session, const model::Frame& frame) override {
        widgets::draw_choosers(session);
        const model::TracePtr trace = session.trace();
        const auto states = session.analyses.analysis<ShardStates>(
            "shard_states", trace, {},
            [](const auto& t, const auto&) { return traces::analysis::shard_states(t); });
        const auto summary = session.analyses.summary(trace);
        const auto curve = session.analyses.category_curve(trace, session.rank);
        if (states == nullptr || summary == nullptr || curve == nullptr) {
            draw::flow(ImGui::GetWindowWidth());
            return widgets::draw_waiting(session, "the states of the units");
        }
        if (!any_states(*trace, *states)) {
            draw::flow(ImGui::GetWindowWidth());
            return say_why_empty(*trace, *states);
        }
        take(session, states, curve);
        take_steps(session, summary);
        update_view(session);
        draw_transport(session, frame);
        draw_moment(*trace, session);
        widgets::draw_limit_note(session);
        draw_legend();
        draw_map(session);
    }

    void closed(const traces::store::Trace& trace, const model::TracePtr&) override {
        if (trace_.get() != &trace) return;
        trace_.reset();
        states_.reset();
        source_.reset();
        curve_.reset();
        summary_.reset();
    }

    void act(std::string_view action, model::Session& session) override {
        if (states_ == nullptr || session.trace() != trace_) return;
        if (action == "shard_next") step_to(session, next_change(times_, cursor(session)));
        if (action == "shard_previous") step_to(session, previous_change(times_, cursor(session)));
        if (action == "shard_play") playing_ = !playing_;
    }

  private:
    // Our own traces record DDP's buckets as units too, but these are never sharded.
    static bool any_states(const traces::store::Trace& trace, const ShardStates& states) {
        return states.any_collective && states.ranks > 0 && trace.config_value("parallel.mode") != "ddp";
    }

    static void say_why_empty(const traces::store::Trace& trace, const ShardStates& states) {
        if (trace.config_value("parallel.mode") == "ddp") {
            return draw::note(model::why_empty("shardmap.ddp"));
        }
        if (!states.units.empty()) {
            return draw::note(model::why_empty("shardmap.collectives"));
        }
        draw::note(model::why_empty("shardmap"));
    }

    // --- what is shown ---

    void take(model::Session& session, const std::shared_ptr<const ShardStates>& states,
              const std::shared_ptr<const draw::CategoryCurve>& curve) {
        const bool other_trace = trace_ != session.trace();
        if (!other_trace && rank_ == session.rank && states_ == states && source_ == curve) return;
        trace_ = session.trace();
        states_ = states;
        source_ = curve_ = curve;
        rank_ = RankIndex(std::min(session.rank.at(), states->ranks - 1));
        times_ = change_times(*states, rank_);
        lanes_.clear();
        for (std::size_t u = 0; u < states->units.size(); ++u)
            lanes_.emplace_back(states->of(rank_, UnitIndex(u)));
        grid_.forget();
        inferred_ = curve->points.empty();
        if (inferred_) {
            curve_ = std::make_shared<const draw::CategoryCurve>(
                draw::category_curve(whole_parameters_curve(*states, rank_)));
        }
        top_ = curve_->most_total;
        for (std::size_t c = 0; c < used_.size(); ++c) used_[c] = curve_->most[c] > 0;
        folded_of_ = {};
        shares_ = ShardShares(*trace_, *states);
        if (!other_trace) return;
        view_.start();
        summary_ = nullptr;
        unit_ = {};
        playing_ = false;
    }

    void take_steps(const model::Session& session,
                    const std::shared_ptr<const traces::analysis::ExecutionSummary>& summary) {
        if (summary_ == summary && steps_rank_ == session.rank) return;
        summary_ = summary;
        steps_rank_ = session.rank;
        const traces::analysis::RankSummary* rank = widgets::chosen_rank(summary->ranks, session);
        view_.set_steps(rank != nullptr ? step_times(*trace_, *rank) : std::vector<StepTime>());
    }

    // --- time ---

    model::TimeRange bounds(const model::Session& session) const {
        if (const auto limit = session.current()->limit) return *limit;
        return {trace_->first_ns, std::max(trace_->last_ns, trace_->first_ns + 1)};
    }

    std::int64_t cursor(const model::Session& session) const {
        return session.current()->cursor.value_or(view_.range().from);
    }

    void update_view(model::Session& session) {
        model::OpenTrace& entry = *session.current();
        const model::TimeRange all = bounds(session);
        if (!entry.cursor) {  // until the user chooses a moment
            const model::TimeRange part = view_.middle_step(all);
            entry.cursor = busiest_moment(*states_, rank_, times_, part.from, part.to);
        }
        entry.cursor = std::clamp(*entry.cursor, all.from, all.to - 1);
        view_.update(all, entry.visible, *entry.cursor);
    }

    void step_to(model::Session& session, std::optional<std::int64_t> time) {
        const model::TimeRange all = bounds(session);
        if (!time || *time < all.from || *time >= all.to) return;
        session.current()->cursor = time;
        view_.follow(*time);
    }

    void take_wheel(const model::Session& session, float left, float right) {
        const ImGuiIO& io = ImGui::GetIO();
        if (io.MouseWheelH != 0 || (io.MouseWheel != 0 && io.KeyShift)) {
            view_.pan(bounds(session),
                      0.1 * static_cast<double>(io.KeyShift ? -io.MouseWheel : io.MouseWheelH));
        } else if (io.MouseWheel != 0) {
            view_.zoom(bounds(session), (io.MousePos.x - left) / std::max(1.0F, right - left), io.MouseWheel);
        }
    }

    // --- the lines above the map ---

    void draw_transport(model::Session& session, const model::Frame& frame) {
        const auto button = [](const char* label, const char* item, const char* help) {
            const bool pressed = draw::named_button(label, item);
            if (ImGui::IsItemHovered()) ImGui::SetTooltip("%s", help);
            ImGui::SameLine(0, 2);
            return pressed;
        };
        if (button("<", "shardmap.previous", "Previous change of state (Left)"))
            act("shard_previous", session);
        if (button(playing_ ? "Stop" : "Play", "shardmap.play", "Change by change (Space)"))
            act("shard_play", session);
        if (button(">", "shardmap.next", "Next change of state (Right)")) act("shard_next", session);
        ImGui::SameLine(0, ImGui::GetFontSize());
        static constexpr std::string_view kParts[] = {"Step", "As timeline", "Everything"};
        widgets::segmented("shardmap.show", kParts, view_.mode);
        if (!playing_ || frame.headless) return;
        session.animating = true;
        if (frame.seconds - played_ < 1 / kChangesASecond) return;
        played_ = frame.seconds;
        const std::optional<std::int64_t> next = next_change(times_, cursor(session));
        if (!next || *next >= bounds(session).to) playing_ = false;
        step_to(session, next);
    }

    void draw_moment(const traces::store::Trace& trace, const model::Session& session) const {
        const std::int64_t now = cursor(session);
        const ShardCounts counts = counts_at(*states_, rank_, now);
        const StepTime* step = view_.step_at(now);
        std::string line = draw::format_duration(static_cast<double>(now));
        if (step != nullptr) {
            line +=
                fmt::format(", {} into step {}",
                            draw::format_duration(static_cast<double>(now - step->time.from)), step->number);
        }
        line += fmt::format("    Rank {}: of {} unit{} the device holds {} whole or arriving, {}",
                            trace.ranks[rank_.at()].number, states_->units.size(),
                            states_->units.size() == 1 ? "" : "s", counts.whole,
                            draw::format_size(counts.whole_bytes));
        if (states_->allocations) line += fmt::format("; the host program {}", counts.allocated);
        draw::wrapped(line);
        if (const std::string share = shares_.sentence(rank_); !share.empty()) {
            draw::note(share);
            draw::items::value("shardmap.share", share);
        }
        draw::items::value("shardmap.cursor", fmt::format("{}", now));
        draw::items::value("shardmap.whole", fmt::format("{}", counts.whole));
        draw::items::value("shardmap.allocated", fmt::format("{}", counts.allocated));
    }

    void draw_legend() const {
        std::vector<draw::LegendItem> items;
        constexpr std::array<std::string_view, traces::analysis::kShardStates> kMeanings = {
            "sharded",     "gathering (G)", "full (F)", "computing (C)", "freed, gradient waits (\u00b7)",
            "reducing (R)"};
        for (std::size_t s = 0; s < kMeanings.size(); ++s)
            items.push_back({std::string(kMeanings[s]), theme::shard_color(static_cast<ShardState>(s))});
        if (shares_.divides_units())
            items.push_back({"outlined: only other stages have it", draw::faded(theme::line(), 0.7F)});
        if (states_->allocations) items.push_back({"line below: held by the host program", theme::text()});
        legend(items);
    }

    // --- map and curve, on one time axis ---

    void draw_map(model::Session& session) {
        const float font = ImGui::GetFontSize();
        const ImVec2 at = ImGui::GetCursorScreenPos();
        const ImVec2 room = ImGui::GetContentRegionAvail();
        ShardGrid::Input input;
        input.trace = trace_.get();
        input.states = states_.get();
        input.lanes = &lanes_;
        input.rank = rank_;
        input.shares = &shares_;
        input.from = view_.range().from;
        input.to = view_.range().to;
        input.cursor = cursor(session);
        input.selected_unit = selected_unit(session);
        const float left = ShardGrid::left_width(input, room.x);
        const float chart_height = std::max(font * 7, room.y * 0.32F);
        const float grid_height = std::min(std::max(font * 5, room.y - chart_height - font),
                                           font * (3 * static_cast<float>(lanes_.size()) + 1.5F));
        const float bar =
            ShardGrid::scrolls(lanes_.size(), grid_height) ? ImGui::GetStyle().ScrollbarSize : 0;
        ImGui::SetCursorScreenPos({at.x, at.y + grid_height + font * 0.4F});
        draw_caption();
        // The chart first: the lanes are aligned with its axis.
        const float top = ImGui::GetCursorScreenPos().y;
        ImGui::SetCursorScreenPos({at.x + left - font * 1.5F, top});
        const draw::Chart chart =
            draw_curve(session, {room.x - left + font * 1.5F - bar, std::max(font * 4, at.y + room.y - top)});
        input.lanes_left = chart.min.x;
        input.lanes_right = chart.max.x;
        ImGui::SetCursorScreenPos(at);
        const ShardGrid::Events events = grid_.draw(input, grid_height);
        if (events.hovers_lanes || chart.hovered) take_wheel(session, chart.min.x, chart.max.x);
        take_events(session, events);
        ImGui::SetCursorScreenPos({at.x, at.y + room.y});
        ImGui::Dummy({0, 0});
    }

    // The curve's subject, with its categories from the bottom up.
    void draw_caption() const {
        draw::note(inferred_ ? "Whole parameters, from the states above: this trace records no allocations."
                             : "Allocated memory of the rank, in the order of its host program:");
        if (inferred_) return;
        std::vector<draw::LegendItem> items;
        for (std::size_t c = 0; c < used_.size(); ++c) {
            if (used_[c])
                items.push_back({draw::spaced(traces::schema::kMemoryCategoryNames[c]),
                                 theme::category_color(static_cast<traces::schema::MemoryCategory>(c))});
        }
        legend(items);
    }

    draw::Chart draw_curve(model::Session& session, ImVec2 size) {
        const draw::ChartAxes axes{static_cast<double>(view_.range().from),
                                   static_cast<double>(view_.range().to),
                                   draw::axis_top(static_cast<double>(top_)) * 1.04};
        const draw::Chart chart = begin_chart("curve", size, axes);
        const bool active = ImGui::IsItemActive();
        const int columns = std::max(1, static_cast<int>(chart.width() / 2));
        if (const FoldedOf wanted{view_.range(), columns}; folded_of_ != wanted) {
            columns_ = fold_curve(*curve_, view_.range().from, view_.range().to, columns);
            folded_of_ = wanted;
        }
        draw::CategoryColors colors{};
        for (std::size_t c = 0; c < colors.size(); ++c)
            colors[c] = theme::category_color(static_cast<traces::schema::MemoryCategory>(c));
        stacked_area(chart, columns_, colors);
        marker_line(chart, static_cast<double>(cursor(session)), theme::peak(), "");
        draw::items::place("shardmap.curve", chart.min, chart.max);
        if (active) scrub(session, static_cast<std::int64_t>(chart.x.value(ImGui::GetIO().MousePos.x)));
        if (chart.hovered) curve_tip(static_cast<std::int64_t>(chart.x.value(ImGui::GetIO().MousePos.x)));
        return chart;
    }

    void curve_tip(std::int64_t time) const {
        const MemoryPoint* point = draw::point_at(curve_->points, time);
        draw::begin_tip(draw::format_duration(static_cast<double>(time)));
        draw::tip_row(inferred_ ? "Whole parameters" : "Allocated",
                      draw::format_mb(point != nullptr ? point->total : 0));
        for (std::size_t c = traces::schema::kMemoryCategories; point != nullptr && !inferred_ && c-- > 0;) {
            if (point->bytes[c] == 0) continue;
            draw::tip_row(draw::spaced(traces::schema::kMemoryCategoryNames[c]),
                          draw::format_mb(point->bytes[c]),
                          theme::category_color(static_cast<traces::schema::MemoryCategory>(c)));
        }
        draw::end_tip();
    }

    void scrub(model::Session& session, std::int64_t time) {
        const model::TimeRange all = bounds(session);
        time = std::clamp(time, view_.range().from, view_.range().to - 1);  // drags stay in the visible range
        session.current()->cursor = std::clamp(time, all.from, all.to - 1);
        playing_ = false;
    }

    // Session::selected_unit is one of Trace::units; if the trace has none the panel keeps its own.
    UnitIndex selected_unit(const model::Session& session) const {
        return trace_->units.empty() ? unit_ : session.selected_unit;
    }

    void take_events(model::Session& session, const ShardGrid::Events& events) {
        if (events.unit.known()) (trace_->units.empty() ? unit_ : session.selected_unit) = events.unit;
        if (events.scrub) scrub(session, *events.scrub);
        if (events.opened) {
            const auto event = static_cast<std::size_t>(*events.opened);
            session.go_to({trace_->device.start[event], trace_->device.end[event]},
                          RankIndex(trace_->device.rank[event]), {model::EventKind::device, *events.opened});
        } else if (events.rank.known()) {
            session.rank = events.rank;
        }
    }

    struct FoldedOf {
        model::TimeRange range;
        int columns = 0;
        bool operator==(const FoldedOf&) const = default;
    };
    model::TracePtr trace_;
    std::shared_ptr<const ShardStates> states_;
    std::shared_ptr<const draw::CategoryCurve> source_, curve_;
    bool inferred_ = false;  // the curve was inferred from the states
    RankIndex rank_;
    UnitIndex unit_;
    std::vector<std::int64_t> times_;
    std::vector<StateLane> lanes_;
    ShardShares shares_;
    std::int64_t top_ = 0;
    std::array<bool, traces::schema::kMemoryCategories> used_{};  // the curve's categories
    std::shared_ptr<const traces::analysis::ExecutionSummary> summary_;
    RankIndex steps_rank_;
    ShardView view_;
    bool playing_ = false;
    double played_ = 0;
    FoldedOf folded_of_;
    std::vector<draw::FoldedColumn> columns_;
    ShardGrid grid_;
};

}  // namespace

std::unique_ptr<model::Panel> make_shardmap_panel() {
    return std::make_unique<ShardMapPanel>();
}

}  // namespace shardscope::viewer::panels
