// See actions.h. Changes of the timeline's visible time are made here; a panel's other actions, by its act().
#include "viewer/app/actions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <fmt/core.h>

#include "viewer/app/place_acts.h"
#include "viewer/draw/format.h"
#include "viewer/model/time_view.h"
#include "viewer/panels/panel_table.h"

namespace shardscope::viewer::app {
namespace {

constexpr int kZoomStep = 25;               // percent
constexpr double kTimelineZoomStep = 0.75;  // share of the visible range
constexpr double kPanStep = 0.12;
constexpr double kPaneStep = 0.05;  // share of the area of two panes
constexpr bool kRepeats = true;

using Run = std::function<void(Program&)>;

model::Chord ctrl(model::Key key) {
    return {key, true};
}
model::Chord shift(model::Key key) {
    return {key, false, true};
}
model::Chord ctrl_shift(model::Key key) {
    return {key, true, true};
}

// --- The program: files, exports, panels, appearance.

// Closes the windows on top; without any, clears the selection; without one, the marked area, then the time
// filter.
void let_go(Program& program) {
    model::Session& session = program.session;
    if (program.help || program.choose_file || program.palette || program.views ||
        program.save.what != SaveRequest::nothing) {
        program.help = program.choose_file = program.palette = program.views = false;
        program.save = {};
    } else if (session.selected.kind != model::EventKind::none) {
        program.shown().act("let_go", session);
        session.selected = {};
    } else if (session.current() != nullptr && session.current()->area) {
        session.current()->area.reset();
    } else if (session.current() != nullptr) {
        program.shown().act("let_go", session);
        session.current()->limit.reset();
    }
}

void next_rank(Program& program) {
    const model::TracePtr trace = program.session.trace();
    if (trace == nullptr || trace->ranks.empty()) return;
    program.session.rank = traces::store::RankIndex((program.session.rank.at() + 1) % trace->ranks.size());
}

void next_trace(Program& program) {
    model::Session& session = program.session;
    if (!session.open.empty()) session.set_active((session.active + 1) % session.open.size());
}

// Shows the next panel (step 1) or the previous one, wrapping around at the ends.
Run to_neighbour(std::size_t step) {
    return [step](Program& p) {
        const std::size_t count = p.panels.size();
        std::size_t at = 0;
        while (at < count && p.panels[at].get() != &p.shown()) ++at;
        do {
            at = (at + (step == 1 ? 1 : count - 1)) % count;
        } while (p.elsewhere && p.elsewhere->pane_of(p.panels[at]->name()));
        p.show(p.panels[at]->name());
    };
}

// --- Panes.

Run split(Split how) {
    return [how](Program& p) {
        if (p.panes.count() == Panes::kMost) p.notice = "A window has at most four panes; close one first.";
        if (const std::string panel = p.panel_for_new_pane(); !panel.empty()) p.panes.split(how, panel);
    };
}

// The pane goes to the other window, which opens if there is none.
void to_other_window(Program& program) {
    Panes& panes = program.panes;
    const bool last = panes.count() == 1;
    if (!program.elsewhere) {
        const std::string panel = last ? program.panel_for_new_pane() : panes.shown();
        if (panel.empty()) return;
        if (!last) panes.close();
        program.elsewhere = Panes(panel);
    } else if (program.elsewhere->count() == Panes::kMost) {
        program.notice = "A window has at most four panes; close one first.";
    } else if (last && !program.in_second) {
        program.notice = "The first window keeps its last pane.";
    } else {
        program.elsewhere->split(Split::beside, panes.shown());
        if (!last) panes.close();
        program.close_second = last;
    }
}

Run on_panes(void (*change)(Panes& panes)) {
    return [change](Program& p) { change(p.panes); };
}

Run save(SaveRequest::What what) {
    return [what](Program& p) { p.save = {.what = what}; };
}

Run choose_file(bool session) {
    return [session](Program& p) {
        p.choose_session = session;
        p.choose_file = true;
    };
}

Run zoom_by(int percent) {
    return [percent](Program& p) { p.set_zoom(p.zoom + percent); };
}

void swap_appearance(Program& program) {
    program.set_appearance(theme::appearance() == theme::Appearance::dark ? theme::Appearance::light
                                                                          : theme::Appearance::dark);
}

void add_program_actions(std::vector<Action>& all) {
    using Save = SaveRequest::What;
    const auto add = [&](std::string_view menu, std::string_view id, std::string_view title,
                         std::vector<model::Chord> keys, Run run) {
        all.push_back({id, menu, title, std::move(keys), "", false, std::move(run)});
    };
    add("File", "open", "Open traces...", {ctrl(model::Key::o)}, choose_file(false));
    add("File", "reload", "Reload this trace", {{model::Key::f5}},
        [](Program& p) { p.session.reload(p.session.active); });
    add("File", "follow", "Follow traces that are still being written", {shift(model::Key::f5)},
        [](Program& p) { p.session.follow = !p.session.follow; });
    add("File", "keep_columns", "Keep the columns of large traces beside them", {ctrl(model::Key::f5)},
        [](Program& p) { p.session.keep_columns = !p.session.keep_columns; });
    add("File", "close", "Close this trace", {ctrl(model::Key::w)},
        [](Program& p) { p.session.close(p.session.active); });
    add("File", "open_session", "Open session...", {ctrl_shift(model::Key::o)}, choose_file(true));
    add("File", "save_session", "Save session...", {ctrl_shift(model::Key::s)}, save(Save::session));
    add("File", "next_trace", "Next open trace", {ctrl(model::Key::tab)}, next_trace);
    add("File", "export_table", "Export a table...", {ctrl(model::Key::e)}, save(Save::table));
    add("File", "export_panel", "Picture of the panel...", {ctrl(model::Key::p)}, save(Save::panel));
    add("File", "export_window", "Picture of the window...", {{model::Key::f12}}, save(Save::window));
    add("File", "export_report", "Report as HTML...", {ctrl_shift(model::Key::e)}, save(Save::report));
    add("File", "export_timeline", "Timeline as HTML...", {ctrl_shift(model::Key::h)}, save(Save::timeline));
    add("File", "export_visible", "Visible time of the timeline as HTML...", {ctrl(model::Key::h)},
        save(Save::visible_timeline));
    add("File", "quit", "Quit", {ctrl(model::Key::q)}, [](Program& p) { p.quit = true; });
    add("View", "palette", "Command palette", {ctrl_shift(model::Key::p)},
        [](Program& p) { p.palette = !p.palette; });
    add("View", "menu", "Open the menus (Alt+F: File, Alt+V: View, ...)", {{model::Key::f10}},
        [](Program& p) { p.wanted_menu = menu_names().front(); });
    add("View", "next_rank", "Next rank", {{model::Key::r}}, next_rank);
    add("View", "larger", "Larger", {ctrl(model::Key::equal)}, zoom_by(kZoomStep));
    add("View", "smaller", "Smaller", {ctrl(model::Key::minus)}, zoom_by(-kZoomStep));
    add("View", "normal_size", "Normal size", {ctrl(model::Key::digit_0)},
        [](Program& p) { p.set_zoom(100); });
    add("View", "appearance", "Switch between light and dark", {{model::Key::f9}}, swap_appearance);
    add("View", "rail", "Panel names in the sidebar", {ctrl(model::Key::b)},
        [](Program& p) { p.rail = p.rail_is_wide ? RailWidth::narrow : RailWidth::wide; });
    add("View", "let_go", "Close the window, or clear the selection or time filter", {{model::Key::escape}},
        let_go);
    add("Panels", "next_panel", "Next panel", {ctrl(model::Key::page_down)}, to_neighbour(1));
    add("Panels", "previous_panel", "Previous panel", {ctrl(model::Key::page_up)}, to_neighbour(0));
    for (const panels::PanelEntry& panel : panels::panel_table())
        add("Panels", panel.name, panel.title, {panel.key},
            [name = panel.name](Program& p) { p.show(name); });
}

// --- Places: saved views and links.

constexpr std::array<std::string_view, model::kViewKeys> kGoIds = {
    "view_1", "view_2", "view_3", "view_4", "view_5", "view_6", "view_7", "view_8", "view_9"};
constexpr std::array<std::string_view, model::kViewKeys> kSaveIds = {
    "save_view_1", "save_view_2", "save_view_3", "save_view_4", "save_view_5",
    "save_view_6", "save_view_7", "save_view_8", "save_view_9"};
constexpr std::array<std::string_view, model::kViewKeys> kGoTitles = {
    "Go to view 1", "Go to view 2", "Go to view 3", "Go to view 4", "Go to view 5",
    "Go to view 6", "Go to view 7", "Go to view 8", "Go to view 9"};
constexpr std::array<std::string_view, model::kViewKeys> kSaveTitles = {
    "Save as view 1", "Save as view 2", "Save as view 3", "Save as view 4", "Save as view 5",
    "Save as view 6", "Save as view 7", "Save as view 8", "Save as view 9"};

void add_place_actions(std::vector<Action>& all) {
    const auto add = [&](std::string_view id, std::string_view title, model::Chord key, Run run) {
        all.push_back({id, "Places", title, {key}, "", false, std::move(run)});
    };
    const auto digit = [](int key) {
        return static_cast<model::Key>(static_cast<int>(model::Key::digit_0) + key);
    };
    add("copy_link", "Copy a link to this place", ctrl_shift(model::Key::l), copy_link);
    add("paste_link", "Go to the copied link", ctrl_shift(model::Key::v),
        [](Program& p) { p.paste_link = true; });
    add("views", "Saved views...", ctrl_shift(model::Key::b), [](Program& p) { p.views = !p.views; });
    for (int key = 1; key <= model::kViewKeys; ++key) {
        const auto i = static_cast<std::size_t>(key - 1);
        add(kGoIds[i], kGoTitles[i], ctrl(digit(key)), [key](Program& p) { go_to_view(p, key); });
        all.back().label = [key](const Program& p) {
            const std::string name = view_name(p, key);
            return name.empty() ? std::string() : fmt::format("{}  {}", key, draw::shorten_middle(name, 60));
        };
    }
    for (int key = 1; key <= model::kViewKeys; ++key) {
        const auto i = static_cast<std::size_t>(key - 1);
        add(kSaveIds[i], kSaveTitles[i], ctrl_shift(digit(key)), [key](Program& p) { save_view(p, key); });
    }
}

// --- The panes of the window.

void add_pane_actions(std::vector<Action>& all) {
    const auto add = [&](std::string_view id, std::string_view title, model::Chord key, Run run,
                         bool repeats = false) {
        all.push_back({id, "Window", title, {key}, "", repeats, std::move(run)});
    };
    add("split_beside", "Split: a new pane to the right", {model::Key::f7}, split(Split::beside));
    add("split_above", "Split: a new pane below", shift(model::Key::f7), split(Split::above));
    add("time_panes", "Memory above the timeline, on one time axis", ctrl(model::Key::f7),
        [](Program& p) { p.arrange("memory /45 timeline") && p.show("timeline"); });
    add("close_pane", "Close the pane", {model::Key::f8}, on_panes([](Panes& panes) { panes.close(); }));
    add("only_pane", "This pane alone, or all panes", shift(model::Key::f8),
        on_panes([](Panes& panes) { panes.toggle_alone(); }));
    add("next_pane", "Go to the next pane", {model::Key::f6},
        on_panes([](Panes& panes) { panes.step_focus(1); }));
    add("previous_pane", "Go to the previous pane", shift(model::Key::f6),
        on_panes([](Panes& panes) { panes.step_focus(-1); }));
    add("swap_panes", "Swap with the next pane", ctrl(model::Key::f6),
        on_panes([](Panes& panes) { panes.swap_with_next(); }));
    add("other_window", "Move the pane to the other window", ctrl(model::Key::n), to_other_window);
    add("close_window", "Close the second window", ctrl_shift(model::Key::w),
        [](Program& p) { p.close_second = p.elsewhere.has_value(); });
    add("larger_pane", "Larger pane", ctrl_shift(model::Key::equal),
        on_panes([](Panes& panes) { panes.grow(kPaneStep); }), kRepeats);
    add("smaller_pane", "Smaller pane", ctrl_shift(model::Key::minus),
        on_panes([](Panes& panes) { panes.grow(-kPaneStep); }), kRepeats);
}

// --- The timeline, and other panels that have their own actions.

model::TimeSpan whole_of(const traces::store::Trace& trace) {
    return {trace.first_ns, std::max(trace.last_ns, trace.first_ns + 1)};
}

template <class Change>
void change_view(Program& program, Change change) {
    model::OpenTrace* entry = program.session.current();
    if (entry == nullptr || entry->trace == nullptr) return;
    const model::TimeSpan next =
        change(model::TimeSpan{entry->visible.from, entry->visible.to}, whole_of(*entry->trace));
    entry->visible = {next.from, next.to};
}

Run zoom(double factor) {
    return [=](Program& program) {
        change_view(program, [=](model::TimeSpan now, model::TimeSpan whole) {
            return zoomed(now, whole, now.from + (now.to - now.from) / 2, factor);
        });
    };
}

Run pan(double share) {
    return [=](Program& program) {
        change_view(program, [=](model::TimeSpan now, model::TimeSpan whole) {
            return panned(now, whole, std::llround(static_cast<double>(now.to - now.from) * share));
        });
    };
}

// Brings the start or the end of the trace to the edge of the view, at the current zoom.
Run to_end(bool first) {
    return [=](Program& program) {
        change_view(program, [=](model::TimeSpan now, model::TimeSpan whole) {
            const std::int64_t margin = (now.to - now.from) / 50;
            return panned(now, whole, first ? whole.from - margin - now.from : whole.to + margin - now.to);
        });
    };
}

void limit_to_view(Program& program) {
    model::OpenTrace* entry = program.session.current();
    if (entry != nullptr && entry->trace != nullptr) entry->limit = entry->visible;
}

void no_limit(Program& program) {
    if (model::OpenTrace* entry = program.session.current()) entry->limit.reset();
}

void next_colors(Program& program) {
    constexpr int kModes = 5;
    program.session.color_by =
        static_cast<model::ColorBy>((static_cast<int>(program.session.color_by) + 1) % kModes);
}

// Actions that are available only while their panel is shown.
class PanelActions {
  public:
    PanelActions(std::vector<Action>& all, std::string_view panel, std::string_view menu)
        : all_(all), panel_(panel), menu_(menu) {}
    // Adds an action that the panel's act() carries out.
    void act(std::string_view id, std::string_view title, std::vector<model::Chord> keys,
             bool repeats = false) {
        run(
            id, title, std::move(keys), [id](Program& p) { p.shown().act(id, p.session); }, repeats);
    }
    void run(std::string_view id, std::string_view title, std::vector<model::Chord> keys, Run run,
             bool repeats = false) {
        all_.push_back({id, menu_, title, std::move(keys), panel_, repeats, std::move(run)});
    }

