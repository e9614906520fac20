// SQL that people run on SQLite exports of Nsight Systems, by kind, on a trace of ours: it runs unchanged and
// its answers are right. Sources of the kinds: NVIDIA's "Common SQLite examples" (user guide, export
// formats), answers on stackoverflow.com, and the scripts of TensorRT-LLM, pith-train, nsys-ai, nsys2json,
// pipit and PrettyNCU. The figures follow from sample_run.h: 2 ranks, 2 steps of 1 ms, rank 1 is 10 us later.
#include <cstring>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/sample_run.h"
#include "tests/traces/sql_rows.h"
#include "tests/traces/temporary_folder.h"
#include "traces/store/write/writer.h"

namespace shardscope::traces::store {
namespace TEST_FILE {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// The payload of ncclAllGather with NCCL's numbers and layout: schema 1 << 24 | 4, the communicator, then the
// bytes.
constexpr std::uint64_t kAllGatherSchema = (std::uint64_t{1} << 24) + 4;
constexpr std::uint64_t kCommunicator = 0x1122334455667788;
constexpr std::uint64_t kMessageBytes = 2048;

class NsightIdioms : public ::testing::Test {
  protected:
    NsightIdioms() : path_(folder_ / "run.sqlite") {
        DatabaseWriter writer(
            {.path = path_, .start_utc_ns = 1'700'000'000'000'000'000, .start_system_ns = 5});
        write_sample_run(writer);
        write_more(writer);
        writer.finish(3 * kSampleMs, 0);
        database_.emplace(path_, Database::Mode::read_write);
    }

    // Rows that the sample run lacks: a named category, a start/end range, a range that another thread ended,
    // and a payload.
    static void write_more(EventSink& sink) {
        sink.add(schema::RangeRow{.start = 0,
                                  .end = {},
                                  .event_type = schema::kNvtxCategory,
                                  .text = sink.intern("loading"),
                                  .global_tid = sample_tid(0),
                                  .category = 7});
        schema::RangeRow request{.start = 100 * kSampleUs,
                                 .end = 900 * kSampleUs,
                                 .event_type = schema::kNvtxStartEnd,
                                 .text = sink.intern("request"),
                                 .global_tid = sample_tid(0)};
        sink.add(request);
        request.text = sink.intern("handed over");
        request.end_global_tid = sample_tid(1);
        sink.add(request);

        const schema::StringId nccl = sink.intern("NCCL");
        schema::PayloadSchemaRow schema{
            .domain = nccl, .id = kAllGatherSchema, .name = "AllGather", .type = 1, .size = 16};
        schema.entries = {{.name = "NCCL communicator ID", .type = 18},
                          {.name = "Message size [bytes]", .type = 22, .offset = 8}};
        sink.add(schema);
        char payload[16];
        std::memcpy(payload, &kCommunicator, 8);
        std::memcpy(payload + 8, &kMessageBytes, 8);
        sink.add(
            schema::RangeRow{.start = 2500 * kSampleUs,
                             .end = 2510 * kSampleUs,
                             .text = sink.intern("ncclAllGather"),
                             .domain = nccl,
                             .global_tid = sample_tid(1),
                             .binary = schema::binary_payload(kAllGatherSchema, {payload, sizeof payload})});
    }

    std::vector<std::string> rows(std::string_view sql) { return sql_rows(*database_, sql); }

