// See shell.h.
#include "viewer/app/shell.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <imgui.h>

#include "traces/analysis/base/shown_ranks.h"
#include "traces/store/grouped.h"
#include "viewer/app/actions.h"
#include "viewer/app/place_acts.h"
#include "viewer/app/session_file.h"
#include "viewer/app/windows.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/panels/panel_table.h"
#include "viewer/tables/table.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::app {
namespace {

// Whether the check mark of a menu entry is set.
bool is_on(const Action& action, Program& program) {
    return action.id == program.shown().name() || (action.id == "follow" && program.session.follow) ||
           (action.id == "keep_columns" && program.session.keep_columns) ||
           (action.id == "rail" && program.rail_is_wide);
}

// "8 ranks", or "8 of 1,024 ranks" if the trace omits ranks that did the same as those shown.
std::string ranks_text(const traces::store::Trace& trace) {
    const auto shown = static_cast<std::int64_t>(trace.ranks.size());
    if (!traces::analysis::shows_some_ranks(trace)) return traces::store::counted(shown, "rank", "ranks");
    return fmt::format("{} of {} ranks", shown, draw::format_count(traces::analysis::ranks_of_run(trace)));
}

std::string extent_text(const traces::store::Trace& trace) {
    // What is counted beside the events is said of a trace that has nothing else.
    std::string events = traces::store::counted(static_cast<std::int64_t>(trace.events()), "event", "events");
    const auto add = [&](std::size_t count, const char* one, const char* several) {
        if (trace.events() == 0 && count > 0)
            events += ", " + traces::store::counted(static_cast<std::int64_t>(count), one, several);
    };
    add(trace.marks.size(), "mark", "marks");
    add(trace.samples.size(), "sample of threads", "samples of threads");
    add(trace.counters.size(), "value of counters", "values of counters");
    add(trace.metrics.size(), "value of metrics", "values of metrics");
    return fmt::format("{}, {}, {}", ranks_text(trace), events,
                       draw::format_duration(static_cast<double>(trace.last_ns - trace.first_ns)));
}

std::string plan_text(const traces::store::Trace& trace) {
    return fmt::format("a plan of {} configuration{}",
                       draw::format_count(static_cast<std::int64_t>(trace.plan.size())),
                       trace.plan.size() == 1 ? "" : "s");
}

// Alt and the first letter of a menu open it.
model::Chord menu_chord(std::string_view menu) {
    return {static_cast<model::Key>(menu.front() - 'A'), false, false, true};
}

}  // namespace

// What happens once for both windows.
void Shell::begin() {
    model::Session& session = program_.session;
    draw::items::begin_frame();
    // It changes the panes of both windows, so not while the second is drawn.
    if (!program_.wanted_session.empty()) open_session(program_, std::exchange(program_.wanted_session, {}));
    session.poll([&](const model::TracePtr& next) {
        return !program_.any_in_sight([&](model::Panel& panel) { return !panel.ready(session, next); });
    });
    for (const model::GoneTrace& gone : session.take_gone()) {
        for (const auto& panel : program_.panels) panel->closed(*gone.trace, gone.successor);
    }
    if (!session.wanted_panel.empty()) {
        program_.show(session.wanted_panel);
        session.wanted_panel.clear();
    }
    program_.show_contents();
    go_to_link(program_);
}

void Shell::draw(const model::Frame& frame) {
    if (!second_) begin();
    if (!frame.headless) run_shortcuts();
    let_keys_move_in_menus();

    const ImGuiIO& io = ImGui::GetIO();
    ImGui::SetNextWindowPos({0, 0});
    ImGui::SetNextWindowSize(io.DisplaySize);
    constexpr ImGuiWindowFlags kFlags = ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                                        ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_MenuBar |
                                        ImGuiWindowFlags_NoBringToFrontOnFocus |
                                        ImGuiWindowFlags_NoScrollWithMouse | ImGuiWindowFlags_NoNavInputs;
    ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, 0);
    ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 0);
    ImGui::Begin("shardscope", nullptr, kFlags);
    ImGui::PopStyleVar(2);
    draw_menus();
    if (second_) {
        draw_content(frame, ImGui::GetContentRegionAvail().y);
    } else {
        draw_problems();
        draw_notices();
        const float status = ImGui::GetTextLineHeightWithSpacing();
        const float height = std::max(1.0F, ImGui::GetContentRegionAvail().y - status);
        draw_rail(program_, height);
        ImGui::SameLine();
        draw_content(frame, height);
        draw_status();
    }
    ImGui::End();
    if (program_.front_is_second == second_) draw_over();
}

