// The state restored at the next start: the session (open files with their places, the shown panel),
// appearance, sizes, recent files, how tables are sorted. It is a JSON file with no required keys; a damaged
// one is ignored with a message. No Dear ImGui. Frame thread only.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "viewer/app/program.h"
#include "viewer/model/saved_session.h"

namespace shardscope::viewer::app {

struct SavedState {
    model::SavedSession session;
    std::string appearance = "dark";
    int zoom = 100;
    Desk desk, second_desk;
    RailWidth rail = RailWidth::automatic;
    bool follow = true, keep_columns = true;
    std::vector<std::string> recent;
    std::map<std::string, std::vector<std::string>> keys;  // by action: changed_keys.h
    std::map<std::string, std::string> panels;             // by panel: Panel::saved()
    std::map<std::string, tables::SavedTable> tables;      // by table: tables/table_order.h
    bool operator==(const SavedState&) const = default;
};

template <model::IsOrIsConst<SavedState> T, class Visit>
void fields(T& value, Visit&& visit) {
    auto& [session, appearance, zoom, desk, second_desk, rail, follow, keep_columns, recent, keys, panels,
           tables] = value;
    fields(session, visit);
    visit("appearance", appearance);
    visit("zoom", zoom);
    visit("window", desk);
    visit("second_window", second_desk);
    visit("rail", rail);
    visit("follow", follow);
    visit("keep_columns", keep_columns);
    visit("recent", recent);
    visit("keys", keys);
    visit("panels", panels);
    visit("tables", tables);
}

std::string to_json(const SavedState& state);
// Throws std::runtime_error if it is not a JSON object. `left_out`: the places of values that cannot be read.
// Unknown keys are ignored.
SavedState parse_state(std::string_view json, std::vector<std::string>& left_out);

// viewer.json in the folder of states; empty if there is none.
std::string state_path();
// nullopt if there is no such file, or if it is damaged, which `message` then reports, as it does of values
// that are left out.
std::optional<SavedState> read_state(const std::string& path, std::string& message);
// Writes the file completely or not at all, readable only by its owner. Returns a sentence if it cannot be
// written, else "".
std::string write_state(const std::string& path, const SavedState& state);

SavedState state_of(const Program& program);
// `files`: also opens the files that were open.
void restore(const SavedState& state, Program& program, bool files);

}  // namespace shardscope::viewer::app
