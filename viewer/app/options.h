// The command-line options of shardscope-view. No Dear ImGui.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "viewer/model/session.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::app {

struct Options {
    std::vector<std::string> files;
    std::string panel = "start";
    std::string panes;         // Panes::text(); empty: one
    std::string screenshot;    // empty: opens a window
    std::string link;          // to a place in a trace
    std::string session;       // a session file
    std::string script;        // a file of commands (script/script.h)
    bool window = false;       // the script drives a window instead of a picture in memory
    std::optional<int> scale;  // percent
    std::optional<theme::Appearance> appearance;
    bool panel_given = false;
    bool state = true;  // restores what was open last time, and saves it at the end
    bool size_given = false;
    int width = 1600, height = 900;
    std::optional<model::TimeRange> range;
    bool names_files() const { return !files.empty() || !session.empty(); }
};

// Either options, or the exit status if the program is done (--help, --version, a wrong command line); the
// text has then been printed.
struct Parsed {
    std::optional<Options> options;
    int status = 0;
};
Parsed parse_options(int argc, const char* const* argv, const std::vector<std::string>& panels);

// "12.5:40", "100us:2ms", "1s:2s": times since the start of the capture, in milliseconds without a unit.
// nullopt: not a range, or its end is not after its start.
std::optional<model::TimeRange> parse_range(std::string_view text);

struct Size {
    int width = 0, height = 0;
};
std::optional<Size> parse_size(std::string_view text);  // "1600x900", each of which is_window_size()
bool is_window_size(int pixels);                        // 64..16384

}  // namespace shardscope::viewer::app
