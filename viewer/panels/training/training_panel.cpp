// Training: what each run reports about its training, a card for each metric with a curve for each open run.
//
// For scripts: "training.over.<steps|samples|time>", "training.smooth.<raw|exponential|moving_average>",
// "training.smooth.amount", "training.log", "training.whole" (after a drag), "training.run.<n>" as in
// Compare;
// each card as training_chart.h says.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <imgui.h>

#include "traces/analysis/training/metrics.h"
#include "traces/schema/json_text.h"
#include "traces/schema/text.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/model/panel.h"
#include "viewer/model/rank_steps.h"
#include "viewer/model/session.h"
#include "viewer/model/why_empty.h"
#include "viewer/panels/compare/compare_runs.h"
#include "viewer/panels/training/training_chart.h"
#include "viewer/panels/training/training_rows.h"
#include "viewer/theme/theme.h"
#include "viewer/widgets/segmented.h"
#include "viewer/widgets/toolbar.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::MetricsReport;

constexpr std::array<std::string_view, 3> kOver = {"Steps", "Samples", "Time"};
constexpr std::array<std::string_view, 3> kSmooth = {"Raw", "Exponential", "Moving average"};
constexpr double kLargestWeight = 0.995;
constexpr int kLargestWindow = 500;

// What the charts are made from.
struct Made {
    std::vector<std::shared_ptr<const MetricsReport>> reports;  // by run
    std::vector<int> ranks;
    int over = 0;
    bool operator==(const Made&) const = default;
};

class TrainingPanel final : public model::Panel {
  public:
    std::string_view name() const override { return "training"; }
    bool needs_timeline() const override { return false; }  // another open file may have one

    // A list of words; runs are named by their place among the open ones.
    std::string content(const model::Session& session) const override {
        std::vector<std::string> words;
        if (over_ != 0) words.emplace_back(kOver[static_cast<std::size_t>(over_)]);
        if (smooth_ == 1) words.push_back(fmt::format("weight {}", smoothing_.weight));
        if (smooth_ == 2) words.push_back(fmt::format("window {}", smoothing_.window));
        if (log_) words.emplace_back("log");
        for (std::size_t i = 0; i < session.open.size(); ++i) {
            const model::TracePtr& trace = session.open[i].trace;
            if (trace != nullptr && !choice_.shown(trace)) words.push_back(fmt::format("hidden {}", i));
        }
        return words.empty() ? "" : traces::schema::dump_strings(words);
    }
    void show_content(std::string_view text, model::Session& session) override {
        choice_ = {};
        over_ = smooth_ = 0;
        smoothing_ = {};
        log_ = false;
        zoom_.reset();
        for (const std::string& word :
             traces::schema::json_strings(text).value_or(std::vector<std::string>{})) {
            for (std::size_t i = 0; i < kOver.size(); ++i) {
                if (word == kOver[i]) over_ = static_cast<int>(i);
            }
            if (word == "log") log_ = true;
            const std::string_view figure = std::string_view(word).substr(word.find(' ') + 1);
            if (const auto weight = traces::schema::number_of<double>(figure);
                word.starts_with("weight ") && weight && *weight >= 0 && *weight <= kLargestWeight) {
                smooth_ = 1;
                smoothing_.weight = *weight;
            }
            const auto number = traces::schema::number_of<int>(figure);
            if (word.starts_with("window ") && number && *number >= 1 && *number <= kLargestWindow) {
                smooth_ = 2;
                smoothing_.window = *number;
            }
            if (word.starts_with("hidden ") && number && *number >= 0 &&
                static_cast<std::size_t>(*number) < session.open.size())
                choice_.show(session.open[static_cast<std::size_t>(*number)].trace, false);
        }
    }

    void closed(const traces::store::Trace&, const model::TracePtr&) override {
        made_ = {};
        metrics_.clear();
        zeros_.clear();
        charts_.clear();
        cards_.clear();
    }

    void draw(model::Session& session, const model::Frame&) override {
        const ComparedRuns runs = choice_.runs(session);
        if (session.ready().empty())
            return draw::note("Only plans are open, and they have no training. Open the trace of a run.");
        if (session.ready().size() > 1) draw_run_checks(session, choice_, runs, "training.run", false);
        if (runs.traces.empty()) return draw::note("No run is chosen.");
        if (!make(session, runs)) return widgets::draw_waiting(session, "the metrics");
        if (charts_.empty()) return draw_nothing();
        draw_toolbar(session);
        draw_cards(session, runs);
    }

  private:
    static void draw_nothing() { draw::note(model::why_empty("training")); }