// The windows over the panels, in the window that has the keyboard.
void Shell::draw_over() {
    model::Session& session = program_.session;
    draw_help_window(program_);
    draw_views_window(program_);
    exchange_clipboard();
    palette_.draw(program_);
    if (const auto table = tables::take_export_request()) program_.save = {SaveRequest::table, *table};
    if (auto wanted = std::exchange(session.wanted_save, std::nullopt))
        program_.save = {SaveRequest::text, wanted->name, wanted->text};
    save_.draw(program_);
    files_.draw(program_);
}

// While a menu, a list or another popup is open, the arrows and Enter move in it and Escape closes it.
void Shell::let_keys_move_in_menus() {
    popup_is_open_ = ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopup);
    ImGuiConfigFlags& flags = ImGui::GetIO().ConfigFlags;
    flags = popup_is_open_ ? flags | ImGuiConfigFlags_NavEnableKeyboard
                           : flags & ~ImGuiConfigFlags_NavEnableKeyboard;
}

// The menu whose first letter is pressed with Alt: of several, the one after the open one. Empty: none.
std::string Shell::wanted_menu() const {
    if (!program_.wanted_menu.empty()) return program_.wanted_menu;
    const std::vector<std::string_view> menus = menu_names();
    const auto open = std::find(menus.begin(), menus.end(), menu_of_key_);
    const std::size_t first = open == menus.end() ? 0 : static_cast<std::size_t>(open - menus.begin()) + 1;
    for (std::size_t i = 0; i < menus.size(); ++i) {
        const std::string_view menu = menus[(first + i) % menus.size()];
        if (model::chord_pressed(menu_chord(menu), false)) return std::string(menu);
    }
    return "";
}

// The next key pressed becomes that of the chosen action.
void Shell::take_key() {
    const Action* action = find_action(program_.takes_key);
    const ImGuiIO& io = ImGui::GetIO();
    for (int key = 0; key < model::kKeys; ++key) {
        const model::Chord chord{static_cast<model::Key>(key), io.KeyCtrl, io.KeyShift, io.KeyAlt};
        if (!model::chord_pressed(chord, false)) continue;
        program_.takes_key.clear();
        if (action == nullptr || chord == model::Chord{model::Key::escape}) return;
        const std::vector<std::string_view> menus = menu_names();
        if (std::any_of(menus.begin(), menus.end(), [&](auto menu) { return chord == menu_chord(menu); })) {
            program_.notice = fmt::format("{} opens a menu; choose another key.", chord_text(chord));
            return;
        }
        const bool none = chord == model::Chord{model::Key::del};
        program_.notice = change_key(*action, none ? nullptr : &chord, program_);
        return;
    }
}

void Shell::run_shortcuts() {
    if (!program_.takes_key.empty()) return take_key();
    program_.wanted_menu = wanted_menu();
    if (popup_is_open_ || !program_.wanted_menu.empty()) return;
    const auto pressed = [&](const Action& action) {
        const std::vector<model::Chord>& keys = keys_of(action, program_);
        return std::any_of(keys.begin(), keys.end(),
                           [&](const model::Chord& chord) { return chord_pressed(chord, action.repeats); });
    };
    if (ImGui::GetIO().WantTextInput) {
        // The keys from pane to pane write no text. While a text field has the keyboard, Escape still closes
        // windows over the panels.
        const bool over = program_.choose_file || program_.palette || program_.views ||
                          program_.save.what != SaveRequest::nothing;
        if (over && model::chord_pressed({model::Key::escape}, false)) run_action("let_go", program_);
        for (const char* id : {"next_pane", "previous_pane"}) {
            if (!over && pressed(*find_action(id))) run_action(id, program_);
        }
        return;
    }
    for (const Action& action : actions()) {
        if (!is_available(action, program_)) continue;
        if (pressed(action)) action.run(program_);
    }
}

