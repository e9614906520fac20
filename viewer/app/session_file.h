// Session files: the open traces, the panel and the place in each, to be opened again here or on another
// machine. No Dear ImGui. Frame thread only.
#pragma once

#include <string>
#include <string_view>

#include "viewer/app/program.h"
#include "viewer/model/saved_session.h"

namespace shardscope::viewer::app {

inline constexpr std::string_view kSessionEnding = ".shardscope-session";

std::string full_path(const std::string& path);

// Paths are absolute. A trace that could not be read is in it as it was saved.
model::SavedSession session_of(const Program& program);
// Opens its traces beside those that are open; the rest follows once they are read. False:
// its panes or its second window cannot be shown.
bool restore(const model::SavedSession& session, Program& program);

// Throws std::runtime_error with one sentence: the file cannot be written, or what is there is no session
// that this version reads, and stays.
void save_session(const Program& program, const std::string& path);

// Replaces the open traces by those of the session. Returns false if the file cannot be read, and a sentence
// is added to the program's problems; everything stays open.
bool open_session(Program& program, const std::string& path);

}  // namespace shardscope::viewer::app
