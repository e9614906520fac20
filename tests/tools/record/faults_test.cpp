// Faults that can occur next to a recorded command. In each case the command runs on as if alone and keeps
// its status; the file opens, and states what is missing.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include <signal.h>
#include <unistd.h>

#include "tests/tools/record/record_tool.h"

namespace shardscope::tools {
namespace TEST_FILE {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Faults : public RecordTool {
  protected:
    std::string file(const std::string& name) const {
        std::ifstream stream(folder_ / name);
        return {std::istreambuf_iterator<char>(stream), {}};
    }
    // Whether this user may have a mount namespace of its own, as the tests with a small disk need.
    static bool can_mount() {
        return run_command({"unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"}).status == 0;
    }
};

TEST_F(Faults, nothing_that_was_published_is_lost_when_the_command_is_killed) {
    EXPECT_EQ(record({kJob, "is_killed_after", "123456"}).status, 128 + SIGKILL);
    EXPECT_EQ(value("SELECT count(*) FROM NVTX_EVENTS WHERE text = 'm'"), "123456");
    EXPECT_EQ(value("SELECT dropped FROM SHARD_STATE"), "0");
}

TEST_F(Faults, a_crash_leaves_a_complete_file_that_names_its_place) {
    EXPECT_EQ(record({kJob, "crashes", "50"}).status, 128 + SIGSEGV);
    EXPECT_EQ(value("SELECT count(*) FROM DIAGNOSTIC_EVENT WHERE text LIKE "
                    "'%main thread: in reads what is not there %'"),
              "1");
    EXPECT_EQ(value("SELECT ended FROM SHARD_STATE"), "1");
}

TEST_F(Faults, a_hundred_children_are_all_recorded) {
    const Outcome outcome = record({kJob, "forks", "100"});
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(value("SELECT count(*) FROM NVTX_EVENTS WHERE text = 'child'"), "100");
    EXPECT_EQ(value("SELECT count(DISTINCT globalTid / 0x1000000) FROM NVTX_EVENTS WHERE text = 'child'"),
              "100");
    EXPECT_THAT(outcome.err, HasSubstr("100 events of 100 processes"));
}

TEST_F(Faults, a_daemon_outlives_the_recording_unharmed) {
    const Outcome outcome = record({kJob, "daemon", "60", folder_ / "daemon"});
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(value("SELECT count(*) FROM NVTX_EVENTS WHERE text = 'before the daemon'"), "1");
    for (int i = 0; i < 100 && file("daemon").empty(); ++i) ::usleep(50'000);
    EXPECT_EQ(file("daemon"), "unharmed");
}

TEST_F(Faults, a_killed_tool_leaves_the_command_unharmed_and_a_file_that_opens) {
    // The tool is killed after its first commits, whenever they come.
    const Outcome outcome = shell(
        "\"$record\" -o \"$out\" -- \"$job\" writes_when_done 300 \"$folder/job\" & tool=$!; "
        "for ((i = 0; i < 200; ++i)); do sleep 0.1; "
        "n=$(sqlite3 \"file:$out?mode=ro\" 'SELECT count(*) FROM NVTX_EVENTS' 2> /dev/null); "
        "if ((${n:-0} > 1000)); then break; fi; done; kill -9 $tool; wait $tool");
    EXPECT_EQ(outcome.status, 128 + SIGKILL);
    EXPECT_EQ(value("SELECT ended FROM SHARD_STATE"), "0");
    EXPECT_GT(number("SELECT count(*) FROM NVTX_EVENTS"), 1000);
    for (int i = 0; i < 200 && file("job").empty(); ++i) ::usleep(50'000);
    EXPECT_EQ(file("job"), "unharmed");
    EXPECT_EQ(run_command({kTrace, "check", "--finalize", out_}).status, 0);
    EXPECT_EQ(value("SELECT ended FROM SHARD_STATE"), "1");
}

TEST_F(Faults, what_a_killed_tool_left_in_memory_is_removed_by_the_next) {
    const Outcome killed = shell(
        "export TMPDIR=$folder; \"$record\" -o \"$out\" -- bash -c 'echo $SHARDSCOPE_SESSION; "
        "kill -9 $PPID; sleep 0.1'");
    const std::string session = killed.out.substr(0, killed.out.find('\n'));
    ASSERT_TRUE(std::filesystem::exists(session + "/session")) << killed.out;
    // Recent sessions are kept, because their tool may not have locked them yet.
    ASSERT_EQ(run_command({"touch", "-d", "2 minutes ago", session + "/session"}).status, 0);
    EXPECT_EQ(record({"true"}, {"--overwrite"}).status, 0);
    EXPECT_FALSE(std::filesystem::exists(session));
}

TEST_F(Faults, a_living_session_is_not_removed_by_another) {
    const Outcome outcome = shell(
        "\"$record\" -o \"$out\" -- bash -c 'touch -d \"2 minutes ago\" $SHARDSCOPE_SESSION/session; "
        "\"$0\" -o \"$1/inner.sqlite\" -- \"$2\" steps 60; test -e $SHARDSCOPE_SESSION/session && \"$2\" "
        "steps "
        "60' \"$record\" \"$folder\" \"$job\"");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_GE(number("SELECT count(*) FROM NVTX_EVENTS WHERE text = 'step'"), 1);
    EXPECT_GE(
        std::stod(value_in(folder_ / "inner.sqlite", "SELECT count(*) FROM NVTX_EVENTS WHERE text = 'step'")),
        1);
}

TEST_F(Faults, a_file_that_may_not_grow_ends_only_the_recording) {
    // The limit is in blocks of 1 KiB; 140,000 marks need more. The job itself has no limit.
    const Outcome outcome = shell(
        "export job folder; ulimit -S -f 1500; \"$record\" -o \"$out\" -- bash -c '"
        "ulimit -S -f unlimited; exec \"$job\" writes_when_done 70 \"$folder/job\"'");
    EXPECT_EQ(outcome.status, 5);
    EXPECT_EQ(file("job"), "unharmed");
    EXPECT_THAT(outcome.err, HasSubstr("recording has stopped, the command continues"));
    EXPECT_THAT(outcome.err, HasSubstr(out_));
    EXPECT_EQ(value("SELECT value FROM SHARD_RUN WHERE key = 'tool'").rfind("shardscope-record", 0), 0u);
}

TEST_F(Faults, a_job_whose_files_may_not_grow_loses_events_but_continues) {
    // The disk has room for the records' header and two chunks of 64 KiB.
    const Outcome outcome = shell(
        "export job folder; \"$record\" -o \"$out\" -- bash -c '"
        "ulimit -f 140; exec \"$job\" writes_when_done 10 \"$folder/job\"'");
    EXPECT_EQ(outcome.status, 5) << outcome.err;
    EXPECT_EQ(file("job"), "unharmed");
    EXPECT_THAT(outcome.err, HasSubstr("more were lost"));
    EXPECT_EQ(number("SELECT count(*) FROM NVTX_EVENTS WHERE text = 'mark'") +
                  number("SELECT dropped FROM SHARD_STATE"),
              20'000);
}

TEST_F(Faults, a_full_disk_ends_only_the_recording) {
    if (!can_mount()) GTEST_SKIP() << "needs user namespaces (unshare -rm)";
    const Outcome outcome = shell(
        "mkdir \"$folder/small\"; export record out job folder; unshare -rm bash -c '"
        "mount -t tmpfs -o size=3m none \"$folder/small\"; "
        "\"$record\" -o \"$folder/small/out.sqlite\" -- \"$job\" writes_when_done 70 \"$folder/job\"; s=$?; "
        "cp \"$folder\"/small/out.sqlite* \"$folder\"; exit $s'");
    EXPECT_EQ(outcome.status, 5);
    EXPECT_EQ(file("job"), "unharmed");
    EXPECT_THAT(outcome.err, HasSubstr("recording has stopped, the command continues"));
    EXPECT_EQ(value("SELECT count(*) FROM SHARD_RUN WHERE key = 'command'"), "1");
}

TEST_F(Faults, memory_that_is_full_is_replaced_by_the_temporary_folder) {
    if (!can_mount()) GTEST_SKIP() << "needs user namespaces (unshare -rm)";
    const Outcome outcome = shell(
        "export record out job folder; unshare -rm bash -c '"
        "mount -t tmpfs -o size=64k none /dev/shm; head -c 64k /dev/zero > /dev/shm/full; "
        "TMPDIR=$folder \"$record\" -o \"$out\" -- \"$job\" is_killed_after 20000'");
    EXPECT_EQ(outcome.status, 137) << outcome.err;
    EXPECT_EQ(value("SELECT count(*) FROM NVTX_EVENTS WHERE text = 'm'"), "20000");
}

TEST_F(Faults, memory_that_fills_up_loses_events_and_says_how_many) {
    if (!can_mount()) GTEST_SKIP() << "needs user namespaces (unshare -rm)";
    // The disk has room for the session and a few chunks of 64 KiB; 200,000 marks come faster than they are
    // drained.
    const Outcome outcome = shell(
        "export record out job folder; unshare -rm bash -c '"
        "mount -t tmpfs -o size=4200k none /dev/shm; "
        "\"$record\" -o \"$out\" -- bash -c \"head -c 3900k /dev/zero > /dev/shm/full; \\\"$job\\\" "
        "is_killed_after 200000\"'");
    EXPECT_EQ(outcome.status, 137) << outcome.err;
    const double kept = number("SELECT count(*) FROM NVTX_EVENTS WHERE text = 'm'");
    const double dropped = number("SELECT dropped FROM SHARD_STATE");
    EXPECT_EQ(kept + dropped, 200'000);
    EXPECT_GT(dropped, 0);
    EXPECT_THAT(outcome.err, HasSubstr("more were lost"));
}

TEST_F(Faults, a_read_only_folder_is_reported_before_the_command_starts) {
    if (::geteuid() == 0 && !can_mount()) GTEST_SKIP() << "needs a user without rights, or unshare -rm";
    const Outcome outcome = shell(
        ::geteuid() == 0
            ? "mkdir \"$folder/ro\"; export record job folder; unshare -rm bash -c '"
              "mount -t tmpfs -o ro none \"$folder/ro\"; \"$record\" -o \"$folder/ro/x.sqlite\" -- touch "
              "\"$folder/ran\"'"
            : "mkdir \"$folder/ro\"; chmod 500 \"$folder/ro\"; \"$record\" -o \"$folder/ro/x.sqlite\" -- "
              "touch "
              "\"$folder/ran\"");
    EXPECT_EQ(outcome.status, 125);
    EXPECT_THAT(outcome.err, HasSubstr("/ro"));
    EXPECT_FALSE(exists("ran"));
}

TEST_F(Faults, a_removed_folder_loses_the_trace_and_nothing_else) {
    const Outcome outcome = shell(
        "mkdir \"$folder/gone\"; \"$record\" -o \"$folder/gone/x.sqlite\" -- bash -c '"
        "\"$0\" steps 100; rm -r \"$1/gone\"; \"$0\" steps 700; exit 6' \"$job\" \"$folder\"");
    EXPECT_EQ(outcome.status, 6);
    EXPECT_THAT(outcome.err, HasSubstr("gone/x.sqlite"));
    EXPECT_THAT(outcome.err, Not(HasSubstr("wrote")));
}

TEST_F(Faults, a_closed_standard_error_changes_nothing) {
    const Outcome outcome = shell("\"$record\" -o \"$out\" -- bash -c 'exit 7' 2>&-");
    EXPECT_EQ(outcome.status, 7);
    EXPECT_EQ(setting("exit_status"), "7");
}

TEST_F(Faults, an_ignored_child_signal_does_not_hide_the_end) {
    const Outcome outcome = run_command(
        {"timeout", "20", "env", "--ignore-signal=CHLD", kRecord, "-o", out_, "--", "sh", "-c", "exit 7"});
    EXPECT_EQ(outcome.status, 7);
}

TEST_F(Faults, a_reached_size_limit_ends_only_the_recording) {
    const Outcome outcome = record({kJob, "writes_when_done", "150", folder_ / "job"}, {"--max-size", "2M"});
    EXPECT_EQ(outcome.status, 5);
    EXPECT_EQ(file("job"), "unharmed");
    EXPECT_THAT(outcome.err, HasSubstr("(--max-size); the command continues"));
    EXPECT_EQ(value("SELECT count(*) FROM DIAGNOSTIC_EVENT WHERE text LIKE 'recording stopped %--max-size)'"),
              "1");
    EXPECT_LT(number("SELECT stopTime FROM ANALYSIS_DETAILS"), 1'400'000'000);
    EXPECT_LE(std::filesystem::file_size(out_), 2u << 20);  // 300,000 marks would need 20 MB
    EXPECT_GT(std::filesystem::file_size(out_), 1u << 20);
}

// Far more data waits when the tool first looks, and all of it must still respect the limit.
TEST_F(Faults, max_size_includes_waiting_data_and_indexes) {
    const Outcome outcome = record({kJob, "is_killed_after", "1500000"}, {"--max-size", "5M"});
    EXPECT_EQ(outcome.status, 128 + 9);
    EXPECT_LE(std::filesystem::file_size(out_), 5u << 20);
    EXPECT_GT(std::filesystem::file_size(out_), 3u << 20);
    const double kept = number("SELECT count(*) FROM NVTX_EVENTS WHERE text = 'm'");
    EXPECT_EQ(value("SELECT count(*) FROM DIAGNOSTIC_EVENT WHERE text LIKE '% events that came later were "
                    "omitted: the trace was full (--max-size)'"),
              "1");
    EXPECT_THAT(outcome.err, HasSubstr("omitted: the trace was full (--max-size)"));
    // The reported number of events is the number in the file: "wrote FILE (4.4 MiB): 41,234 events of ..."
    std::string digits = outcome.err.substr(outcome.err.find("MiB): "));
    digits = digits.substr(5, digits.find(" event") - 5);
    digits.erase(std::remove(digits.begin(), digits.end(), ','), digits.end());
    EXPECT_NEAR(std::stod(digits), kept, 100) << outcome.err;
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
