// Samples: where threads spend their processor time: the stacks that a profiler saw as a flame graph, and the
// functions as a table. A function that was clicked in the table, else what the search finds, is marked in
// the graph.
//
// For scripts: "samples.threads" and, while it is open, "samples.threads.<label>"; "samples.event.<name>" if
// there are several; "samples.search", "samples.found"; "samples.all" while a part is shown;
// "samples.summary"; the graph as samples_flame.h says; the table "samples.functions".
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <imgui.h>
#include <imgui_stdlib.h>

#include "traces/analysis/samples/flame.h"
#include "traces/schema/json_text.h"
#include "traces/schema/text.h"
#include "traces/store/columns/trace.h"
#include "traces/store/grouped.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/model/latest_work.h"
#include "viewer/model/panel.h"
#include "viewer/model/session.h"
#include "viewer/model/why_empty.h"
#include "viewer/panels/samples/samples_flame.h"
#include "viewer/panels/samples/samples_rows.h"
#include "viewer/panels/samples/samples_strip.h"
#include "viewer/tables/table.h"
#include "viewer/widgets/kept_model.h"
#include "viewer/widgets/segmented.h"
#include "viewer/widgets/toolbar.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::SampleFilter;
using traces::analysis::SamplesReport;
using traces::analysis::Selection;
using traces::store::Trace;

constexpr float kGraphShare = 0.6F;      // of the height, at most
constexpr std::size_t kMostParts = 500;  // of the time

class SamplesPanel final : public model::Panel {
  public:
    std::string_view name() const override { return "samples"; }
    bool busy() const override { return finding_.busy(); }

    // A list of words.
    std::string content(const model::Session&) const override {
        std::vector<std::string> words;
        if (!event_.empty()) words.push_back("event " + event_);
        if (process_) words.push_back(fmt::format("process {}", *process_));
        if (thread_) words.push_back(fmt::format("thread {}", *thread_));
        if (!search_.empty()) words.push_back("find " + search_);
        if (!function_.empty()) words.push_back("function " + function_);
        for (const std::string& frame : graph_.path()) words.push_back("in " + frame);
        return words.empty() ? "" : traces::schema::dump_strings(words);
    }
    void show_content(std::string_view text, model::Session&) override {
        event_ = search_ = function_ = "";
        process_ = thread_ = std::nullopt;
        std::vector<std::string> path;
        for (const std::string& word :
             traces::schema::json_strings(text).value_or(std::vector<std::string>{})) {
            const std::string_view kind = std::string_view(word).substr(0, word.find(' '));
            const std::string_view value =
                std::string_view(word).substr(std::min(word.size(), kind.size() + 1));
            if (kind == "event") event_ = value;
            if (kind == "process") process_ = traces::schema::number_of<std::int64_t>(value);
            if (kind == "thread") thread_ = traces::schema::number_of<std::int64_t>(value);
            if (kind == "find") search_ = value;
            if (kind == "function") function_ = value;
            if (kind == "in") path.emplace_back(value);
        }
        graph_.show_path(std::move(path));
    }

    void closed(const Trace& trace, const model::TracePtr& successor) override {
        if (trace_.lock().get() == &trace) {
            if (successor == nullptr) choose_all();
            trace_ = successor;
        }
        finding_.forget(trace);
        samples_.reset();
        found_.reset();
        graph_.forget();
        functions_.forget();
        rows_.reset();
        table_.forget_model();
    }

    void act(std::string_view action, model::Session&) override {
        if (action == "samples_find") wants_search_ = true;
        if (action == "samples_all") graph_.show_path({});
        if (action == "samples_caller") graph_.to_caller();
        if (action == "samples_callee") graph_.to_largest_callee();
    }

    void draw(model::Session& session, const model::Frame&) override {
        const model::TracePtr trace = session.trace();
        if (trace->samples.size() == 0) {
            widgets::draw_choosers(session, false);
            draw::flow(ImGui::GetWindowWidth());
            return draw::note(model::why_empty("samples"));
        }
        if (const auto before = trace_.lock(); before != nullptr && before != trace) choose_all();
        trace_ = trace;
        samples_ = samples(session, trace);
        found_ = find(trace);
        draw_controls(session);
        ImGui::NewLine();
        widgets::draw_limit_note(session);
        if (samples_ == nullptr) return widgets::draw_waiting(session, "the samples");
        draw_summary();
        if (samples_->over_time.most > 0)  // as wide as the graph, which leaves room for a scroll bar
            draw_samples_strip(*session.current(), *samples_,
                               ImGui::GetContentRegionAvail().x - ImGui::GetStyle().ScrollbarSize);
        if (samples_->report.samples == 0) return draw::note(why_none(session));
        const auto marked = [&](int node) {
            const auto at = static_cast<std::size_t>(node);
            const std::string_view frame = samples_->report.tree[at].frame;
            if (!function_.empty()) return samples_->report.tree[at].depth > 1 && frame == function_;
            return found_ == nullptr || found_->nodes[at];
        };
        graph_.draw(samples_, ImGui::GetContentRegionAvail().y * kGraphShare, marked);
        draw_functions();
    }

