// Every kind of row that a database keeps, column by column, as plain SQL sees it. -1 and "none" are NULL.
// The rows that the loader reads back are tested in round_trip_test.cpp.
#include "traces/store/write/writer.h"

#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/sql_rows.h"
#include "tests/traces/temporary_folder.h"
#include "traces/store/columns/owners.h"
#include "traces/store/load/loader.h"
#include "traces/store/sqlite/temporary_file.h"

namespace shardscope::traces::store {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class EveryRow : public ::testing::Test {
  protected:
    EveryRow() : path_(folder_ / "run.sqlite"), writer_({.path = path_}) {}
    schema::StringId name(std::string_view text) { return writer_.intern(text); }
    // The rows of a table, without the columns that are NULL in all rows: "name=value" joined by blanks.
    std::vector<std::string> rows(const std::string& table) {
        if (!database_) {
            writer_.finish(1000, 0);
            database_.emplace(path_, Database::Mode::read_only);
        }
        std::vector<std::string> result;
        Statement statement(*database_, "SELECT * FROM " + table + " ORDER BY rowid");
        while (statement.step()) {
            std::string& row = result.emplace_back();
            for (int c = 0; c < statement.column_count(); ++c) {
                if (statement.is_null(c)) continue;
                row += (row.empty() ? "" : " ") + statement.column_name(c) + "=" + sql_cell(statement, c);
            }
        }
        return result;
    }
    std::vector<std::string> answer(const std::string& sql) {
        rows("SHARD_STATE");
        return sql_rows(*database_, sql);
    }
    // The id that StringIds has for a text.
    std::string id(std::string_view text) { return std::to_string(static_cast<int>(writer_.intern(text))); }

