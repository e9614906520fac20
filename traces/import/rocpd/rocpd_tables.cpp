#include "traces/import/rocpd/rocpd_tables.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "traces/store/error.h"

namespace shardscope::traces::importer {

namespace {

// The columns that are read. A table that lacks one has NULL in its place.
struct RocpdTable {
    const char* name;
    bool needed;  // whether a file without it cannot be read
    std::initializer_list<const char*> columns;
};
const RocpdTable kRocpdTables[] = {
    {"rocpd_string", true, {"id", "string"}},
    {"rocpd_info_node", false, {"id", "hostname"}},
    {"rocpd_info_process", true, {"id", "nid", "pid", "command"}},
    {"rocpd_info_thread", true, {"id", "pid", "tid", "name"}},
    {"rocpd_info_agent", true, {"id", "type", "type_index", "name", "model_name", "product_name"}},
    {"rocpd_info_kernel_symbol", false, {"id", "kernel_name", "display_name"}},
    {"rocpd_event", true, {"id", "category_id", "stack_id", "extdata"}},
    {"rocpd_arg", false, {"event_id", "name", "value"}},
    {"rocpd_track", false, {"id", "pid", "tid"}},
    {"rocpd_sample", false, {"track_id", "timestamp", "event_id"}},
    {"rocpd_region", true, {"pid", "tid", "start", "end", "name_id", "event_id"}},
    {"rocpd_kernel_dispatch",
     true,
     {"pid", "agent_id", "kernel_id", "stream_id", "start", "end", "event_id", "grid_size_x", "grid_size_y",
      "grid_size_z", "workgroup_size_x", "workgroup_size_y", "workgroup_size_z", "group_segment_size",
      "private_segment_size"}},
    {"rocpd_memory_copy",
     true,
     {"pid", "start", "end", "dst_agent_id", "src_agent_id", "size", "stream_id", "event_id"}},
    {"rocpd_memory_allocate",
     false,
     {"id", "pid", "tid", "agent_id", "type", "level", "start", "address", "size"}},
};

// A temporary view of the rows of all processes.
void make_view(store::Database& database, const std::string& file, const RocpdTable& table) {
    std::vector<std::string> names;
    store::Statement tables(
        database, "SELECT name FROM main.sqlite_master WHERE type = 'table' AND rootpage > 0 ORDER BY 1");
    const std::string joined = fmt::format("{}_", table.name);
    while (tables.step()) {
        if (tables.text(0) == table.name || tables.text(0).starts_with(joined))
            names.emplace_back(tables.text(0));
    }
    if (names.empty() && table.needed)
        throw store::StoreError(
            fmt::format("{}: a rocpd database without the table {}; record it again with rocprofv3 of "
                        "ROCm 7 or later",
                        file, table.name));
    const auto columns_of = [&](const std::string& name) {
        std::string list;
        const auto add = [&](const char* column) {
            const std::string quoted = store::quoted_name(column);
            const bool has = !name.empty() && database.has_column(name, column);
            list += fmt::format("{}{}{}", list.empty() ? "" : ", ", has ? "" : "NULL AS ", quoted);
        };
        add("guid");
        for (const char* column : table.columns) add(column);
        return list;
    };
    std::string rows;
    for (const std::string& name : names)
        rows += fmt::format("{}SELECT {} FROM main.{}", rows.empty() ? "" : " UNION ALL ", columns_of(name),
                            store::quoted_name(name));
    if (names.empty()) rows = fmt::format("SELECT {} WHERE 0", columns_of(""));
    database.execute(fmt::format("CREATE TEMP VIEW {} AS {}", table.name, rows));
}

}  // namespace

RocpdTables::RocpdTables(store::Database& database, const std::string& name) : database_(database) {
    for (const RocpdTable& table : kRocpdTables) make_view(database, name, table);
}

std::int64_t RocpdTables::begin() const {
    constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
    std::int64_t first = kNone;
    for (const char* view : {"rocpd_region", "rocpd_kernel_dispatch", "rocpd_memory_copy"}) {
        store::Statement least(database_, fmt::format("SELECT MIN(start) FROM {}", view));
        if (least.step()) first = std::min(first, least.integer_or(0, kNone));
    }
    return first != kNone ? first : 0;
}

RocpdKey RocpdTables::key(const store::Statement& row, int id) {
    const std::string_view guid = row.text(0);
    if (guid != last_guid_ || guids_.empty()) {  // most rows have the guid of the previous row
        last_guid_ = guid;
        last_number_ = guids_.emplace(last_guid_, static_cast<int>(guids_.size())).first->second;
    }
    return {last_number_, row.integer(id)};
}

}  // namespace shardscope::traces::importer
