// Databases of ROCm's rocprofv3, made here by the published schema: one process on one GPU, files of two
// processes joined, and files with missing or hostile content.
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/temporary_folder.h"
#include "traces/analysis/communication/collectives.h"
#include "traces/analysis/memory/memory.h"
#include "traces/analysis/time/kernels.h"
#include "traces/analysis/time/steps.h"
#include "traces/import/open.h"
#include "traces/store/columns/trace.h"
#include "traces/store/error.h"
#include "traces/store/sqlite/sqlite.h"

namespace shardscope::traces::importer {
namespace TEST_FILE {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;

// The file of one process: tables with its id in their names, and rows with its guid.
class RocpdFile {
  public:
    explicit RocpdFile(const std::string& path) : path_(path) {
        std::FILE* made = std::fopen(path.c_str(), "wb");
        std::fclose(made);
        database_.emplace(path, store::Database::Mode::read_write);
        run("BEGIN");
    }

    void process(const std::string& guid, int pid) {
        guid_ = guid;
        pid_ = pid;
        const auto table = [&](const char* name, const char* columns) {
            run(std::string("CREATE TABLE ") + name + "_" + guid + "(" + columns + ", guid TEXT DEFAULT '" +
                guid + "')");
        };
        table("rocpd_string", "id INTEGER PRIMARY KEY, string TEXT");
        table("rocpd_info_node", "id INTEGER PRIMARY KEY, hostname TEXT");
        table("rocpd_info_process", "id INTEGER PRIMARY KEY, nid INT, pid INT, command TEXT");
        table("rocpd_info_thread", "id INTEGER PRIMARY KEY, pid INT, tid INT, name TEXT");
        table("rocpd_info_agent",
              "id INTEGER PRIMARY KEY, type TEXT, type_index INT, name TEXT, model_name TEXT, product_name "
              "TEXT");
        table("rocpd_info_kernel_symbol", "id INTEGER PRIMARY KEY, kernel_name TEXT, display_name TEXT");
        table("rocpd_event", "id INTEGER PRIMARY KEY, category_id INT, stack_id INT, extdata TEXT");
        table("rocpd_arg", "id INTEGER PRIMARY KEY, event_id INT, name TEXT, value TEXT");
        table("rocpd_track", "id INTEGER PRIMARY KEY, pid INT, tid INT");
        table("rocpd_sample", "id INTEGER PRIMARY KEY, track_id INT, timestamp INT, event_id INT");
        table("rocpd_region",
              "id INTEGER PRIMARY KEY, pid INT, tid INT, start INT, \"end\" INT, name_id INT, event_id INT");
        table("rocpd_kernel_dispatch",
              "id INTEGER PRIMARY KEY, pid INT, tid INT, agent_id INT, kernel_id INT, stream_id INT, start "
              "INT, \"end\" "
              "INT, grid_size_x INT, grid_size_y INT, grid_size_z INT, workgroup_size_x INT, "
              "workgroup_size_y INT, "
              "workgroup_size_z INT, group_segment_size INT, private_segment_size INT, event_id INT");
        table("rocpd_memory_copy",
              "id INTEGER PRIMARY KEY, pid INT, tid INT, start INT, \"end\" INT, dst_agent_id INT, "
              "src_agent_id INT, size "
              "INT, stream_id INT, event_id INT");
        table("rocpd_memory_allocate",
              "id INTEGER PRIMARY KEY, pid INT, tid INT, agent_id INT, type TEXT, level TEXT, start INT, "
              "\"end\" INT, "
              "address INT, size INT");
        add("rocpd_info_node", "id, hostname", "1, 'node7'");
        add("rocpd_info_process", "id, nid, pid, command",
            number(pid) + ", 1, " + number(pid) + ", 'python3 train.py'");
        add("rocpd_info_thread", "id, pid, tid, name",
            number(pid) + ", " + number(pid) + ", " + number(pid) + ", 'main'");
        add("rocpd_info_agent", "id, type, type_index, name, model_name, product_name",
            "0, 'CPU', 0, 'EPYC', 'EPYC', 'AMD EPYC'");
        for (const char* gpu : {"1", "2"})
            add("rocpd_info_agent", "id, type, type_index, name, model_name, product_name",
                std::string(gpu) + ", 'GPU', " + gpu + " - 1, 'gfx942', 'MI300X', 'AMD Instinct MI300X'");
    }