    TemporaryFolder folder_;
    std::string path_;
    std::optional<Database> database_;
};

// --- kernels ---------------------------------------------------------------------------------------------

TEST_F(NsightIdioms, KernelDurationsByName) {
    EXPECT_THAT(rows(R"(
        SELECT value AS name, count(*), sum(end - start) AS total, min(end - start), max(end - start)
        FROM CUPTI_ACTIVITY_KIND_KERNEL
        INNER JOIN StringIds ON StringIds.id = CUPTI_ACTIVITY_KIND_KERNEL.demangledName
        GROUP BY value ORDER BY total DESC)"),
                ElementsAre("sgemm(float*, int)|4|1200000|300000|300000",
                            "ncclDevKernel_AllGather_local|4|200000|50000|50000"));
}

TEST_F(NsightIdioms, TopKernelsWithTheirShareOfTheTime) {
    EXPECT_THAT(rows(R"(
        SELECT s.value, round(100.0 * sum(k.end - k.start) / (SELECT sum(end - start) FROM CUPTI_ACTIVITY_KIND_KERNEL), 1)
        FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON k.shortName = s.id
        GROUP BY k.shortName ORDER BY 2 DESC LIMIT 1)"),
                ElementsAre("sgemm|85.7"));  // 1200 of 1400 us
}

TEST_F(NsightIdioms, LaunchToKernelByCorrelationAlone) {
    // The join needs no process: correlation ids are unique in the file.
    const auto all = rows(R"(
        SELECT s.value, r.start, r.end, k.start - r.end AS queued, k.end - k.start
        FROM CUPTI_ACTIVITY_KIND_RUNTIME r
        JOIN CUPTI_ACTIVITY_KIND_KERNEL k USING (correlationId)
        JOIN StringIds s ON s.id = r.nameId ORDER BY r.start)");
    EXPECT_THAT(all, SizeIs(8));  // 2 ranks * 2 steps * 2 kernels, each with its one call
    EXPECT_EQ(all[0], "cudaLaunchKernelExC_v11060|62000|64000|36000|50000");  // 100 - 64 us
    EXPECT_THAT(all, Contains("cudaLaunchKernel_v7000|160000|162000|38000|300000"));
}

TEST_F(NsightIdioms, LaunchesLearnTheirKernelsByAlterAndUpdate) {
    EXPECT_THAT(rows(R"(
        ALTER TABLE CUPTI_ACTIVITY_KIND_RUNTIME ADD COLUMN name TEXT;
        ALTER TABLE CUPTI_ACTIVITY_KIND_RUNTIME ADD COLUMN kernelName TEXT;
        UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET kernelName =
            (SELECT value FROM StringIds
             JOIN CUPTI_ACTIVITY_KIND_KERNEL AS gpu
                 ON gpu.shortName = StringIds.id
                 AND CUPTI_ACTIVITY_KIND_RUNTIME.correlationId = gpu.correlationId);
        UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET name = (SELECT value FROM StringIds WHERE nameId = StringIds.id);
        SELECT name, kernelName, count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME GROUP BY name ORDER BY name)"),
                ElementsAre("cudaEventSynchronize_v3020|NULL|4",
                            "cudaLaunchKernelExC_v11060|ncclDevKernel_AllGather_local|4",
                            "cudaLaunchKernel_v7000|sgemm|4", "cudaMemcpyAsync_v3020|NULL|4",
                            "cudaMemsetAsync_v3020|NULL|4"));
}

TEST_F(NsightIdioms, KernelsTakeTheNameOfTheInnermostRange) {
    EXPECT_THAT(rows(R"(
        ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN nvtxRange TEXT;
        CREATE INDEX nvtx_start ON NVTX_EVENTS (start);
        UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET nvtxRange =
            (SELECT NVTX_EVENTS.text FROM NVTX_EVENTS
             JOIN CUPTI_ACTIVITY_KIND_RUNTIME ON NVTX_EVENTS.eventType = 59
                 AND NVTX_EVENTS.globalTid = CUPTI_ACTIVITY_KIND_RUNTIME.globalTid
                 AND NVTX_EVENTS.start <= CUPTI_ACTIVITY_KIND_RUNTIME.start
                 AND NVTX_EVENTS.end >= CUPTI_ACTIVITY_KIND_RUNTIME.end
             WHERE CUPTI_ACTIVITY_KIND_KERNEL.correlationId = CUPTI_ACTIVITY_KIND_RUNTIME.correlationId
             ORDER BY NVTX_EVENTS.start DESC LIMIT 1);
        SELECT nvtxRange, count(*), sum(end - start) FROM CUPTI_ACTIVITY_KIND_KERNEL GROUP BY nvtxRange ORDER BY 1)"),
                ElementsAre("ncclAllGather|4|200000", "nn.Module: Linear_0|4|1200000"));
}

TEST_F(NsightIdioms, AllDeviceWorkWithItsCallAndGraphNode) {
    // As in TensorRT-LLM: kernels, copies and sets in one query, joined with the call, and twice with the
    // graph's nodes.
    const auto all = rows(R"(
        SELECT t.start, t.end, r.start, r.end, c.graphNodeId, o.graphNodeId, t.what FROM (
            SELECT start, end, correlationId, graphNodeId, 'kernel' AS what FROM CUPTI_ACTIVITY_KIND_KERNEL
            UNION ALL SELECT start, end, correlationId, graphNodeId, 'memcpy' FROM CUPTI_ACTIVITY_KIND_MEMCPY
            UNION ALL SELECT start, end, correlationId, graphNodeId, 'memset' FROM CUPTI_ACTIVITY_KIND_MEMSET) t
        JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON t.correlationId = r.correlationId
        LEFT JOIN CUDA_GRAPH_NODE_EVENTS c ON t.graphNodeId = c.graphNodeId
        LEFT JOIN CUDA_GRAPH_NODE_EVENTS o ON c.originalGraphNodeId = o.graphNodeId
        ORDER BY t.start)");
    EXPECT_THAT(all, SizeIs(16));
    EXPECT_EQ(all[0], "100000|150000|62000|64000|NULL|NULL|kernel");
    EXPECT_THAT(all, Contains("600000|620000|590000|592000|NULL|NULL|memcpy"));
    EXPECT_THAT(all, Contains("700000|705000|690000|692000|NULL|NULL|memset"));
}

TEST_F(NsightIdioms, CommunicationAndComputePerStream) {
    EXPECT_THAT(rows(R"(
        SELECT k.deviceId, k.streamId, sum(CASE WHEN s.value LIKE 'nccl%' THEN k.end - k.start ELSE 0 END) AS comm,
               sum(CASE WHEN s.value LIKE 'nccl%' THEN 0 ELSE k.end - k.start END) AS compute
        FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON k.shortName = s.id GROUP BY 1, 2 ORDER BY 1, 2)"),
                ElementsAre("0|1|0|600000", "0|2|100000|0", "1|1|0|600000", "1|2|100000|0"));
}

TEST_F(NsightIdioms, KernelsBetweenTwoTimes) {
    EXPECT_THAT(
        rows("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE start >= 1000000 AND end <= 2000000 "
             "AND deviceId = 1"),
        ElementsAre("2"));
}

// --- NVTX ------------------------------------------------------------------------------------------------

TEST_F(NsightIdioms, RangesByTextByTextIdAndByEither) {
    const auto by_text = rows(R"(
        SELECT text, start, end - start FROM NVTX_EVENTS
        WHERE eventType IN (59, 60) AND text IS NOT NULL ORDER BY start, end)");
    EXPECT_THAT(by_text, SizeIs(2 * 2 * 4 + 3));
    EXPECT_EQ(by_text[0], "ProfilerStep#0|0|1000000");
    EXPECT_THAT(by_text, Contains("nn.Module: Linear_0|150000|200000"));
    EXPECT_EQ(rows(R"(
        SELECT s.value, n.start, n.end - n.start FROM NVTX_EVENTS AS n JOIN StringIds AS s ON n.textId = s.id
        WHERE n.eventType IN (59, 60) ORDER BY n.start, n.end)"),
              by_text);
    EXPECT_EQ(rows(R"(
        SELECT COALESCE(s.value, n.text), n.start, n.end - n.start
        FROM NVTX_EVENTS n LEFT JOIN StringIds s ON n.textId = s.id
        WHERE n.eventType IN (59, 60) ORDER BY n.start, n.end)"),
              by_text);
}

TEST_F(NsightIdioms, EventTypesAreLookedUpByName) {
    EXPECT_THAT(rows(R"(
        SELECT e.name, count(*) FROM NVTX_EVENTS n JOIN ENUM_NSYS_EVENT_TYPE e ON e.id = n.eventType
        WHERE e.name IN ('NvtxPushPopRange', 'NvtxStartEndRange', 'NvtxMark', 'NvtxCategory') GROUP BY 1 ORDER BY 1)"),
                ElementsAre("NvtxCategory|1", "NvtxMark|4", "NvtxPushPopRange|17", "NvtxStartEndRange|2"));
}

TEST_F(NsightIdioms, TheNcclDomainIsFoundByItsFirstRow) {
    EXPECT_THAT(rows("SELECT domainId FROM NVTX_EVENTS WHERE eventType = 75 AND text = 'NCCL' LIMIT 1"),
                ElementsAre("1"));
    EXPECT_THAT(rows(R"(
        SELECT s.value, count(*), sum(n.end - n.start) FROM NVTX_EVENTS n JOIN StringIds s ON s.id = n.textId
        WHERE n.eventType IN (59, 60) AND n.domainId =
            (SELECT domainId FROM NVTX_EVENTS WHERE eventType = 75 AND text = 'NCCL')
        GROUP BY 1)"),
                ElementsAre("ncclAllGather|5|50000"));
}

TEST_F(NsightIdioms, CategoriesHaveNames) {
    EXPECT_THAT(rows(R"(
        WITH categories AS (SELECT category, domainId, text FROM NVTX_EVENTS WHERE eventType = 33)
        SELECT n.text, c.text, count(*) FROM NVTX_EVENTS n
        JOIN categories c ON n.category = c.category AND n.domainId = c.domainId
        WHERE n.eventType <> 33 GROUP BY 1)"),
                ElementsAre("a mark|loading|4"));
}

TEST_F(NsightIdioms, RangesProjectedOntoTheDevice) {
    // From the first start to the last end of the work that was launched in the range.
    const auto projected = rows(R"(
        SELECT n.text, min(k.start), max(k.end) - min(k.start), count(*)
        FROM NVTX_EVENTS n
        JOIN CUPTI_ACTIVITY_KIND_RUNTIME r
            ON r.globalTid = n.globalTid AND r.start >= n.start AND r.end <= n.end
        JOIN CUPTI_ACTIVITY_KIND_KERNEL k ON k.correlationId = r.correlationId
        WHERE n.eventType = 59 GROUP BY n.ROWID ORDER BY n.start)");
    EXPECT_THAT(projected, SizeIs(16));
    EXPECT_EQ(projected[0], "ProfilerStep#0|100000|400000|2");  // the gather from 100, sgemm to 500 us
    EXPECT_THAT(projected, Contains("nn.Module: FullyShardedDataParallel_0|100000|400000|2"));
    EXPECT_THAT(projected, Contains("ncclAllGather|100000|50000|1"));
    EXPECT_THAT(projected, Contains("nn.Module: Linear_0|200000|300000|1"));
}

TEST_F(NsightIdioms, NumberedRangesAndThoseThatAnotherThreadEnded) {
    EXPECT_THAT(rows(R"(
        SELECT text, rangeId IS NOT NULL, endGlobalTid IS NULL, endGlobalTid % 0x1000000
        FROM NVTX_EVENTS WHERE eventType = 60 ORDER BY text)"),
                ElementsAre("handed over|1|0|5001", "request|1|1|NULL"));
    EXPECT_THAT(rows("SELECT count(*), count(DISTINCT rangeId) FROM NVTX_EVENTS WHERE rangeId IS NOT NULL"),
                ElementsAre("2|2"));
}

TEST_F(NsightIdioms, RangesThatOverlapTheProfilersOwnWork) {
    const char* overlapping = R"(
        SELECT n.text FROM NVTX_EVENTS n JOIN PROFILER_OVERHEAD o
            ON o.globalTid = n.globalTid AND o.start < n.end AND o.end > n.start
        WHERE n.eventType = 59 ORDER BY n.start)";
    EXPECT_THAT(rows(overlapping), IsEmpty());  // these threads were never interrupted
    rows(
        "INSERT INTO PROFILER_OVERHEAD (start, end, globalTid, nameId, overheadType) "
        "SELECT 155000, 156000, globalTid, nameId, 0 FROM CUPTI_ACTIVITY_KIND_RUNTIME ORDER BY start LIMIT "
        "1");
    EXPECT_THAT(rows(overlapping), ElementsAre("ProfilerStep#0", "nn.Module: FullyShardedDataParallel_0",
                                               "nn.Module: Linear_0"));
}

TEST_F(NsightIdioms, PayloadsAreDecodedByTheirSchema) {
    // 32 bytes precede the payload: 1, the schema, the size, and 32 + size.
    EXPECT_THAT(rows(fmt::format(R"(
        SELECT n.text, e.name, {} FROM NVTX_EVENTS n
        JOIN NVTX_PAYLOAD_SCHEMAS p ON p.domainId = n.domainId AND p.schemaId = {}
        JOIN NVTX_PAYLOAD_SCHEMA_ENTRIES e ON e.domainId = p.domainId AND e.schemaId = p.schemaId
        WHERE n.binaryData IS NOT NULL ORDER BY n.start, e.idx)",
                                 number_at("n.binaryData", "32 + COALESCE(e.offset, 0)"),
                                 number_at("n.binaryData", "8"))),
                ElementsAre("ncclAllGather|NCCL communicator ID|" + std::to_string(kCommunicator),
                            "ncclAllGather|Message size [bytes]|2048"));
    EXPECT_THAT(
        rows("SELECT length(binaryData), typeof(binaryData) FROM NVTX_EVENTS WHERE binaryData IS NOT NULL"),
        ElementsAre("48|blob"));
    // Zeros are omitted, as in exports.
    EXPECT_THAT(rows("SELECT idx, type, offset, flags FROM NVTX_PAYLOAD_SCHEMA_ENTRIES ORDER BY idx"),
                ElementsAre("0|18|NULL|NULL", "1|22|8|NULL"));
}

