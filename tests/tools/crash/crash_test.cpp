// Jobs that are killed at random moments while they record: the file is intact, and only the newest part is
// missing.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <mutex>
#include <random>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/crash/watermarks.h"
#include "tests/tools/run_command.h"
#include "traces/store/load/loader.h"
#include "traces/store/sqlite/open.h"
#include "traces/store/sqlite/sqlite.h"

namespace shardscope::tools {
namespace TEST_FILE {

using ::testing::HasSubstr;
using traces::store::Database;
using traces::store::Statement;
namespace fs = std::filesystem;

constexpr int kAtOnce = 4;
// The allowed age of the last commit in seconds, at the median of the kills and at the worst: a commit is due
// each second. A single one may be late on a busy machine; under a sanitizer everything takes several times
// as long.
#ifdef SHARDSCOPE_SANITIZED
constexpr int kRecorderMoments = 6, kToolMoments = 2;
constexpr double kUsualAge = 5, kLargestAge = 15;
#else
constexpr int kRecorderMoments = 50, kToolMoments = 8;
constexpr double kUsualAge = 1.2, kLargestAge = 5;
#endif

// How a kind of job numbers its events: the rows, and the expression that gives number * 2 + thread.
struct Numbering {
    const char* table;
    const char* number;
};
constexpr Numbering kCalls = {"CUPTI_ACTIVITY_KIND_RUNTIME", "correlationId"};
constexpr Numbering kRanges = {"NVTX_EVENTS WHERE eventType = 59", "color"};

struct Stored {
    std::int64_t count = 0, last = 0, last_end = 0;
};

Stored stored(Database& database, const Numbering& numbering, int thread) {
    Statement query(database, std::string("SELECT count(*), max(number), max(\"end\") FROM (SELECT ") +
                                  numbering.number + " / 2 AS number, " + numbering.number +
                                  " % 2 AS thread, \"end\" FROM " + numbering.table +
                                  ") WHERE thread = " + std::to_string(thread));
    query.step();
    return {query.integer(0), query.integer_or(1, 0), query.integer_or(2, 0)};
}

std::vector<Stored> all_stored(const std::string& path, const Numbering& numbering) {
    Database database = traces::store::open_trace(path);
    std::vector<Stored> all;
    for (int t = 0; t < kJobThreads; ++t) all.push_back(stored(database, numbering, t));
    return all;
}

// The age in seconds of the last committed event. Fails the test if the file is damaged.
double expect_whole_up_to_the_last_commit(const std::string& path, const Numbering& numbering,
                                          const JobMoments& job) {
    Database database = traces::store::open_trace(path);
    {
        Statement integrity(database, "PRAGMA integrity_check");
        EXPECT_TRUE(integrity.step());
        EXPECT_EQ(integrity.text(0), "ok");
    }
    EXPECT_EQ(database.integer("SELECT ended FROM SHARD_STATE"), 0);
    const std::int64_t origin = database.integer("SELECT systemClockNs FROM TARGET_INFO_SESSION_START_TIME");
    EXPECT_GT(origin, 0);

    // Events are committed up to the earlier of the threads' last events.
    std::int64_t watermark = INT64_MAX, killed_at = 0;
    std::vector<Stored> rows;
    for (int t = 0; t < kJobThreads; ++t) {
        rows.push_back(stored(database, numbering, t));
        watermark = std::min(watermark, origin + rows.back().last_end);
        killed_at = std::max(killed_at, job.threads[static_cast<std::size_t>(t)].last().time_ns);
    }
    for (int t = 0; t < kJobThreads; ++t) {
        const ThreadMoments& thread = job.threads[static_cast<std::size_t>(t)];
        const Stored& row = rows[static_cast<std::size_t>(t)];
        EXPECT_EQ(row.count, row.last) << "events 1 to " << row.last << " of thread " << t << ", each once";
        // At least the events that the thread had noted by then. The two clocks differ by a few microseconds
        // at most.
        EXPECT_GE(row.last, thread.count_at(watermark - 100'000)) << "thread " << t;
        constexpr std::int64_t kBurst = 20;  // may have been recorded but not noted yet
        EXPECT_LE(row.last, thread.last().count + kBurst) << "thread " << t;
    }
    return static_cast<double>(killed_at - watermark) * 1e-9;
}

void expect_check_to_finalize(const std::string& path, const Numbering& numbering) {
    const auto before = all_stored(path, numbering);
    const Outcome unended = run_command({SHARDSCOPE_TRACE, "check", path});
    EXPECT_EQ(unended.status, 1) << unended.err;
    EXPECT_THAT(unended.out, HasSubstr("did not end"));
    const Outcome finalized = run_command({SHARDSCOPE_TRACE, "check", "--finalize", path});
    EXPECT_EQ(finalized.status, 0) << finalized.out << finalized.err;
    EXPECT_THAT(finalized.out, HasSubstr("the run was killed"));
    EXPECT_EQ(run_command({SHARDSCOPE_TRACE, "check", path}).status, 0);
    for (const char* side : {"-wal", "-shm", "-journal", ".finalizing"})
        EXPECT_FALSE(fs::exists(path + side)) << side;
    const auto after = all_stored(path, numbering);
    for (std::size_t t = 0; t < after.size(); ++t) {
        EXPECT_EQ(after[t].count, before[t].count);
        EXPECT_EQ(after[t].last_end, before[t].last_end);
    }
    EXPECT_TRUE(traces::store::load_trace(path)->ended);
}

class CrashTest : public ::testing::Test {
  protected:
    // Kills `moments` jobs, several at a time, each 0.2 to 2 s after both its threads have begun and its
    // trace exists (which may take longer than the job on a busy machine). The first two words of `command`
    // name the program that is killed.
    template <typename Command>
    void kill_at_random_moments(int moments, const Numbering& numbering, Command command) {
        std::mt19937 random(20'231'124);
        std::uniform_real_distribution<double> moment(0.2, 2);
        std::vector<double> delays;
        for (int i = 0; i < moments; ++i) delays.push_back(moment(random));
        std::atomic<int> next = 0;
        std::vector<std::thread> workers;
        for (int w = 0; w < kAtOnce; ++w) {
            workers.emplace_back([&] {
                for (int i = next++; i < moments; i = next++) {
                    SCOPED_TRACE("killed after " + std::to_string(delays[static_cast<std::size_t>(i)]) +
                                 " s");
                    kill_one(i, delays[static_cast<std::size_t>(i)], numbering, command);
                }
            });
        }
        for (std::thread& worker : workers) worker.join();

        ASSERT_EQ(ages_.size(), static_cast<std::size_t>(moments));
        std::sort(ages_.begin(), ages_.end());
        const double median = ages_[ages_.size() / 2];
        EXPECT_LE(median, kUsualAge);
        EXPECT_LE(ages_.back(), kLargestAge);
        std::printf("  last commit before the kill: median %.2f s, longest %.2f s\n", median, ages_.back());
    }

  private:
    template <typename Command>
    void kill_one(int number, double delay, const Numbering& numbering, Command command) {
        using Clock = std::chrono::steady_clock;
        const std::string name = std::to_string(number);
        const std::string trace = folder_ / (name + ".sqlite"), marks = folder_ / (name + ".marks");
        const Watermarks job(marks);
        RunningCommand running(command(trace, marks));
        const auto deadline = Clock::now() + std::chrono::seconds(20);
        std::error_code missing;
        const auto begun = [&] { return job->started() && fs::file_size(trace, missing) > 0 && !missing; };
        while (!begun() && Clock::now() < deadline) {
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
        }
        std::this_thread::sleep_for(std::chrono::duration<double>(delay));
        const bool was_killed = running.end(SIGKILL) == 128 + SIGKILL && running.was_signalled();
        // With shardscope-record only the tool was killed; its command runs until here.
        const Moment at_kill = job->threads[0].last();
        if (job->pid != 0 && ::kill(job->pid, 0) == 0) {
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            EXPECT_GT(job->threads[0].last().count, at_kill.count) << "the command runs on";
            ::kill(job->pid, SIGKILL);
        }
        ASSERT_TRUE(was_killed) << "it ended by itself";
        ASSERT_TRUE(job->started());
        const double age = expect_whole_up_to_the_last_commit(trace, numbering, *job);
        expect_check_to_finalize(trace, numbering);
        std::lock_guard lock(mutex_);
        ages_.push_back(age);
    }

    TemporaryFolder folder_;
    std::mutex mutex_;
    std::vector<double> ages_;
};

// A kill may come at any moment of the second between commits, so many moments are tried, each in a process.
TEST_F(CrashTest, AKilledJobLosesOnlyEventsSinceItsLastCommit) {
    kill_at_random_moments(kRecorderMoments, kCalls, [](const std::string& trace, const std::string& marks) {
        return std::vector<std::string>{CRASH_JOB, "recorder", marks, trace};
    });
}

TEST_F(CrashTest, AKilledRecordingToolLosesOnlyEventsSinceTheLastCommit) {
    kill_at_random_moments(kToolMoments, kRanges, [](const std::string& trace, const std::string& marks) {
        return std::vector<std::string>{SHARDSCOPE_RECORD, "-o", trace, "--", CRASH_JOB, "nvtx", marks};
    });
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