void Shell::draw_recent() {
    const bool open = ImGui::BeginMenu("Open recent", !program_.recent.empty());
    left_is_taken_ = open;
    right_is_taken_ = open || ImGui::IsItemFocused();
    if (!open) return;
    std::string chosen;
    for (const std::string& path : program_.recent) {
        if (ImGui::MenuItem(path.c_str())) chosen = path;
    }
    ImGui::EndMenu();
    if (!chosen.empty()) program_.open(chosen);
}

void Shell::draw_menus() {
    if (!ImGui::BeginMenuBar()) return;
    const std::vector<std::string_view> menus = menu_names();
    if (!program_.wanted_menu.empty()) {
        menu_of_key_ = std::exchange(program_.wanted_menu, {});
        ImGui::OpenPopup(menu_of_key_.c_str());
    } else if (!popup_is_open_ || ImGui::IsAnyMouseDown()) {
        menu_of_key_.clear();
    }
    for (std::size_t i = 0; i < menus.size(); ++i) {
        const std::string_view menu = menus[i];
        left_is_taken_ = right_is_taken_ = false;
        const bool open = ImGui::BeginMenu(std::string(menu).c_str());
        draw::items::mark(fmt::format("menu.{}", menu), menu);
        if (!open) continue;
        if (menu == menu_of_key_) model::show_where_keys_are();
        if (menu == "File") draw_recent();
        for (const Action& action : actions()) {
            if (action.menu != menu) continue;
            const bool chosen = ImGui::MenuItem(
                fmt::format("{}###{}", title_of(action, program_), action.id).c_str(),
                keys_text(action, program_).c_str(), is_on(action, program_), is_available(action, program_));
            draw::items::mark(fmt::format("menu.{}", action.id), title_of(action, program_));
            if (chosen) action.run(program_);
        }
        ImGui::EndMenu();
        const std::size_t left = (i + menus.size() - 1) % menus.size(), right = (i + 1) % menus.size();
        const auto go = [&](model::Key key, bool is_taken, std::size_t neighbour) {
            if (is_taken || !model::chord_pressed({key}, true)) return;
            program_.wanted_menu = menus[neighbour];
            model::stay_in_menu();
        };
        go(model::Key::left, left_is_taken_, left);
        go(model::Key::right, right_is_taken_, right);
    }
    ImGui::EndMenuBar();
}

void Shell::exchange_clipboard() {
    if (!program_.to_clipboard.empty())
        ImGui::SetClipboardText(std::exchange(program_.to_clipboard, {}).c_str());
    if (std::exchange(program_.paste_link, false)) {
        const char* text = ImGui::GetClipboardText();
        follow_link(program_, text == nullptr ? "" : text);
    }
    if (!program_.copied_link.empty()) draw::items::value("app.link", program_.copied_link);
}

// What could not be opened or found, one line each.
void Shell::draw_problems() {
    std::vector<std::string>& problems = program_.problems;
    constexpr std::size_t kMost = 4;
    if (problems.size() > kMost) problems.erase(problems.begin(), problems.end() - kMost);
    const float font = ImGui::GetFontSize();
    std::size_t dismissed = problems.size();
    for (std::size_t i = 0; i < problems.size(); ++i) {
        ImGui::PushID(static_cast<int>(i));
        ImGui::AlignTextToFramePadding();
        draw::text_in(theme::bad(), draw::fit_text(problems[i], ImGui::GetContentRegionAvail().x - font * 7));
        draw::items::mark(fmt::format("app.problem.{}", i + 1), problems[i]);
        if (ImGui::IsItemHovered()) ImGui::SetTooltip("%s", problems[i].c_str());
        ImGui::SameLine(0, font);
        if (draw::named_button("Dismiss", fmt::format("app.problem.{}.dismiss", i + 1))) dismissed = i;
        ImGui::PopID();
    }
    if (dismissed < problems.size())
        problems.erase(problems.begin() + static_cast<std::ptrdiff_t>(dismissed));
}