// --- who and where ---------------------------------------------------------------------------------------

TEST_F(NsightIdioms, ProcessAndThreadAreDecodedFromTheSerializedIds) {
    EXPECT_THAT(rows(R"(
        SELECT DISTINCT globalTid / 0x1000000 % 0x1000000 AS PID, globalTid % 0x1000000 AS TID
        FROM CUPTI_ACTIVITY_KIND_RUNTIME ORDER BY TID)"),
                ElementsAre("4242|5000", "4242|5001"));
    EXPECT_THAT(rows("SELECT DISTINCT (globalTid >> 24) & 0xFFFFFF FROM NVTX_EVENTS"), ElementsAre("4242"));
    // The join in the other direction, as in the profiler's own reports.
    EXPECT_THAT(rows(R"(
        SELECT p.name, count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME r
        JOIN PROCESSES p ON p.globalPid == (r.globalTid & 0xFFFFFFFFFF000000))"),
                ElementsAre("shardscope-train|20"));
    EXPECT_THAT(rows("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN PROCESSES p USING (globalPid)"),
                ElementsAre("8"));
}

TEST_F(NsightIdioms, RangesHaveThreadNames) {
    EXPECT_THAT(rows(R"(
        SELECT s.value, count(*) FROM NVTX_EVENTS n
        JOIN ThreadNames t ON t.globalTid = n.globalTid JOIN StringIds s ON s.id = t.nameId
        WHERE n.eventType = 59 GROUP BY 1 ORDER BY 1)"),
                ElementsAre("rank 0|8", "rank 1|9"));
}

