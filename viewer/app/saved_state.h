// What comes back next time: open files with what was looked at in them, the panel on show, appearance,
// sizes, recent files, how tables are sorted. A JSON file; nothing of it is needed, and one that is damaged
// is left aside with a sentence. No Dear ImGui. Frame thread only.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "viewer/app/program.h"

namespace shardscope::viewer {

struct SavedTrace {
    std::string path;
    std::vector<std::string> merged;  // all files, where several are one trace
    std::optional<TimeRange> visible, limit;
    std::string rows;  // RowArrangement as JSON; empty: as it comes
    bool operator==(const SavedTrace&) const = default;
};

struct SavedState {
    std::vector<SavedTrace> traces;
    std::string active;  // its path
    std::string panel;
    std::string appearance = "dark";
    int zoom = 100;
    std::string rail = "automatic";
    bool follow = true;
    std::string color_by = "kind";
    std::vector<std::string> recent;
    std::map<std::string, std::string> panels;  // by panel: Panel::saved()
    std::map<std::string, SavedTable> tables;   // by table: tables/table_memory.h
    bool operator==(const SavedState&) const = default;
};

std::string to_json(const SavedState& state);
// Throws std::runtime_error with one sentence: what is wrong and where. Unknown keys are passed over.
SavedState parse_state(std::string_view json);

// $XDG_STATE_HOME/shardscope/viewer.json, else ~/.local/state/shardscope/viewer.json (XDG Base Directory
// Specification 0.8); empty where neither is known.
std::string state_path();
// None where there is no such file; where it is damaged also none, and `message` says so.
std::optional<SavedState> read_state(const std::string& path, std::string& message);
// Whole or not at all, for its owner only. A sentence where it cannot be written.
std::string write_state(const std::string& path, const SavedState& state);

SavedState state_of(const Program& program);
// `files`: also opens what was open.
void restore(const SavedState& state, Program& program, bool files);

}  // namespace shardscope::viewer
