// Programs that use CUDA (simulated by a fake CUPTI) under shardscope-record: the file contains what the fake
// delivered. The scenarios and the expected numbers are in cuda_program.cpp.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/run_command.h"
#include "traces/store/sqlite/sqlite.h"

namespace shardscope::profiler {
namespace TEST_FILE {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using tools::Outcome;
using traces::store::Database;
using traces::store::Statement;

class CudaRecording : public ::testing::Test {
  protected:
    const tools::TemporaryFolder folder_;
    const std::string out_ = folder_ / "out.sqlite", time_ = folder_ / "time";

    // Runs cuda_program under the tool. `environment`: NAME=VALUE, as env(1) takes them.
    Outcome record(const std::string& scenario, std::vector<std::string> options = {},
                   std::vector<std::string> environment = {}) const {
        return record_command(with_environment({CUDA_PROGRAM, scenario, time_}, std::move(environment)),
                              std::move(options));
    }
    static std::vector<std::string> with_environment(const std::vector<std::string>& command,
                                                     std::vector<std::string> environment) {
        std::vector<std::string> line = {"env", "LD_LIBRARY_PATH=" FAKE_CUPTI_FOLDER};
        line.insert(line.end(), environment.begin(), environment.end());
        line.insert(line.end(), command.begin(), command.end());
        return line;
    }
    Outcome record_command(const std::vector<std::string>& command, std::vector<std::string> options) const {
        std::vector<std::string> line = {SHARDSCOPE_RECORD, "-o", out_};
        line.insert(line.end(), options.begin(), options.end());
        line.emplace_back("--");
        line.insert(line.end(), command.begin(), command.end());
        return tools::run_command(line);
    }

    // The rows of a query, with cells joined by '|'.
    std::vector<std::string> rows(const std::string& sql) const {
        Database database(out_, Database::Mode::read_only);
        Statement statement(database, sql);
        std::vector<std::string> found;
        while (statement.step()) {
            std::string row;
            for (int i = 0; i < statement.column_count(); ++i) {
                if (i != 0) row += '|';
                row += statement.is_null(i) ? std::string("NULL") : std::string(statement.text(i));
            }
            found.push_back(std::move(row));
        }
        return found;
    }
    std::string row(const std::string& sql) const {
        const auto found = rows(sql);
        return found.size() == 1 ? found[0] : std::to_string(found.size()) + " rows";
    }
    std::int64_t number(const std::string& sql) const { return std::stoll(row(sql)); }

