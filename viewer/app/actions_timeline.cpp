// The actions of the timeline (action_parts.h): moves in time are done here, all others by the panel's act().
#include <algorithm>
#include <cmath>

#include "viewer/app/action_parts.h"
#include "viewer/model/time_view.h"

namespace shardscope::viewer {
namespace {

constexpr double kTimelineZoomStep = 0.75;  // share of the visible range
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

// Moves the first or the last event to the edge of the view, at the current zoom.
void to_end(Program& program, bool first) {
    change_view(program, [=](TimeSpan now, TimeSpan whole) {
        const std::int64_t air = (now.to - now.from) / 50;
        return panned(now, whole, first ? whole.from - air - now.from : whole.to + air - now.to);
    });
}

void limit_to_view(Program& program) {
    OpenTrace* entry = program.session.current();
    if (entry != nullptr && entry->trace != nullptr) entry->limit = entry->visible;
}

void no_limit(Program& program) {
    if (OpenTrace* entry = program.session.current()) entry->limit.reset();
}

void next_colors(Program& program) {
    constexpr int kModes = 4;
    program.session.color_by =
        static_cast<ColorBy>((static_cast<int>(program.session.color_by) + 1) % kModes);
}

// An action of the timeline: available only while the timeline is shown.
Action act(std::string_view id, std::string_view title, std::vector<Chord> keys, bool repeats = false) {
    return {id, "Timeline", title, std::move(keys), "timeline", repeats, to_panel(id)};
}
Action view(std::string_view id, std::string_view title, std::vector<Chord> keys,
            std::function<void(Program&)> run, bool repeats = false) {
    return {id, "Timeline", title, std::move(keys), "timeline", repeats, std::move(run)};
}

}  // namespace

std::vector<Action> timeline_actions() {
    constexpr bool kRepeats = true, kCtrl = true, kShift = true;
    return {
        view(
            "zoom_in", "Zoom in", {{Key::w}}, [](Program& p) { zoom(p, kTimelineZoomStep); }, kRepeats),
        view(
            "zoom_out", "Zoom out", {{Key::s}}, [](Program& p) { zoom(p, 1 / kTimelineZoomStep); }, kRepeats),
        view(
            "earlier", "Move to earlier", {{Key::a}, {Key::left}}, [](Program& p) { pan(p, -kPanStep); },
            kRepeats),
        view(
            "later", "Move to later", {{Key::d}, {Key::right}}, [](Program& p) { pan(p, kPanStep); },
            kRepeats),
        view("first", "Go to the start", {{Key::home}}, [](Program& p) { to_end(p, true); }),
        view("last", "Go to the end", {{Key::end}}, [](Program& p) { to_end(p, false); }),
        act("scroll_up", "Scroll up", {{Key::up}}, kRepeats),
        act("scroll_down", "Scroll down", {{Key::down}}, kRepeats),
        act("page_up", "Scroll up a page", {{Key::page_up}}, kRepeats),
        act("page_down", "Scroll down a page", {{Key::page_down}}, kRepeats),
        act("fit", "Fit the whole trace", {{Key::f}}),
        act("zoom_to", "Zoom to what is selected or measured", {{Key::z}}),
        act("back", "Undo the last zoom or move", {{Key::left, kCtrl}, {Key::backspace}}, kRepeats),
        act("forward", "Redo it", {{Key::right, kCtrl}}, kRepeats),

        act("next_event", "Next event of the line", {{Key::period}}, kRepeats),
        act("previous_event", "Event before it on the line", {{Key::comma}}, kRepeats),
        act("next_same", "Next event of the same name", {{Key::period, false, kShift}}, kRepeats),
        act("previous_same", "Event before it of the same name", {{Key::comma, false, kShift}}, kRepeats),
        act("follow_launch", "From launch to device work and back", {{Key::g}}),
        act("next_part", "Next rank's part of the collective", {{Key::o}}),
        act("follow_backward", "From forward to backward and back", {{Key::v}}),

        act("find", "Find events by text", {{Key::f, kCtrl}}),
        act("find_next", "Next event found", {{Key::f3}}, kRepeats),
        act("find_previous", "Event found before it", {{Key::f3, false, kShift}}, kRepeats),
        act("find_list", "List what was found", {{Key::f3, kCtrl}}),

        act("measure", "Measure by dragging, on or off", {{Key::t}}),
        act("copy", "Copy what is measured or selected", {{Key::c, kCtrl}}),
        act("mark", "Mark this instant", {{Key::m}}),
        act("mark_range", "Mark what is measured or selected as a range", {{Key::m, false, kShift}}),
        act("marks", "List marks and ranges", {{Key::b}}),
        act("next_mark", "Next mark", {{Key::n}}),
        act("previous_mark", "Mark before it", {{Key::n, false, kShift}}),
        act("limit_selected", "Limit all panels to what is selected or measured", {{Key::l, false, kShift}}),

        act("filter_rows", "Filter rows by text", {{Key::slash}}),
        act("fold_ranks", "Fold or unfold all groups", {{Key::f, false, kShift}}),
        act("group_rows", "Rows by rank or by kind", {{Key::k}}),
        act("fold_row", "Fold or unfold the row's group", {{Key::enter}}),
        act("pin_row", "Pin or let go the row", {{Key::p}}),
        act("hide_row", "Hide the row", {{Key::h}}),
        act("show_rows", "Show all rows again, in their own order", {{Key::h, false, kShift}}),
        act("row_up", "Move the row up", {{Key::up, false, kShift}}, kRepeats),
        act("row_down", "Move the row down", {{Key::down, false, kShift}}, kRepeats),

        view("limit", "Limit all panels to the visible time", {{Key::l}}, limit_to_view),
        view("no_limit", "Limit nothing", {{Key::l, kCtrl}}, no_limit),
        view("colors", "Colour by the next: kind, name, module, FSDP unit", {{Key::c}}, next_colors),
    };
}

}  // namespace shardscope::viewer