TEST_F(NsightIdioms, ADeviceBelongsToOneProcessAndOneRank) {
    EXPECT_THAT(rows(R"(
        SELECT deviceId, count(DISTINCT globalPid) FROM (
            SELECT deviceId, globalPid FROM CUPTI_ACTIVITY_KIND_KERNEL
            UNION SELECT deviceId, globalPid FROM CUPTI_ACTIVITY_KIND_MEMCPY
            UNION SELECT deviceId, globalPid FROM CUPTI_ACTIVITY_KIND_MEMSET) GROUP BY 1)"),
                ElementsAre("0|1", "1|1"));
    EXPECT_THAT(rows(R"(
        SELECT g.id, g.name, g.totalMemory, d.cudaId FROM TARGET_INFO_GPU g
        JOIN TARGET_INFO_CUDA_DEVICE d ON d.gpuId = g.id WHERE d.pid = 4242 ORDER BY g.id)"),
                ElementsAre("0|A processor|1073741824|0", "1|A processor|1073741824|1"));
    EXPECT_THAT(
        rows("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN TARGET_INFO_GPU g ON g.id = k.deviceId"),
        ElementsAre("8"));
}

TEST_F(NsightIdioms, TheSessionAndItsLength) {
    EXPECT_THAT(rows(R"(
        SELECT utcEpochNs / 1000000000, systemClockNs, (SELECT duration FROM ANALYSIS_DETAILS),
               (SELECT count(*) FROM PROCESSES), (SELECT count(*) FROM ThreadNames)
        FROM TARGET_INFO_SESSION_START_TIME)"),
                ElementsAre("1700000000|5|3000000|1|2"));
    EXPECT_THAT(rows("SELECT value FROM META_DATA_EXPORT WHERE name = 'EXPORT_SCHEMA_VERSION'"),
                ElementsAre("3.25.0"));
    EXPECT_THAT(rows("SELECT value FROM META_DATA_EXPORT WHERE name = 'EXPORT_SCHEMA_VERSION_MAJOR'"),
                ElementsAre("3"));
}

