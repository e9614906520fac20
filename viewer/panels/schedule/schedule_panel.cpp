// Schedule: a pipeline's step, rank by rank over time: the plan above what ran, the bubble by cause, and the
// memory of each rank under the same time axis.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <imgui.h>

#include "traces/analysis/pipeline/pipeline.h"
#include "traces/store/columns/trace.h"
#include "traces/store/grouped.h"
#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/model/panel.h"
#include "viewer/model/session.h"
#include "viewer/model/why_empty.h"
#include "viewer/panels/schedule/schedule_chart.h"
#include "viewer/panels/schedule/schedule_memory.h"
#include "viewer/panels/schedule/schedule_rows.h"
#include "viewer/tables/table.h"
#include "viewer/theme/theme.h"
#include "viewer/widgets/kept_model.h"
#include "viewer/widgets/segmented.h"
#include "viewer/widgets/toolbar.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::IdleCause;
using traces::analysis::kComputeKinds;
using traces::analysis::PipelineReport;
using traces::analysis::PipelineTimeline;

constexpr std::size_t kMostPlannedRows = 24;  // thinner ones hardly show it
constexpr double kKeyZoom = 0.7, kKeyPan = 0.2;

std::string_view kind_name(int kind) {
    return kind < kComputeKinds ? traces::analysis::name(static_cast<traces::analysis::ComputeKind>(kind))
                                : traces::analysis::name(static_cast<IdleCause>(kind - kComputeKinds));
}

class SchedulePanel final : public model::Panel {
  public:
    std::string_view name() const override { return "schedule"; }

    void draw(model::Session& session, const model::Frame&) override {
        widgets::draw_choosers(session, false);
        const model::TracePtr trace = session.trace();
        const auto timeline = session.analyses.analysis<PipelineTimeline>(
            "pipeline timeline", trace, model::Session::selection(*session.current()),
            [](const auto& t, const auto& s) { return traces::analysis::pipeline_timeline(t, s); });
        if (timeline == nullptr) {
            draw::flow(ImGui::GetWindowWidth());
            return widgets::draw_waiting(session, "the pipeline's schedule");
        }
        if (timeline->steps.empty()) {
            draw::flow(ImGui::GetWindowWidth());
            return say_why_empty(session, *trace);
        }
        take(session, trace, timeline);
        draw_choices(session, *trace);
        widgets::draw_limit_note(session);
        widgets::draw_shown_ranks(*trace);
        draw_headline();
        if (part_ == Part::by_rank || part_ == Part::by_stage) return draw_tables(session);
        draw_legend();
        draw_picture(session);
    }

    void act(std::string_view action, model::Session& session) override {
        if (timeline_ == nullptr || session.trace() != trace_) return;
        if (action == "schedule_next") choose_step(1);
        if (action == "schedule_previous") choose_step(-1);
        if (action == "schedule_fit") fit();
        const std::int64_t length = visible_.length();
        if (action == "schedule_in") zoom(visible_.from + length / 2, kKeyZoom);
        if (action == "schedule_out") zoom(visible_.from + length / 2, 1 / kKeyZoom);
        if (action == "schedule_earlier") pan(-kKeyPan * static_cast<double>(length));
        if (action == "schedule_later") pan(kKeyPan * static_cast<double>(length));
    }

    void closed(const traces::store::Trace& trace, const model::TracePtr&) override {
        if (trace_.get() != &trace) return;
        *this = SchedulePanel();
    }

  private:
    enum Part { picture, by_rank, by_stage };  // indices of the buttons

    static void say_why_empty(const model::Session& session, const traces::store::Trace& trace) {
        if (session.current()->limit)
            return draw::note("No action of a pipeline begins in the time filter (Ctrl+L clears it).");
        if (trace.schedule.empty()) {
            return draw::note(model::why_empty("schedule"));
        }
        draw::note(model::why_empty("schedule.ran"));
    }

    // --- what is shown ---

    void take(model::Session& session, const model::TracePtr& trace,
              const std::shared_ptr<const PipelineTimeline>& timeline) {
        const bool other = timeline != timeline_;
        if (other) {
            if (trace_ != trace) {
                pipeline_.reset();
                step_ = -1;
                all_ = false;
            }
            trace_ = trace;
            timeline_ = timeline;
            steps_ = schedule_steps(*timeline);
            const auto kept = std::find(steps_.begin(), steps_.end(), step_);
            chosen_step_ = kept != steps_.end()
                               ? kept - steps_.begin()
                               : static_cast<std::int64_t>(steps_.size() / 2);  // a steady one
        }
        const std::int64_t step = steps_[static_cast<std::size_t>(chosen_step_)];
        const std::optional<std::size_t> pipeline =
            all_ ? std::nullopt
                 : std::optional(pipeline_.value_or(pipeline_of_rank(*timeline, session.rank)));
        if (!other && step == step_ && pipeline == shown_pipeline_) return;
        step_ = step;
        shown_pipeline_ = pipeline;
        view_ = schedule_view(*trace, *timeline, step, pipeline);
        memory_.forget();
        fit();
    }