// Draws what happened to the active file, and the possible actions.
void Shell::draw_notices() {
    model::Session& session = program_.session;
    model::OpenTrace* entry = session.current();
    if (entry == nullptr || entry->notice.empty()) return;
    ImGui::AlignTextToFramePadding();
    const float font = ImGui::GetFontSize();
    draw::text_in(theme::bad(), draw::fit_text(entry->notice, ImGui::GetContentRegionAvail().x - font * 14));
    draw::items::mark("app.notice", entry->notice);
    ImGui::SameLine(0, font);
    if (draw::named_button("Reload", "app.read_again")) session.reload(session.active);
    ImGui::SameLine();
    if (ImGui::Button("Dismiss")) entry->notice.clear();
}

void Shell::draw_content(const model::Frame& frame, float height) {
    // The timeline handles the wheel itself; panels that scroll begin children of their own.
    ImGui::BeginChild("content", {0, height}, false, ImGuiWindowFlags_NoScrollWithMouse);
    panes_.draw(program_, [&](model::Panel& panel) {
        const ImVec2 corner = ImGui::GetWindowPos(), size = ImGui::GetWindowSize();
        const ImVec2 end{corner.x + size.x, corner.y + size.y};
        if (&panel == &program_.shown()) {
            program_.panel_min = {corner.x, corner.y};
            program_.panel_max = {end.x, end.y};
            draw::items::place("panel", corner, end, panel.name());
        }
        ImGui::PushID(std::string(panel.name()).c_str());
        draw_panel(panel, frame);
        ImGui::PopID();
    });
    ImGui::EndChild();
}

// The time axis of a panel in another pane in sight that is as wide as the current window and in its column.
std::optional<model::TimeAxis> Shell::axis_for(const model::Panel& panel) const {
    std::optional<model::TimeAxis> found;
    program_.any_in_sight([&](const model::Panel& other) {
        const bool here = &other != &panel && program_.panes.pane_of(other.name());
        const auto axis = here ? other.time_axis() : std::nullopt;
        if (!axis || axis->window_left != ImGui::GetWindowPos().x ||
            axis->window_width != ImGui::GetWindowSize().x)
            return false;
        found = axis;
        return true;
    });
    return found;
}

void Shell::draw_panel(model::Panel& panel, const model::Frame& frame) {
    const model::TracePtr trace = program_.session.trace();
    if (panel.needs_trace() && trace == nullptr) {
        draw_instead_of_panel();
    } else if (trace != nullptr && panel.needs_timeline() && model::holds_only_plan(*trace)) {
        draw_only_plan(panels::panel_title(panel.name()));
    } else {
        model::Frame inside = frame;
        inside.width = ImGui::GetContentRegionAvail().x;
        inside.height = ImGui::GetContentRegionAvail().y;
        inside.axis = axis_for(panel);
        panel.draw(program_.session, inside);
    }
}

namespace {

// Begins a centered column, in which texts wrap; returns its width.
float begin_centered() {
    const ImVec2 room = ImGui::GetContentRegionAvail();
    const float font = ImGui::GetFontSize(), width = std::min(room.x - font * 2, font * 40);
    ImGui::SetCursorPos({(room.x - width) / 2, room.y * 0.3F});
    ImGui::BeginGroup();
    draw::begin_wrap(ImGui::GetCursorPosX() + width);
    return width;
}

void end_centered() {
    draw::end_wrap();
    ImGui::EndGroup();
}

}  // namespace