    TemporaryFolder folder_;
    std::string path_;
    DatabaseWriter writer_;
    std::optional<Database> database_;
};

TEST_F(EveryRow, KeepsAllOfAKernel) {
    schema::KernelRow row{.start = 10, .end = 20, .device = 3, .stream = 7, .correlation = 99};
    row.global_pid = schema::global_pid(5);
    row.short_name = name("gemm");
    row.demangled_name = name("gemm(float*)");
    row.mangled_name = name("_Z4gemmPf");
    const int grid[] = {11, 12, 13}, block[] = {21, 22, 23}, cluster[] = {2, 1, 1};
    std::copy(grid, grid + 3, row.grid);
    std::copy(block, block + 3, row.block);
    std::copy(cluster, cluster + 3, row.cluster);
    row.context = 2;
    row.launch_type = 1;
    row.cache_config = 0;
    row.registers = 64;
    row.static_shared_memory = 1024;
    row.dynamic_shared_memory = 2048;
    row.local_memory_per_thread = 16;
    row.local_memory_total = 1 << 20;
    row.grid_id = 77;
    row.shared_memory_executed = 102400;
    row.shared_memory_limit_config = 1;
    row.graph_node = 5;
    row.graph = 6;
    row.cluster_policy = 1;
    row.max_potential_cluster = 8;
    row.max_active_clusters = 66;
    writer_.add(row);
    EXPECT_THAT(
        rows("CUPTI_ACTIVITY_KIND_KERNEL"),
        ElementsAre("start=10 end=20 deviceId=3 contextId=2 streamId=7 correlationId=99 globalPid=" +
                    std::to_string(schema::global_pid(5)) + " demangledName=" + id("gemm(float*)") +
                    " shortName=" + id("gemm") + " mangledName=" + id("_Z4gemmPf") +
                    " launchType=1 cacheConfig=0 registersPerThread=64 gridX=11 gridY=12 gridZ=13 blockX=21 "
                    "blockY=22 blockZ=23 staticSharedMemory=1024 dynamicSharedMemory=2048 "
                    "localMemoryPerThread=16 localMemoryTotal=1048576 gridId=77 sharedMemoryExecuted=102400 "
                    "graphNodeId=5 sharedMemoryLimitConfig=1 graphId=6 clusterX=2 clusterY=1 clusterZ=1 "
                    "clusterSchedulingPolicy=1 maxPotentialClusterSize=8 maxActiveClusters=66 "
                    "tensorSizeMinusOneElements=[]"));
}

TEST_F(EveryRow, OmitsWhatAKernelDoesNotHave) {
    writer_.add(schema::KernelRow{.start = 1, .end = 2, .short_name = name("k")});
    const std::string k = id("k");
    EXPECT_THAT(rows("CUPTI_ACTIVITY_KIND_KERNEL"),
                ElementsAre("start=1 end=2 deviceId=0 contextId=1 streamId=0 correlationId=0 globalPid=0 "
                            "demangledName=" +
                            k + " shortName=" + k +
                            " launchType=1 registersPerThread=0 gridX=1 gridY=1 gridZ=1 blockX=1 blockY=1 "
                            "blockZ=1 staticSharedMemory=0 dynamicSharedMemory=0 localMemoryPerThread=0 "
                            "localMemoryTotal=0 gridId=0 tensorSizeMinusOneElements=[]"));
}

// Rows are written in batches, and a batch omits columns that are NULL in all its rows. Each of these rows
// has a value in a different one of them; 3000 plain rows separate the batches.
TEST_F(EveryRow, KeepsWhatIsRareWhereverItIs) {
    const auto plain = [&](int count) {
        for (int i = 0; i < count; ++i) writer_.add(schema::KernelRow{.start = i, .end = i});
    };
    std::vector<schema::KernelRow> rare(8);
    rare[0].graph_node = 100;
    rare[1].graph = 101;
    for (int i = 0; i < 3; ++i) rare[2 + i].cluster[i] = 102 + i;
    rare[5].cluster_policy = 105;
    rare[6].max_potential_cluster = 106;
    rare[7].max_active_clusters = 107;
    for (const schema::KernelRow& row : rare) {
        writer_.add(row);
        plain(3000);
    }
    EXPECT_THAT(answer("SELECT count(*), sum(graphNodeId), sum(graphId), sum(clusterX), sum(clusterY), "
                       "sum(clusterZ), sum(clusterSchedulingPolicy), sum(maxPotentialClusterSize), "
                       "sum(maxActiveClusters) FROM CUPTI_ACTIVITY_KIND_KERNEL"),
                ElementsAre("24008|100|101|102|103|104|105|106|107"));
}

TEST_F(EveryRow, KeepsAllOfCopiesAndSets) {
    schema::MemcpyRow copy{.start = 1, .end = 2, .device = 0, .stream = 3, .correlation = 4, .global_pid = 5};
    copy.bytes = 6;
    copy.copy_kind = 10;
    copy.src_kind = schema::kMemKindDevice;
    copy.context = 9;
    copy.src_device = 0;
    copy.src_context = 9;
    copy.dst_device = 1;
    copy.dst_context = 8;
    copy.graph_node = 12;
    copy.copies = 2;
    writer_.add(copy);
    schema::MemsetRow set{.start = 1, .end = 2, .device = 0, .stream = 3, .correlation = 4, .global_pid = 5};
    set.bytes = 6;
    set.value = 7;
    set.context = 9;
    set.graph_node = 12;
    writer_.add(set);
    EXPECT_THAT(
        rows("CUPTI_ACTIVITY_KIND_MEMCPY"),
        ElementsAre("start=1 end=2 deviceId=0 contextId=9 streamId=3 correlationId=4 globalPid=5 bytes=6 "
                    "copyKind=10 srcKind=2 dstKind=2 srcDeviceId=0 srcContextId=9 dstDeviceId=1 "
                    "dstContextId=8 graphNodeId=12 copyCount=2"));
    EXPECT_THAT(
        rows("CUPTI_ACTIVITY_KIND_MEMSET"),
        ElementsAre("start=1 end=2 deviceId=0 contextId=9 streamId=3 correlationId=4 globalPid=5 value=7 "
                    "bytes=6 graphNodeId=12 memKind=2"));
}

TEST_F(EveryRow, KeepsCallsWaitsAndCudasOwnEvents) {
    writer_.add(schema::RuntimeRow{.start = 1,
                                   .end = 2,
                                   .global_tid = 3,
                                   .correlation = 4,
                                   .name = name("cuLaunchKernel"),
                                   .return_value = 700,
                                   .driver = true});
    writer_.add(schema::SynchronizationRow{.start = 1, .end = 2, .device = 3});
    schema::SynchronizationRow wait{.start = 3, .end = 4, .device = 3, .stream = 7};
    wait.correlation = 9;
    wait.global_pid = 5;
    wait.sync_type = schema::kSyncStreamWait;
    wait.event_id = 12;
    wait.context = 2;
    wait.event_sync_id = 13;
    writer_.add(wait);
    writer_.add(schema::CudaEventRow{.time = 5,
                                     .device = 1,
                                     .context = 2,
                                     .stream = 3,
                                     .correlation = 4,
                                     .global_pid = 6,
                                     .event_id = 7,
                                     .event_sync_id = 8});
    writer_.add(schema::OverheadRow{
        .start = 1, .end = 2, .overhead_type = 7, .global_tid = 3, .correlation = 4, .name = name("lazy")});
    writer_.add(schema::ProfilerOverheadRow{
        .start = 1, .end = 2, .global_tid = 3, .name = name("flush"), .overhead_type = 4});
    writer_.add(schema::GraphTraceRow{.start = 1,
                                      .end = 2,
                                      .device = 3,
                                      .context = 4,
                                      .stream = 5,
                                      .graph = 6,
                                      .graph_exec = 7,
                                      .correlation = 8,
                                      .global_pid = 9});
    EXPECT_THAT(rows("CUPTI_ACTIVITY_KIND_RUNTIME"),
                ElementsAre("start=1 end=2 eventClass=1 globalTid=3 correlationId=4 nameId=" +
                            id("cuLaunchKernel") + " returnValue=700"));
    EXPECT_THAT(
        rows("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"),
        ElementsAre(
            "start=1 end=2 deviceId=3 contextId=1 streamId=4294967295 correlationId=0 globalPid=0 syncType=1 "
            "eventId=4294967295",
            "start=3 end=4 deviceId=3 contextId=2 streamId=7 correlationId=9 globalPid=5 syncType=2 "
            "eventId=12 eventSyncId=13"));
    EXPECT_THAT(rows("CUPTI_ACTIVITY_KIND_CUDA_EVENT"),
                ElementsAre("timestamp=5 deviceId=1 contextId=2 streamId=3 correlationId=4 globalPid=6 "
                            "eventId=7 eventSyncId=8"));
    EXPECT_THAT(rows("CUPTI_ACTIVITY_KIND_OVERHEAD"),
                ElementsAre("start=1 end=2 eventClass=0 globalTid=3 correlationId=4 nameId=" + id("lazy") +
                            " overheadType=7"));
    EXPECT_THAT(rows("PROFILER_OVERHEAD"),
                ElementsAre("start=1 end=2 globalTid=3 nameId=" + id("flush") + " overheadType=4"));
    EXPECT_THAT(rows("CUPTI_ACTIVITY_KIND_GRAPH_TRACE"),
                ElementsAre("start=1 end=2 deviceId=3 graphId=6 graphExecId=7 contextId=4 streamId=5 "
                            "correlationId=8 globalPid=9"));
}

TEST_F(EveryRow, KeepsCudasMemory) {
    writer_.add(schema::CudaMemoryRow{
        .time = 1, .global_pid = 2, .device = 3, .context = 4, .address = 5, .bytes = 6});
    writer_.add(schema::CudaMemoryRow{.time = 11,
                                      .global_pid = 2,
                                      .device = 3,
                                      .context = 4,
                                      .address = 5,
                                      .pc = 12,
                                      .bytes = 6,
                                      .mem_kind = schema::kMemKindPinned,
                                      .is_free = true,
                                      .correlation = 13,
                                      .stream = 14,
                                      .name = name("scratch"),
                                      .pool_address = 15,
                                      .pool_threshold = 16,
                                      .pool_size = 17,
                                      .pool_used = 18});
    writer_.add(schema::CudaPoolRow{.time = 1,
                                    .global_pid = 2,
                                    .device = 3,
                                    .address = 4,
                                    .operation = 1,
                                    .type = 1,
                                    .correlation = 5,
                                    .min_bytes_to_keep = 6,
                                    .threshold = 7,
                                    .size = 8,
                                    .used = 9});
    EXPECT_THAT(rows("CUDA_GPU_MEMORY_USAGE_EVENTS"),
                ElementsAre("start=1 globalPid=2 deviceId=3 contextId=4 address=5 bytes=6 memKind=2 "
                            "memoryOperationType=0",
                            "start=11 globalPid=2 deviceId=3 contextId=4 address=5 pc=12 bytes=6 memKind=1 "
                            "memoryOperationType=1 name=scratch correlationId=13 streamId=14 "
                            "localMemoryPoolAddress=15 localMemoryPoolReleaseThreshold=16 "
                            "localMemoryPoolSize=17 localMemoryPoolUtilizedSize=18"));
    EXPECT_THAT(rows("CUDA_GPU_MEMORY_POOL_EVENTS"),
                ElementsAre("start=1 globalPid=2 deviceId=3 address=4 operationType=1 poolType=1 "
                            "correlationId=5 minBytesToKeep=6 localMemoryPoolReleaseThreshold=7 "
                            "localMemoryPoolSize=8 localMemoryPoolUtilizedSize=9"));
}

TEST_F(EveryRow, KeepsAPayloadInTheColumnOfItsType) {
    using Type = schema::RangePayload::Type;
    const auto add = [&](Type type, std::uint64_t bits) {
        writer_.add(schema::RangeRow{.start = 1, .end = 2, .text = name("r"), .payload = {type, bits}});
    };
    add(Type::uint64, 18'000'000'000'000'000'000u);  // SQLite has signed integers only: the same bits
    add(Type::int64, static_cast<std::uint64_t>(-5));
    add(Type::real64, std::bit_cast<std::uint64_t>(2.5));
    add(Type::uint32, 4'000'000'000u);
    add(Type::int32, static_cast<std::uint32_t>(-7));
    add(Type::real32, std::bit_cast<std::uint32_t>(0.5f));
    writer_.add(schema::RangeRow{.start = 1, .end = 2, .text = name("r"), .module = 12});
    EXPECT_THAT(answer("SELECT uint64Value, int64Value, doubleValue, uint32Value, int32Value, floatValue "
                       "FROM NVTX_EVENTS ORDER BY rowid"),
                ElementsAre("-446744073709551616|NULL|NULL|NULL|NULL|NULL", "NULL|-5|NULL|NULL|NULL|NULL",
                            "NULL|NULL|2.5|NULL|NULL|NULL", "NULL|NULL|NULL|4000000000|NULL|NULL",
                            "NULL|NULL|NULL|NULL|-7|NULL", "NULL|NULL|NULL|NULL|NULL|0.5",
                            "NULL|12|NULL|NULL|NULL|NULL"));
}

// Our ranges keep a module's id in the same column; a program's own number is not a module id.
TEST_F(EveryRow, DoesNotTakeAProgramsNumberForAModule) {
    writer_.add(schema::ModuleRow{.id = 3, .name = "Linear_0", .class_name = "Linear", .path = "net.0"});
    const auto add = [&](std::int64_t start, std::int64_t value) {
        schema::RangeRow row{.start = start, .end = start + 1, .text = name("r")};
        row.payload = {schema::RangePayload::Type::int64, static_cast<std::uint64_t>(value)};
        writer_.add(row);
    };
    add(1, 4);
    add(2, -4);
    writer_.add(schema::RangeRow{.start = 3, .end = 4, .text = name("r"), .module = 3});
    writer_.finish(10, 0);
    EXPECT_THAT(load_trace(path_)->ranges.module, ElementsAre(-1, -1, 3));
}

TEST_F(EveryRow, KeepsAllOfARange) {
    schema::RangeRow row{.start = 1, .end = 2, .event_type = schema::kNvtxStartEnd, .text = name("work")};
    row.global_tid = schema::global_tid(4, 5);
    row.color = 0xFF00FF00u;
    row.category = 3;
    row.end_global_tid = schema::global_tid(4, 6);
    row.binary = schema::binary_payload(1 << 24, std::string_view("\1\0\0\0", 4));
    writer_.add(row);
    writer_.add(
        schema::RangeRow{.start = 3, .end = {}, .event_type = schema::kNvtxMark, .text = name("here")});
    EXPECT_THAT(
        answer("SELECT start, \"end\", eventType, rangeId, category, color, text, globalTid, "
               "endGlobalTid, textId, domainId, typeof(binaryData), hex(binaryData) FROM NVTX_EVENTS"),
        ElementsAre("1|2|60|1|3|4278255360|work|" + std::to_string(schema::global_tid(4, 5)) + "|" +
                        std::to_string(schema::global_tid(4, 6)) + "|" + id("work") +
                        "|0|blob|"
                        "0100000000000000"
                        "0000000100000000"
                        "0400000000000000"
                        "2400000000000000"
                        "01000000",
                    "3|NULL|34|NULL|NULL|NULL|here|0|NULL|" + id("here") + "|0|null|"));
}

// A batch's strings are reused for later rows: a short payload after a long one must not keep its end.
TEST_F(EveryRow, ForgetsThePayloadsOfEarlierRows) {
    for (int i = 0; i < 2000; ++i) {
        schema::RangeRow row{.start = i, .end = i, .text = name("r")};
        row.binary = std::string(i % 3 == 0 ? 0 : static_cast<std::size_t>(i % 100), 'x');
        writer_.add(row);
    }
    EXPECT_THAT(answer("SELECT count(*) FROM NVTX_EVENTS WHERE ifnull(length(binaryData), 0) <> "
                       "CASE WHEN start % 3 = 0 THEN 0 ELSE start % 100 END"),
                ElementsAre("0"));
}

TEST_F(EveryRow, NumbersDomainsAndNamesThemOncePerProcess) {
    const schema::StringId nccl = name("NCCL"), mine = name("mine");
    const auto add = [&](std::int64_t start, schema::StringId domain, std::int64_t pid) {
        writer_.add(schema::RangeRow{.start = start,
                                     .end = start + 1,
                                     .text = name("r"),
                                     .domain = domain,
                                     .global_tid = schema::global_tid(pid, pid)});
    };
    add(1, mine, 7);
    add(2, nccl, 7);
    add(3, mine, 8);
    add(4, mine, 7);
    add(5, schema::StringId::empty, 7);
    EXPECT_THAT(answer("SELECT start, eventType, text, domainId FROM NVTX_EVENTS ORDER BY start, eventType"),
                ElementsAre("1|59|r|2", "1|75|mine|2", "2|59|r|1", "2|75|NCCL|1", "3|59|r|2", "3|75|mine|2",
                            "4|59|r|2", "5|59|r|0"));
}

TEST_F(EveryRow, KeepsTheLayoutsOfPayloadsOnce) {
    schema::PayloadSchemaRow schema{.domain = name("NCCL"), .id = 1 << 24, .name = "all gather", .type = 1};
    schema.size = 16;
    schema.entries = {{.name = "bytes", .description = "size", .type = 22},
                      {.name = "comm", .description = "", .type = 18, .flags = 2, .detail = 3, .offset = 8}};
    writer_.add(schema);
    writer_.add(schema);  // each process declares the schema
    writer_.add(schema::PayloadEnumRow{.domain = name("NCCL"),
                                       .id = (1 << 24) + 1,
                                       .size = 4,
                                       .name = "op",
                                       .entries = {{"sum", 0, false}, {"max", 2, true}}});
    writer_.add(schema::ScopeRow{.domain = name("NCCL"), .id = 8, .parent = 1, .path = "gpu[0]"});
    EXPECT_THAT(
        rows("NVTX_PAYLOAD_SCHEMAS"),
        ElementsAre("domainId=1 schemaId=16777216 name=all gather type=1 numEntries=2 payloadSize=16"));
    EXPECT_THAT(rows("NVTX_PAYLOAD_SCHEMA_ENTRIES"),
                ElementsAre("domainId=1 schemaId=16777216 idx=0 type=22 name=bytes description=size",
                            "domainId=1 schemaId=16777216 idx=1 flags=2 type=18 name=comm "
                            "arrayOrUnionDetail=3 offset=8"));
    EXPECT_THAT(rows("NVTX_PAYLOAD_ENUMS"),
                ElementsAre("domainId=1 schemaId=16777217 name=op numEntries=2 size=4"));
    EXPECT_THAT(rows("NVTX_PAYLOAD_ENUM_ENTRIES"),
                ElementsAre("domainId=1 schemaId=16777217 idx=0 name=sum isFlag=0",
                            "domainId=1 schemaId=16777217 idx=1 name=max value=2 isFlag=1"));
    EXPECT_THAT(rows("NVTX_SCOPES"), ElementsAre("domainId=1 scopeId=8 parentScopeId=1 path=gpu[0]"));
}

TEST_F(EveryRow, KeepsADeviceOnceHoweverOftenItIsDescribed) {
    schema::GpuRow gpu{
        .device = 0, .cuda_device = 2, .pid = 40, .name = "H100", .bus_location = "0000:18:00.0"};
    gpu.uuid = "GPU-1";
    gpu.chip = "GH100";
    gpu.memory = 80;
    gpu.memory_bandwidth = 3350;
    gpu.clock_hz = 1980;
    gpu.l2_bytes = 50;
    gpu.constant_bytes = 64;
    gpu.multiprocessors = 132;
    gpu.compute_major = 9;
    gpu.warp_threads = 32;
    gpu.copy_engines = 3;
    gpu.max_threads_per_block = 1024;
    gpu.max_warps_per_multiprocessor = 64;
    gpu.max_blocks_per_multiprocessor = 33;
    gpu.max_registers_per_block = 65;
    gpu.max_registers_per_multiprocessor = 66;
    gpu.max_shared_per_block = 48;
    gpu.max_shared_per_multiprocessor = 228;
    const schema::RankRow rank{
        .rank = 0, .device = 0, .global_pid = schema::global_pid(40), .device_name = "H100"};
    writer_.add(gpu);
    writer_.add(rank);
    // The rank's row comes first; the driver's later description replaces its device.
    writer_.add(
        schema::RankRow{.rank = 1, .device = 1, .global_pid = schema::global_pid(41), .device_name = "H100"});
    gpu.device = 1;
    gpu.pid = 41;
    writer_.add(gpu);
    writer_.add(schema::RankRow{.rank = 2,
                                .device = 2,
                                .global_pid = schema::global_pid(42),
                                .device_name = "a processor",
                                .device_memory = 9});
    const std::string all =
        " name=H100 busLocation=0000:18:00.0 isDiscrete=1 l2CacheSize=50 totalMemory=80 memoryBandwidth=3350 "
        "clockRate=1980 smCount=132 uuid=GPU-1 chipName=GH100 cuDevice=2 constantMemory=64 "
        "maxRegistersPerBlock=65 maxShmemPerBlock=48 maxShmemPerSm=228 maxRegistersPerSm=66 "
        "threadsPerWarp=32 asyncEngines=3 maxWarpsPerSm=64 maxBlocksPerSm=33 maxThreadsPerBlock=1024 "
        "computeMajor=9 computeMinor=0 smMajor=9 smMinor=0";
    const std::string vm = "vmId=281474976710656 id=";
    EXPECT_THAT(rows("TARGET_INFO_GPU"),
                ::testing::UnorderedElementsAre(vm + "0" + all, vm + "1" + all,
                                                vm + "2 name=a processor totalMemory=9 cuDevice=2"));
    EXPECT_THAT(rows("TARGET_INFO_CUDA_DEVICE"),
                ElementsAre("gpuId=0 cudaId=2 pid=40 uuid=GPU-1 numMultiprocessors=132",
                            "gpuId=1 cudaId=1 pid=41", "gpuId=2 cudaId=2 pid=42"));
}

TEST_F(EveryRow, KeepsContextsAndStreamsOnce) {
    for (int i = 0; i < 2; ++i) {
        writer_.add(schema::CudaContextRow{.pid = 40, .device = 1, .context = 2, .null_stream = 7});
        writer_.add(schema::CudaStreamRow{.pid = 40, .context = 2, .stream = 13, .priority = -1, .flag = 2});
    }
    writer_.add(schema::CudaStreamRow{.pid = 41, .context = 2, .stream = 13, .priority = 0, .flag = 1});
    EXPECT_THAT(rows("TARGET_INFO_CUDA_CONTEXT_INFO"),
                ElementsAre("nullStreamId=7 hwId=0 vmId=1 processId=40 deviceId=1 contextId=2 "
                            "isGreenContext=0"));
    EXPECT_THAT(rows("TARGET_INFO_CUDA_STREAM"),
                ElementsAre("streamId=13 hwId=0 vmId=1 processId=40 contextId=2 priority=-1 flag=2",
                            "streamId=13 hwId=0 vmId=1 processId=41 contextId=2 priority=0 flag=1"));
}

TEST_F(EveryRow, KeepsNcclsData) {
    writer_.add(schema::NcclCommunicatorRow{.communicator = 0xF000'0000'0000'0001u,
                                            .global_pid = 5,
                                            .rank = 1,
                                            .ranks = 8,
                                            .nodes = 2,
                                            .name = "tp"});
    schema::NcclOperationRow row{
        .communicator = 0xF000'0000'0000'0001u, .global_pid = 5, .global_tid = 6, .rank = 1};
    row.operation = schema::Operation::all_reduce;
    row.start = 10;
    writer_.add(row);
    row.sequence = 3;
    row.end = 20;
    row.count = 1000;
    row.data_type = "ncclFloat32";
    row.algorithm = "RING";
    row.protocol = "LL";
    row.root = 0;
    row.channels = 24;
    row.warps = 16;
    writer_.add(row);
    const std::string communicator = "communicator=-1152921504606846975 globalPid=5";
    EXPECT_THAT(rows("SHARD_NCCL_COMMUNICATORS"),
                ElementsAre(communicator + " rank=1 ranks=8 nodes=2 name=tp"));
    EXPECT_THAT(
        rows("SHARD_NCCL_OPERATIONS"),
        ElementsAre(communicator + " globalTid=6 rank=1 operation=2 start=10",
                    communicator + " globalTid=6 rank=1 operation=2 sequence=3 start=10 end=20 "
                                   "count=1000 dataType=ncclFloat32 root=0 algorithm=RING protocol=LL "
                                   "channels=24 warps=16"));
}

TEST_F(EveryRow, KeepsCountersOfProcessesThatAreNotARank) {
    writer_.add(schema::CounterRow{.time = 5, .rank = -1, .name = name("cpu_percent"), .value = 50});
    writer_.add(schema::CounterRow{.time = 6, .rank = 0, .name = name("cpu_percent"), .value = 75});
    writer_.add(schema::CounterRow{.time = 7,
                                   .rank = 0,
                                   .name = name("cpu_percent"),
                                   .value = std::numeric_limits<double>::quiet_NaN()});
    EXPECT_THAT(answer("SELECT time, rank, value FROM SHARD_COUNTERS"),
                ElementsAre("5|-1|50", "6|0|75", "7|0|NULL"));
    const auto trace = load_trace(path_);
    ASSERT_EQ(trace->ranks.size(), 1u);  // no rank is created for -1
    EXPECT_THAT(trace->counters.rank, ElementsAre(kNoRank, 0, 0));
}

// The plain reference of the fast way: the same rows, each value bound to a statement of one row.
TEST_F(EveryRow, GoesInAsBoundValuesWould) {
    std::mt19937_64 random(11);
    const auto any = [&](std::int64_t from, std::int64_t to) {
        return std::uniform_int_distribution<std::int64_t>(from, to)(random);
    };
    std::vector<schema::RangeRow> ranges(3000);
    const schema::StringId names[] = {name("a"), name("\xC3\xA9t\xC3\xA9"), name("it's \"quoted\""),
                                      schema::StringId::empty};
    for (schema::RangeRow& row : ranges) {
        row.start = any(-5, std::int64_t{1} << 45);
        if (any(0, 3) != 0) row.end = row.start + any(0, 1 << 30);
        row.text = names[any(0, 3)];
        row.global_tid = schema::global_tid(any(1, 4'000'000), any(1, 4'000'000));
        if (any(0, 700) == 0) row.category = static_cast<std::uint32_t>(any(0, 4'294'967'295));
        if (any(0, 700) == 0) row.color = static_cast<std::uint32_t>(any(0, 4'294'967'295));
        if (any(0, 700) == 0) row.binary = std::string(static_cast<std::size_t>(any(1, 5000)), 'x');
        writer_.add(row);
    }
    writer_.finish(1, 0);
    Database database(path_, Database::Mode::read_write);
    database.execute("CREATE TEMP TABLE plain AS SELECT * FROM NVTX_EVENTS WHERE 0");
    Statement insert(
        database,
        "INSERT INTO plain (start, \"end\", eventType, text, textId, globalTid, domainId, category, "
        "color, binaryData) VALUES (?, ?, 59, ?, ?, ?, 0, ?, ?, CAST(? AS BLOB))");
    const auto bind_or_null = [&](int index, const auto& value) {
        value ? insert.bind(index, static_cast<std::int64_t>(*value)) : insert.bind_null(index);
    };
    for (const schema::RangeRow& row : ranges) {
        insert.bind(1, row.start);
        bind_or_null(2, row.end);
        insert.bind(3, writer_.text(row.text));
        insert.bind(4, static_cast<std::int64_t>(row.text));
        insert.bind(5, row.global_tid);
        bind_or_null(6, row.category);
        bind_or_null(7, row.color);
        row.binary.empty() ? insert.bind_null(8) : insert.bind(8, std::string_view(row.binary));
        insert.run();
    }
    EXPECT_THAT(sql_rows(database, "SELECT * FROM plain EXCEPT SELECT * FROM NVTX_EVENTS"), IsEmpty());
    EXPECT_THAT(sql_rows(database, "SELECT * FROM NVTX_EVENTS EXCEPT SELECT * FROM plain"), IsEmpty());
    EXPECT_THAT(sql_rows(database, "SELECT count(*) FROM NVTX_EVENTS"), ElementsAre("3000"));
}

TEST_F(EveryRow, DescribesTheMachineButNotItsUser) {
    ASSERT_EQ(::setenv("SHARDSCOPE_TEST_SECRET", "swordfish", 1), 0);
    EXPECT_THAT(
        answer("SELECT name FROM TARGET_INFO_SYSTEM_ENV WHERE value <> ''"),
        ElementsAre("Hostname", "CpuCores", "CpuArchitecture", "OsName", "KernelRelease", "MemoryBytes"));
    EXPECT_THAT(answer("SELECT name FROM TARGET_INFO_SYSTEM_ENV WHERE value LIKE '%swordfish%'"), IsEmpty());
    const std::string other = folder_ / "other.sqlite";
    DatabaseWriter({.path = other, .on_this_machine = false}).finish(0, 0);
    Database database(other, Database::Mode::read_only);
    EXPECT_THAT(sql_rows(database, "SELECT * FROM TARGET_INFO_SYSTEM_ENV"), IsEmpty());
}

TEST(RenameDatabase, KeepsTheJournalOfTheOldFileIfItFails) {
    const TemporaryFolder folder;
    const std::string target = folder / "old.sqlite", part = folder / "new.sqlite";
    std::ofstream(target + "-wal") << "committed";
    std::filesystem::create_directory(target);  // no file can replace it
    std::ofstream(part) << "new";
    EXPECT_THROW(rename_database(part, target, true), StoreError);
    std::string kept;
    std::ifstream(target + "-wal") >> kept;
    EXPECT_EQ(kept, "committed");
    // If the renaming succeeds, the journal is removed with its file.
    std::filesystem::remove(target);
    std::ofstream(target) << "old";
    rename_database(part, target, true);
    EXPECT_EQ(
        std::distance(std::filesystem::directory_iterator(std::filesystem::path(target).parent_path()), {}),
        1);
}

TEST(Rows, MoreThanTheirNumbersCanHoldAreRefused) {
    Trace trace;
    trace.path = "large.json";
    EXPECT_NO_THROW(check_rows(kRowsAtMost, "ranges", trace));
    try {
        check_rows(kRowsAtMost + 1, "ranges", trace);
        FAIL();
    } catch (const StoreError& error) {
        EXPECT_STREQ(error.what(),
                     "large.json has 536870912 ranges, more than the 536870911 that a trace can hold; open "
                     "fewer ranks or a shorter part");
    }
}

// Ranges, calls and kernels with random names and texts, of NCCL or not, in small and in large files.
TEST(SizeLimit, IsAboveTheFinishedFileAndNotFarAbove) {
    std::mt19937 random(1);
    const auto below = [&](int most) { return std::uniform_int_distribution<int>(0, most - 1)(random); };
    for (const std::int64_t limit : {1 << 20, 3 << 20, 40 << 20}) {
        for (int round = limit < 40 << 20 ? 0 : 3; round < 4; ++round) {
            const TemporaryFolder folder;
            const std::string path = folder / "run.sqlite";
            DatabaseWriter writer({.path = path});
            writer.limit_size(limit);
            const int names = round == 0 ? 5 : 1'000'000, longest = round == 3 ? 5'000 : 40;
            std::int64_t id = 0, added = 0;
            for (; !writer.is_full() && added < 3'000'000; ++added) {
                const std::string text =
                    std::to_string(below(names)) + std::string(static_cast<std::size_t>(below(longest)), 'x');
                const std::int64_t start = added * 1000 + below(5000),
                                   tid = schema::global_tid(100 + below(8), 1);
                const int kind = below(round + 1);
                if (kind == 0) {
                    writer.add(schema::RangeRow{
                        .start = start, .end = start + 500, .text = writer.intern(text), .global_tid = tid});
                } else if (kind == 1) {
                    writer.add(schema::RuntimeRow{.start = start,
                                                  .end = start + 9,
                                                  .global_tid = tid,
                                                  .correlation = ++id,
                                                  .name = writer.intern(text)});
                } else {
                    const std::string name = (below(2) == 0 ? "ncclDevKernel_" : "gemm_") + text;
                    writer.add(schema::KernelRow{.start = start,
                                                 .end = start + 99,
                                                 .correlation = ++id,
                                                 .global_pid = schema::global_pid(100),
                                                 .short_name = writer.intern(name)});
                }
            }
            ASSERT_TRUE(writer.is_full());
            EXPECT_GE(writer.refused_events(), 1);
            writer.commit();
            writer.finish(added * 1000, 0);
            const auto size = static_cast<std::int64_t>(std::filesystem::file_size(path));
            EXPECT_LE(size, limit) << "round " << round;
            // Allows for the empty tables and for the reserve that is kept free.
            EXPECT_GT(size, limit / 2 - (300 << 10)) << "round " << round << ", limit " << limit;
        }
    }
}

TEST(SizeLimit, RefusesEventsAloneAndMayBeRaised) {
    const TemporaryFolder folder;
    const std::string path = folder / "run.sqlite";
    DatabaseWriter writer({.path = path});
    writer.limit_size(1000);  // an empty trace has more
    writer.add(schema::RangeRow{
        .start = 1, .end = 2, .text = writer.intern("refused"), .global_tid = schema::global_tid(1, 1)});
    EXPECT_TRUE(writer.is_full());
    EXPECT_EQ(writer.refused_events(), 1);
    writer.add(schema::RunInfoRow{"key", "value"});
    writer.add(schema::DiagnosticRow{.time = 3, .severity = schema::Severity::warning, .text = "said"});
    writer.limit_size(4 << 20);
    EXPECT_FALSE(writer.is_full());
    writer.add(schema::RangeRow{
        .start = 4, .end = 5, .text = writer.intern("kept"), .global_tid = schema::global_tid(1, 1)});
    EXPECT_EQ(writer.refused_events(), 1);
    writer.finish(10, 0);
    Database database(path, Database::Mode::read_only);
    EXPECT_EQ(database.integer("SELECT count(*) FROM NVTX_EVENTS WHERE start IN (1, 4)"), 1);
    EXPECT_EQ(database.integer("SELECT count(*) FROM SHARD_RUN WHERE key = 'key'"), 1);
    EXPECT_EQ(database.integer("SELECT count(*) FROM DIAGNOSTIC_EVENT WHERE text = 'said'"), 1);
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::store