    bool plan_shown() const { return planned_.value_or(view_.rows.size() <= kMostPlannedRows); }

    void choose_step(int by) {
        chosen_step_ =
            std::clamp<std::int64_t>(chosen_step_ + by, 0, static_cast<std::int64_t>(steps_.size()) - 1);
    }

    // --- time ---

    void fit() {
        const std::int64_t air = std::max<std::int64_t>(view_.makespan.length() / 200, 1);
        visible_ = {view_.makespan.from - air, view_.makespan.to + air};
    }
    model::TimeSpan whole() const {
        return {view_.makespan.from, std::max(view_.makespan.to, view_.makespan.from + 1)};
    }
    void zoom(std::int64_t anchor, double factor) {
        const model::TimeSpan next = zoomed({visible_.from, visible_.to}, whole(), anchor, factor);
        visible_ = {next.from, next.to};
    }
    void pan(double ns) {
        const model::TimeSpan next = panned({visible_.from, visible_.to}, whole(), std::llround(ns));
        visible_ = {next.from, next.to};
    }

    // --- the lines above the picture ---

    void draw_choices(const model::Session& session, const traces::store::Trace& trace) {
        const float gap = ImGui::GetFontSize();
        const auto button = [](const char* label, const char* item, const char* help) {
            const bool pressed = draw::named_button(label, item);
            if (ImGui::IsItemHovered()) ImGui::SetTooltip("%s", help);
            ImGui::SameLine(0, 2);
            return pressed;
        };
        if (!trace.steps.empty()) {
            if (button("<", "schedule.previous", "Previous step (,)")) choose_step(-1);
            if (button(">", "schedule.next", "Next step (.)")) choose_step(1);
            ImGui::SameLine(0, gap * 0.4F);
            ImGui::AlignTextToFramePadding();
            draw::text(fmt::format("Step {}", step_));
            draw::items::mark("schedule.step", fmt::format("{}", step_));
            ImGui::SameLine(0, gap);
        }
        if (timeline_->pipelines.size() > 1) {
            choose_pipeline(session);
            ImGui::SameLine(0, gap);
        }
        static constexpr std::string_view kParts[] = {"Ranks over time", "By rank", "By stage"};
        widgets::segmented("schedule.show", kParts, part_);
        if (part_ == Part::picture && view_.planned_ns > 0) {
            ImGui::SameLine(0, gap);
            bool planned = plan_shown();
            if (widgets::toggle_button("schedule.plan", "Plan above", planned)) planned_ = planned;
        }
    }

    void choose_pipeline(const model::Session& session) {
        const std::size_t now = pipeline_.value_or(pipeline_of_rank(*timeline_, session.rank));
        const std::string all = fmt::format("All {} pipelines", timeline_->pipelines.size());
        ImGui::SetNextItemWidth(ImGui::GetFontSize() * 14);
        const std::string& shown = all_ ? all : timeline_->pipelines[now];
        if (!ImGui::BeginCombo("##pipeline", draw::fit_in_combo(shown, ImGui::GetFontSize() * 14).c_str())) {
            draw::items::mark("schedule.pipeline", shown);
            return;
        }
        if (ImGui::Selectable(all.c_str(), all_)) all_ = true;
        draw::items::mark("schedule.pipeline.all", all);
        for (std::size_t p = 0; p < timeline_->pipelines.size(); ++p) {
            if (ImGui::Selectable(timeline_->pipelines[p].c_str(), !all_ && p == now)) {
                pipeline_ = p;
                all_ = false;
            }
            draw::items::mark(fmt::format("schedule.pipeline.{}", p), timeline_->pipelines[p]);
        }
        ImGui::EndCombo();
    }