    // A range on the host; returns its event's id, which is its stack_id, too.
    int region(const char* category, const char* name, int start, int end, const std::string& message = "") {
        const int event = this->event(category, events_ + 1, message);
        add("rocpd_region", "pid, tid, start, \"end\", name_id, event_id",
            number(pid_) + ", " + number(pid_) + ", " + number(start) + ", " + number(end) + ", " +
                text(name) + ", " + number(event));
        return event;
    }
    void argument(int event, const char* name, const char* value) {
        add("rocpd_arg", "event_id, name, value", number(event) + ", '" + name + "', '" + value + "'");
    }
    void mark(const char* message, int at) {
        add("rocpd_track", "pid, tid", number(pid_) + ", " + number(pid_));
        const int event = this->event("MARKER_CORE_RANGE_API", events_ + 1, message);
        add("rocpd_sample", "track_id, timestamp, event_id",
            "(SELECT max(id) FROM rocpd_track_" + guid_ + "), " + number(at) + ", " + number(event));
    }
    void kernel(int launch, const char* name, int start, int end, int gpu = 1) {
        add("rocpd_info_kernel_symbol", "kernel_name, display_name", "'_Z1k', '" + std::string(name) + "'");
        const int event = this->event("KERNEL_DISPATCH", launch);
        add("rocpd_kernel_dispatch",
            "pid, tid, agent_id, kernel_id, stream_id, start, \"end\", grid_size_x, grid_size_y, "
            "grid_size_z, "
            "workgroup_size_x, workgroup_size_y, workgroup_size_z, group_segment_size, private_segment_size, "
            "event_id",
            number(pid_) + ", " + number(pid_) + ", " + number(gpu) +
                ", (SELECT max(id) FROM rocpd_info_kernel_symbol_" + guid_ + "), 3, " + number(start) + ", " +
                number(end) + ", 1000, 1, 1, 256, 1, 1, 4096, 0, " + number(event));
    }
    void copy(int launch, int from, int to, int bytes, int start, int end) {
        const int event = this->event("MEMORY_COPY", launch);
        add("rocpd_memory_copy",
            "pid, tid, start, \"end\", dst_agent_id, src_agent_id, size, stream_id, event_id",
            number(pid_) + ", " + number(pid_) + ", " + number(start) + ", " + number(end) + ", " +
                number(to) + ", " + number(from) + ", " + number(bytes) + ", 0, " + number(event));
    }
    void memory(const char* type, int address, int bytes, int at, const char* level = "REAL", int agent = 1) {
        add("rocpd_memory_allocate", "pid, tid, agent_id, type, level, start, \"end\", address, size",
            number(pid_) + ", " + number(pid_) + ", " + number(agent) + ", '" + type + "', '" + level +
                "', " + number(at) + ", " + number(at + 1) + ", " + number(address) + ", " + number(bytes));
    }
    void run(const std::string& sql) { database_->execute(sql); }
    std::unique_ptr<store::Trace> trace() {
        run("COMMIT");
        database_.reset();
        return open_any({path_});
    }

  private:
    static std::string number(int value) { return std::to_string(value); }
    void add(const std::string& table, const std::string& columns, const std::string& values) {
        run("INSERT INTO " + table + "_" + guid_ + "(" + columns + ") VALUES (" + values + ")");
    }
    std::string text(const std::string& value) {
        run("INSERT INTO rocpd_string_" + guid_ + "(string) SELECT '" + value +
            "' WHERE NOT EXISTS (SELECT 1 FROM rocpd_string_" + guid_ + " WHERE string = '" + value + "')");
        return "(SELECT id FROM rocpd_string_" + guid_ + " WHERE string = '" + value + "')";
    }
    int event(const char* category, int stack, const std::string& message = "") {
        const std::string extdata = message.empty() ? "{}" : "{\"message\": \"" + message + "\"}";
        add("rocpd_event", "id, category_id, stack_id, extdata",
            number(++events_) + ", " + text(category) + ", " + number(stack) + ", '" + extdata + "'");
        return events_;
    }

