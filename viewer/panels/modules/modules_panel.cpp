// The Module View: the tree of modules of one rank with its host and device time, bytes and memory, above the
// flame chart of one call of the chosen module.
//
// For scripts: the tree as "modules" (tables/tree_table.h); "modules.forward", "modules.backward",
// "modules.previous", "modules.next", "modules.slowest", "modules.median", "modules.fit", "modules.frames",
// "modules.timeline", "modules.splitter"; "modules.call" says which call is shown; the chart as
// modules_flame_chart.h says.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <imgui.h>

#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/model/panel.h"
#include "viewer/model/session.h"
#include "viewer/model/why_empty.h"
#include "viewer/panels/modules/module_rows.h"
#include "viewer/panels/modules/modules_flame.h"
#include "viewer/panels/modules/modules_flame_chart.h"
#include "viewer/panels/modules/unit_changes.h"
#include "viewer/tables/tree_table.h"
#include "viewer/theme/theme.h"
#include "viewer/widgets/segmented.h"
#include "viewer/widgets/toolbar.h"
#include "viewer/widgets/try_it.h"

namespace shardscope::viewer::panels {
namespace {

using AllCalls = std::vector<traces::analysis::RankModuleCalls>;

class ModulesPanel final : public model::Panel {
  public:
    std::string_view name() const override { return "modules"; }

    void draw(model::Session& session, const model::Frame&) override {
        widgets::draw_choosers(session);
        const model::TracePtr trace = session.trace();
        const traces::analysis::Selection selection = model::Session::selection(*session.current());
        const auto view = session.analyses.modules(trace, selection);
        if (view == nullptr) {
            draw::flow(ImGui::GetWindowWidth());
            return widgets::draw_waiting(session, "the module tree");
        }
        const traces::analysis::RankModules* rank = widgets::chosen_rank(view->ranks, session);
        if (rank == nullptr || rank->modules.empty()) {
            draw::flow(ImGui::GetWindowWidth());
            return draw::note(model::why_empty("modules"));
        }
        take_model(session, view, *rank);
        draw_tree_controls("modules", model_, tree_);
        widgets::draw_limit_note(session);
        follow_session(session);

        const float font = ImGui::GetFontSize();
        const float room = ImGui::GetContentRegionAvail().y, grip = std::round(font * 0.5F);
        const float least = std::min(font * 7, room * 0.3F);
        float height = std::clamp((room - grip) * share_, least, std::max(least, room - grip - least));
        open_what_fits(trace, height);
        if (!dragged_ && tree_.view().search.empty())
            height = std::min(height, std::max(least, height_of_tree()));
        height_ = height;
        draw_tree_part(session, height);
        draw_splitter(room, grip);
        draw_changes(session);
        draw_call(session, trace, selection, rank->rank);
    }

  private:
    void take_model(const model::Session& session,
                    const std::shared_ptr<const traces::analysis::ModuleView>& view,
                    const traces::analysis::RankModules& rank) {
        if (view_ == view && rank_ == session.rank && appearance_ == theme::appearance()) return;
        view_ = view;
        rank_ = session.rank;
        appearance_ = theme::appearance();
        model_ = std::make_shared<ModulesModel>(view, rank);
        if (!tree_.chosen || !model_->find(*tree_.chosen)) choose(0);
    }

    void choose(std::size_t row) {
        tree_.chosen = model_->node(row).path;
        call_ = 0;
    }

    // Follows another panel's choice of a module.
    void follow_session(const model::Session& session) {
        if (session.selected_module == known_module_) return;
        known_module_ = session.selected_module;
        const auto row = model_->find_module(known_module_);
        if (!row || model_->node(*row).path == tree_.chosen) return;
        choose(*row);
        tree_.reveal(*model_, *row);
        tree_.scroll_to_chosen = true;
    }

