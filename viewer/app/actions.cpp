// See actions.h. The table is made of parts, each in a file of its own (action_parts.h).
#include "viewer/app/actions.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "viewer/app/action_parts.h"

namespace shardscope::viewer {
namespace {

std::vector<Action> all_parts() {
    std::vector<Action> all = program_actions();
    for (std::vector<Action> part : {timeline_actions(), panel_actions(), help_actions()})
        all.insert(all.end(), std::make_move_iterator(part.begin()), std::make_move_iterator(part.end()));
    return all;
}

}  // namespace

std::function<void(Program&)> to_panel(std::string_view action) {
    return [action](Program& program) { program.shown().act(action, program.session); };
}

const std::vector<Action>& actions() {
    static const std::vector<Action> kActions = all_parts();
    return kActions;
}

const std::vector<MouseHelp>& mouse_help() {
    static const std::vector<MouseHelp> kHelp = {
        {"Wheel", "Zoom about the mouse"},
        {"Shift+wheel, wheel over names", "Scroll up and down"},
        {"Ctrl+wheel", "Zoom finely"},
        {"Drag", "Move in time and up and down"},
        {"Drag on the ruler, Shift+drag", "Limit all panels to that time"},
        {"Drag the limit's ends on the ruler", "Change the limit"},
        {"Drag with the right button, Ctrl+drag", "Measure, caught by events' edges"},
        {"Drag the strip above the ruler", "Move or stretch what is visible; with Shift anew"},
        {"Click an event", "Select it: fields, launch, other ranks' part"},
        {"Double-click an event", "Zoom to it"},
        {"Right click an event or a row's name", "What can be done with it"},
        {"Click a group's heading", "Fold or unfold it"},
        {"Drag a row's name", "Move the row among its neighbours"},
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

std::string keys_text(const Action& action) {
    std::string text;
    for (const Chord& chord : action.keys) text += (text.empty() ? "" : ", ") + chord_text(chord);
    return text;
}

bool is_available(const Action& action, const Program& program) {
    return action.panel.empty() || program.panels[program.panel]->name() == action.panel;
}

bool run_action(std::string_view id, Program& program) {
    for (const Action& action : actions()) {
        if (action.id != id || !is_available(action, program)) continue;
        action.run(program);
        return true;
    }
    return false;
}

}  // namespace shardscope::viewer