    // The time of the program's start in the trace.
    std::int64_t start() const {
        std::int64_t realtime = 0;
        std::ifstream(time_) >> realtime;
        return realtime - number("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME");
    }
    // An SQL expression for the microseconds after the program's start.
    std::string us(std::string_view column, std::int64_t t) const {
        return "CAST(round((" + std::string(column) + " - " + std::to_string(t) + ") / 1000.0) AS INTEGER)";
    }
    std::vector<std::string> diagnostics() const {
        return rows("SELECT text FROM DIAGNOSTIC_EVENT ORDER BY timestamp");
    }
};

constexpr const char* kName = "(SELECT value FROM StringIds WHERE id = ";

// The tool reads its two clocks one after the other, and on a busy machine another thread may run in between.
constexpr std::int64_t kClockSlackNs = 100'000'000;

TEST_F(CudaRecording, keeps_every_field_of_every_kind) {
    const Outcome outcome = record("every_kind");
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(
        row("SELECT end - start, deviceId, contextId, streamId, correlationId, launchType, cacheConfig, "
            "registersPerThread, gridX, gridY, gridZ, blockX, blockY, blockZ FROM "
            "CUPTI_ACTIVITY_KIND_KERNEL"),
        "5000|0|1|13|11|2|2|40|101|102|103|32|33|34");
    EXPECT_EQ(
        row("SELECT staticSharedMemory, dynamicSharedMemory, localMemoryPerThread, localMemoryTotal, gridId, "
            "sharedMemoryExecuted, graphNodeId, graphId, sharedMemoryLimitConfig, clusterX, clusterY, "
            "clusterZ, "
            "clusterSchedulingPolicy, maxPotentialClusterSize, maxActiveClusters FROM "
            "CUPTI_ACTIVITY_KIND_KERNEL"),
        "1024|2048|16|" + std::to_string(std::int64_t{5} << 32) + "|77|4096|4294967298|3|1|2|3|4|1|8|16");
    EXPECT_EQ(row(std::string("SELECT ") + kName + "shortName), " + kName + "demangledName), " + kName +
                  "mangledName) FROM CUPTI_ACTIVITY_KIND_KERNEL"),
              "fill|void at::native::fill<4, float>(int, float)|_ZN2at6native4fillILi4EfEEvif");
    EXPECT_EQ(
        row("SELECT end - start, deviceId, contextId, streamId, correlationId, bytes, copyKind, srcKind, "
            "dstKind, srcDeviceId, copyCount FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE copyKind = 1"),
        "1000|0|1|13|21|4096|1|1|2|NULL|5");
    EXPECT_EQ(row("SELECT end - start, bytes, srcKind, dstKind, srcDeviceId, srcContextId, dstDeviceId, "
                  "dstContextId FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE copyKind = 10"),
              "2000|8192|2|2|0|1|1|2");
    EXPECT_EQ(row("SELECT end - start, streamId, correlationId, value, bytes, memKind FROM "
                  "CUPTI_ACTIVITY_KIND_MEMSET"),
              "1000|13|23|255|512|2");
    EXPECT_EQ(row("SELECT end - start, deviceId, streamId, correlationId, syncType, eventId FROM "
                  "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"),
              "4000|0|4294967295|24|4|4294967295");
    EXPECT_EQ(row("SELECT deviceId, contextId, streamId, correlationId, eventId, eventSyncId FROM "
                  "CUPTI_ACTIVITY_KIND_CUDA_EVENT"),
              "0|1|13|25|9|99");
    EXPECT_THAT(rows("SELECT address, pc, bytes, memKind, memoryOperationType, correlationId, streamId FROM "
                     "CUDA_GPU_MEMORY_USAGE_EVENTS ORDER BY start"),
                ElementsAre("481036337152|4660|1048576|2|0|26|13", "481036337152|4660|1048576|2|1|27|13"));
    EXPECT_EQ(number("SELECT count(*) FROM CUDA_GPU_MEMORY_POOL_EVENTS"), 1);
    EXPECT_EQ(row(std::string("SELECT end - start, overheadType, correlationId, ") + kName +
                  "nameId) FROM CUPTI_ACTIVITY_KIND_OVERHEAD"),
              "5000|7|29|Lazy function loading");
    EXPECT_THAT(rows(std::string("SELECT end - start, eventClass, correlationId, returnValue, ") + kName +
                     "nameId) FROM CUPTI_ACTIVITY_KIND_RUNTIME ORDER BY start"),
                ElementsAre("3000|0|11|0|cudaLaunchKernel_v7000", "1000|1|12|0|cuLaunchKernel",
                            "1000|0|15|2|cudaMalloc_v3020"));
    EXPECT_THAT(outcome.err, Not(HasSubstr("lost")));
    EXPECT_THAT(diagnostics(), IsEmpty());
}

TEST_F(CudaRecording, puts_everything_at_its_time) {
    ASSERT_EQ(record("every_kind").status, 0);
    const std::int64_t t = start();
    // The kernel starts 20 us after the program's start; all other times are relative to the kernel, exact to
    // the nanosecond.
    const std::int64_t kernel = number("SELECT start FROM CUPTI_ACTIVITY_KIND_KERNEL");
    EXPECT_NEAR(static_cast<double>(kernel), static_cast<double>(t + 20'000), kClockSlackNs);
    const auto at = [&](const std::string& column, const std::string& rest) {
        return number("SELECT " + us(column, kernel - 20'000) + " FROM " + rest);
    };
    EXPECT_EQ(at("start", "CUPTI_ACTIVITY_KIND_RUNTIME WHERE correlationId = 11"), 10);
    EXPECT_EQ(at("start", "CUPTI_ACTIVITY_KIND_MEMCPY WHERE copyKind = 1"), 30);
    EXPECT_EQ(at("start", "CUPTI_ACTIVITY_KIND_MEMSET"), 35);
    EXPECT_EQ(at("start", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"), 40);
    EXPECT_EQ(at("timestamp", "CUPTI_ACTIVITY_KIND_CUDA_EVENT"), 45);
    EXPECT_EQ(at("start", "CUDA_GPU_MEMORY_USAGE_EVENTS WHERE memoryOperationType = 1"), 60);
    EXPECT_EQ(at("start", "CUPTI_ACTIVITY_KIND_OVERHEAD"), 70);
}

TEST_F(CudaRecording, knows_the_device_and_the_thread) {
    ASSERT_EQ(record("every_kind").status, 0);
    EXPECT_EQ(
        row("SELECT id, name, totalMemory, memoryBandwidth, clockRate, smCount, computeMajor, uuid FROM "
            "TARGET_INFO_GPU WHERE id = 0"),
        "0|Fake GPU 80GB|85899345920|2000000000000|1980000000|132|9|"
        "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
    EXPECT_EQ(row("SELECT nullStreamId, contextId, deviceId FROM TARGET_INFO_CUDA_CONTEXT_INFO"), "7|1|0");
    EXPECT_EQ(row("SELECT streamId, contextId, priority, flag FROM TARGET_INFO_CUDA_STREAM"), "13|1|-1|2");
    // The main thread of the kernel's process made all calls.
    EXPECT_EQ(number("SELECT count(DISTINCT globalTid) FROM CUPTI_ACTIVITY_KIND_RUNTIME"), 1);
    EXPECT_EQ(
        row("SELECT r.globalTid / 0x1000000 % 0x1000000 = r.globalTid % 0x1000000, k.globalPid = "
            "(r.globalTid & "
            "0xFFFFFFFFFF000000) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON "
            "r.correlationId = k.correlationId AND r.eventClass = 0"),
        "1|1");
}

TEST_F(CudaRecording, shows_graphs_by_their_kernels_or_as_a_whole) {
    ASSERT_EQ(record("graph").status, 0);
    EXPECT_EQ(number("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL"), 1);
    EXPECT_EQ(number("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_GRAPH_TRACE"), 0);
    ASSERT_EQ(record("graph", {"--whole-graphs", "--overwrite"}).status, 0);
    EXPECT_EQ(number("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL"), 0);
    EXPECT_EQ(row("SELECT g.end - g.start, deviceId, contextId, streamId, graphId FROM "
                  "CUPTI_ACTIVITY_KIND_GRAPH_TRACE "
                  "g JOIN CUPTI_ACTIVITY_KIND_RUNTIME r USING (correlationId)"),
              "7000|0|1|13|4");
}

TEST_F(CudaRecording, takes_records_of_many_threads_in_any_order) {
    const Outcome outcome = record("many");
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    // 4 threads with 50 batches of 100 launches; in each batch one kernel has no times and one ends before it
    // starts.
    EXPECT_EQ(number("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME"), 20'000);
    EXPECT_EQ(number("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL"), 20'000 - 400);
    EXPECT_EQ(number("SELECT count(DISTINCT correlationId) FROM CUPTI_ACTIVITY_KIND_KERNEL"), 20'000 - 400);
    EXPECT_EQ(number("SELECT count(DISTINCT globalTid) FROM CUPTI_ACTIVITY_KIND_RUNTIME"), 4);
    // Durations are exact; the distance of a kernel from its call may differ by the rounding of CUPTI's clock
    // to trace time, and by the difference between two readings of the clocks if a reading falls in between.
    EXPECT_EQ(
        number("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r USING "
               "(correlationId) WHERE abs(k.start - (r.start + 50)) <= 1000 AND k.end - k.start = 40 AND "
               "r.end - r.start = 40"),
        20'000 - 400);
    EXPECT_THAT(rows(std::string("SELECT ") + kName +
                     "shortName) AS name, count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL "
                     "GROUP BY 1 ORDER BY 1"),
                ElementsAre("fill|9800", "plain_kernel|9800"));
    EXPECT_THAT(diagnostics(), Contains(HasSubstr("400 CUDA events had no valid times")));
    EXPECT_THAT(outcome.err, HasSubstr("400 more were lost"));
}

TEST_F(CudaRecording, refuses_buffers_and_says_what_was_lost) {
    const Outcome outcome = record("refused");
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    // One kernel found no buffer, and CUPTI counted six more.
    EXPECT_THAT(diagnostics(), Contains(HasSubstr("CUPTI lost 7 CUDA events")));
    EXPECT_THAT(outcome.err, HasSubstr("7 more were lost"));
    EXPECT_EQ(number("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL"), 0);
}

TEST_F(CudaRecording, never_refuses_a_buffer_to_an_old_library) {
    const Outcome outcome = record("refused", {}, {"FAKE_CUPTI_VERSION=26"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("40 of 40"));
    EXPECT_EQ(number("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL"), 1);
}

TEST_F(CudaRecording, reads_the_records_of_an_old_library) {
    const Outcome outcome = record("every_kind", {},
                                   {"LD_LIBRARY_PATH=" OLD_FAKE_CUPTI_FOLDER,
                                    "FAKE_CUPTI_NAME=libcupti.so.11.6", "FAKE_CUPTI_VERSION=17"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    // Values that this version does not report are unknown, and bytes after its records are not read.
    EXPECT_EQ(row("SELECT end - start, localMemoryTotal, graphNodeId, clusterX, maxPotentialClusterSize FROM "
                  "CUPTI_ACTIVITY_KIND_KERNEL"),
              "5000|1048576|4294967298|NULL|NULL");
    EXPECT_EQ(row("SELECT bytes, copyCount FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE copyKind = 1"), "4096|NULL");
    EXPECT_EQ(row("SELECT timestamp, deviceId, eventId, eventSyncId FROM CUPTI_ACTIVITY_KIND_CUDA_EVENT"),
              "0|0|9|NULL");
    EXPECT_EQ(row("SELECT end - start, correlationId FROM CUPTI_ACTIVITY_KIND_OVERHEAD"), "5000|0");
    // This version cannot disable calls individually: they are removed afterwards.
    EXPECT_THAT(
        rows(std::string("SELECT ") + kName + "nameId) FROM CUPTI_ACTIVITY_KIND_RUNTIME ORDER BY start"),
        ElementsAre("cudaLaunchKernel_v7000", "cuLaunchKernel", "cudaMalloc_v3020"));
}

TEST_F(CudaRecording, lets_a_program_run_if_another_tool_uses_cupti) {
    const Outcome outcome = record("every_kind", {}, {"FAKE_CUPTI_HOLDER=Nsight Systems"});
    // If the program's own check of the set-up fails, it exits with 6.
    EXPECT_EQ(outcome.status, 6) << outcome.err;
    EXPECT_THAT(diagnostics(), ElementsAre(HasSubstr("\"Nsight Systems\" uses CUPTI in this process")));
    EXPECT_THAT(outcome.err, HasSubstr("\"Nsight Systems\" uses CUPTI in this process"));
    EXPECT_EQ(number("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL"), 0);
}

TEST_F(CudaRecording, lets_a_program_run_if_its_cupti_is_too_old) {
    const Outcome outcome = record("nothing", {}, {"FAKE_CUPTI_VERSION=13"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(diagnostics(), ElementsAre(HasSubstr("older than CUDA 11.2")));
}

TEST_F(CudaRecording, reports_once_what_many_processes_lack) {
    const std::string program = CUDA_PROGRAM;
    const std::string line =
        "for i in 1 2 3; do LD_LIBRARY_PATH=" NO_CUPTI_FOLDER " " + program + " real; done";
    const Outcome outcome = record_command({"bash", "-c", line}, {});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "ran on\nran on\nran on\n");
    EXPECT_THAT(diagnostics(),
                ElementsAre(HasSubstr("kernels and copies are not in the trace: libcupti.so has no")));
}

TEST_F(CudaRecording, lets_a_program_run_with_the_cupti_of_this_machine) {
    const Outcome outcome = record_command({CUDA_PROGRAM, "real"}, {});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "ran on\n");
    const auto said = diagnostics();
    if (std::filesystem::exists("/dev/nvidiactl"))
        GTEST_SKIP() << "there is a driver: nothing has to be said";
    // Without a driver: CUPTI is missing or cannot start.
    EXPECT_THAT(said, ElementsAre(HasSubstr("kernels and copies are not in the trace")));
}

TEST_F(CudaRecording, records_no_cuda_when_it_is_switched_off) {
    // The library does not redirect CUDA at all: the program finds no variable and exits with 3.
    EXPECT_EQ(record("every_kind", {"--no-cuda"}).status, 3);
    EXPECT_EQ(number("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL"), 0);
}

TEST_F(CudaRecording, leaves_cupti_alone_in_forked_children) {
    const Outcome outcome = record("forks");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(number("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL"), 2);
}

TEST_F(CudaRecording, keeps_work_that_never_completed_when_the_program_ends) {
    const Outcome outcome = record("holds");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(number("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL"),
              number("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME"));
}

TEST_F(CudaRecording, loses_at_most_two_seconds_of_a_program_that_crashes) {
    const Outcome outcome = record("crashes");
    EXPECT_EQ(outcome.status, 9) << outcome.err;
    // The program ran for 2.5 s, and was flushed every second.
    const std::int64_t last = number("SELECT max(start) FROM CUPTI_ACTIVITY_KIND_KERNEL") - start();
    EXPECT_GT(last, 500'000'000);
    EXPECT_EQ(number("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k WHERE NOT EXISTS (SELECT 1 FROM "
                     "CUPTI_ACTIVITY_KIND_RUNTIME r WHERE r.correlationId = k.correlationId)"),
              0);
}

// --- windows -----------------------------------------------------------------------------------------------

TEST_F(CudaRecording, keeps_the_device_work_that_the_steps_launched) {
    const Outcome outcome = record("steps", {"--steps", "1:2"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    // Ten launches in each step, and ten between steps: the window is from the push of the first to the pop
    // of the last.
    const std::string by_name =
        std::string("SELECT ") + kName +
        "shortName) AS name, count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL GROUP BY 1 ORDER BY 1";
    EXPECT_THAT(rows(by_name), ElementsAre("before_2|10", "in_1|10", "in_2|10"));
    EXPECT_EQ(number("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME"), 30);
    EXPECT_EQ(number("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN CUPTI_ACTIVITY_KIND_RUNTIME USING "
                     "(correlationId)"),
              30);
    EXPECT_THAT(diagnostics(), IsEmpty());
}

TEST_F(CudaRecording, records_between_the_calls_of_the_profiler_api) {
    const Outcome outcome = record("profiler_api", {"--profiler-api"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(rows(std::string("SELECT ") + kName + "shortName) FROM CUPTI_ACTIVITY_KIND_KERNEL"),
                ElementsAre("inside"));
}

TEST_F(CudaRecording, begins_when_the_tool_starts_recording) {
    const Outcome outcome = record("goes_on", {"--delay", "0.5"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const std::int64_t first = number("SELECT min(start) FROM CUPTI_ACTIVITY_KIND_RUNTIME");
    EXPECT_GE(first, 450'000'000);
    EXPECT_GE(number("SELECT min(start) FROM CUPTI_ACTIVITY_KIND_KERNEL"), first);
    EXPECT_GT(number("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL"), 0);
}

TEST_F(CudaRecording, keeps_what_was_launched_before_the_tool_stopped) {
    const Outcome outcome = record("goes_on", {"--duration", "0.7"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    // A launch every 10 ms, and no regular flush in the first second: everything arrived with the stop.
    const std::int64_t last = number("SELECT max(start) FROM CUPTI_ACTIVITY_KIND_RUNTIME");
    EXPECT_GT(last, 200'000'000);
    EXPECT_LT(last, 1'450'000'000);
    EXPECT_EQ(number("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL"),
              number("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME"));
}

TEST_F(CudaRecording, turns_cupti_off_when_the_recording_is_over) {
    const Outcome outcome = record("outlives", {"--duration", "0.3"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "0 kinds\n");
    EXPECT_LT(number("SELECT max(start) FROM CUPTI_ACTIVITY_KIND_RUNTIME"), 2'000'000'000);
}

TEST_F(CudaRecording, does_not_turn_cupti_off_if_that_can_hang) {
    const Outcome outcome = record("outlives", {"--duration", "0.3"}, {"FAKE_CUPTI_VERSION=130000"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "13 kinds\n");
    EXPECT_LT(number("SELECT max(start) FROM CUPTI_ACTIVITY_KIND_RUNTIME"), 2'000'000'000);
}

// --- ranks and devices -------------------------------------------------------------------------------------

TEST_F(CudaRecording, gives_each_rank_a_device_and_ids_of_its_own) {
    const std::string program = CUDA_PROGRAM;
    const std::string environment = "LD_LIBRARY_PATH=" FAKE_CUPTI_FOLDER " ";
    const std::string line = "RANK=1 " + environment + program + " every_kind & RANK=0 " + environment +
                             program + " every_kind; wait";
    const Outcome outcome = record_command({"bash", "-c", line}, {});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(rows("SELECT r.rank, r.deviceId, g.name FROM SHARD_RANKS r JOIN TARGET_INFO_GPU g ON g.id = "
                     "r.deviceId "
                     "ORDER BY 1"),
                ElementsAre("0|0|Fake GPU 80GB", "1|1|Fake GPU 80GB"));
    EXPECT_THAT(rows("SELECT k.deviceId, r.rank FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN SHARD_RANKS r USING "
                     "(globalPid) "
                     "ORDER BY 1"),
                ElementsAre("0|0", "1|1"));
    // Both processes use the number 11.
    EXPECT_EQ(number("SELECT count(DISTINCT correlationId) FROM CUPTI_ACTIVITY_KIND_KERNEL"), 2);
    EXPECT_EQ(
        number("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r USING "
               "(correlationId) WHERE k.globalPid = (r.globalTid & 0xFFFFFFFFFF000000)"),
        2);
}

TEST_F(CudaRecording, does_not_record_other_ranks_than_requested) {
    // The program's own check that nothing was set up exits with 6.
    const Outcome outcome = record("every_kind", {"--ranks", "0"}, {"RANK=1"});
    EXPECT_EQ(outcome.status, 6) << outcome.err;
    EXPECT_EQ(number("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL"), 0);
}

TEST_F(CudaRecording, distinguishes_the_devices_of_one_process) {
    ASSERT_EQ(record("two_devices").status, 0);
    EXPECT_THAT(rows("SELECT deviceId, contextId FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY 1"),
                ElementsAre("0|1", "1|2"));
    EXPECT_THAT(rows("SELECT id, uuid FROM TARGET_INFO_GPU ORDER BY 1"),
                ElementsAre("0|GPU-00010203-0405-0607-0809-0a0b0c0d0e0f",
                            "1|GPU-10111213-1415-1617-1819-1a1b1c1d1e1f"));
}

}  // namespace TEST_FILE
}  // namespace shardscope::profiler
