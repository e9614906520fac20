// How tables were left, by their ids: sorting and hidden columns, so that they come back next time. Frame
// thread only. No Dear ImGui.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace shardscope::viewer {

struct SavedTable {
    std::string sorted_by;  // a column's id; empty: the model's order
    bool descending = false;
    std::vector<std::string> hidden;  // columns' ids
    bool operator==(const SavedTable&) const = default;
};

// Of the running program; empty at first.
std::map<std::string, SavedTable>& table_memory();

}  // namespace shardscope::viewer