  private:
    // Another trace has other threads and stacks.
    void choose_all() {
        process_ = thread_ = std::nullopt;
        graph_.show_path({});
    }

    std::shared_ptr<const ShownSamples> samples(model::Session& session, const model::TracePtr& trace) const {
        return session.analyses.analysis<ShownSamples>(
            fmt::format("samples {} {} {}", process_.value_or(-1), thread_.value_or(-1), event_), trace,
            model::Session::selection(*session.current()),
            [event = event_, process = process_, thread = thread_](const Trace& t, const Selection& s) {
                const SampleFilter filter{.event = event, .process = process, .thread = thread};
                ShownSamples shown;
                shown.report = traces::analysis::samples_report(t, s, filter);
                if (shown.report.event.empty()) {  // the strip says where there are samples
                    const SamplesReport all = traces::analysis::samples_report(t, {}, filter, 1);
                    shown.report.event = all.event;
                    shown.report.is_time = all.is_time;
                }
                shown.threads = thread_choices(t, shown.report.threads);
                shown.over_time = weights_over_time(t, shown.report.event, filter, kMostParts);
                return shown;
            });
    }

    // What was found before stays until the search is done.
    std::shared_ptr<const FoundFrames> find(const model::TracePtr& trace) {
        if (search_.empty() || samples_ == nullptr) {
            finding_.drop();
            return nullptr;
        }
        auto found =
            finding_.of(trace, fmt::format("{} {}", static_cast<const void*>(samples_.get()), search_),
                        [samples = samples_, text = search_](const Trace&, const std::atomic<bool>& cancel) {
                            return find_frames(samples, text, cancel);
                        });
        if (found != nullptr) return found;
        return found_ != nullptr && found_->in == samples_ ? found_ : nullptr;
    }

    std::string why_none(const model::Session& session) const {
        if (process_ || thread_)
            return fmt::format("{} has no sample{}.", chosen_threads(),
                               session.current()->limit ? " in the time filter" : " of this event");
        return session.current()->limit ? "No sample lies in the time filter."
                                        : "No sample is of this event.";
    }

    // --- what is shown ---

    void draw_controls(model::Session& session) {
        const float font = ImGui::GetFontSize();
        widgets::draw_choosers(session, false);
        choose_threads(font * 16);
        ImGui::SameLine(0, font);
        choose_event();
        draw::flow(font * 18);
        ImGui::SetNextItemWidth(font * 18);
        if (std::exchange(wants_search_, false)) ImGui::SetKeyboardFocusHere();
        if (ImGui::InputTextWithHint("##search", "Find functions (Ctrl+F)", &search_)) function_.clear();
        draw::items::mark("samples.search", search_);
        ImGui::SameLine(0, font * 0.5F);
        draw_found();
        if (graph_.path().empty()) return;
        draw::flow(draw::button_width("Show all (F)"));
        if (draw::named_button("Show all (F)", "samples.all")) graph_.show_path({});
        ImGui::SameLine(0, font * 0.5F);
    }

    void draw_found() const {
        if (found_ == nullptr) return;
        const auto count = static_cast<std::int64_t>(found_->functions.size());
        const double all = std::max(1.0, static_cast<double>(samples_->report.total));
        const std::string said =
            count == 0 ? std::string("no such function")
                       : fmt::format("{}, {}", traces::store::counted(count, "function", "functions"),
                                     draw::format_percent(100 * static_cast<double>(found_->weight) / all));
        draw::flow(draw::width_of(said));
        ImGui::AlignTextToFramePadding();
        draw::text(said);
        draw::items::mark("samples.found", said);
        if (ImGui::IsItemHovered())
            ImGui::SetTooltip(
                "The functions that were found, and the share of the samples' weight with any of them.");
        ImGui::SameLine(0, ImGui::GetFontSize() * 0.5F);
    }

