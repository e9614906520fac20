#include "traces/merge/part.h"

#include <algorithm>

#include <fmt/core.h>

#include "traces/schema/column_roles.h"
#include "traces/schema/schema.h"
#include "traces/store/columns/device_streams.h"
#include "traces/store/sqlite/open.h"

namespace shardscope::traces::merge {

namespace {

constexpr const char* kDeviceTables[] = {"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY",
                                         "CUPTI_ACTIVITY_KIND_MEMSET"};
constexpr std::int64_t kRowsAtMost = std::int64_t{1} << 48;  // no file has more; a damaged one may claim it
constexpr const char* kThreadTables[] = {"CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"};

}  // namespace

void NumberSpan::add(std::int64_t number) {
    first = empty() ? number : std::min(first, number);
    last = empty() ? first : last;
    last = std::max(last, number);
}

Part::Part(const std::string& file) : path(file), database(store::open_trace(file)) {
    // The connection cannot write the trace. A sort's temporary tables may not fit in memory.
    database.execute("PRAGMA query_only = OFF; PRAGMA temp_store = FILE; PRAGMA cache_size = -65536;");
    // One transaction: a consistent view of the file, even while the run still writes it.
    database.execute("BEGIN");
    ours = database.has_table("SHARD_STATE");
    if (ours) {
        store::Statement state(database, "SELECT ended, dropped FROM SHARD_STATE");
        ended = state.step() && state.integer(0) != 0;
        dropped = database.integer("SELECT dropped FROM SHARD_STATE");
        store::Statement facts(database, "SELECT key, value FROM SHARD_RUN ORDER BY rowid");
        while (facts.step()) run_facts.emplace_back(facts.text(0), facts.text(1));
    }
    read_clocks();
    read_ranks();
    read_processes();
    read_measures();
    read_extent();
}

bool Part::has_table(std::string_view table) {
    store::Statement statement(database,
                               "SELECT 1 FROM main.sqlite_master WHERE name = ?1 AND type = 'table'");
    statement.bind(1, table);
    return statement.step();
}

void Part::read_clocks() {
    if (!has_table("TARGET_INFO_SESSION_START_TIME")) return;
    const auto value = [&](const char* column) {
        return database.has_column("TARGET_INFO_SESSION_START_TIME", column)
                   ? database.integer(fmt::format("SELECT {} FROM TARGET_INFO_SESSION_START_TIME", column))
                   : 0;
    };
    utc_ns = value("utcEpochNs");
    system_ns = value("systemClockNs");
}

void Part::read_ranks() {
    if (!ours) return make_up_ranks();
    store::Statement row(database,
                         "SELECT rank, deviceId, globalPid, globalTid, host FROM SHARD_RANKS ORDER BY rank");
    while (row.step()) {
        ranks.push_back(
            {row.integer(0), row.integer(1), row.integer(2), row.integer(3), std::string(row.text(4))});
        if (!ranks.back().host.empty()) hosts.emplace(machine_of(row.integer(2)), row.text(4));
    }
    store::Statement thread(database, "SELECT globalTid, rank FROM SHARD_THREADS");
    while (thread.step()) rank_of_thread[thread.integer(0)] = thread.integer(1);
    for (const PartRank& rank : ranks) {
        if (rank.global_tid != 0) rank_of_thread.emplace(rank.global_tid, rank.rank);
    }
}

void Part::read_measures() {
    if (!ours || !has_table("SHARD_CLOCKS") || hosts.empty()) return;
    store::Statement row(database,
                         "SELECT c.time, c.offset, c.uncertainty FROM SHARD_CLOCKS c JOIN SHARD_RANKS r "
                         "ON r.rank = c.rank WHERE r.host = ?1");
    row.bind(1, std::string_view(hosts.begin()->second));
    while (row.step()) measures.push_back({row.integer(0), row.integer(1), row.integer(2)});
}

// As in the loader, each process that used a device counts as a rank.
void Part::make_up_ranks() {
    std::set<store::DeviceOfProcess> pairs;
    for (const char* table : kDeviceTables) {
        if (!has_table(table) || !database.has_column(table, "globalPid")) continue;
        store::Statement row(
            database,
            fmt::format("SELECT DISTINCT deviceId, globalPid FROM {} WHERE globalPid NOT NULL", table));
        while (row.step()) pairs.emplace(row.integer(0), row.integer(1));
    }
    for (const auto& [device, pid] : store::ranks_of_processes(pairs))
        ranks.push_back({static_cast<std::int64_t>(ranks.size()), device, pid, 0, {}});
}

void Part::read_processes() {
    if (has_table("PROCESSES")) {
        store::Statement row(database, "SELECT globalPid, name FROM PROCESSES WHERE globalPid NOT NULL");
        while (row.step()) processes.emplace(row.integer(0), row.text(1));
    }
    for (const PartRank& rank : ranks) processes.emplace(rank.global_pid, "");
    for (const auto& [thread, rank] : rank_of_thread) processes.emplace(thread & schema::kPidMask, "");
    if (processes.empty()) {  // an export in which only threads name their processes
        for (const char* table : kThreadTables) {
            if (!has_table(table)) continue;
            store::Statement row(database,
                                 fmt::format("SELECT DISTINCT globalTid / 16777216 * 16777216 FROM {} "
                                             "WHERE globalTid NOT NULL",
                                             table));
            while (row.step()) processes.emplace(row.integer(0), "");
        }
    }
    if (has_table("TARGET_INFO_SYSTEM_ENV")) {
        store::Statement row(database,
                             "SELECT globalVid, value FROM TARGET_INFO_SYSTEM_ENV WHERE name = 'Hostname'");
        while (row.step()) {
            const std::int64_t machine = row.is_null(0) ? 1 : machine_of(row.integer(0));
            hosts.emplace(machine, row.text(1));
        }
    }
    for (PartRank& rank : ranks) {
        if (const auto it = hosts.find(machine_of(rank.global_pid)); rank.host.empty() && it != hosts.end())
            rank.host = it->second;
    }
}

void Part::read_extent() {
    if (has_table("ANALYSIS_DETAILS") && database.has_column("ANALYSIS_DETAILS", "stopTime"))
        end_ns = database.integer("SELECT max(stopTime) FROM ANALYSIS_DETAILS");
    const bool told = end_ns > 0;
    for (const auto tables : {schema::nsight_tables(), schema::shard_tables()}) {
        for (const schema::SchemaTable& table : tables) {
            if (table_role(table) == schema::TableRole::made || !has_table(table.name)) continue;
            // Rows of events are numbered from 1, which is not true of facts: their rowid may be their key.
            if (table_role(table) == schema::TableRole::events)
                rows += std::clamp<std::int64_t>(
                    database.integer(fmt::format("SELECT max(rowid) FROM \"{}\"", table.name)), 0,
                    kRowsAtMost);
            if (told || !database.has_column(table.name, "end")) continue;
            end_ns = std::max(end_ns,
                              database.integer(fmt::format("SELECT max(\"end\") FROM \"{}\"", table.name)));
        }
    }
}

}  // namespace shardscope::traces::merge