    // When the trace changes, opens as many levels as fit.
    void open_what_fits(const model::TracePtr& trace, float height) {
        if (shown_.lock() == trace) return;
        shown_ = trace;
        const float line = ImGui::GetTextLineHeight() + 2 * ImGui::GetStyle().CellPadding.y;
        const float rows = height / line - 3;  // the header has two lines
        // A tree that scrolls a little is better than one that is closed and mostly empty.
        tree_.open_levels(levels_that_fit(*model_, static_cast<std::size_t>(std::max(1.0F, rows * 2))));
    }

    // The height that shows all open rows: a short tree leaves the rest to the chart until the splitter is
    // used.
    float height_of_tree() {
        const float line = ImGui::GetTextLineHeight() + 2 * ImGui::GetStyle().CellPadding.y;
        return line * (static_cast<float>(tree_.rows(model_).size()) + 1.5F) + ImGui::GetTextLineHeight();
    }

    void draw_tree_part(model::Session& session, float height) {
        tables::TreeOptions options;
        options.size = {0, height};
        options.tip = [this](std::size_t row) { draw_tip(row); };
        ImGui::BeginChild("tree", {0, height});
        const tables::TreeEvents events = draw_tree("modules", model_, tree_, {.tip = options.tip});
        ImGui::EndChild();
        if (!events.clicked) return;
        choose(*events.clicked);
        session.selected_module = known_module_ = model_->module(*events.clicked).module;
    }

    void draw_tip(std::size_t row) const {
        draw::begin_tip(model_->node(row).name);
        draw::tip_row("Path", draw::shorten_middle(model_->node(row).path, 64));
        for (std::size_t c = 1; c < model_->columns().size(); ++c) {
            const tables::TableColumn& column = model_->columns()[c];
            const std::string value = model_->text(row, c);
            const std::string unit = column.unit.substr(0, column.unit.find(' '));
            draw::tip_row(column.title, value == "-" || unit.empty() ? value : value + " " + unit);
        }
        draw::end_tip();
    }

    void draw_splitter(float room, float grip) {
        const float spacing = ImGui::GetStyle().ItemSpacing.y;
        ImGui::SetCursorPosY(ImGui::GetCursorPosY() - spacing);
        const ImVec2 at = ImGui::GetCursorScreenPos();
        const float width = std::max(1.0F, ImGui::GetContentRegionAvail().x);
        draw::place_button("splitter", {width, grip});
        draw::items::mark("modules.splitter");
        const bool held = ImGui::IsItemActive(), over = ImGui::IsItemHovered();
        if (held && !dragged_ && ImGui::GetIO().MouseDelta.y != 0) {  // starts from its current place
            dragged_ = true;
            share_ = room > 1 ? height_ / room : share_;
        }
        if (held && room > 1) share_ = std::clamp(share_ + ImGui::GetIO().MouseDelta.y / room, 0.12F, 0.88F);
        if (held || over) ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeNS);
        const float y = std::floor(at.y + grip / 2);
        ImGui::GetWindowDrawList()->AddRectFilled({at.x, y}, {at.x + width, y + (held || over ? 2.0F : 1.0F)},
                                                  held || over ? theme::accent() : theme::line());
    }

    // --- the chosen module as another unit ------------------------------------------------------------

    // Buttons for what its sharding could be instead, and the box of what was tried.
    void draw_changes(model::Session& session) {
        const model::TracePtr trace = session.trace();
        const auto row = tree_.chosen ? model_->find(*tree_.chosen) : std::nullopt;
        const int module = row ? model_->module(*row).module : -1;
        if (changes_of_.lock() != trace || changes_path_ != tree_.chosen) {
            if (changes_path_ != tree_.chosen) try_.close();
            changes_of_ = trace;
            changes_path_ = tree_.chosen;
            why_none_.clear();
            changes_ = unit_changes(*trace, module, shown_name(), why_none_);
        }
        const float font = ImGui::GetFontSize();
        for (const UnitChange& change : changes_) {
            if (&change != changes_.data()) ImGui::SameLine(0, font * 0.4F);
            draw::flow(draw::button_width(change.label));
            if (draw::named_button(change.label.c_str(), "modules.try." + change.id))
                try_.open(session, "module", change.changes);
        }
        if (changes_.empty()) draw::text_fit_dim(why_none_);
        draw::items::value("modules.try.why_none", why_none_);
        if (!try_.is_open("module")) return;
        const float right = ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x;
        ImGui::BeginGroup();
        try_.draw(session, "module", "modules.try", right);
        ImGui::EndGroup();
        ImGui::Dummy({0, font * 0.3F});
    }

