// Saved views under the keys 1 to 9, and links: both show a place of a trace again. No Dear ImGui. Frame
// thread only.
#pragma once

#include <string>
#include <string_view>

#include "viewer/app/program.h"

namespace shardscope::viewer::app {

// Each says what it did, or why it could not, in the program's notice.
void save_view(Program& program, int key);
void go_to_view(Program& program, int key);
void remove_view(Program& program, int key);
void rename_view(Program& program, int key, const std::string& name);
// "Memory, 1.5 ms to 4.0 ms"; empty: none is saved.
std::string view_name(const Program& program, int key);

// The link to what is shown, for the clipboard.
void copy_link(Program& program);
// Goes to the link's place as soon as its trace is open; the program's problems say what is wrong with it.
void follow_link(Program& program, std::string_view text);
// Carries on with it; to be called once a frame.
void go_to_link(Program& program);

}  // namespace shardscope::viewer::app
