// What SQL can query in an open database: its tables and views with their columns, each with its meaning if
// the schema documents it.
#pragma once

#include <string>
#include <vector>

namespace shardscope::traces::query {

struct SchemaItem {
    std::string name, type, unit, meaning;  // of a column; `type` as declared, empty for most views
};

struct SchemaObject {
    std::string name;
    bool view = false;
    std::string meaning;  // empty: neither ours nor of Nsight Systems
    std::vector<SchemaItem> columns;
    std::string error;  // why its columns are unknown: the SQL of the view is broken
};

// Views first, then tables, each sorted by name. Throws StoreError if the file cannot be read.
std::vector<SchemaObject> schema_objects(const std::string& path);

}  // namespace shardscope::traces::query
