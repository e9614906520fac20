// The single definition of a trace database: tables, enum tables, views and indexes, each column with its
// unit and meaning. CREATE statements, docs/schema.md and the tests are made from it.
// Everything here is constant data; any thread may read it.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace shardscope::traces::schema {

// PRAGMA user_version of the files that we write, and the newest that we read.
inline constexpr int kSchemaVersion = 9;
// PRAGMA application_id, "SHRD": distinguishes our files from other SQLite files.
inline constexpr int kApplicationId = 0x53485244;
// The version of Nsight Systems' export schema whose names and values we follow.
inline constexpr std::string_view kNsightSchemaVersion = "3.25.0";

class SqlValue;
class LoadedCell;

// How a column's value is read from a row's struct and stored in it; row_access.h makes this from a member.
struct ColumnAccess {
    void (*get)(SqlValue cell, const void* row) = nullptr;
    void (*set)(const LoadedCell& cell, void* row) = nullptr;  // null: the value is not one member
    // Whether the column is not NULL in at least one of `count` rows.
    bool (*any)(const void* rows, std::size_t count) = nullptr;
    std::string_view constant = {};  // SQL of the value that every row has
    bool rare = false;               // NULL in most rows
};

struct SchemaColumn {
    std::string_view name;
    std::string_view type;  // SQL type with its constraints; empty for a view's column
    std::string_view unit;  // "ns", "bytes", "id" ...; empty: none
    std::string_view meaning;
    ColumnAccess access = {};  // none: always NULL in our files
};

struct EnumRow {
    int id = 0;
    std::string_view name, label;
};

struct SchemaTable {
    std::string_view name;
    std::string_view meaning;
    std::span<const SchemaColumn> columns;
    std::span<const EnumRow> rows = {};  // the content of an enum table
    int since = 1;                       // the first schema version that has it
};

struct SchemaView {
    std::string_view name;
    std::string_view meaning;
    std::span<const SchemaColumn> columns;  // in the order of the SELECT
    std::string_view select;
    int since = 1;  // the first schema version that has it in this form
};

struct SchemaIndex {
    std::string_view table, column;
};

// Nsight Systems' tables, in its spelling.
std::span<const SchemaTable> nsight_tables();         // all of them
std::span<const SchemaTable> nsight_device_tables();  // parts of the above
std::span<const SchemaTable> nsight_nvtx_tables();
std::span<const SchemaTable> nsight_enums();
// The tables that Nsight does not have.
std::span<const SchemaTable> shard_tables();        // all of them
std::span<const SchemaTable> shard_event_tables();  // parts of the above
std::span<const SchemaTable> shard_plan_tables();
std::span<const SchemaTable> shard_enums();
std::span<const SchemaView> views();
// Made when a run ends; none exist while it is recorded.
std::span<const SchemaIndex> indexes();

// Null if there is no such table.
const SchemaTable* find_table(std::string_view name);

// All CREATE statements, and the INSERTs that fill the enum tables.
std::string creation_sql();
std::string indexing_sql();
// SQL that creates (empty) temporary tables and views for those that a file of an older schema lacks, so that
// every documented query runs on it; the file itself is not changed. Empty for the current version.
std::string migration_sql(int version);

// The text of docs/schema.md.
std::string schema_markdown();
// Its section on one table or view (the name is case-insensitive); empty if there is none.
std::string schema_markdown_of(std::string_view name);

}  // namespace shardscope::traces::schema