    // False while an analysis is computed.
    bool make(model::Session& session, const ComparedRuns& runs) {
        const model::TracePtr active = session.trace();
        const std::size_t at = session.rank.at();
        const int rank = active != nullptr && at < active->ranks.size() ? active->ranks[at].number : 0;
        Made made{.reports = {}, .ranks = {}, .over = over_};
        for (std::size_t r = 0; r < runs.traces.size(); ++r) {
            made.reports.push_back(session.analyses.analysis<MetricsReport>(
                "metrics", runs.traces[r], runs.selections[r],
                [](const traces::store::Trace& trace, const traces::analysis::Selection& selection) {
                    return traces::analysis::metrics_report(trace, selection);
                }));
            made.ranks.push_back(rank);
        }
        if (std::find(made.reports.begin(), made.reports.end(), nullptr) != made.reports.end()) return false;
        const bool same = version_ > 0 && made == made_ && !made_.reports.empty();
        if (!same) place(std::move(made), runs);
        Smoothing smoothing = smoothing_;
        smoothing.how = static_cast<Smooth>(smooth_);
        if (same && smoothing == smoothed_) return true;
        smooth_charts(charts_, smoothing);
        smoothed_ = smoothing;
        ++version_;
        return true;
    }

    // The curves, in order; they are not yet smoothed.
    void place(Made made, const ComparedRuns& runs) {
        if (made.over != made_.over) zoom_.reset();
        metrics_.clear();
        zeros_.clear();
        by_rank_ = false;
        for (std::size_t r = 0; r < made.reports.size(); ++r) {
            metrics_.push_back({made.reports[r].get(), made.ranks[r], steps_of_run(*runs.traces[r])});
            zeros_.push_back(metrics_.back().zero());
            for (const traces::analysis::MetricCurve& curve : made.reports[r]->curves)
                by_rank_ |= curve.rank >= 0;
        }
        charts_ = metric_charts(metrics_, static_cast<Over>(over_));
        cards_.resize(charts_.size());
        made_ = std::move(made);
    }

    void draw_toolbar(model::Session& session) {
        const float font = ImGui::GetFontSize();
        if (by_rank_) widgets::draw_choosers(session);
        label("Over");
        widgets::segmented("training.over", kOver, over_);
        ImGui::SameLine(0, font);
        widgets::segmented("training.smooth", kSmooth, smooth_);
        if (smooth_ != 0) draw_amount();
        ImGui::SameLine(0, font);
        widgets::toggle_button("training.log", "Log", log_);
        if (ImGui::IsItemHovered()) ImGui::SetTooltip("A logarithmic axis for the values of every metric.");
        if (!zoom_) return;
        ImGui::SameLine(0, font);
        draw::flow(draw::button_width("Whole"));
        if (draw::named_button("Whole", "training.whole")) zoom_.reset();
    }
    static void label(const char* text) {
        ImGui::AlignTextToFramePadding();
        ImGui::TextDisabled("%s", text);
        ImGui::SameLine();
    }

    void draw_amount() {
        const float font = ImGui::GetFontSize();
        ImGui::SameLine(0, font * 0.5F);
        draw::flow(font * 11);
        ImGui::SetNextItemWidth(font * 11);
        // The number is drawn over the grab.
        ImGui::PushStyleColor(ImGuiCol_SliderGrab, draw::faded(theme::accent(), 0.45F));
        std::string shown;
        if (smooth_ == 1) {
            auto weight = static_cast<float>(smoothing_.weight);
            if (ImGui::SliderFloat("##weight", &weight, 0, static_cast<float>(kLargestWeight), "weight %.3f"))
                smoothing_.weight = std::clamp(static_cast<double>(weight), 0.0, kLargestWeight);
            shown = fmt::format("{:.3f}", smoothing_.weight);
        } else {
            if (ImGui::SliderInt("##window", &smoothing_.window, 2, kLargestWindow, "%d values",
                                 ImGuiSliderFlags_Logarithmic))
                smoothing_.window = std::clamp(smoothing_.window, 1, kLargestWindow);
            shown = fmt::format("{}", smoothing_.window);
        }
        ImGui::PopStyleColor();
        draw::items::mark("training.smooth.amount", shown);
        if (ImGui::IsItemHovered()) {
            ImGui::SetTooltip("%s", smooth_ == 1
                                        ? "Each value has 1 - weight of the new one and weight of what "
                                          "came before."
                                        : "The mean of a value and of those before it.");
        }
    }