    // --- the chosen module's calls ------------------------------------------------------------------

    void draw_call(model::Session& session, const model::TracePtr& trace,
                   const traces::analysis::Selection& selection, int rank) {
        const auto all = session.analyses.analysis<AllCalls>(
            "module_calls", trace, selection,
            [](const traces::store::Trace& t, const traces::analysis::Selection& s) {
                return traces::analysis::module_calls(t, s);
            });
        if (all == nullptr) return widgets::draw_waiting(session, "the modules' calls");
        take_calls(all, rank);
        if (forward_.empty() && backward_.empty())
            return draw::note(fmt::format("No call of {} starts in the current selection.", shown_name()));
        if (direction_ == CallDirection::forward && forward_.empty()) direction_ = CallDirection::backward;
        if (direction_ == CallDirection::backward && backward_.empty()) direction_ = CallDirection::forward;
        const std::vector<std::int32_t>& calls = direction_ == CallDirection::forward ? forward_ : backward_;
        call_ = std::min(call_, calls.size() - 1);
        draw_call_controls(*trace, calls);
        const std::int32_t range = calls[call_];
        const auto chart = session.analyses.get<FlameChart>(
            fmt::format("flame/{}/{}", range, frames_), {trace},
            [range, frames = frames_](const std::vector<model::TracePtr>& t) {
                return make_flame(*t.front(), range, frames ? Frames::shown : Frames::hidden);
            });
        if (chart != nullptr && chart->frames > 0) {
            ImGui::SameLine(0, ImGui::GetFontSize() * 0.3F);
            draw::flow(draw::button_width("Program frames") + ImGui::GetFontSize() * 2);
            ImGui::Checkbox("Program frames", &frames_);
            draw::items::mark("modules.frames", frames_ ? "shown" : "hidden");
        }
        draw_facts(session, *trace, range, chart.get());
        draw_durations(*trace, calls);
        if (chart != nullptr) last_chart_ = chart;
        if (last_chart_ == nullptr || (chart == nullptr && chart_trace_.lock() != trace))
            return widgets::draw_waiting(session, "the call");
        chart_trace_ = trace;
        flame_.draw(session, trace, last_chart_, {0, ImGui::GetContentRegionAvail().y});
    }

    std::string shown_name() const {
        return tree_.chosen ? tree_.chosen->substr(tree_.chosen->rfind('/') + 1) : std::string();
    }

    void take_calls(const std::shared_ptr<const AllCalls>& all, int rank) {
        if (calls_ == all && calls_rank_ == rank && calls_of_ == tree_.chosen) return;
        calls_ = all;
        calls_rank_ = rank;
        calls_of_ = tree_.chosen;
        forward_.clear();
        backward_.clear();
        for (const traces::analysis::RankModuleCalls& of_rank : *all) {
            if (of_rank.rank != rank) continue;
            const auto module = std::find_if(of_rank.modules.begin(), of_rank.modules.end(),
                                             [&](const auto& m) { return m.path == tree_.chosen; });
            if (module == of_rank.modules.end()) continue;
            forward_ = calls_in(*module, CallDirection::forward);
            backward_ = calls_in(*module, CallDirection::backward);
        }
    }

    void direction_button(const char* label, const char* item, CallDirection direction,
                          const std::vector<std::int32_t>& calls) {
        ImGui::BeginDisabled(calls.empty());
        if (widgets::on_button(label, direction_ == direction)) {
            direction_ = direction;
            call_ = 0;
        }
        ImGui::EndDisabled();
        draw::items::mark(item, fmt::format("{}", calls.size()));
    }