void Shell::draw_instead_of_panel() {
    model::Session& session = program_.session;
    const float width = begin_centered();
    const model::OpenTrace* entry = session.current();
    if (entry == nullptr) {
        draw::text("No trace is open.");
        draw::note("Drop trace files here, or choose one.");
        if (draw::named_button("Open traces...", "app.open")) run_action("open", program_);
        std::string chosen;
        if (!program_.recent.empty()) draw::note("Open recent:");
        for (const std::string& path : program_.recent) {
            if (ImGui::Selectable(draw::fit_text(path, width).c_str())) chosen = path;
        }
        if (!chosen.empty()) program_.open(chosen);
    } else if (!entry->error.empty()) {
        draw::text_in(theme::bad(), entry->error);
        draw::items::mark("app.error", entry->error);
        if (ImGui::Button("Close")) session.close(session.active);
    } else {
        draw::text(fmt::format("Reading {}", entry->name));
        ImGui::ProgressBar(static_cast<float>(entry->progress), {width, 0});
        if (draw::named_button("Cancel", "app.cancel")) session.close(session.active);
    }
    end_centered();
}

// Shown instead of a panel that needs a timeline, for a file without one.
void Shell::draw_only_plan(std::string_view title) {
    const model::Session& session = program_.session;
    begin_centered();
    const std::string said = fmt::format("{} holds a plan and no timeline: {} has nothing to show.",
                                         session.current()->name, title);
    draw::text(said);
    draw::items::mark("app.only_plan", said);
    draw::note("A row of the plan opens its simulated trace, which every panel shows.");
    if (draw::named_button("Open the plan", "app.open_plan")) program_.session.wanted_panel = "plan";
    end_centered();
}

void Shell::draw_status() {
    const model::Session& session = program_.session;
    const model::OpenTrace* entry = session.current();
    std::string left = entry == nullptr ? "" : entry->path;
    if (entry != nullptr && entry->trace) {
        const traces::store::Trace& trace = *entry->trace;
        left += "   " + (model::holds_only_plan(trace) ? plan_text(trace) : extent_text(trace));
        if (trace.schema_version > 0 && !model::holds_only_plan(trace)) left += "   " + run_state(*entry);
        if (trace.dropped > 0)
            left += fmt::format("   {} dropped",
                                traces::store::counted(trace.dropped, "event was", "events were"));
    }
    const std::string right = progress_text();
    draw::items::value("app.status", left);
    draw::items::value("app.progress", right);
    ImGui::PushStyleColor(ImGuiCol_Text, theme::text_dim());
    const float room =
        ImGui::GetContentRegionAvail().x - ImGui::CalcTextSize(right.c_str()).x - ImGui::GetFontSize();
    draw::text(draw::fit_text(left, room));
    if (!right.empty()) {
        ImGui::SameLine();
        draw::text_right(right);
    }
    ImGui::PopStyleColor();
}

// The progress of current work, otherwise the result of the latest action.
std::string Shell::progress_text() const {
    model::Session& session = program_.session;
    if (!session.to_say.empty()) program_.notice = std::exchange(session.to_say, {});
    if (std::string failure = session.analyses.failure(); !failure.empty()) return failure;
    if (session.only_follows()) return program_.notice;
    if (session.loading()) {
        const model::OpenTrace* entry = session.current();
        return entry != nullptr && entry->reading_again ? "reloading ..." : "reading ...";
    }
    if (std::string progress = session.simulation.progress(); !progress.empty()) return progress;
    if (std::string progress = session.trials.progress(); !progress.empty()) return progress;
    if (program_.report.busy()) return "writing HTML ...";
    if (session.analyses.busy()) return "working ...";
    if (std::string error = program_.report.error(); !error.empty()) return error;
    if (std::string path = program_.report.path(); !path.empty()) return path + " is written.";
    return program_.notice;
}

}  // namespace shardscope::viewer::app