    // As many columns as are readable, each card as high as then fits, down to a least height.
    void draw_cards(model::Session& session, const ComparedRuns& runs) {
        if (!ImGui::BeginChild("cards", {0, 0})) {
            ImGui::EndChild();
            return;
        }
        const float font = ImGui::GetFontSize(), gap = font * 0.6F;
        const ImVec2 room = ImGui::GetContentRegionAvail();
        const auto count = static_cast<int>(charts_.size());
        const int columns = std::clamp(static_cast<int>(room.x / (font * 28)), 1, std::min(3, count));
        const int rows = (count + columns - 1) / columns;
        const float scroll = ImGui::GetStyle().ScrollbarSize;
        const float fitting = room.y / static_cast<float>(rows) - gap - font * 0.2F;
        const float height = std::clamp(fitting, font * 14, font * 22);
        const float width = std::max(
            font * 3, (room.x - (height > fitting ? scroll : 0) - gap * static_cast<float>(columns - 1)) /
                          static_cast<float>(columns));
        const ImVec2 start = ImGui::GetCursorPos();
        TrainingCard::Input input{.version = version_,
                                  .heads = runs.heads,
                                  .over = static_cast<Over>(over_),
                                  .x = zoom_ ? *zoom_ : whole_range(charts_),
                                  .log = log_,
                                  .cursor = cursor_,
                                  .active = active_run(session, runs)};
        input.step = x_of_cursor(session, input.active);
        std::optional<double> cursor;
        std::optional<TrainingCard::Picked> picked;
        for (int i = 0; i < count; ++i) {
            const int column = i % columns, row = i / columns;
            ImGui::SetCursorPos({start.x + static_cast<float>(column) * (width + gap),
                                 start.y + static_cast<float>(row) * (height + gap)});
            if (!ImGui::IsRectVisible({width, height})) {
                ImGui::Dummy({width, height});
                continue;
            }
            const auto at = static_cast<std::size_t>(i);
            input.chart = &charts_[at];
            const TrainingCard::Done done = cards_[at].draw(input, {width, height});
            if (done.cursor) cursor = done.cursor;
            if (done.zoom) zoom_ = done.zoom;
            if (done.picked) picked = done.picked;
        }
        cursor_ = cursor;
        ImGui::EndChild();
        if (picked) go_to_step(session, runs, *picked);
    }

    static std::size_t active_run(const model::Session& session, const ComparedRuns& runs) {
        const auto at = std::find(runs.entries.begin(), runs.entries.end(), session.active);
        return at == runs.entries.end() ? runs.entries.size()
                                        : static_cast<std::size_t>(at - runs.entries.begin());
    }
    // Of the step that other panels' cursor is in: where the step's values lie.
    std::optional<double> x_of_cursor(const model::Session& session, std::size_t run) {
        const model::OpenTrace* entry = session.current();
        if (run >= metrics_.size() || entry == nullptr || entry->trace == nullptr || !entry->cursor)
            return {};
        const traces::store::Step* step = model::step_at(*entry->trace, session.rank, *entry->cursor);
        if (step == nullptr) return {};
        const auto place = place_of_steps(metrics_[run], static_cast<Over>(over_), zeros_[run],
                                          {step->number, step->number, step->start, step->end});
        return place ? std::optional(place->to) : std::nullopt;
    }

    // Makes the run active and shows the step on its timeline, of the chosen rank or of the first that has
    // it.
    static void go_to_step(model::Session& session, const ComparedRuns& runs,
                           const TrainingCard::Picked& picked) {
        if (session.active != runs.entries[picked.run]) session.set_active(runs.entries[picked.run]);
        const model::TracePtr trace = session.trace();
        const traces::store::Step* found = nullptr;
        for (const traces::store::Step& step : trace->steps) {
            if (step.number == picked.point.step && (found == nullptr || step.rank == session.rank))
                found = &step;
        }
        if (found == nullptr) {
            session.to_say = picked.point.step < 0
                                 ? std::string("This value belongs to no step of the trace.")
                                 : fmt::format("Step {} is not in the part of the run that this trace has.",
                                               picked.point.step);
            return;
        }
        session.go_to({found->start, found->end}, found->rank);
        session.current()->lit = model::TimeRange{found->start, found->end};
        session.current()->cursor = found->start;
    }

    RunChoice choice_;
    int over_ = 0, smooth_ = 0;  // of kOver, kSmooth
    Smoothing smoothing_;
    bool log_ = false;
    std::optional<XRange> zoom_;    // none: all
    std::optional<double> cursor_;  // x of the mouse in the previous frame
    Made made_;
    Smoothing smoothed_;  // how the charts are
    std::size_t version_ = 0;
    bool by_rank_ = false;             // whether ranks report metrics of their own
    std::vector<RunMetrics> metrics_;  // of made_.reports
    std::vector<std::int64_t> zeros_;  // of their time
    std::vector<MetricChart> charts_;
    std::vector<TrainingCard> cards_;  // by chart
};

}  // namespace

std::unique_ptr<model::Panel> make_training_panel() {
    return std::make_unique<TrainingPanel>();
}

}  // namespace shardscope::viewer::panels