    void draw_call_controls(const traces::store::Trace& trace, const std::vector<std::int32_t>& calls) {
        const float font = ImGui::GetFontSize(), gap = font * 0.3F;
        ImGui::AlignTextToFramePadding();
        draw::text(draw::fit_text(shown_name(), ImGui::GetContentRegionAvail().x * 0.3F));
        ImGui::SameLine(0, font);
        direction_button("Forward", "modules.forward", CallDirection::forward, forward_);
        ImGui::SameLine(0, 2);
        direction_button("Backward", "modules.backward", CallDirection::backward, backward_);
        ImGui::SameLine(0, font);
        if (draw::named_button("<", "modules.previous") && call_ > 0) --call_;
        ImGui::SameLine(0, gap);
        const std::string which =
            fmt::format("call {} of {}", draw::format_count(static_cast<std::int64_t>(call_) + 1),
                        draw::format_count(static_cast<std::int64_t>(calls.size())));
        ImGui::AlignTextToFramePadding();
        draw::text(which);
        draw::items::mark("modules.call", which);
        ImGui::SameLine(0, gap);
        if (draw::named_button(">", "modules.next") && call_ + 1 < calls.size()) ++call_;
        ImGui::SameLine(0, font);
        draw::flow(draw::button_width("Slowest"));
        if (draw::named_button("Slowest", "modules.slowest")) call_ = slowest_call(trace, calls).value_or(0);
        ImGui::SameLine(0, gap);
        draw::flow(draw::button_width("Median"));
        if (draw::named_button("Median", "modules.median")) call_ = median_call(trace, calls).value_or(0);
        ImGui::SameLine(0, gap);
        draw::flow(draw::button_width("Fit"));
        if (draw::named_button("Fit", "modules.fit")) flame_.fit();
    }

    // One line: when the call was, how long it took, what it launched.
    static void draw_facts(model::Session& session, const traces::store::Trace& trace, std::int32_t range,
                           const FlameChart* chart) {
        const auto i = static_cast<std::size_t>(range);
        const model::TimeRange time{trace.ranges.start[i], trace.ranges.end[i]};
        ImGui::SameLine(0, ImGui::GetFontSize() * 0.3F);
        draw::flow(draw::button_width("Timeline"));
        if (draw::named_button("Timeline", "modules.timeline")) {
            session.go_to(time, trace.threads[trace.ranges.thread[i]].rank, {model::EventKind::range, range});
        }
        std::string facts =
            fmt::format("at {}, host {}", draw::format_duration(static_cast<double>(time.from)),
                        draw::format_duration(static_cast<double>(time.length())));
        if (chart != nullptr && chart->device_events > 0) {
            facts += fmt::format(
                ", device {} in {} event{}", draw::format_duration(static_cast<double>(chart->device_ns)),
                draw::format_count(chart->device_events), chart->device_events == 1 ? "" : "s");
        } else if (chart != nullptr) {
            facts += ", no device work";
        }
        const float font = ImGui::GetFontSize();
        const float left = ImGui::GetItemRectMax().x + font;
        const float right = ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x;
        const float wide = ImGui::CalcTextSize(facts.c_str()).x;
        if (left + wide <= right) {  // otherwise on a line of their own
            ImGui::SameLine(0, font);
            ImGui::AlignTextToFramePadding();
        }
        ImGui::TextDisabled("%s", draw::fit_text(facts, ImGui::GetContentRegionAvail().x).c_str());
        draw::items::mark("modules.facts", facts);
    }