    std::string chosen_threads() const {
        if (samples_ != nullptr) {
            for (const ThreadChoice& choice : samples_->threads)
                if (choice.is_of(process_, thread_)) return choice.label;
        }
        constexpr std::int64_t kNumber = 0xFFFFFF;
        if (thread_) return fmt::format("Thread {}", *thread_ & kNumber);
        return process_ ? fmt::format("Process {}", *process_ >> 24 & kNumber) : "All threads";
    }

    void choose_threads(float width) {
        const std::string chosen = chosen_threads();
        draw::flow(width);
        ImGui::SetNextItemWidth(width);
        const bool open = ImGui::BeginCombo("##threads", draw::fit_in_combo(chosen, width).c_str(),
                                            ImGuiComboFlags_HeightLarge);
        draw::items::mark("samples.threads", chosen);
        if (!open) return;
        if (samples_ != nullptr) list_threads(samples_->threads);
        ImGui::EndCombo();
    }

    void list_threads(const std::vector<ThreadChoice>& choices) {
        const float font = ImGui::GetFontSize();
        for (const ThreadChoice& choice : choices) {
            ImGui::PushID(&choice);
            if (choice.inside) ImGui::Indent(font);
            const std::string label = fmt::format(
                "{}  {}", choice.label, traces::store::counted(choice.samples, "sample", "samples"));
            if (ImGui::Selectable(label.c_str(), choice.is_of(process_, thread_))) {
                process_ = choice.process;
                thread_ = choice.thread;
            }
            if (draw::items::kept())
                draw::items::mark(fmt::format("samples.threads.{}", choice.label), label);
            if (choice.inside) ImGui::Unindent(font);
            ImGui::PopID();
        }
    }

    void choose_event() {
        if (samples_ == nullptr || samples_->report.other_events.empty()) return;
        std::vector<std::string> names = samples_->report.other_events;
        if (!samples_->report.event.empty()) names.push_back(samples_->report.event);
        std::sort(names.begin(), names.end());
        const auto at = std::find(names.begin(), names.end(), samples_->report.event);
        int chosen = at == names.end() ? -1 : static_cast<int>(at - names.begin());
        const std::vector<std::string_view> labels(names.begin(), names.end());
        if (widgets::segmented("samples.event", labels, chosen))
            event_ = names[static_cast<std::size_t>(chosen)];
        ImGui::SameLine(0, ImGui::GetFontSize());
    }

    void draw_summary() const {
        const SamplesReport& report = samples_->report;
        if (report.event.empty()) return;
        std::string said = fmt::format(
            "{} of {}{}; {}", traces::store::counted(report.samples, "sample", "samples"), report.event,
            report.is_time ? fmt::format(", {} of processor time", weight_text(report, report.total))
                           : fmt::format(", {}", weight_text(report, report.total)),
            traces::store::counted(report.distinct, "function", "functions"));
        draw::heading(said);
        draw::items::value("samples.summary", said);
    }

    void draw_functions() {
        const std::shared_ptr<const void> source =
            found_ != nullptr ? std::shared_ptr<const void>(found_) : samples_;
        const auto model = functions_.of(source, "functions", [&] {
            rows_ = std::make_shared<FunctionTable>(samples_, found_);
            return rows_;
        });
        const tables::TableEvents events =
            tables::draw_table("samples.functions", model, table_, {.filter = false, .name = "functions"});
        const auto name_of = [&](std::size_t row) {
            return samples_->report.functions[rows_->function(row)].name;
        };
        if (events.opened) {
            function_ = name_of(*events.opened);
            graph_.show(largest_of(samples_->report.tree, function_));
        } else if (events.clicked) {
            const std::string_view clicked = name_of(*events.clicked);
            const bool again = function_ == clicked && !events.by_key;
            function_ = again ? std::string() : std::string(clicked);
            if (again) table_.chosen.reset();
        }
    }

    std::weak_ptr<const Trace> trace_;              // whose threads and stacks are chosen
    std::string event_;                             // empty: that with most samples
    std::optional<std::int64_t> process_, thread_;  // as in SampleFilter
    std::string search_;
    std::string function_;  // that was clicked
    bool wants_search_ = false;
    std::shared_ptr<const ShownSamples> samples_;
    model::LatestWork<FoundFrames> finding_;
    std::shared_ptr<const FoundFrames> found_;  // in `samples_`; nullptr: nothing is searched for
    FlameGraph graph_;
    widgets::KeptModel functions_;
    std::shared_ptr<const FunctionTable> rows_;  // that it keeps
    tables::TableState table_;
};

}  // namespace

std::unique_ptr<model::Panel> make_samples_panel() {
    return std::make_unique<SamplesPanel>();
}

}  // namespace shardscope::viewer::panels