    void draw_headline() const {
        const float font = ImGui::GetFontSize();
        const ImVec2 at = ImGui::GetCursorPos();
        const std::string bubble = draw::format_percent(view_.bubble_percent());
        widgets::big_number(bubble);
        const float right = at.x + ImGui::GetItemRectSize().x + font;
        ImGui::SetCursorPos({right, at.y + font * 0.05F});
        std::string line =
            fmt::format("of {} \u00d7 makespan is bubble; makespan {}",
                        traces::store::counted(static_cast<std::int64_t>(view_.rows.size()), "rank", "ranks"),
                        draw::format_duration(static_cast<double>(view_.makespan.length())));
        if (view_.planned_ns > 0)
            line += fmt::format("; the plan alone, at these mean times and without transfers, {}",
                                draw::format_duration(static_cast<double>(view_.planned_ns)));
        ImGui::BeginGroup();
        draw::wrapped(line);
        std::string causes;
        for (int cause = 0; cause < traces::analysis::kIdleCauses; ++cause) {
            causes += fmt::format("{}{} {}", causes.empty() ? "" : ", ", kind_name(kComputeKinds + cause),
                                  draw::format_percent(view_.share_percent(kComputeKinds + cause)));
            draw::items::value(fmt::format("schedule.bubble.{}", kind_name(kComputeKinds + cause)),
                               draw::format_percent(view_.share_percent(kComputeKinds + cause)));
        }
        if (!view_.planned) causes += "; the trace has no plan (SHARD_SCHEDULE)";
        if (!view_.in_planned_order) causes += "; some rank left the planned order";
        draw::note(causes);
        ImGui::EndGroup();
        ImGui::SetCursorPos({at.x, std::max(at.y + font * 2.4F, ImGui::GetCursorPosY())});
        draw::items::value("schedule.bubble", bubble);
        draw::items::value("schedule.makespan",
                           draw::format_duration(static_cast<double>(view_.makespan.length())));
    }

    void draw_legend() const {
        std::vector<draw::LegendItem> items;
        bool second = false;
        for (const ScheduleRow& row : view_.rows)
            second = second || row.stages.find(',') != std::string::npos;
        for (int kind = 0; kind < kSpanKinds; ++kind) {
            if (view_.ns[static_cast<std::size_t>(kind)] == 0) continue;
            items.push_back({std::string(kind_name(kind)), span_color(kind)});
        }
        if (second) items.push_back({"darker: another stage of the rank", span_color(0, true)});
        legend(items);
    }

    // --- rows and memory, on one time axis ---

    void draw_picture(model::Session& session) {
        const float font = ImGui::GetFontSize();
        const ImVec2 at = ImGui::GetCursorScreenPos(), room = ImGui::GetContentRegionAvail();
        const float figures = std::min(font * 15, room.x * 0.2F);
        ScheduleChart::Input input;
        input.view = &view_;
        input.planned = plan_shown();
        input.chosen_rank = trace_->ranks[std::min(session.rank.at(), trace_->ranks.size() - 1)].number;
        input.visible = visible_;
        const float names = std::min(ScheduleChart::names_width(view_), room.x * 0.3F);
        input.left = std::floor(at.x + names);
        input.right = std::max(input.left + font, std::floor(at.x + room.x - figures));
        memory_.gather(session, timeline_, view_);
        // The memory takes what few rows leave.
        float below = memory_.is_known() ? std::clamp(room.y * 0.3F, font * 8, font * 16) : font * 1.6F;
        float height = std::max(font * 4, room.y - below);
        if (memory_.is_known()) {
            height = ScheduleChart::used_height(input, height);
            below = std::max(below, room.y - height);
        }
        const ScheduleChart::Events events = chart_.draw(input, height);
        ImGui::SetCursorScreenPos({at.x, at.y + height + font * 0.3F});
        bool hovered = events.hovers_lanes;
        float dragged = events.dragged;
        if (memory_.is_known()) {
            const ScheduleMemory::Events over = memory_.draw(view_, visible_, {input.left, input.right},
                                                             input.chosen_rank, below - font * 0.5F);
            hovered = hovered || over.hovered;
            dragged += over.dragged;
        } else {
            draw::note(memory_.why_unknown());
        }
        take_mouse(hovered, dragged, input.left, input.right - input.left);
        if (events.clicked) take_click(session, events);
    }

    void take_mouse(bool hovered, float dragged, float left, float width) {
        const ImGuiIO& io = ImGui::GetIO();
        const double ns = static_cast<double>(visible_.length()) / std::max(1.0F, width);
        if (dragged != 0) pan(-static_cast<double>(dragged) * ns);
        if (!hovered) return;
        if (io.MouseWheelH != 0) pan(-static_cast<double>(io.MouseWheelH) * ns * width / 10);
        if (io.MouseWheel != 0 && !io.KeyShift)
            zoom(visible_.from + std::llround(static_cast<double>(io.MousePos.x - left) * ns),
                 std::pow(io.KeyCtrl ? 0.95 : model::kWheelStep, static_cast<double>(io.MouseWheel)));
    }