// GPU time by process, as scripts print it for jobs of several ranks: unnamed processes have a row, too.
TEST(NsightIdiomsOfProcesses, KernelTimeByProcess) {
    const TemporaryFolder folder;
    const std::string path = folder / "run.sqlite";
    DatabaseWriter writer({.path = path});
    const schema::StringId gemm = writer.intern("gemm");
    for (int r = 0; r < 2; ++r) {
        const std::int64_t process = schema::global_pid(100 + r);
        writer.add(
            schema::RankRow{.rank = r, .device = r, .global_pid = process, .host = {}, .device_name = {}});
        if (r == 0) writer.add(schema::ProcessRow{.global_pid = process, .pid = 100, .name = "train"});
        writer.add(schema::KernelRow{.start = 0,
                                     .end = 10 + r,
                                     .device = r,
                                     .correlation = r + 1,
                                     .global_pid = process,
                                     .short_name = gemm});
        writer.add(schema::RuntimeRow{.start = 0,
                                      .end = 1,
                                      .global_tid = schema::global_tid(100 + r, 7),
                                      .correlation = r + 1,
                                      .name = writer.intern("cudaLaunchKernel")});
    }
    writer.finish(100, 0);
    Database database(path, Database::Mode::read_only);
    EXPECT_THAT(sql_rows(database, R"(
        SELECT p.pid, p.name, count(*), sum(k.end - k.start)
        FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN PROCESSES p ON p.globalPid = k.globalPid
        GROUP BY p.globalPid ORDER BY p.pid)"),
                ElementsAre("100|train|1|10", "101|NULL|1|11"));
    EXPECT_THAT(sql_rows(database, R"(
        SELECT p.pid, count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME r
        JOIN PROCESSES p ON p.globalPid == (r.globalTid & 0xFFFFFFFFFF000000) GROUP BY 1 ORDER BY 1)"),
                ElementsAre("100|1", "101|1"));
}

