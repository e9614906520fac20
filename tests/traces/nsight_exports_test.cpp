// Small exports of Nsight Systems of several versions and settings: lazy tables, absent columns, older names,
// whole graphs, and what the names of ranges contain.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/temporary_folder.h"
#include "traces/analysis/facts/info.h"
#include "traces/analysis/memory/memory.h"
#include "traces/analysis/modules/modules.h"
#include "traces/analysis/time/summary.h"
#include "traces/import/open.h"
#include "traces/merge/merge.h"
#include "traces/merge/slice.h"
#include "traces/schema/enums.h"
#include "traces/store/columns/nvtx_names.h"
#include "traces/store/load/loader.h"
#include "traces/store/sqlite/sqlite.h"

namespace shardscope::traces::store {
namespace TEST_FILE {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Pair;

class NsightExports : public ::testing::Test {
  protected:
    NsightExports() : path_(folder_ / "export.sqlite") {
        std::FILE* file = std::fopen(path_.c_str(), "w");
        std::fclose(file);
        database_.emplace(path_, Database::Mode::read_write);
    }
    void sql(const std::string& text) { database_->execute(text); }
    std::unique_ptr<Trace> load() {
        database_.reset();
        return load_trace(path_);
    }
    static std::string pid(int p) { return std::to_string(schema::global_pid(p)); }
    static std::string tid(int p) { return std::to_string(schema::global_tid(p, p)); }
    static std::string text(const Trace& trace, schema::StringId id) {
        return std::string(trace.strings[id]);
    }