    // A computation leads to its event, idle time to itself, a name chooses the rank.
    void take_click(model::Session& session, const ScheduleChart::Events& events) const {
        const traces::store::RankIndex rank = events.row->row->rank;
        session.rank = rank;
        if (events.span == nullptr) return;
        if (events.span->is_idle()) return session.go_to({events.span->start, events.span->end}, rank);
        const traces::analysis::PipelineCell& cell =
            events.row->row->cells[static_cast<std::size_t>(events.span->cell)].cell;
        const model::SelectedEvent event =
            cell.event >= 0 ? model::SelectedEvent{model::EventKind::device, cell.event}
                            : model::SelectedEvent{model::EventKind::range, cell.host_range};
        session.go_to({cell.start(), cell.end()}, rank, event);
    }

    // --- the verb's tables, of this step and all pipelines ---

    // None while it is being computed.
    std::shared_ptr<const PipelineReport> report(model::Session& session) const {
        traces::analysis::Selection selection = model::Session::selection(*session.current());
        selection.first_step = selection.last_step = step_;
        const auto limit = session.current()->limit.value_or(model::TimeRange{});
        return session.analyses.derived<PipelineReport>(
            fmt::format("pipeline report/{}/{}:{}", step_, limit.from, limit.to), {trace_},
            [selection, timeline = timeline_](const auto& t) {
                return sum_pipeline(*t.front(), *timeline, selection);
            });
    }

    void draw_tables(model::Session& session) {
        report_ = report(session);
        if (report_ == nullptr) return widgets::draw_waiting(session, "the pipeline's tables");
        const std::string of =
            (trace_->steps.empty() ? std::string("The whole time") : fmt::format("Step {}", step_)) +
            (timeline_->pipelines.size() > 1 ? " of all pipelines" : "");
        if (part_ == Part::by_rank) {
            draw::heading(of + " by rank; idle = warm-up + peer + transfer + host + imbalance + drain");
            const auto model = ranks_.of(report_, "", [&] { return pipeline_rank_table(*report_); });
            const auto events = draw_table("schedule.ranks", model, ranks_state_,
                                           {.filter = false, .name = "pipeline by rank"});
            if (events.clicked) session.choose_rank(report_->ranks[*events.clicked].rank);
            return;
        }
        const float half = ImGui::GetContentRegionAvail().y * 0.5F;
        draw::heading(of + ": computations by stage");
        const auto work = stages_.of(report_, "", [&] { return stage_work_table(*report_); });
        const auto events = draw_table("schedule.stages", work, stages_state_,
                                       {.size = {0, half}, .filter = false, .name = "pipeline by stage"});
        if (events.clicked) session.choose_rank(report_->stages[*events.clicked].rank);
        draw::heading(of + ": what the chunks in flight of a stage keep");
        const auto memory = memories_.of(report_, "", [&] { return stage_memory_table(*report_); });
        const auto kept = draw_table("schedule.kept", memory, memories_state_,
                                     {.filter = false, .name = "memory in flight by stage"});
        if (kept.clicked) session.choose_rank(report_->memory[*kept.clicked].rank);
    }

    model::TracePtr trace_;
    std::shared_ptr<const PipelineTimeline> timeline_;
    std::vector<std::int64_t> steps_;
    std::int64_t chosen_step_ = -1;        // index into steps_
    std::optional<std::size_t> pipeline_;  // chosen; none: that of the session's rank
    bool all_ = false;                     // all pipelines
    std::int64_t step_ = -1;               // shown, as the next two
    std::optional<std::size_t> shown_pipeline_;
    ScheduleView view_;
    std::shared_ptr<const PipelineReport> report_;  // of the step; null where no table has needed it
    model::TimeRange visible_;
    int part_ = Part::picture;
    std::optional<bool> planned_;  // draw the plan; none: if there is room for it
    ScheduleChart chart_;
    ScheduleMemory memory_;
    widgets::KeptModel ranks_, stages_, memories_;
    tables::TableState ranks_state_, stages_state_, memories_state_;
};

}  // namespace

std::unique_ptr<model::Panel> make_schedule_panel() {
    return std::make_unique<SchedulePanel>();
}

}  // namespace shardscope::viewer::panels
