// --keep-last: nothing is on disk while all is well; the last seconds of a job that fails are kept.
#include <string>

#include "tests/tools/record/record_tool.h"

namespace shardscope::tools {
namespace TEST_FILE {

using ::testing::HasSubstr;
using ::testing::Not;

using KeepLast = RecordTool;

TEST_F(KeepLast, writes_nothing_for_a_command_that_succeeds) {
    const Outcome outcome = record({kJob, "steps", "300"}, {"--keep-last", "1"});
    EXPECT_EQ(outcome.status, 0);
    EXPECT_FALSE(exists("out.sqlite"));
    EXPECT_THAT(outcome.err, HasSubstr("not written"));
}

TEST_F(KeepLast, shows_where_every_rank_was_when_the_job_aborted) {
    // Rank 0 aborts within an allreduce after 3 s; rank 1 is still stepping when the job is torn down.
    const Outcome outcome = shell(
        "\"$record\" -o \"$out\" --keep-last 1 -- bash -c '"
        "RANK=1 \"$0\" steps 60000 & other=$!; RANK=0 \"$0\" fails_in_allreduce 3000; s=$?; "
        "kill -9 $other; wait $other; exit $s' \"$job\"");
    EXPECT_EQ(outcome.status, 128 + 6) << outcome.err;
    // The last second and slightly more is kept: nothing that ended earlier, except the epoch, which was open
    // all the time.
    EXPECT_GT(number("SELECT min(\"end\") / 1e9 FROM NVTX_EVENTS"), 1.8);
    EXPECT_EQ(value("SELECT count(*) FROM NVTX_EVENTS WHERE start < 1500000000"), "1");
    EXPECT_EQ(value("SELECT text FROM NVTX_EVENTS WHERE start < 1500000000"), "epoch");
    EXPECT_GT(number("SELECT startTime / 1e9 FROM ANALYSIS_DETAILS"), 1.8);
    EXPECT_LT(number("SELECT duration / 1e9 FROM ANALYSIS_DETAILS"), 2.5);
    // Both ranks are present, with their last positions.
    EXPECT_EQ(value("SELECT count(DISTINCT rank) FROM SHARD_RANKS"), "2");
    EXPECT_EQ(value("SELECT count(*) FROM NVTX_EVENTS WHERE text = 'ncclAllReduce'"), "1");
    EXPECT_EQ(value("SELECT count(*) FROM DIAGNOSTIC_EVENT WHERE text LIKE "
                    "'rank 0, main thread: in ncclAllReduce since %'"),
              "1");
    EXPECT_EQ(value("SELECT count(*) FROM DIAGNOSTIC_EVENT WHERE text LIKE "
                    "'rank 1, main thread: in %step% since %'"),
              "1");
    EXPECT_EQ(setting("kept_because"), "the command ended with status 134 (SIGABRT)");
    EXPECT_EQ(setting("exit_status"), "134");
    EXPECT_THAT(outcome.err, HasSubstr("(SIGABRT); wrote " + out_));
    EXPECT_THAT(outcome.err, HasSubstr("rank 0, main thread: in ncclAllReduce since "));
    EXPECT_THAT(run_command({kTrace, "info", out_}).out,
                HasSubstr("rank 0, main thread: in ncclAllReduce since "));
}

TEST_F(KeepLast, catches_a_kill_and_a_crash) {
    EXPECT_EQ(record({kJob, "is_killed_after", "1000"}, {"--keep-last", "5"}).status, 137);
    EXPECT_EQ(value("SELECT count(*) FROM NVTX_EVENTS WHERE text = 'm'"), "1000");
    EXPECT_EQ(record({kJob, "crashes", "100"}, {"--keep-last", "5", "--overwrite"}).status, 139);
    EXPECT_EQ(value("SELECT count(*) FROM NVTX_EVENTS WHERE text = 'reads what is not there'"), "1");
}

TEST_F(KeepLast, finds_a_job_that_hangs_without_ending) {
    const Outcome outcome = record({kJob, "hangs", "1500"}, {"--keep-last", "5", "--hang", "0.5"});
    EXPECT_EQ(outcome.status, 0);  // the hang has ended
    EXPECT_EQ(setting("kept_because"), "nothing was recorded for 0.5 s: the command hangs");
    EXPECT_EQ(value("SELECT count(*) FROM NVTX_EVENTS WHERE text = 'waits for nobody'"), "1");
    EXPECT_EQ(
        value("SELECT count(*) FROM DIAGNOSTIC_EVENT WHERE text LIKE '%main thread: in waits for nobody %'"),
        "1");
    EXPECT_GT(number("SELECT count(*) FROM NVTX_EVENTS WHERE text = 'step'"), 3);
    EXPECT_EQ(value("SELECT count(*) FROM NVTX_EVENTS WHERE text = 'waits for nobody' AND \"end\" - start > "
                    "400000000 AND \"end\" - start < 1400000000"),
              "1");
    EXPECT_FALSE(exists("out-2.sqlite"));  // the hang is reported once
}

TEST_F(KeepLast, writes_a_trace_for_each_signal_that_requests_one) {
    const Outcome outcome = shell(
        "\"$record\" -o \"$out\" --keep-last 5 --toggle USR2 -- \"$job\" steps 1600 & tool=$!; "
        "sleep 0.5; kill -USR2 $tool; sleep 0.5; kill -USR2 $tool; wait $tool");
    EXPECT_EQ(outcome.status, 0);
    ASSERT_TRUE(exists("out-2.sqlite")) << outcome.err;
    EXPECT_FALSE(exists("out-3.sqlite"));
    const std::string steps = "SELECT count(*) FROM NVTX_EVENTS WHERE text = 'step'";
    EXPECT_GT(number(steps), 2);
    EXPECT_GT(std::stod(value_in(folder_ / "out-2.sqlite", steps)), number(steps));
    EXPECT_EQ(run_command({kTrace, "info", folder_ / "out-2.sqlite"}).status, 0);
}

TEST_F(KeepLast, holds_no_more_than_it_may) {
    // 200,000 marks need more than 4 MB; the last are kept, and the file says what is missing.
    ASSERT_EQ(record({kJob, "is_killed_after", "200000"}, {"--keep-last", "60", "--max-size", "4M"}).status,
              137);
    const double kept = number("SELECT count(*) FROM NVTX_EVENTS WHERE text = 'm'");
    EXPECT_GT(kept, 10'000);
    EXPECT_LT(kept, 150'000);
    EXPECT_EQ(
        value("SELECT count(*) FROM DIAGNOSTIC_EVENT WHERE text LIKE 'memory for what is kept was full: " +
              std::to_string(200'000 - static_cast<int>(kept)) + " events %'"),
        "1");
}

class KeepLastOnASmallDisk : public KeepLast {
  protected:
    void SetUp() override {
        const Outcome mounted =
            run_command({"unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", folder_.path()});
        if (mounted.status != 0) GTEST_SKIP() << "no file system can be mounted here: " << mounted.err;
    }
    // Records 200,000 marks, which need some 20 MB, on a disk of `size`, and copies its content into the
    // folder.
    Outcome record_on_disk(const std::string& size) const {
        return shell(
            "export record job folder; mkdir \"$folder/disk\"; unshare -rm bash -c '"
            "mount -t tmpfs -o size=" +
            size +
            " tmpfs \"$folder/disk\" || exit 9; "
            "\"$record\" -o \"$folder/disk/kept.sqlite\" --keep-last 60 -- "
            "\"$job\" is_killed_after 200000; s=$?; cp \"$folder/disk/\"* \"$folder\"; exit $s'");
    }
};

TEST_F(KeepLastOnASmallDisk, writes_the_newest_that_fits) {
    const Outcome outcome = record_on_disk("6m");
    EXPECT_EQ(outcome.status, 137) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("the disk was too full for what was before "));
    const std::string kept = folder_ / "kept.sqlite";
    const auto number = [&](const std::string& sql) { return std::stod(value_in(kept, sql)); };
    const double marks = number("SELECT count(*) FROM NVTX_EVENTS WHERE text = 'm'");
    EXPECT_GT(marks, 1'000);
    EXPECT_LT(marks, 150'000);
    EXPECT_EQ(
        number("SELECT count(*) FROM DIAGNOSTIC_EVENT WHERE text LIKE 'the disk was too full for what was "
               "before %'"),
        1);
    // The last marks are kept: the file states from when on, and no row is older.
    EXPECT_GT(number("SELECT value FROM SHARD_RUN WHERE key = 'kept_from_s'"), 0);
    EXPECT_GE(number("SELECT min(start) / 1e9 FROM NVTX_EVENTS WHERE text = 'm'"),
              number("SELECT value - 0.001 FROM SHARD_RUN WHERE key = 'kept_from_s'"));
}

TEST_F(KeepLastOnASmallDisk, says_that_nothing_fits) {
    const Outcome outcome = record_on_disk("512k");
    EXPECT_EQ(outcome.status, 137) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("nothing of its last 60 s could be written: "));
    EXPECT_FALSE(exists("kept.sqlite"));
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
