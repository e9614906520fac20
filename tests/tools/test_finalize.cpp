// `shardscope-trace check --finalize` makes a finished file of a killed run, or leaves its file unchanged.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <random>
#include <system_error>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>

#include "tests/tools/run_command.h"
#include "tests/traces/sample_run.h"
#include "traces/store/load/loader.h"
#include "traces/store/sqlite/query.h"
#include "traces/store/sqlite/sqlite.h"
#include "traces/store/write/writer.h"

extern char** environ;

namespace shardscope::tools {
namespace TEST_FILE {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class Finalize : public ::testing::Test {
  protected:
    static Outcome check(const std::string& path, bool finalize) {
        std::vector<std::string> words = {SHARDSCOPE_TRACE, "check", path};
        if (finalize) words.emplace_back("--finalize");
        return run_command(words);
    }
    // A run that was killed. Its `counters` values are in the wrong order, so that all of them must be
    // sorted.
    std::string unfinished(int counters = 0) const {
        const std::string path = folder_ / "run.sqlite";
        traces::store::DatabaseWriter writer({.path = path, .overwrite = true});
        traces::write_sample_run(writer);
        const traces::schema::StringId name = writer.intern("c");
        for (int i = counters; i > 0; --i) {
            writer.add(traces::schema::CounterRow{
                .time = 3 * traces::kSampleMs + i, .rank = 0, .name = name, .value = 1});
        }
        writer.commit();
        return path;
    }
    static std::int64_t count(const std::string& path, const std::string& table) {
        return std::get<std::int64_t>(
            traces::store::run_query(path, "SELECT count(*) FROM " + table)[0].rows[0][0]);
    }
    // Starts the tool, sends it `signal` after `delay`, and waits; returns the status of waitpid().
    static int finalize_and_send(const std::string& path, int signal, std::chrono::microseconds delay) {
        std::string words[] = {SHARDSCOPE_TRACE, "check", "--finalize", path};
        char* pointers[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(), nullptr};
        posix_spawn_file_actions_t quiet;
        posix_spawn_file_actions_init(&quiet);
        for (const int output : {1, 2}) posix_spawn_file_actions_addopen(&quiet, output, "/dev/null", 1, 0);
        pid_t pid = 0;
        const int failed = posix_spawn(&pid, pointers[0], &quiet, nullptr, pointers, environ);
        posix_spawn_file_actions_destroy(&quiet);
        if (failed != 0) throw std::system_error(failed, std::generic_category(), words[0]);
        // Work has begun once the new file exists; before that, a signal would only end the program.
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (!fs::exists(path + ".finalizing") && std::chrono::steady_clock::now() < deadline) {
            std::this_thread::sleep_for(std::chrono::microseconds(200));
        }
        std::this_thread::sleep_for(delay);
        ::kill(pid, signal);
        int status = 0;
        ::waitpid(pid, &status, 0);
        return status;
    }
    std::vector<std::string> left() const {
        std::vector<std::string> names;
        for (const auto& entry : fs::directory_iterator(folder_.path()))
            names.push_back(entry.path().filename());
        return names;
    }

    TemporaryFolder folder_;
};

TEST_F(Finalize, CompletesAKilledRun) {
    const std::string path = unfinished();
    EXPECT_EQ(check(path, false).status, 1);
    const Outcome outcome = check(path, true);
    EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
    EXPECT_THAT(outcome.out, AllOf(HasSubstr("whole"), HasSubstr("note: "), HasSubstr("the run was killed")));
    EXPECT_EQ(outcome.err, "");
    EXPECT_EQ(check(path, false).status, 0);
    EXPECT_THAT(left(), ::testing::ElementsAre("run.sqlite"));
    const auto trace = traces::store::load_trace(path);
    EXPECT_TRUE(trace->ended);
    EXPECT_EQ(trace->steps.size(), 4u);
    EXPECT_EQ(trace->config_value("finalized"), "after the run was killed");
    EXPECT_GT(count(path, "sqlite_master WHERE type = 'index' AND name NOT LIKE 'sqlite%'"), 0);
}

TEST_F(Finalize, LeavesAFinishedFileAlone) {
    const std::string path = folder_ / "run.sqlite";
    {
        traces::store::DatabaseWriter writer({.path = path});
        traces::write_sample_run(writer);
        writer.finish(3 * traces::kSampleMs, 0);
    }
    const auto before = fs::last_write_time(path);
    EXPECT_EQ(check(path, true).status, 0);
    EXPECT_EQ(fs::last_write_time(path), before);
    EXPECT_EQ(traces::store::load_trace(path)->config_value("finalized"), "");
}

TEST_F(Finalize, CtrlCLeavesTheFileUnchanged) {
    const std::string path = unfinished(1'500'000);  // takes seconds to finalize
    const int status = finalize_and_send(path, SIGINT, std::chrono::milliseconds(20));
    ASSERT_TRUE(WIFEXITED(status)) << "it ends by itself";
    EXPECT_EQ(WEXITSTATUS(status), 1);
    EXPECT_THAT(left(), ::testing::Not(::testing::Contains("run.sqlite.finalizing")));
    EXPECT_THAT(check(path, false).out, HasSubstr("did not end"));
    EXPECT_EQ(count(path, "SHARD_COUNTERS"), 1'500'000 + 4);
    // The next attempt succeeds.
    EXPECT_EQ(check(path, true).status, 0);
    EXPECT_EQ(count(path, "SHARD_COUNTERS"), 1'500'000 + 4);
}

TEST_F(Finalize, KilledAtAnyMomentLeavesAFileThatCanBeFinalized) {
    std::mt19937 random(7);
    std::uniform_int_distribution<int> microseconds(0, 400'000);
    for (int round = 0; round < 6; ++round) {
        const int delay = microseconds(random);
        SCOPED_TRACE(delay);
        const std::string path = unfinished(200'000);
        finalize_and_send(path, SIGKILL, std::chrono::microseconds(delay));
        {
            traces::store::Database database(path, traces::store::Database::Mode::read_write);
            traces::store::Statement integrity(database, "PRAGMA integrity_check");
            ASSERT_TRUE(integrity.step());
            EXPECT_EQ(integrity.text(0), "ok");
        }
        EXPECT_EQ(check(path, true).status, 0);
        EXPECT_EQ(count(path, "SHARD_COUNTERS"), 200'000 + 4);
        EXPECT_THAT(left(), ::testing::ElementsAre("run.sqlite"));
    }
}

TEST_F(Finalize, RefusesARunThatIsStillRecorded) {
    const std::string path = folder_ / "run.sqlite";
    traces::store::DatabaseWriter writer({.path = path});
    traces::write_sample_run(writer);
    writer.commit();
    const Outcome outcome = check(path, true);
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, AllOf(HasSubstr(path), HasSubstr("still written")));
    writer.finish(3 * traces::kSampleMs, 0);
    EXPECT_EQ(check(path, false).status, 0) << "the writer never noticed";
}

TEST_F(Finalize, RefusesTracesOfOtherTools) {
    const std::string path = folder_ / "export.sqlite";
    std::fclose(std::fopen(path.c_str(), "w"));
    traces::store::Database(path, traces::store::Database::Mode::read_write)
        .execute("CREATE TABLE NVTX_EVENTS (start, end, text)");
    const Outcome outcome = check(path, true);
    EXPECT_EQ(outcome.status, 1);
    EXPECT_THAT(outcome.err, AllOf(HasSubstr(path), HasSubstr("Shardscope's own")));
    EXPECT_EQ(run_command({SHARDSCOPE_TRACE, "check", "--finalize", folder_ / "none"}).status, 2);
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
