// The state restored at the next start: open files with their views, the shown panel, appearance, sizes,
// recent files, how tables are sorted. It is a JSON file with no required keys; a damaged one is ignored with
// a message. No Dear ImGui. Frame thread only.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "viewer/app/program.h"

namespace shardscope::viewer::app {

struct SavedTrace {
    std::string path;
    std::vector<std::string> merged;  // all files of a trace that is merged from several
    std::optional<model::TimeRange> visible, limit;
    std::string rows;  // RowArrangement as JSON; empty: the default
    bool operator==(const SavedTrace&) const = default;
};

struct SavedState {
    std::vector<SavedTrace> traces;
    std::string active;  // path of the active trace
    std::string panel;   // the one with the keyboard
    std::string panes;   // Panes::text()
    std::string second;  // that of the second window; empty: there is none
    Desk second_desk;
    std::string appearance = "dark";
    int zoom = 100;
    Desk desk;
    std::string rail = "automatic";
    bool follow = true;
    std::string color_by = "kind";
    std::vector<std::string> recent;
    std::map<std::string, std::vector<std::string>> keys;  // by action: changed_keys.h
    std::map<std::string, std::string> panels;             // by panel: Panel::saved()
    std::map<std::string, tables::SavedTable> tables;      // by table: tables/table_order.h
    bool operator==(const SavedState&) const = default;
};

std::string to_json(const SavedState& state);
// Throws std::runtime_error with one sentence: what is wrong and where. Unknown keys are ignored.
SavedState parse_state(std::string_view json);

// $XDG_STATE_HOME/shardscope/viewer.json, else ~/.local/state/shardscope/viewer.json (XDG Base Directory
// Specification 0.8); empty if neither variable is set.
std::string state_path();
// nullopt if there is no such file, or if it is damaged, which `message` then reports.
std::optional<SavedState> read_state(const std::string& path, std::string& message);
// Writes the file completely or not at all, readable only by its owner. Returns a sentence if it cannot be
// written, else "".
std::string write_state(const std::string& path, const SavedState& state);

SavedState state_of(const Program& program);
// `files`: also opens the files that were open.
void restore(const SavedState& state, Program& program, bool files);

}  // namespace shardscope::viewer::app