// Scripts check that a table exists before they use it, and the check finds only real tables.
TEST_F(NsightIdioms, TablesAreTables) {
    EXPECT_THAT(rows(R"(
        SELECT name FROM sqlite_master WHERE type = 'table' AND name IN (
            'StringIds', 'CUPTI_ACTIVITY_KIND_KERNEL', 'CUPTI_ACTIVITY_KIND_MEMCPY', 'CUPTI_ACTIVITY_KIND_MEMSET',
            'CUPTI_ACTIVITY_KIND_RUNTIME', 'CUPTI_ACTIVITY_KIND_SYNCHRONIZATION', 'NVTX_EVENTS', 'PROCESSES',
            'ThreadNames', 'TARGET_INFO_GPU', 'CUDA_GPU_MEMORY_USAGE_EVENTS', 'CUDA_GRAPH_NODE_EVENTS'))"),
                SizeIs(12));
    EXPECT_THAT(
        rows(
            "SELECT name FROM pragma_table_info('CUPTI_ACTIVITY_KIND_KERNEL') WHERE name = 'greenContextId'"),
        SizeIs(1));
}

// --- memory and waiting ----------------------------------------------------------------------------------

TEST_F(NsightIdioms, CopiesByKind) {
    EXPECT_THAT(rows(R"(
        SELECT o.label, src.label, dst.label, count(*), sum(m.bytes), sum(m.end - m.start)
        FROM CUPTI_ACTIVITY_KIND_MEMCPY m
        JOIN ENUM_CUDA_MEMCPY_OPER o ON o.id = m.copyKind
        LEFT JOIN ENUM_CUDA_MEM_KIND src ON src.id = m.srcKind
        LEFT JOIN ENUM_CUDA_MEM_KIND dst ON dst.id = m.dstKind GROUP BY m.copyKind)"),
                ElementsAre("Host-to-Device|Pinned|Device|4|4096|80000"));
    EXPECT_THAT(rows(R"(
        SELECT k.label, count(*), sum(bytes) FROM CUPTI_ACTIVITY_KIND_MEMSET m
        JOIN ENUM_CUDA_MEM_KIND k ON k.id = m.memKind GROUP BY 1)"),
                ElementsAre("Device|4|2048"));
}

TEST_F(NsightIdioms, MemoryInUseOverTime) {
    EXPECT_THAT(rows(R"(
        SELECT start, sum(CASE o.label WHEN 'Allocation' THEN bytes ELSE -bytes END)
            OVER (PARTITION BY deviceId ORDER BY start) AS in_use
        FROM CUDA_GPU_MEMORY_USAGE_EVENTS m
        JOIN ENUM_CUDA_DEV_MEM_EVENT_OPER o ON o.id = m.memoryOperationType
        WHERE deviceId = 0 AND memKind = 2 ORDER BY start)"),
                ElementsAre("0|1000", "90000|5096", "560000|1000", "1090000|5096", "1560000|1000"));
}

TEST_F(NsightIdioms, WaitingByKind) {
    EXPECT_THAT(rows(R"(
        SELECT t.label, count(*), sum(s.end - s.start) FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION s
        JOIN ENUM_CUPTI_SYNC_TYPE t ON t.id = s.syncType GROUP BY 1)"),
                ElementsAre("Event sync|4|8000"));
    EXPECT_THAT(rows("SELECT DISTINCT streamId FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"),
                ElementsAre("4294967295"));
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::store
