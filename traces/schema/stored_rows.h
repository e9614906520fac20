// Rows that a database derives from those that a source hands to a sink (rows.h): parts of them, texts and
// sums.
#pragma once

#include <cstdint>
#include <string_view>

#include "traces/schema/rows.h"

namespace shardscope::traces::schema {

struct StringRow {
    static constexpr std::string_view kTable = "StringIds";
    std::int64_t id = 0;
    std::string_view value;
};

// A payload's layout, with the number of its domain; each entry is a row of its own.
struct StoredSchemaRow {
    static constexpr std::string_view kTable = "NVTX_PAYLOAD_SCHEMAS";
    std::int64_t domain = 0;
    PayloadSchemaRow schema;
};
struct SchemaEntryRow {
    static constexpr std::string_view kTable = "NVTX_PAYLOAD_SCHEMA_ENTRIES";
    std::int64_t domain = 0;
    std::uint64_t schema = 0;
    std::size_t index = 0;
    PayloadSchemaRow::Entry entry;
};

struct StoredEnumRow {
    static constexpr std::string_view kTable = "NVTX_PAYLOAD_ENUMS";
    std::int64_t domain = 0;
    PayloadEnumRow enumeration;
};
struct EnumEntryRow {
    static constexpr std::string_view kTable = "NVTX_PAYLOAD_ENUM_ENTRIES";
    std::int64_t domain = 0;
    std::uint64_t enumeration = 0;
    std::size_t index = 0;
    PayloadEnumRow::Entry entry;
};

struct StoredScopeRow {
    static constexpr std::string_view kTable = "NVTX_SCOPES";
    std::int64_t domain = 0;
    ScopeRow scope;
};

// What a device or a process did under one name.
struct TotalRow {
    static constexpr std::string_view kTable = "SHARD_TOTALS";
    std::string_view source;
    std::int64_t device = -1, global_pid = 0, name = 0;
    std::int64_t count = 0, total = 0, shortest = 0, longest = 0;
};

}  // namespace shardscope::traces::schema
