// See database_schema.h. The file is not trusted, since it may come from anywhere; a broken view is reported
// in its own entry.
#include "traces/query/database_schema.h"

#include <algorithm>

#include "traces/schema/schema.h"
#include "traces/schema/sort_rows.h"
#include "traces/store/sqlite/open.h"
#include "traces/store/sqlite/sqlite.h"

namespace shardscope::traces::query {
namespace {

const schema::SchemaView* find_view(std::string_view name) {
    const auto all = schema::views();
    const auto at =
        std::find_if(all.begin(), all.end(), [&](const schema::SchemaView& v) { return v.name == name; });
    return at == all.end() ? nullptr : &*at;
}

void explain(SchemaObject& object) {
    std::span<const schema::SchemaColumn> known;
    if (const schema::SchemaTable* table = schema::find_table(object.name);
        table != nullptr && !object.view) {
        object.meaning = table->meaning;
        known = table->columns;
    } else if (const schema::SchemaView* view = find_view(object.name); view != nullptr && object.view) {
        object.meaning = view->meaning;
        known = view->columns;
    }
    for (SchemaItem& column : object.columns) {
        const auto at = std::find_if(known.begin(), known.end(),
                                     [&](const schema::SchemaColumn& c) { return c.name == column.name; });
        if (at == known.end()) continue;
        column.unit = at->unit;
        column.meaning = at->meaning;
    }
}

void read_columns(store::Database& database, SchemaObject& object) {
    try {
        store::Statement columns(database, "PRAGMA table_info(" + store::quoted_name(object.name) + ")");
        while (columns.step())
            object.columns.push_back({std::string(columns.text(1)), std::string(columns.text(2)), {}, {}});
    } catch (const store::StoreError& error) {
        object.error = error.what();
    }
}

}  // namespace

std::vector<SchemaObject> schema_objects(const std::string& path) {
    store::Database database = store::open_trace(path);
    std::vector<SchemaObject> objects;
    {
        // Temporary tables and views stand in for what an older file lacks.
        store::Statement names(database,
                               "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view') UNION "
                               "SELECT name, type FROM sqlite_temp_master WHERE type IN ('table', 'view')");
        while (names.step())
            objects.push_back({std::string(names.text(0)), names.text(1) == "view", {}, {}, {}});
    }
    std::erase_if(objects, [](const SchemaObject& o) { return o.name.starts_with("sqlite_"); });
    for (SchemaObject& object : objects) {
        read_columns(database, object);
        explain(object);
    }
    schema::sort_rows(objects, [](const SchemaObject& a, const SchemaObject& b) {
        return a.view != b.view ? a.view : a.name < b.name;
    });
    return objects;
}

}  // namespace shardscope::traces::query