  private:
    std::vector<Action>& all_;
    std::string_view panel_, menu_;
};

void add_timeline_actions(std::vector<Action>& all) {
    PanelActions add(all, "timeline", "Timeline");
    add.run("zoom_in", "Zoom in", {{model::Key::w}}, zoom(kTimelineZoomStep), kRepeats);
    add.run("zoom_out", "Zoom out", {{model::Key::s}}, zoom(1 / kTimelineZoomStep), kRepeats);
    add.run("earlier", "Move to earlier", {{model::Key::a}, {model::Key::left}}, pan(-kPanStep), kRepeats);
    add.run("later", "Move to later", {{model::Key::d}, {model::Key::right}}, pan(kPanStep), kRepeats);
    add.run("first", "Go to the start", {{model::Key::home}}, to_end(true));
    add.run("last", "Go to the end", {{model::Key::end}}, to_end(false));
    add.act("scroll_up", "Scroll up", {{model::Key::up}}, kRepeats);
    add.act("scroll_down", "Scroll down", {{model::Key::down}}, kRepeats);
    add.act("page_up", "Scroll up a page", {{model::Key::page_up}}, kRepeats);
    add.act("page_down", "Scroll down a page", {{model::Key::page_down}}, kRepeats);
    add.act("fit", "Fit the whole trace", {{model::Key::f}});
    add.act("zoom_to", "Zoom to the selection or the measure", {{model::Key::z}});
    add.act("back", "Undo the last zoom or move", {ctrl(model::Key::left), {model::Key::backspace}},
            kRepeats);
    add.act("forward", "Redo", {ctrl(model::Key::right)}, kRepeats);
    add.act("next_event", "Next event in row", {{model::Key::period}}, kRepeats);
    add.act("previous_event", "Previous event in row", {{model::Key::comma}}, kRepeats);
    add.act("next_same", "Next event of the same name", {shift(model::Key::period)}, kRepeats);
    add.act("previous_same", "Previous event of the same name", {shift(model::Key::comma)}, kRepeats);
    add.act("follow_launch", "From launch to device work and back", {{model::Key::g}});
    add.act("next_part", "Next rank's part of the collective", {{model::Key::o}});
    add.act("follow_backward", "From forward to backward and back", {{model::Key::v}});
    add.act("find", "Find events by text", {ctrl(model::Key::f)});
    add.act("find_next", "Next event found", {{model::Key::f3}}, kRepeats);
    add.act("find_previous", "Previous event found", {shift(model::Key::f3)}, kRepeats);
    add.act("find_list", "List the events found", {ctrl(model::Key::f3)});
    add.act("measure", "Measure by dragging, on or off", {{model::Key::t}});
    add.act("area", "Sum up the measured, filtered or visible time", {{model::Key::e}});
    add.act("statistics", "Statistics of the selected event's name", {{model::Key::i}});
    add.act("next_in_bin", "Next event of the histogram's chosen bin", {{model::Key::x}}, kRepeats);
    add.act("previous_in_bin", "Previous event of the histogram's chosen bin", {shift(model::Key::x)},
            kRepeats);
    add.act("copy", "Copy the measure, the selection or the statistics", {ctrl(model::Key::c)});
    add.act("mark", "Mark this instant", {{model::Key::m}});
    add.act("mark_range", "Mark the measure or the selection as a range", {shift(model::Key::m)});
    add.act("marks", "List marks and ranges", {{model::Key::b}});
    add.act("next_mark", "Next mark", {{model::Key::n}});
    add.act("previous_mark", "Previous mark", {shift(model::Key::n)});
    add.act("limit_selected", "Filter all panels by the time of the selection or the measure",
            {shift(model::Key::l)});
    add.act("filter_rows", "Filter rows by text", {{model::Key::slash}});
    add.act("fold_ranks", "Fold or unfold all groups", {shift(model::Key::f)});
    add.act("other_run", "Next other open run below, each step aligned", {{model::Key::y}});
    add.act("group_rows", "Rows by rank or by kind", {{model::Key::k}});
    add.act("fold_row", "Fold or unfold the row's group", {{model::Key::enter}});
    add.act("pin_row", "Pin or unpin the row", {{model::Key::p}});
    add.act("hide_row", "Hide the row", {{model::Key::h}});
    add.act("show_rows", "Show all rows in their own order", {shift(model::Key::h)});
    add.act("row_up", "Move the row up", {shift(model::Key::up)}, kRepeats);
    add.act("row_down", "Move the row down", {shift(model::Key::down)}, kRepeats);
    add.run("limit", "Filter all panels by the visible time", {{model::Key::l}}, limit_to_view);
    add.run("no_limit", "Clear time filter", {ctrl(model::Key::l)}, no_limit);
    add.run("colors", "Next colour mode", {{model::Key::c}}, next_colors);
}

void add_panel_actions(std::vector<Action>& all) {
    PanelActions map(all, "shardmap", "Shard map"), plan(all, "plan", "Plan");
    map.act("shard_next", "Next change of state", {{model::Key::right}}, kRepeats);
    map.act("shard_previous", "Previous change of state", {{model::Key::left}}, kRepeats);
    map.act("shard_play", "Play change by change", {{model::Key::space}});
    PanelActions samples(all, "samples", "Samples");
    samples.act("samples_find", "Find functions by text", {ctrl(model::Key::f)});
    samples.act("samples_callee", "Zoom in: to the largest callee", {{model::Key::w}, {model::Key::right}},
                kRepeats);
    samples.act("samples_caller", "Zoom out: to the caller", {{model::Key::s}, {model::Key::left}}, kRepeats);
    samples.act("samples_all", "Show all stacks", {{model::Key::f}});
    PanelActions schedule(all, "schedule", "Schedule");
    schedule.act("schedule_next", "Next step", {{model::Key::period}}, kRepeats);
    schedule.act("schedule_previous", "Previous step", {{model::Key::comma}}, kRepeats);
    schedule.act("schedule_in", "Zoom in", {{model::Key::w}}, kRepeats);
    schedule.act("schedule_out", "Zoom out", {{model::Key::s}}, kRepeats);
    schedule.act("schedule_earlier", "Move to earlier", {{model::Key::a}, {model::Key::left}}, kRepeats);
    schedule.act("schedule_later", "Move to later", {{model::Key::d}, {model::Key::right}}, kRepeats);
    schedule.act("schedule_fit", "Fit the step", {{model::Key::f}});
    plan.act("plan_slower", "Along the Pareto front: smaller and slower", {{model::Key::left}}, kRepeats);
    plan.act("plan_faster", "Along the Pareto front: faster and larger", {{model::Key::right}}, kRepeats);
    plan.act("plan_open", "Open the row's simulated trace", {{model::Key::t}});
    plan.act("plan_copy_job", "Copy the row as a job file", {ctrl_shift(model::Key::c)});
    plan.act("plan_save_job", "Save the row as a job file...", {ctrl(model::Key::s)});
}

std::vector<Action> all_actions() {
    std::vector<Action> all;
    add_program_actions(all);
    add_place_actions(all);
    add_pane_actions(all);
    add_timeline_actions(all);
    add_panel_actions(all);
    all.push_back({"help",
                   "Help",
                   "Keys and mouse",
                   {{model::Key::f1}, shift(model::Key::slash)},
                   "",
                   false,
                   [](Program& p) { p.help = !p.help; }});
    return all;
}

}  // namespace

const std::vector<Action>& actions() {
    static const std::vector<Action> kActions = all_actions();
    return kActions;
}

const std::vector<MouseHelp>& mouse_help() {
    static const std::vector<MouseHelp> kHelp = {
        {"Wheel", "Zoom about the mouse"},
        {"Shift+wheel, wheel over names", "Scroll up and down"},
        {"Ctrl+wheel", "Zoom finely"},
        {"Drag", "Move in time and up and down"},
        {"Drag on the ruler, Shift+drag", "Filter all panels by that time"},
        {"Drag the filter's ends on the ruler", "Change the time filter"},
        {"Drag with the right button", "Measure (snaps to events)"},
        {"Ctrl+drag over rows", "Sum up the rows' events in that time (snaps to events)"},
        {"Drag the strip above the ruler", "Move or resize the visible range; with Shift set a new one"},
        {"Click an event", "Select it: fields, launch, other ranks' parts"},
        {"Double-click an event", "Zoom to it"},
        {"Right click an event or a row's name", "Open its menu"},
        {"Click a group's heading", "Fold or unfold it"},
        {"Drag a row's name", "Move the row among its neighbours"},
        {"Drag the bar between two panes", "Resize them; a double click makes them equal"},
        {"Click a pane's heading", "Choose its panel"},
        {"Drop a file", "Open it"},
    };
    return kHelp;
}

std::vector<std::string_view> menu_names() {
    std::vector<std::string_view> names;
    for (const Action& action : actions()) {
        if (std::find(names.begin(), names.end(), action.menu) == names.end()) names.push_back(action.menu);
    }
    return names;
}

bool is_available(const Action& action, const Program& program) {
    return action.panel.empty() || program.shown().name() == action.panel;
}

std::string title_of(const Action& action, const Program& program) {
    std::string label = action.label ? action.label(program) : std::string();
    return label.empty() ? std::string(action.title) : label;
}

const Action* find_action(std::string_view id) {
    const auto found =
        std::find_if(actions().begin(), actions().end(), [&](const Action& a) { return a.id == id; });
    return found == actions().end() ? nullptr : &*found;
}

bool run_action(std::string_view id, Program& program) {
    const Action* action = find_action(id);
    if (action == nullptr || !is_available(*action, program)) return false;
    action->run(program);
    return true;
}

}  // namespace shardscope::viewer::app