    TemporaryFolder folder_;
    std::string path_;
    std::optional<Database> database_;
};

// Schema 2.x: names of tables that changed later, few columns, no NVTX and no memcpy table.
TEST_F(NsightExports, OfSchema2) {
    sql("CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);"
        "INSERT INTO StringIds VALUES (1, 'gemm(float const*)'), (2, 'gemm'), (3, 'cudaLaunchKernel_v7000');"
        "CREATE TABLE EXPORT_META_DATA (name TEXT, value TEXT);"
        "INSERT INTO EXPORT_META_DATA VALUES ('EXPORT_SCHEMA_VERSION', '2.4.7');"
        "CREATE TABLE TARGET_INFO_CUDA_GPU (id INT, name TEXT, totalMemory INTEGER);"
        "INSERT INTO TARGET_INFO_CUDA_GPU VALUES (0, 'Tesla V100', 16000000000);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INT, contextId INT, "
        "streamId INT, correlationId INT, globalPid INT, demangledName INT, shortName INT);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100, 130, 0, 1, 7, 5, " +
        pid(9) + ", 1, 2);" +
        "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, eventClass INT, globalTid "
        "INT, "
        "correlationId INT, nameId INT, returnValue INT);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (50, 60, 0, " +
        tid(9) + ", 5, 3, 0);");
    const auto trace = load();
    EXPECT_EQ(trace->schema_version, 0);
    EXPECT_TRUE(trace->ended);
    EXPECT_EQ(trace->config_value("nsight.schema_version"), "2.4.7");
    ASSERT_EQ(trace->ranks.size(), 1u);
    EXPECT_EQ(trace->ranks[0].device_name, "Tesla V100");
    ASSERT_EQ(trace->device.size(), 1u);
    EXPECT_EQ(text(*trace, trace->device.name[0]), "gemm(float const*)");
    EXPECT_EQ(trace->device.launch[0], 0);
    EXPECT_EQ(text(*trace, trace->runtime.name[0]), "cudaLaunchKernel");
}

// One process is one rank, as in a trace of Kineto (KinetoDevices, in kineto_devices_test.cpp): process 9
// uses both devices, and process 8 also uses the second one.
TEST_F(NsightExports, AProcessWithTwoDevicesIsOneRank) {
    sql("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
        "INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'cudaLaunchKernel'), (3, 'ProfilerStep#1');"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, correlationId, globalPid, "
        "demangledName, shortName);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100, 200, 0, 7, 1, " +
        pid(9) + ", 1, 1), (300, 400, 1, 7, 2, " + pid(9) + ", 1, 1), (500, 650, 1, 7, 3, " + pid(8) +
        ", 1, 1);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId, nameId);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (50, 60, " +
        tid(9) + ", 1, 2), (70, 80, " + tid(9) + ", 2, 2), (90, 95, " + tid(8) +
        ", 3, 2);"
        "CREATE TABLE NVTX_EVENTS (start, end, eventType, text, globalTid, domainId);"
        "INSERT INTO NVTX_EVENTS VALUES (0, 700, 59, 'ProfilerStep#1', " +
        tid(9) + ", 0), (0, 700, 59, 'ProfilerStep#1', " + tid(8) +
        ", 0);"
        "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start, globalPid, deviceId, address, bytes, memKind, "
        "memoryOperationType, name);"
        "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (10, " +
        pid(9) + ", 0, 4096, 1000, 2, 0, NULL), (20, " + pid(9) + ", 1, 8192, 3000, 2, 0, NULL), (30, " +
        pid(9) + ", 0, 16384, 500, 2, 0, NULL)");
    const auto trace = load();
    ASSERT_EQ(trace->ranks.size(), 2u);
    EXPECT_EQ(trace->ranks[0].device, 0);
    EXPECT_EQ(trace->ranks[0].global_pid, schema::global_pid(9));
    EXPECT_EQ(trace->ranks[1].device, 1);
    EXPECT_EQ(trace->ranks[1].global_pid, schema::global_pid(8));
    ASSERT_EQ(trace->device.size(), 3u);
    EXPECT_EQ(trace->device.rank, (std::vector<std::uint16_t>{0, 0, 1}));
    std::vector<int> streams;
    for (const std::uint16_t stream : trace->device.stream) streams.push_back(trace->streams[stream].id);
    EXPECT_EQ(streams, (std::vector<int>{7, 1'000'007, 7}));
    for (const std::size_t e : {0, 1, 2}) EXPECT_GE(trace->device.launch[e], 0) << e;
    ASSERT_EQ(trace->steps.size(), 2u);
    const analysis::ExecutionSummary summary = analysis::summarize(*trace);
    EXPECT_DOUBLE_EQ(summary.ranks.at(0).average_us[0], 0.2);  // 100 ns on each device
    EXPECT_DOUBLE_EQ(summary.ranks.at(1).average_us[0], 0.15);
    const analysis::RankMemory memory = analysis::memory_report(*trace).ranks.at(0);
    EXPECT_EQ(memory.peak_bytes, 3000) << "of the second device; the first holds 1,500";
    EXPECT_EQ(memory.devices, 2);
}

// Short names may be missing, either as a column or in single rows.
TEST_F(NsightExports, KernelsWithoutAShortNameHaveTheOther) {
    sql("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
        "INSERT INTO StringIds VALUES (1, 'ncclDevKernel_AllReduce(int)'), (2, ''), (3, 'gemm');"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, globalPid, demangledName, "
        "shortName);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (0, 5, 0, 7, 0, 3, 3), (9, 8, 0, 7, 0, 3, 2), "
        "(10, 20, 0, 7, 0, 1, 2), (30, 40, 0, 7, 0, 1, NULL)");
    const auto trace = load();
    EXPECT_EQ(trace->invalid_events, 1) << "the one that ends before it starts";
    ASSERT_EQ(trace->device.size(), 3u);
    EXPECT_EQ(text(*trace, trace->device.name[0]), "gemm");
    EXPECT_EQ(trace->device.kind[0], DeviceKind::kernel);
    for (const std::size_t e : {1, 2}) {
        EXPECT_EQ(text(*trace, trace->device.name[e]), "ncclDevKernel_AllReduce(int)");
        EXPECT_EQ(trace->device.kind[e], DeviceKind::communication);
    }
}

// Templates with the same short name are different kernels, as in Kineto and nsys stats. Either name may show
// that a kernel communicates.
TEST_F(NsightExports, KernelsHaveTheirFullNames) {
    sql("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
        "INSERT INTO StringIds VALUES (0, '[unknown]'), (1, 'void fill<4, float>(float*)'), (2, 'void "
        "fill<8, "
        "int>(int*)'), (3, 'fill'), (4, 'void mine::ncclKernel_x(int)'), (5, 'ncclKernel_x'), (6, "
        "'alone');"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, globalPid, demangledName, "
        "shortName);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (0, 5, 0, 7, 0, 1, 3), (10, 15, 0, 7, 0, 2, 3), "
        "(20, 25, 0, 7, 0, 4, 5), (30, 35, 0, 7, 0, NULL, 6)");
    const auto trace = load();
    ASSERT_EQ(trace->device.size(), 4u);
    EXPECT_EQ(text(*trace, trace->device.name[0]), "void fill<4, float>(float*)");
    EXPECT_EQ(text(*trace, trace->device.name[1]), "void fill<8, int>(int*)");
    EXPECT_EQ(text(*trace, trace->device.name[2]), "void mine::ncclKernel_x(int)");
    EXPECT_EQ(trace->device.kind[2], DeviceKind::communication);
    EXPECT_EQ(text(*trace, trace->device.name[3]), "alone");
}

// Graph 4 was traced as a whole, so the graph is the device work. For graph 5 the kernels were recorded, so
// they are.
TEST_F(NsightExports, WholeGraphsAreDeviceWorkIfTheirKernelsAreMissing) {
    sql("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
        "INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'cudaGraphLaunch_v10000');"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId, nameId);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (10, 20, " +
        tid(9) + ", 71, 2), (30, 40, " + tid(9) + ", 72, 2);" +
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, correlationId, globalPid, "
        "shortName, graphNodeId);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (210, 220, 0, 7, 72, " +
        pid(9) + ", 1, 900), (220, 260, 0, 7, 72, " + pid(9) + ", 1, 901);" +
        "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start, end, deviceId, graphId, contextId, streamId, "
        "correlationId, globalPid);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (100, 200, 0, 4, 1, 7, 71, " +
        pid(9) + "), (210, 260, 0, 5, 1, 7, 72, " + pid(9) + ")");
    const auto trace = load();
    ASSERT_EQ(trace->device.size(), 3u);
    EXPECT_EQ(text(*trace, trace->device.name[0]), "CUDA graph 4");
    EXPECT_EQ(trace->device.launch.all(), (std::vector<std::int32_t>{0, 1, 1}));
}

TEST_F(NsightExports, NamesOfRangesIdentifyOperatorsAndModules) {
    sql("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
        "INSERT INTO StringIds VALUES (1, 'LlamaDecoderLayer_0');"
        "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INT, text TEXT, globalTid INT, "
        "textId INT, domainId INT);"
        "INSERT INTO NVTX_EVENTS VALUES "
        "(0, NULL, 75, 'mine', " +
        tid(9) + ", NULL, 3), (0, 100, 59, 'forward', " + tid(9) + ", NULL, 0), (10, 90, 59, NULL, " +
        tid(9) + ", 1, 0), (20, 80, 59, 'nn.Module: Linear_4', " + tid(9) +
        ", NULL, 0), (30, 70, 59, 'aten::mm, seq = 3, op_id = 12, sizes = [[2, 3], [3, 4]]', " + tid(9) +
        ", NULL, 0), (40, 50, 59, 'LayerNorm', " + tid(9) + ", NULL, 3)");
    const auto trace = load();
    const HostRanges& r = trace->ranges;
    ASSERT_EQ(r.size(), 5u);
    EXPECT_EQ(r.kind[0], RangeKind::annotation);
    EXPECT_EQ(r.kind[1], RangeKind::module);
    EXPECT_EQ(r.kind[2], RangeKind::module);
    EXPECT_EQ(r.kind[3], RangeKind::operation);
    EXPECT_EQ(r.kind[4], RangeKind::annotation) << "of a program's own domain";
    EXPECT_EQ(text(*trace, r.name[3]), "aten::mm");
    ASSERT_EQ(r.detail.size(), 5u);
    EXPECT_EQ(text(*trace, r.detail[3]), R"({"seq":3,"op_id":12,"sizes":[[2, 3], [3, 4]]})");

    const analysis::ModuleView view = analysis::module_view(*trace);
    ASSERT_EQ(view.ranks.size(), 1u);
    ASSERT_EQ(view.ranks[0].modules.size(), 1u);
    EXPECT_EQ(view.ranks[0].modules[0].name, "LlamaDecoderLayer_0");
    ASSERT_EQ(view.ranks[0].modules[0].children.size(), 1u);
    EXPECT_EQ(view.ranks[0].modules[0].children[0].name, "Linear_4");
    EXPECT_EQ(view.ranks[0].modules[0].children[0].operators, 1);
}

// Newer exports have a column with the kind of the profiler's work, older ones one with the result of its
// function.
enum class OverheadColumn { overhead_type, return_value };

constexpr std::int64_t kSecond = 1'000'000'000;

class ProfilerOverhead : public NsightExports {
  protected:
    // Process `p` of an export that began at `utc`: a call launches a kernel while the profiler works.
    //
    //   time      5       9      20      22      25      30      40     50
    //   profiler  allocation              buffer flush
    //   program                  cudaLaunchKernel                 gemm
    std::string write(int p, std::int64_t utc = 0, OverheadColumn column = OverheadColumn::overhead_type) {
        const std::string path = folder_ / ("of" + std::to_string(p) + ".sqlite");
        std::fclose(std::fopen(path.c_str(), "w"));
        Database database(path, Database::Mode::read_write);
        database.execute(
            "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
            "INSERT INTO StringIds VALUES (1, 'CUPTI Buffer flush'), (2, 'Chunk Allocation'), "
            "(3, 'cudaLaunchKernel'), (4, 'gemm');"
            "CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER);"
            "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (" +
            std::to_string(utc) +
            ");"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId, nameId);"
            "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (20, 30, " +
            tid(p) +
            ", 1, 3);"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, correlationId, "
            "globalPid, shortName);"
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (40, 50, 0, 7, 1, " +
            pid(p) +
            ", 4);"
            "CREATE TABLE PROFILER_OVERHEAD (start, end, globalTid, nameId, " +
            (column == OverheadColumn::overhead_type ? "overheadType" : "returnValue") +
            ");"
            "INSERT INTO PROFILER_OVERHEAD VALUES (22, 25, " +
            tid(p) + ", 1, 3), (5, 9, " + tid(p) + ", 2, 0), (8, 7, " + tid(p) + ", 2, 0)");
        return path;
    }
    // "5 9 Chunk Allocation of rank 0", by the thread's rank.
    static std::vector<std::string> rows_of(const Trace& trace) {
        std::vector<std::string> rows;
        for (const schema::ProfilerOverheadRow& row : trace.profiler_overheads) {
            int rank = -1;
            for (const HostThread& thread : trace.threads) {
                if (thread.global_tid == row.global_tid && thread.rank.known())
                    rank = trace.ranks[thread.rank.at()].number;
            }
            rows.push_back(std::to_string(row.start) + " " + std::to_string(row.end) + " " +
                           text(trace, row.name) + " of rank " + std::to_string(rank));
        }
        return rows;
    }
};

TEST_F(ProfilerOverhead, IsReadFromNewerAndOlderExports) {
    for (const OverheadColumn column : {OverheadColumn::overhead_type, OverheadColumn::return_value}) {
        const auto trace = load_trace(write(9, 0, column));
        EXPECT_THAT(rows_of(*trace),
                    ElementsAre("5 9 Chunk Allocation of rank 0", "22 25 CUPTI Buffer flush of rank 0"));
        ASSERT_EQ(trace->profiler_overheads.size(), 2u);
        EXPECT_EQ(trace->profiler_overheads[0].overhead_type, 0);
        EXPECT_EQ(trace->profiler_overheads[1].overhead_type,
                  column == OverheadColumn::overhead_type ? 3 : 0);
        EXPECT_EQ(trace->invalid_events, 1) << "the one that ends before it starts";
        EXPECT_EQ(trace->first_ns, 20) << "the profiler's own time is not the program's";
        EXPECT_THAT(analysis::trace_info(*trace).counts, Contains(Pair("profiler_overheads", 2)));
        EXPECT_THAT(analysis::row_counts(*trace, {.rank = 0, .from_ns = 20}),
                    Contains(Pair("profiler_overheads", 1)));
    }
}

TEST_F(ProfilerOverhead, IsKeptByMergeAndSliceAndWhereFilesAreOpenedTogether) {
    const std::string first = write(9, 5 * kSecond), second = write(8, 6 * kSecond);
    const std::string merged = folder_ / "merged.sqlite", sliced = folder_ / "sliced.sqlite";
    merge::merge_traces({.inputs = {first, second}, .output = merged});
    const auto of_both = ElementsAre("5 9 Chunk Allocation of rank 0", "22 25 CUPTI Buffer flush of rank 0",
                                     "1000000005 1000000009 Chunk Allocation of rank 1",
                                     "1000000022 1000000025 CUPTI Buffer flush of rank 1");
    EXPECT_THAT(rows_of(*load_trace(merged)), of_both);
    EXPECT_THAT(rows_of(*importer::open_any({first, second})), of_both);
    {
        Database database(merged, Database::Mode::read_only);
        EXPECT_EQ(database.integer("SELECT sum(o.\"end\" - o.start) FROM PROFILER_OVERHEAD o "
                                   "JOIN ENUM_CUPTI_OVERHEAD_TYPE e ON e.id = o.overheadType "
                                   "WHERE e.name = 'OVERHEAD_CUPTI_BUFFER_FLUSH'"),
                  2 * 3);
    }
    merge::slice_trace(
        {.input = merged, .output = sliced, .choice = {.ranks = {{1, 1}}, .from_ns = kSecond + 15}});
    EXPECT_THAT(rows_of(*load_trace(sliced)),
                ElementsAre("1000000022 1000000025 CUPTI Buffer flush of rank 1"));
}

TEST(NvtxNames, Operators) {
    const NvtxName view = read_nvtx_name("aten::view, op_id = 314290");
    EXPECT_EQ(view.name, "aten::view");
    EXPECT_TRUE(view.is_operator);
    EXPECT_EQ(view.detail, R"({"op_id":314290})");
    // Pairs are not JSON and are omitted; a comma in a name is not part of the decoration.
    const NvtxName pairs = read_nvtx_name("f<a, b>, seq = 1, input_op_ids = [(4, 0), (5, 1)]");
    EXPECT_EQ(pairs.name, "f<a, b>");
    EXPECT_EQ(pairs.detail, R"({"seq":1})");
    EXPECT_TRUE(read_nvtx_name("aten::empty").is_operator);
    EXPECT_FALSE(read_nvtx_name("step, loss = 3").is_operator);
}

// FSDP's own ranges, PyTorch's and ours, name functions of a class.
TEST(NvtxNames, FunctionsOfAClassAreNotModules) {
    for (const char* text :
         {"FullyShardedDataParallel.forward", "FullyShardedDataParallel._pre_forward",
          "FullyShardedDataParallel._pre_forward_unshard", "FullyShardedDataParallel._unshard",
          "FullyShardedDataParallel.rate_limiter", "FullyShardedDataParallel._post_backward_hook",
          "DistributedDataParallel.forward", "trainer.Trainer.fit"})
        EXPECT_FALSE(read_nvtx_name(text).is_module) << text;
}

TEST(NvtxNames, Modules) {
    for (const char* text : {"Linear", "Conv2d_3", "LlamaDecoderLayer", "layers.0.self_attn", "model.decoder",
                             "Stack.0", "GPT.blocks.mlp"})
        EXPECT_TRUE(read_nvtx_name(text).is_module) << text;
    for (const char* text : {"Forward", "forward", "Backward pass", "AddmmBackward", "AddmmBackward0",
                             "SplitWithSizesBackward0", "torch.nn.functional", "", "OptimizerStep", "v1.2a",
                             "all_reduce grad [lm_head.weight]", "aten::mm"})
        EXPECT_FALSE(read_nvtx_name(text).is_module) << text;
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::store
