// Everything that a key can do, in one table: source of the menus, the shortcuts and the help window. No Dear
// ImGui. Frame thread only.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "viewer/app/program.h"
#include "viewer/model/keys.h"

namespace shardscope::viewer::app {

struct Action {
    std::string_view id;
    std::string_view menu;   // "File", "View", "Panels", "Timeline", "Help"
    std::string_view title;  // in the menu and in the help window
    std::vector<model::Chord> keys;
    std::string_view panel;  // active only while this panel is shown; empty: always
    bool repeats = false;    // while the key is held
    std::function<void(Program&)> run;
    std::function<std::string(const Program&)> label = {};  // instead of the title, where there is one
};

const std::vector<Action>& actions();
std::vector<std::string_view> menu_names();  // in the order of the menu bar

// What the mouse does, for the help window.
struct MouseHelp {
    std::string_view gesture, meaning;
};
const std::vector<MouseHelp>& mouse_help();

// In menus and the palette.
std::string title_of(const Action& action, const Program& program);

const Action* find_action(std::string_view id);  // null: there is none

// Runs the action with this id if it is available now; false if it is not, or does not exist.
bool run_action(std::string_view id, Program& program);

bool is_available(const Action& action, const Program& program);

}  // namespace shardscope::viewer::app
