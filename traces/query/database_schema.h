// What an open database holds that SQL may ask: its tables and views with their columns, with what the
// schema's documentation says of them where it knows them.
#pragma once

#include <string>
#include <vector>

namespace shardscope::traces {

struct SchemaItem {
    std::string name, type, unit, meaning;  // of a column; type as declared, empty for most views
};

struct SchemaObject {
    std::string name;
    bool view = false;
    std::string meaning;  // empty: not one of ours or of Nsight Systems
    std::vector<SchemaItem> columns;
    std::string error;  // why its columns cannot be told: a view whose SQL is broken
};

// Views first, then tables, each by name. Throws StoreError where the file cannot be read.
std::vector<SchemaObject> schema_objects(const std::string& path);

}  // namespace shardscope::traces
