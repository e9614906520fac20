// See actions.h.
#include "viewer/app/actions.h"

#include <algorithm>
#include <cmath>

#include "viewer/timeline/time_view.h"
#include "viewer/timeline/tracks.h"

namespace shardscope::viewer {
namespace {

constexpr double kZoomStep = 0.75;  // of the visible range
constexpr double kPanStep = 0.12;

TimeSpan whole_of(const traces::Trace& trace) {
    return {trace.first_ns, std::max(trace.last_ns, trace.first_ns + 1)};
}

template <class Change>
void change_view(Program& program, Change change) {
    OpenTrace* entry = program.session.current();
    if (entry == nullptr || entry->trace == nullptr) return;
    const TimeSpan next = change(TimeSpan{entry->visible.from, entry->visible.to}, whole_of(*entry->trace));
    entry->visible = {next.from, next.to};
}

void zoom(Program& program, double factor) {
    change_view(program, [=](TimeSpan now, TimeSpan whole) {
        return zoomed(now, whole, now.from + (now.to - now.from) / 2, factor);
    });
}

void pan(Program& program, double share) {
    change_view(program, [=](TimeSpan now, TimeSpan whole) {
        return panned(now, whole, std::llround(static_cast<double>(now.to - now.from) * share));
    });
}

void zoom_to_selection(Program& program) {
    const TracePtr trace = program.session.trace();
    if (trace == nullptr || program.session.selected.kind == EventKind::none) return;
    const EventTime time = time_of(*trace, program.session.selected);
    change_view(program, [=](TimeSpan, TimeSpan whole) { return framed({time.start, time.end}, whole); });
}

void limit_to_view(Program& program) {
    OpenTrace* entry = program.session.current();
    if (entry != nullptr && entry->trace != nullptr) entry->limit = entry->visible;
}

// First what lies on top, then the selection, then the limit.
void let_go(Program& program) {
    Session& session = program.session;
    if (program.help || program.choose_file) {
        program.help = program.choose_file = false;
    } else if (session.selected.kind != EventKind::none) {
        session.selected = {};
    } else if (session.current() != nullptr) {
        session.current()->limit.reset();
    }
}

void next_rank(Program& program) {
    const TracePtr trace = program.session.trace();
    if (trace == nullptr || trace->ranks.empty()) return;
    program.session.rank = (program.session.rank + 1) % static_cast<int>(trace->ranks.size());
}

void next_trace(Program& program) {
    Session& session = program.session;
    if (!session.open.empty()) session.set_active((session.active + 1) % session.open.size());
}

std::function<void(Program&)> to_panel(std::string_view action) {
    return [action](Program& program) { program.shown().act(action, program.session); };
}

std::function<void(Program&)> show_panel(std::string_view name) {
    return [name](Program& program) { program.show(name); };
}

std::vector<Action> make_actions() {
    constexpr bool kRepeats = true;
    return {
        {"open",
         "File",
         "Open a trace...",
         {{Key::o, true}},
         "",
         false,
         [](Program& p) { p.choose_file = true; }},
        {"close",
         "File",
         "Close this trace",
         {{Key::w, true}},
         "",
         false,
         [](Program& p) { p.session.close(p.session.active); }},
        {"next_trace", "File", "Next open trace", {{Key::tab, true}}, "", false, next_trace},
        {"quit", "File", "Quit", {{Key::q, true}}, "", false, [](Program& p) { p.quit = true; }},

        {"runs", "View", "Runs", {{Key::digit_1}}, "", false, show_panel("runs")},
        {"timeline", "View", "Timeline", {{Key::digit_2}}, "", false, show_panel("timeline")},
        {"modules", "View", "Module View", {{Key::digit_3}}, "", false, show_panel("modules")},
        {"summary", "View", "Execution Summary", {{Key::digit_4}}, "", false, show_panel("summary")},
        {"memory", "View", "Memory", {{Key::digit_5}}, "", false, show_panel("memory")},
        {"compare", "View", "Compare", {{Key::digit_6}}, "", false, show_panel("compare")},
        {"next_rank", "View", "Next rank", {{Key::r}}, "", false, next_rank},
        {"let_go",
         "View",
         "Close a window, else the selection, else the limit",
         {{Key::escape}},
         "",
         false,
         let_go},

        {"zoom_in",
         "Timeline",
         "Zoom in",
         {{Key::w}},
         "timeline",
         kRepeats,
         [](Program& p) { zoom(p, kZoomStep); }},
        {"zoom_out",
         "Timeline",
         "Zoom out",
         {{Key::s}},
         "timeline",
         kRepeats,
         [](Program& p) { zoom(p, 1 / kZoomStep); }},
        {"earlier",
         "Timeline",
         "Move to earlier",
         {{Key::a}, {Key::left}},
         "timeline",
         kRepeats,
         [](Program& p) { pan(p, -kPanStep); }},
        {"later",
         "Timeline",
         "Move to later",
         {{Key::d}, {Key::right}},
         "timeline",
         kRepeats,
         [](Program& p) { pan(p, kPanStep); }},
        {"scroll_up", "Timeline", "Scroll up", {{Key::up}}, "timeline", kRepeats, to_panel("scroll_up")},
        {"scroll_down",
         "Timeline",
         "Scroll down",
         {{Key::down}},
         "timeline",
         kRepeats,
         to_panel("scroll_down")},
        {"fit",
         "Timeline",
         "Fit the whole trace",
         {{Key::f}},
         "timeline",
         false,
         [](Program& p) { p.session.fit(); }},
        {"zoom_to",
         "Timeline",
         "Zoom to the selected event",
         {{Key::z}},
         "timeline",
         false,
         zoom_to_selection},
        {"next_event",
         "Timeline",
         "Select the next event of the line",
         {{Key::period}},
         "timeline",
         kRepeats,
         to_panel("next_event")},
        {"previous_event",
         "Timeline",
         "Select the event before it",
         {{Key::comma}},
         "timeline",
         kRepeats,
         to_panel("previous_event")},
        {"fold_ranks",
         "Timeline",
         "Fold or unfold all ranks",
         {{Key::f, false, true}},
         "timeline",
         false,
         to_panel("fold_ranks")},
        {"limit",
         "Timeline",
         "Limit all panels to the visible time",
         {{Key::l}},
         "timeline",
         false,
         limit_to_view},

        {"help",
         "Help",
         "Keys and mouse",
         {{Key::f1}, {Key::slash, false, true}},
         "",
         false,
         [](Program& p) { p.help = !p.help; }},
    };
}

}  // namespace

const std::vector<Action>& actions() {
    static const std::vector<Action> kActions = make_actions();
    return kActions;
}

const std::vector<MouseHelp>& mouse_help() {
    static const std::vector<MouseHelp> kHelp = {
        {"Wheel", "Zoom about the mouse"},
        {"Shift+wheel, wheel over names", "Scroll up and down"},
        {"Drag", "Move in time and up and down"},
        {"Drag on the ruler, Shift+drag", "Limit all panels to that time"},
        {"Click an event", "Select it: fields, launch, other ranks' part"},
        {"Double-click an event", "Zoom to it"},
        {"Click a rank's heading", "Fold or unfold the rank"},
        {"Drop a file", "Open it"},
    };
    return kHelp;
}

bool is_available(const Action& action, const Program& program) {
    return action.panel.empty() || program.panels[program.panel]->name() == action.panel;
}

}  // namespace shardscope::viewer