    // A bar for each call (the longest of those that share one); a click chooses it.
    void draw_durations(const traces::store::Trace& trace, const std::vector<std::int32_t>& calls) {
        if (calls.size() < 2) return;
        const float font = ImGui::GetFontSize(), height = std::round(font * 1.8F);
        const float label = std::min(font * 9, ImGui::GetContentRegionAvail().x * 0.22F);
        const ImVec2 start = ImGui::GetCursorScreenPos();
        const float width = ImGui::GetContentRegionAvail().x - label;
        if (width < font) return;
        const auto columns = static_cast<int>(width / std::max(3.0F, font * 0.25F));
        if (durations_of_ != &calls || durations_columns_ != columns || durations_chosen_ != calls_of_ ||
            durations_calls_ != calls_) {
            durations_ = longest_by_column(trace, calls, columns);
            durations_of_ = &calls;
            durations_columns_ = columns;
            durations_chosen_ = calls_of_;
            durations_calls_ = calls_;
        }
        const std::int64_t most =
            std::max<std::int64_t>(1, *std::max_element(durations_.begin(), durations_.end()));
        ImDrawList* draw = ImGui::GetWindowDrawList();
        draw->AddText({start.x, start.y + (height - font) / 2}, theme::text_dim(), "all calls");
        const float left = start.x + label;
        draw::place_button("durations", {label + width, height});
        draw::items::mark("modules.durations", draw::format_duration(static_cast<double>(most)));
        const bool hovered = ImGui::IsItemHovered();
        const bool clicked = ImGui::IsItemClicked();
        draw->AddRectFilled({left, start.y}, {left + width, start.y + height},
                            draw::faded(theme::raised(), 0.6F));
        const auto count = static_cast<float>(durations_.size());
        const float bar = std::min(width / count, font * 2.5F);
        const std::size_t chosen = call_ * durations_.size() / calls.size();
        std::optional<std::size_t> over;
        for (std::size_t i = 0; i < durations_.size(); ++i) {
            const float x = left + bar * static_cast<float>(i);
            const float high =
                std::max(1.0F, (height - 2) * static_cast<float>(durations_[i]) / static_cast<float>(most));
            const ImVec2 min{x, start.y + height - high}, max{x + std::max(1.0F, bar - 1), start.y + height};
            draw->AddRectFilled(min, max,
                                i == chosen ? theme::accent() : draw::faded(theme::text_dim(), 0.6F));
            const float mouse = ImGui::GetIO().MousePos.x;
            if (hovered && mouse >= x && mouse < x + bar) over = i;
        }
        if (!over) return;
        const std::size_t first = (*over * calls.size() + durations_.size() - 1) / durations_.size();
        ImGui::SetTooltip("call %zu: %s", first + 1,
                          draw::format_duration(static_cast<double>(durations_[*over])).c_str());
        if (clicked) call_ = std::min(first, calls.size() - 1);
    }

    tables::TreeState tree_;
    std::shared_ptr<const traces::analysis::ModuleView> view_;
    traces::store::RankIndex rank_;
    theme::Appearance appearance_ = theme::Appearance::dark;
    std::shared_ptr<const ModulesModel> model_;
    std::weak_ptr<const traces::store::Trace> shown_;
    std::vector<UnitChange> changes_;  // of this module in this trace
    std::weak_ptr<const traces::store::Trace> changes_of_;
    std::optional<std::string> changes_path_;
    std::string why_none_;
    widgets::TryIt try_;
    int known_module_ = -1;
    float share_ = 0.52F;  // the tree's share of the height
    float height_ = 0;     // the tree's, in this frame
    bool dragged_ = false;
    bool frames_ = false;  // frames of the host program are shown

    std::shared_ptr<const AllCalls> calls_;
    int calls_rank_ = -1;
    std::optional<std::string> calls_of_;
    std::vector<std::int32_t> forward_, backward_;  // calls of the chosen module
    CallDirection direction_ = CallDirection::forward;
    std::size_t call_ = 0;  // index into the calls of the direction

    std::shared_ptr<const FlameChart> last_chart_;  // stays while the next one is made
    std::weak_ptr<const traces::store::Trace> chart_trace_;
    FlameView flame_;

    std::vector<std::int64_t> durations_;
    const std::vector<std::int32_t>* durations_of_ = nullptr;
    int durations_columns_ = 0;
    std::optional<std::string> durations_chosen_;
    std::shared_ptr<const AllCalls> durations_calls_;
};

}  // namespace

std::unique_ptr<model::Panel> make_modules_panel() {
    return std::make_unique<ModulesPanel>();
}

}  // namespace shardscope::viewer::panels
