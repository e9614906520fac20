// Small files of the viewer's own (state, marks, sessions), read as a whole and replaced as a whole. Any
// thread. No Dear ImGui.
#pragma once

#include <cstdint>
#include <string>

namespace shardscope::viewer::model {

bool is_file(const std::string& path);

// Throws std::runtime_error with the reason as the end of a sentence: "it cannot be read".
std::string read_whole(const std::string& path, std::uintmax_t most_bytes);

// Writes a file beside the old one, which it then replaces: the old one stays if this fails. Returns the
// reason, else
// "". `secret`: only the owner can read it.
std::string write_whole(const std::string& path, const std::string& text, bool secret = false);

// $XDG_STATE_HOME/shardscope, else ~/.local/state/shardscope (XDG Base Directory Specification 0.8); empty if
// neither variable is set.
std::string state_folder();

}  // namespace shardscope::viewer::model
