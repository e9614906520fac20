// SQL from the schema's data.
#include "traces/schema/schema.h"

#include <array>

#include <fmt/core.h>

namespace shardscope::traces::schema {

namespace {

std::string quoted(std::string_view text) {
    std::string result = "'";
    for (const char c : text) {
        if (c == '\'') result += '\'';
        result += c;
    }
    return result + "'";
}

// Appends the tables that are newer than schema version `after`, for the file or, with "TEMP ", for the
// connection only.
void append_tables(std::string& sql, std::span<const SchemaTable> tables, int after = 0,
                   std::string_view temporary = "") {
    for (const SchemaTable& table : tables) {
        if (table.since <= after) continue;
        fmt::format_to(std::back_inserter(sql), "CREATE {}TABLE {} (\n", temporary, table.name);
        for (std::size_t i = 0; i < table.columns.size(); ++i) {
            const SchemaColumn& column = table.columns[i];
            fmt::format_to(std::back_inserter(sql), "    \"{}\" {}{}\n", column.name, column.type,
                           i + 1 < table.columns.size() ? "," : "");
        }
        sql += ");\n";
        for (const EnumRow& row : table.rows) {
            fmt::format_to(std::back_inserter(sql), "INSERT INTO {} VALUES ({}, {}, {});\n", table.name,
                           row.id, quoted(row.name), quoted(row.label));
        }
    }
}

}  // namespace

std::span<const SchemaIndex> indexes() {
    static constexpr std::array<SchemaIndex, 11> kIndexes = {{
        {"CUPTI_ACTIVITY_KIND_KERNEL", "start"},
        {"CUPTI_ACTIVITY_KIND_KERNEL", "correlationId"},
        {"CUPTI_ACTIVITY_KIND_MEMCPY", "start"},
        {"CUPTI_ACTIVITY_KIND_MEMCPY", "correlationId"},
        {"CUPTI_ACTIVITY_KIND_MEMSET", "correlationId"},
        {"CUPTI_ACTIVITY_KIND_RUNTIME", "start"},
        {"CUPTI_ACTIVITY_KIND_RUNTIME", "correlationId"},
        {"NVTX_EVENTS", "start"},
        {"SHARD_COLLECTIVES", "correlationId"},
        {"SHARD_MEMORY", "time"},
        {"SHARD_STEPS", "step"},
    }};
    return kIndexes;
}

const SchemaTable* find_table(std::string_view name) {
    for (const auto tables : {nsight_tables(), shard_tables(), nsight_enums(), shard_enums()}) {
        for (const SchemaTable& table : tables) {
            if (table.name == name) return &table;
        }
    }
    return nullptr;
}

std::string migration_sql(int version) {
    std::string sql;
    for (const auto tables : {nsight_tables(), nsight_enums(), shard_tables(), shard_enums()}) {
        append_tables(sql, tables, version, "TEMP ");
    }
    for (const SchemaView& view : views()) {
        if (view.since <= version) continue;
        fmt::format_to(std::back_inserter(sql), "CREATE TEMP VIEW {} AS\n{};\n", view.name, view.select);
    }
    return sql;
}

std::string creation_sql() {
    std::string sql;
    append_tables(sql, nsight_tables());
    append_tables(sql, shard_tables());
    append_tables(sql, nsight_enums());
    append_tables(sql, shard_enums());
    for (const SchemaView& view : views()) {
        fmt::format_to(std::back_inserter(sql), "CREATE VIEW {} AS\n{};\n", view.name, view.select);
    }
    return sql;
}

std::string indexing_sql() {
    std::string sql;
    for (const SchemaIndex& index : indexes()) {
        fmt::format_to(std::back_inserter(sql), "CREATE INDEX IF NOT EXISTS \"{0}.{1}\" ON {0}(\"{1}\");\n",
                       index.table, index.column);
    }
    return sql;
}

}  // namespace shardscope::traces::schema
