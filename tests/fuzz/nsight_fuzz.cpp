// Exports of Nsight Systems with values that no export should have: a small export with everything that we
// read (old and new metadata, NCCL's ranges with payloads, graphs, memory), in which the fuzzer's bytes set
// cells, and drop and rename columns and tables. It is loaded and analysed: the result is a StoreError, or
// answers whose sums agree. (fuzz_database fuzzes the bytes of databases.)
#include <cstdlib>
#include <filesystem>
#include <numeric>

#include <fmt/core.h>
#include <sqlite3.h>
#include <unistd.h>

#include "tests/fuzz/made_values.h"
#include "traces/analysis/communication/collectives.h"
#include "traces/analysis/fsdp/units.h"
#include "traces/analysis/memory/memory.h"
#include "traces/analysis/modules/modules.h"
#include "traces/analysis/path/critical_path.h"
#include "traces/analysis/time/idle.h"
#include "traces/analysis/time/summary.h"
#include "traces/schema/rows.h"
#include "traces/store/columns/names.h"
#include "traces/store/columns/trace.h"
#include "traces/store/error.h"
#include "traces/store/load/loader.h"

namespace {

using namespace shardscope::traces;
using namespace shardscope::traces::analysis;

constexpr const char* kTables[] = {"StringIds",
                                   "CUPTI_ACTIVITY_KIND_KERNEL",
                                   "CUPTI_ACTIVITY_KIND_RUNTIME",
                                   "CUPTI_ACTIVITY_KIND_MEMCPY",
                                   "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
                                   "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
                                   "NVTX_EVENTS",
                                   "NVTX_PAYLOAD_SCHEMA_ENTRIES",
                                   "CUDA_GPU_MEMORY_USAGE_EVENTS",
                                   "TARGET_INFO_GPU",
                                   "META_DATA_EXPORT",
                                   "ThreadNames"};

// CREATE and INSERT statements of all tables, in one transaction.
std::string export_sql() {
    const auto pid = schema::global_pid(9), tid = schema::global_tid(9, 9);
    std::string sql =
        "BEGIN; CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);"
        "INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'void gemm<4>(int)'), (3, 'cudaLaunchKernel_v7000'), "
        "(4, 'ncclDevKernel_AllGather_RING_LL'), (5, 'ncclAllGather'), (6, 'NCCL'), (7, 'nn.Module: "
        "Linear_0'), "
        "(8, 'aten::mm, seq = 3, op_id = 4, sizes = [[2, 3]]'), (9, 'cudaStreamSynchronize_v3020'), "
        "(10, 'FSDP::all_gather (layers.0)'), (11, 'ProfilerStep#0'), (12, 'ncclCommInitRank');"
        "CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);"
        "INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.25.0');"
        "CREATE TABLE TARGET_INFO_GPU (id INT, name TEXT, totalMemory INTEGER, smCount INT, chipName TEXT);"
        "INSERT INTO TARGET_INFO_GPU VALUES (0, 'GPU', 16000000000, 80, 'x');"
        "CREATE TABLE ThreadNames (nameId INT, priority INT, globalTid INTEGER);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INT, contextId INT, "
        "streamId "
        "INT, correlationId INT, globalPid INTEGER, demangledName INT, shortName INT, gridX INT, gridY INT, "
        "gridZ "
        "INT, blockX INT, blockY INT, blockZ INT, graphNodeId INTEGER);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, eventClass INT, globalTid "
        "INTEGER, "
        "correlationId INT, nameId INT, returnValue INT);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INT, contextId INT, "
        "streamId "
        "INT, correlationId INT, globalPid INTEGER, bytes INTEGER, copyKind INT);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER, end INTEGER, deviceId INT, "
        "contextId INT, "
        "streamId INT, correlationId INT, globalPid INTEGER, syncType INT, eventId INT);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start, end, deviceId, graphId, contextId, streamId, "
        "correlationId, globalPid);"
        "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INT, rangeId INT, text TEXT, "
        "globalTid "
        "INTEGER, endGlobalTid INTEGER, textId INT, domainId INT, jsonTextId INT, binaryData BLOB);"
        "CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId INT, schemaId INT, idx INT, type INT, name TEXT, "
        "offset "
        "INT);"
        "INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES (1, 16777220, 0, 18, 'NCCL communicator ID', NULL), "
        "(1, 16777220, 1, 22, 'Message size [bytes]', 8), (1, 16777216, 0, 18, 'NCCL communicator ID', "
        "NULL), "
        "(1, 16777216, 1, 5, 'No. of ranks', 8);"
        "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INTEGER, globalPid INTEGER, deviceId INT, "
        "contextId INT, "
        "address INTEGER, pc INTEGER, bytes INTEGER, memKind INT, memoryOperationType INT, name TEXT, "
        "correlationId "
        "INT, streamId INT);";
    sql += fmt::format(
        "INSERT INTO NVTX_EVENTS (start, eventType, text, domainId, globalTid) VALUES (0, 75, 'NCCL', 1, "
        "{0});"
        "INSERT INTO NVTX_EVENTS (start, end, eventType, textId, domainId, globalTid) VALUES (0, 900, 59, "
        "11, 0, "
        "{0}), (10, 800, 59, 7, 0, {0}), (20, 300, 59, 8, 0, {0}), (310, 500, 59, 10, 0, {0}), (1, 5, 59, "
        "12, 1, "
        "{0});",
        tid);
    // A communicator and 1024 bytes, as NCCL describes a collective.
    constexpr std::uint64_t kCall[2] = {0xC0FFEE01, 1024};
    std::string payload;
    for (const char byte :
         schema::binary_payload((1 << 24) + 4, {reinterpret_cast<const char*>(kCall), sizeof kCall}))
        payload += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    for (int i = 0; i < 4; ++i) {
        const int at = 30 + 100 * i;
        sql += fmt::format(
            "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES ({0}, {1}, 0, {2}, {3}, 3, 0), ({4}, {5}, 0, "
            "{2}, {6}, 9, "
            "0);"
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({1} + 5, {1} + 60, 0, 1, 7, {3}, {7}, 2, {8}, 1, "
            "1, 1, 32, "
            "1, 1, NULL);"
            "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES ({1} + 60, {1} + 70, 0, 1, 8, {6}, {7}, 4096, 1);"
            "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES ({4}, {5}, 0, 1, 7, {6}, {7}, 3, 0);"
            "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES ({0}, {7}, 0, 1, {9}, 0, 512, 2, {10}, NULL, 0, "
            "7);"
            "INSERT INTO NVTX_EVENTS (start, end, eventType, textId, domainId, globalTid, binaryData) VALUES "
            "({0} - 2, "
            "{1} + 2, 59, 5, 1, {2}, x'{11}');",
            at, at + 10, tid, i + 1, at + 20, at + 70, 100 + i, pid, i % 2 == 0 ? 1 : 4, 4096 * (i / 2),
            i % 2, payload);
    }
    return sql + "COMMIT;";
}

struct Folder {
    Folder() {
        std::string name = (std::filesystem::temp_directory_path() / "fuzz-nsight-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) std::abort();
        path = name;
        sqlite3* database = nullptr;
        if (sqlite3_open(whole().c_str(), &database) != SQLITE_OK) std::abort();
        if (sqlite3_exec(database, export_sql().c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
            std::abort();
        sqlite3_close(database);
    }
    ~Folder() { std::filesystem::remove_all(path); }
    std::string whole() const { return path + "/whole.sqlite"; }
    std::string path;
};

std::string made_value(Maker& make) {
    switch (make.upto(6)) {
        case 0:
            return "NULL";
        case 1:
            return "'text'";
        case 2:
            return "1e300";
        case 3:
            return "x'00ff'";
        default:
            return std::to_string(make.number());
    }
}

// The fuzzer chooses the changes; those that SQLite refuses change nothing.
void change(sqlite3* database, Maker& make) {
    const std::string table = kTables[make.upto(static_cast<int>(std::size(kTables)) - 1)];
    std::string column;
    const int wanted = make.upto(15);
    sqlite3_stmt* columns = nullptr;
    const std::string list =
        fmt::format("SELECT name FROM pragma_table_info('{}') WHERE cid = {}", table, wanted);
    if (sqlite3_prepare_v2(database, list.c_str(), -1, &columns, nullptr) != SQLITE_OK) return;
    if (sqlite3_step(columns) == SQLITE_ROW)
        column = reinterpret_cast<const char*>(sqlite3_column_text(columns, 0));
    sqlite3_finalize(columns);
    if (column.empty()) return;
    std::string sql;
    switch (make.upto(20)) {
        case 0:
            sql = fmt::format("DROP TABLE {}", table);
            break;
        case 1:
            sql = fmt::format("ALTER TABLE {} RENAME COLUMN \"{}\" TO other", table, column);
            break;
        case 2:
            sql = fmt::format("DELETE FROM {}", table);
            break;
        case 3:
            sql = fmt::format("INSERT INTO {0} SELECT * FROM {0} LIMIT 100", table);
            break;
        default:
            sql = fmt::format("UPDATE {} SET \"{}\" = {} WHERE rowid % {} = 0", table, column,
                              made_value(make), 1 + make.upto(3));
    }
    sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr);
}

void check(const store::Trace& trace) {
    for (const RankSummary& rank : summarize(trace).ranks) {
        for (const StepSummary& step : rank.steps) {
            if (std::accumulate(step.ns.begin(), step.ns.end(), std::int64_t{0}) !=
                step.window_end - step.window_start)
                std::abort();
        }
    }
    for (const RankMemory& rank : memory_report(trace).ranks) {
        if (std::accumulate(rank.at_peak.begin(), rank.at_peak.end(), std::int64_t{0}) != rank.peak_bytes)
            std::abort();
    }
    module_view(trace);
    collectives_report(trace);
    units_report(trace);
    idle_report(trace);
    critical_path(trace);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const Folder folder;
    const std::string path = folder.path + "/export.sqlite";
    std::filesystem::copy_file(folder.whole(), path, std::filesystem::copy_options::overwrite_existing);
    Maker make(data, size);
    sqlite3* database = nullptr;
    if (sqlite3_open(path.c_str(), &database) != SQLITE_OK) std::abort();
    sqlite3_exec(database, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN", nullptr, nullptr,
                 nullptr);
    for (int changes = 0; changes < 24 && make.any(); ++changes) change(database, make);
    sqlite3_exec(database, "COMMIT", nullptr, nullptr, nullptr);
    sqlite3_close(database);
    try {
        check(*store::load_trace(path));
    } catch (const store::StoreError&) {  // refused with a message
    }
    return 0;
}
