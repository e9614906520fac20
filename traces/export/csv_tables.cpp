#include "traces/export/csv_tables.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>

#include <fmt/core.h>
#include <sys/stat.h>

#include "traces/export/text_output.h"
#include "traces/schema/text.h"
#include "traces/store/apart.h"
#include "traces/store/sqlite/open.h"

namespace shardscope::traces::exports {

namespace fs = std::filesystem;

namespace {

struct Table {
    std::string_view name, sql;
};

// docs/schema.md describes the columns, which are those of the schema's views.
constexpr std::array<Table, 11> kTables = {{
    {"events",
     R"(SELECT rank, device, stream, stream_name, kind, name, start_ns, duration_ns, bytes, correlation FROM (
SELECT rank, device, stream, stream_name, CASE WHEN communication THEN 'communication' ELSE 'kernel' END AS kind, name,
       start_ns, duration_ns, NULL AS bytes, correlation FROM kernels
UNION ALL
SELECT rank, device, stream, stream_name, 'memcpy', kind, start_ns, duration_ns, bytes, correlation FROM memcpys
UNION ALL
SELECT coalesce(r.rank, (SELECT max(p.rank) FROM SHARD_RANKS p WHERE p.globalPid = t.globalPid GROUP BY p.globalPid HAVING count(*) = 1)),
       t.deviceId, t.streamId, s.name, 'memset', 'Memset', t.start, t."end" - t.start, t.bytes, t.correlationId
FROM CUPTI_ACTIVITY_KIND_MEMSET t LEFT JOIN SHARD_RANKS r ON r.deviceId = t.deviceId
LEFT JOIN SHARD_STREAMS s ON s.rank = r.rank AND s.streamId = t.streamId))"},
    {"ranges", "SELECT rank, thread, domain, name, module, start_ns, duration_ns FROM ranges"},
    {"calls", "SELECT rank, thread, name, start_ns, duration_ns, correlation FROM calls"},
    {"collectives",
     "SELECT rank, operation, group_id, group_size AS group_size_ranks, sequence, unit, phase, stream, "
     "start_ns, "
     "duration_ns, bytes, padding AS padding_bytes, correlation FROM collectives"},
    {"memory",
     "SELECT rank, time_ns, bytes, category, space, phase, unit, module, name, address, stream FROM memory"},
    {"counters", "SELECT rank, host, device, time_ns, name, value FROM counters"},
    {"samples", "SELECT rank, thread, time_ns, event, weight, function, stack FROM samples"},
    {"metrics", "SELECT rank, step, sample, time_ns, name, value FROM metrics"},
    {"steps", "SELECT rank, step, start_ns, duration_ns, loss FROM steps"},
    {"modules",
     "SELECT rank, id, parent, path, name, class, unit, parameters AS parameters_elements, calls, host_ns "
     "FROM "
     "modules"},
    {"units",
     "SELECT rank, id, name, module, elements, padded_elements, shard_bytes, bytes, gathers, gathered_bytes, "
     "gather_ns, reductions, reduced_bytes, reduce_ns FROM units"},
}};

void append_value(std::string& to, const store::Statement& row, int column) {
    switch (row.type(column)) {
        case store::ValueType::null:
            return;
        case store::ValueType::integer:
            fmt::format_to(std::back_inserter(to), "{}", row.integer(column));
            return;
        case store::ValueType::real:
            fmt::format_to(std::back_inserter(to), "{}", row.real(column));
            return;
        default:
            schema::append_csv(to, cut_name(row.text(column)));
    }
}

std::int64_t write_table(store::Database& database, const Table& table, const std::string& path,
                         bool overwrite, const merge::WorkOptions& work) {
    TextOutput file(path, overwrite, false);
    store::Statement row(database, table.sql);
    const int columns = row.column_count();
    for (int c = 0; c < columns; ++c) {
        if (c > 0) file.buffer() += ',';
        schema::append_csv(file.buffer(), row.column_name(c));
    }
    file.buffer() += "\r\n";
    std::int64_t rows = 0;
    merge::WorkWatch watch(work, 0, 0);
    for (; row.step(); ++rows) {
        for (int c = 0; c < columns; ++c) {
            if (c > 0) file.buffer() += ',';
            append_value(file.buffer(), row, c);
        }
        file.buffer() += "\r\n";
        file.flush_if_full();
        watch.row();
    }
    file.finish();
    return rows;
}

}  // namespace

std::vector<CsvTable> export_csv(const std::string& input, const std::string& folder, bool overwrite,
                                 const merge::WorkOptions& work) {
    store::Database database = store::open_trace(input);
    trust_tables_only(database);
    std::error_code error;
    if (fs::exists(folder, error) && !fs::is_directory(folder, error))
        throw store::StoreError(fmt::format("{} is a file; give a folder for the CSV files", folder));
    if (::mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
        throw store::StoreError(fmt::format("the folder {} cannot be made ({}); choose another path", folder,
                                            std::strerror(errno)));
    }
    const auto path_of = [&](const Table& table) { return fmt::format("{}/{}.csv", folder, table.name); };
    for (const Table& table : kTables) {
        store::check_apart({input}, path_of(table));
        TextOutput::check(path_of(table), overwrite);
    }
    std::vector<CsvTable> tables;
    for (const Table& table : kTables) {
        const std::int64_t rows = write_table(database, table, path_of(table), overwrite, work);
        tables.push_back({fmt::format("{}.csv", table.name), rows});
        if (work.progress)
            work.progress(static_cast<double>(tables.size()) / static_cast<double>(kTables.size()));
    }
    return tables;
}

}  // namespace shardscope::traces::exports