    std::string path_, guid_;
    std::optional<store::Database> database_;
    int pid_ = 0, events_ = 0;
};

// A step that launches a gemm, an all-reduce of 1,000 floats and a copy to the device.
void one_step(RocpdFile& file) {
    file.region("MARKER_CORE_RANGE_API", "roctxThreadRangeA", 1'000, 9'000, "ProfilerStep#7");
    const int gemm = file.region("HIP_RUNTIME_API", "hipLaunchKernel", 1'100, 1'200);
    const int call = file.region("RCCL_API", "ncclAllReduce", 1'300, 1'900);
    file.argument(call, "count", "1000");
    file.argument(call, "datatype", "7");
    const int reduce = file.region("HIP_RUNTIME_API", "hipExtLaunchKernel", 1'400, 1'500);
    const int copy = file.region("HIP_RUNTIME_API", "hipMemcpyAsync", 2'000, 2'100);
    file.mark("checkpoint", 2'200);
    file.kernel(gemm, "Cijk_gemm<float>(float*)", 2'000, 5'000);
    file.kernel(reduce, "ncclDevKernel_Generic(ncclDevKernelArgs)", 5'000, 7'000);
    file.copy(copy, 0, 1, 4'096, 7'000, 7'500);
}

class Rocpd : public ::testing::Test {
  protected:
    const TemporaryFolder folder_;
    RocpdFile file_{folder_ / "results.db"};
};

TEST_F(Rocpd, KernelsBelongToTheCallsThatLaunchedThem) {
    file_.process("a", 42);
    one_step(file_);
    const auto trace = file_.trace();
    ASSERT_EQ(trace->ranks.size(), 1u);
    EXPECT_EQ(trace->ranks[0].device_name, "AMD Instinct MI300X");
    EXPECT_EQ(trace->ranks[0].host, "node7");
    const analysis::StepsReport steps = analysis::steps_report(*trace, {});
    ASSERT_EQ(steps.ranks.size(), 1u);
    const analysis::KernelsReport kernels = analysis::kernels_report(*trace, {});
    ASSERT_EQ(kernels.ranks.size(), 1u);
    ASSERT_EQ(kernels.ranks[0].kernels.size(), 2u);
    EXPECT_EQ(kernels.ranks[0].kernels[0].name, "Cijk_gemm<float>(float*)");
    EXPECT_EQ(kernels.ranks[0].kernels[0].total, 3'000);
    EXPECT_EQ(kernels.ranks[0].kernels[1].total, 2'000);
}

TEST_F(Rocpd, ACollectiveHasTheOperationAndTheBytesOfItsCall) {
    file_.process("a", 42);
    one_step(file_);
    const analysis::CollectivesReport report = analysis::collectives_report(*file_.trace(), {});
    ASSERT_EQ(report.ranks.size(), 1u);
    ASSERT_EQ(report.ranks[0].operations.size(), 1u);
    EXPECT_EQ(report.ranks[0].operations[0].operation, schema::Operation::all_reduce);
    EXPECT_EQ(report.ranks[0].operations[0].bytes, 4 * 1'000);
    EXPECT_EQ(report.ranks[0].operations[0].us, 2.0);
}

TEST_F(Rocpd, TheSizeOfAGatherIsKnownWithTheGroupsSize) {
    file_.process("a", 42);
    const auto gather = [&](int at) {
        const int call = file_.region("RCCL_API", "ncclAllGather", at, at + 100);
        file_.argument(call, "sendcount", "1000");
        file_.argument(call, "datatype", "ncclBfloat16");
        file_.kernel(file_.region("HIP_RUNTIME_API", "hipLaunchKernel", at + 10, at + 20),
                     "ncclDevKernel_Generic()", at + 200, at + 300);
    };
    gather(1'000);  // before any communicator is known
    const int made = file_.region("RCCL_API", "ncclCommInitRank", 2'000, 2'100);
    file_.argument(made, "nranks", "8");
    gather(3'000);
    const analysis::CollectivesReport report = analysis::collectives_report(*file_.trace(), {});
    ASSERT_EQ(report.ranks[0].operations.size(), 1u);
    EXPECT_EQ(report.ranks[0].operations[0].count, 2);
    EXPECT_EQ(report.ranks[0].operations[0].bytes, 2 * 1'000 * 8);  // of the second gather only
}

TEST_F(Rocpd, OfAGroupOfSeveralCallsTheKernelsNameTheOperation) {
    file_.process("a", 42);
    file_.region("RCCL_API", "ncclGroupStart", 1'000, 1'010);
    file_.region("RCCL_API", "ncclAllReduce", 1'020, 1'030);
    file_.region("RCCL_API", "ncclReduceScatter", 1'040, 1'050);
    file_.region("RCCL_API", "ncclGroupEnd", 1'060, 1'200);
    file_.kernel(file_.region("HIP_RUNTIME_API", "hipLaunchKernel", 1'100, 1'110), "ncclDevKernel_Generic()",
                 2'000, 3'000);
    const auto trace = file_.trace();
    EXPECT_EQ(trace->collectives.size(), 0u);  // its call is not guessed
    EXPECT_EQ(analysis::kernels_report(*trace, {}).ranks.at(0).count, 1);
}

TEST_F(Rocpd, MemoryIsOfTheDeviceOrPinned) {
    file_.process("a", 42);
    file_.kernel(file_.region("HIP_RUNTIME_API", "hipLaunchKernel", 1'000, 1'010), "k", 1'100, 1'200);
    file_.memory("FREE", 0x900, 0, 1'001);  // the allocation was before the recording
    file_.memory("ALLOC", 0x100, 3'000, 1'010);
    file_.memory("ALLOC", 0x200, 500, 1'020, "REAL", 0);    // on the host
    file_.memory("ALLOC", 0x300, 9'000, 1'030, "VIRTUAL");  // reserves addresses only
    file_.memory("ALLOC", 0x400, 1'000, 1'040);
    file_.memory("FREE", 0x100, 0, 1'050);
    file_.memory("ALLOC", 0x500, 2'500, 1'060);
    const auto trace = file_.trace();
    const analysis::MemoryReport report = analysis::memory_report(*trace, {});
    ASSERT_EQ(report.ranks.size(), 1u);
    EXPECT_EQ(report.ranks[0].peak_bytes, 4'000);
    EXPECT_THAT(trace->diagnostics, Contains(Field(&schema::DiagnosticRow::text, HasSubstr("1 free was"))));
}

TEST_F(Rocpd, CopiesAreNamedByTheirAgents) {
    file_.process("a", 42);
    const int launch = file_.region("HIP_RUNTIME_API", "hipMemcpyAsync", 1'000, 1'010);
    file_.copy(launch, 0, 1, 64, 1'100, 1'200);
    file_.copy(launch, 1, 0, 64, 1'300, 1'400);
    file_.copy(launch, 1, 1, 64, 1'500, 1'600);
    file_.copy(launch, 1, 2, 64, 1'700, 1'800);
    const auto trace = file_.trace();
    std::vector<int> kinds;
    for (std::size_t i = 0; i < trace->device.size(); ++i) kinds.push_back(trace->device.copy_kind[i]);
    EXPECT_THAT(kinds, ElementsAre(schema::kCopyHostToDevice, schema::kCopyDeviceToHost,
                                   schema::kCopyDeviceToDevice, 10));
}

TEST_F(Rocpd, FilesOfTwoProcessesThatWereJoinedHaveTwoRanks) {
    file_.process("a", 42);
    one_step(file_);
    file_.process("b", 43);
    one_step(file_);
    const analysis::KernelsReport kernels = analysis::kernels_report(*file_.trace(), {});
    ASSERT_EQ(kernels.ranks.size(), 2u);
    for (const analysis::RankKernels& rank : kernels.ranks) EXPECT_EQ(rank.total, 5'000);
}

TEST_F(Rocpd, ViewsOfTheFileAreNotRead) {
    file_.process("a", 42);
    one_step(file_);
    file_.run(
        "CREATE VIEW rocpd_region AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT "
        "i AS id, "
        "i AS pid, i AS tid, i AS start, i AS \"end\", i AS name_id, i AS event_id, 'a' AS guid FROM n");
    EXPECT_EQ(analysis::kernels_report(*file_.trace(), {}).ranks.at(0).total, 5'000);
}

TEST_F(Rocpd, AMissingTableIsNamed) {
    file_.process("a", 42);
    file_.run("DROP TABLE rocpd_region_a");
    try {
        file_.trace();
        FAIL() << "it was read";
    } catch (const store::StoreError& error) {
        EXPECT_THAT(error.what(),
                    HasSubstr("results.db: a rocpd database without the table rocpd_region; record"));
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::importer
