// The tables' settings by id: sorting and hidden columns, so that they can be restored next time. Frame
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

// The settings of the running program; empty at first.
std::map<std::string, SavedTable>& table_memory();

}  // namespace shardscope::viewer
