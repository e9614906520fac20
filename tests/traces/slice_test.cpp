// A slice of a trace: what belongs to it, and that its results agree with those of the whole trace. The job
// is described in part_files.h.
#include "traces/merge/slice.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/outcome.h"
#include "tests/traces/part_files.h"
#include "tests/traces/temporary_folder.h"
#include "traces/analysis/communication/collectives.h"
#include "traces/analysis/facts/info.h"
#include "traces/analysis/memory/memory.h"
#include "traces/analysis/time/summary.h"
#include "traces/merge/merge.h"
#include "traces/store/load/loader.h"
#include "traces/store/sqlite/sqlite.h"

namespace shardscope::traces::merge {
namespace TEST_FILE {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SliceTest : public ::testing::Test {
  protected:
    // Ranks 0 and 1 in one process, 5 steps.
    SliceTest() {
        spec_.path = folder_ / "run.sqlite";
        spec_.ranks = {0, 1};
        spec_.steps = 5;
        write_part(spec_);
    }
    SliceResult slice(const SliceChoice& choice, const std::string& name = "out.sqlite") {
        const SliceResult result =
            slice_trace({.input = spec_.path, .output = folder_ / name, .overwrite = true, .choice = choice});
        database_.emplace(folder_ / name, store::Database::Mode::read_only);
        return result;
    }
    std::string refusal(const SliceChoice& choice, const std::string& output = "out.sqlite") const {
        return refusal_of(
            [&] { slice_trace({.input = spec_.path, .output = folder_ / output, .choice = choice}); });
    }
    std::int64_t number(const std::string& sql) { return database_->integer(sql); }
    std::vector<std::int64_t> numbers(const std::string& sql) {
        std::vector<std::int64_t> result;
        for (store::Statement row(*database_, sql); row.step();) result.push_back(row.integer(0));
        return result;
    }

    TemporaryFolder folder_;
    PartSpec spec_;
    std::optional<store::Database> database_;
};

TEST_F(SliceTest, ASliceOfStepsHasTheWorkThatTheyLaunched) {
    const SliceResult result = slice({.first_step = 1, .last_step = 2});
    EXPECT_THAT(result.steps, ElementsAre(1, 2));
    EXPECT_THAT(numbers("SELECT step FROM SHARD_STEPS WHERE rank = 0 ORDER BY start"), ElementsAre(1, 2));
    // In each of 2 steps each of 2 ranks launches a gather and a gemm. The gemm of step 0 runs until 50 us of
    // step 1 and is excluded; that of step 2 runs until 50 us after step 2 and is included.
    EXPECT_EQ(number("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL"), 8);
    EXPECT_EQ(
        number("SELECT min(start) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.shortName "
               "WHERE s.value = 'gemm'"),
        kStepNs + 950 * kUs);
    EXPECT_EQ(number("SELECT max(\"end\") FROM CUPTI_ACTIVITY_KIND_KERNEL"), 3 * kStepNs + 50 * kUs);
    EXPECT_EQ(number("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME"), 8);
    EXPECT_EQ(number("SELECT count(*) FROM SHARD_COLLECTIVES"), 4);
    EXPECT_EQ(number("SELECT count(*) FROM NVTX_EVENTS WHERE text LIKE 'ProfilerStep#%'"), 4);
    EXPECT_EQ(number("SELECT count(*) FROM NVTX_EVENTS WHERE eventType = 75 AND text = 'NCCL'"), 1);
    EXPECT_THAT(analysis::check_trace(*store::load_trace(folder_ / "out.sqlite")), IsEmpty());
}

TEST_F(SliceTest, KeepsTimesAndIds) {
    slice({.first_step = 1, .last_step = 2});
    EXPECT_EQ(number("SELECT min(start) FROM SHARD_STEPS"), kStepNs);
    EXPECT_EQ(number("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME"), kJobUtc);
    database_->execute("ATTACH '" + spec_.path + "' AS whole");
    EXPECT_EQ(
        number("SELECT count(*) FROM (SELECT * FROM main.CUPTI_ACTIVITY_KIND_KERNEL EXCEPT SELECT * FROM "
               "whole.CUPTI_ACTIVITY_KIND_KERNEL)"),
        0);
    EXPECT_EQ(
        number("SELECT count(*) FROM (SELECT * FROM main.StringIds EXCEPT SELECT * FROM whole.StringIds)"),
        0);
    EXPECT_LT(number("SELECT count(*) FROM main.StringIds"), number("SELECT count(*) FROM whole.StringIds"));
    EXPECT_EQ(number("SELECT count(*) FROM main.StringIds WHERE value = 'ProfilerStep#4'"), 0);
}

TEST_F(SliceTest, BeginsWithTheMemoryThatIsLive) {
    slice({.first_step = 1, .last_step = 2});
    // 1000 bytes of parameters since step 0: they are allocated at the start of step 1.
    EXPECT_THAT(numbers("SELECT time FROM SHARD_MEMORY WHERE rank = 0 ORDER BY time"),
                ElementsAre(kStepNs, kStepNs + 20 * kUs, kStepNs + 800 * kUs, 2 * kStepNs + 20 * kUs,
                            2 * kStepNs + 800 * kUs));
    const auto trace = store::load_trace(folder_ / "out.sqlite");
    EXPECT_EQ(analysis::memory_report(*trace).ranks.at(0).peak_bytes, 5096);
    EXPECT_EQ(number("SELECT count(*) FROM CUDA_GPU_MEMORY_USAGE_EVENTS WHERE start = 1000000"), 2);
    // A slice that begins while 4096 more are allocated has both allocations, and the free that follows.
    slice({.from_ns = kStepNs + 500 * kUs, .to_ns = 2 * kStepNs}, "range.sqlite");
    EXPECT_THAT(numbers("SELECT bytes FROM SHARD_MEMORY WHERE rank = 1 ORDER BY time, rowid"),
                ElementsAre(1000, 4096, -4096));
}

TEST_F(SliceTest, BeginsWithTheLastValueOfCounters) {
    slice({.from_ns = 2 * kStepNs + 500 * kUs, .to_ns = 3 * kStepNs + 500 * kUs});
    EXPECT_THAT(numbers("SELECT value FROM SHARD_COUNTERS WHERE rank = 0 ORDER BY time"),
                ElementsAre(300, 400));
    EXPECT_THAT(numbers("SELECT time FROM SHARD_COUNTERS WHERE rank = 0 ORDER BY time"),
                ElementsAre(2 * kStepNs + 500 * kUs, 3 * kStepNs));
}

TEST_F(SliceTest, ASliceOfTimeHasTheEventsInIt) {
    // From 20 to 60 us of step 1: the gemm of step 0, launched before, is still running: it and its call are
    // kept.
    slice({.from_ns = kStepNs + 20 * kUs, .to_ns = kStepNs + 60 * kUs});
    EXPECT_EQ(number("SELECT count(*) FROM kernels WHERE name = 'gemm' AND rank = 0"), 1);
    EXPECT_EQ(
        number("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON "
               "r.correlationId = k.correlationId"),
        4);
    EXPECT_EQ(number("SELECT count(*) FROM NVTX_EVENTS WHERE text = 'rank 0 alone'"), 0);
    EXPECT_EQ(number("SELECT count(*) FROM NVTX_EVENTS WHERE text = 'ProfilerStep#1'"), 2);
    EXPECT_EQ(number("SELECT count(*) FROM SHARD_LOSSES"), 0);  // the loss is that of step 0
}

TEST_F(SliceTest, ARanksSliceHasOnlyItsOwnRows) {
    const SliceResult result = slice({.ranks = {{1, 1}}});
    EXPECT_THAT(result.ranks, ElementsAre(1));
    EXPECT_THAT(numbers("SELECT rank FROM SHARD_RANKS"), ElementsAre(1));
    EXPECT_THAT(numbers("SELECT DISTINCT deviceId FROM CUPTI_ACTIVITY_KIND_KERNEL"), ElementsAre(1));
    EXPECT_THAT(numbers("SELECT id FROM TARGET_INFO_GPU"), ElementsAre(1));
    EXPECT_EQ(number("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL"), 10);
    EXPECT_EQ(number("SELECT count(*) FROM NVTX_EVENTS WHERE text = 'rank 0 alone'"), 0);
    // The process belongs to both ranks, and rank 0's thread was the first to name the domain.
    EXPECT_EQ(number("SELECT count(*) FROM NVTX_EVENTS WHERE eventType = 75 AND text = 'NCCL'"), 1);
    EXPECT_EQ(number("SELECT count(*) FROM PROCESSES"), 1);
    EXPECT_EQ(number("SELECT count(*) FROM SHARD_PREDICTION"), 1);
}

TEST_F(SliceTest, ASliceOfRanksOmitsProcessesOfOtherRanks) {
    store::Database(spec_.path, store::Database::Mode::read_write)
        .execute(
            "INSERT INTO PROCESSES VALUES (281485043040256, 600, 'helper');"
            "INSERT INTO NVTX_EVENTS (start, \"end\", eventType, text, globalTid, domainId) VALUES "
            "(5, 9, 59, 'help', 281485043040257, 0)");  // process 600 on the same machine
    slice({.ranks = {{0, 1}}});
    EXPECT_EQ(number("SELECT count(*) FROM PROCESSES"), 1);
    EXPECT_EQ(number("SELECT count(*) FROM NVTX_EVENTS WHERE text = 'help'"), 0);
    slice({.from_ns = 0, .to_ns = kStepNs}, "range.sqlite");
    EXPECT_EQ(number("SELECT count(*) FROM NVTX_EVENTS WHERE text = 'help'"), 1);
}

TEST_F(SliceTest, RecordsItsSelection) {
    slice({.ranks = {{0, 0}}, .first_step = 3, .last_step = {}});
    const auto value = [&](const std::string& key) {
        store::Statement row(*database_, "SELECT value FROM SHARD_RUN WHERE key = '" + key + "'");
        return row.step() ? std::string(row.text(0)) : "";
    };
    EXPECT_EQ(value("slice.of"), "run.sqlite");
    EXPECT_EQ(value("slice.ranks"), "0");
    EXPECT_EQ(value("slice.steps"), "3:");
    EXPECT_EQ(value("model.width"), "256");
}

TEST_F(SliceTest, RefusesMissingRanksAndSteps) {
    EXPECT_THAT(refusal({.ranks = {{4, 9}}}), HasSubstr("no such rank; it has 0 to 1"));
    EXPECT_THAT(refusal({.first_step = 7}), HasSubstr("no such step; it has 0 to 4"));
    EXPECT_THAT(refusal({.ranks = {{0, 0}}}, "run.sqlite"), HasSubstr("both read and written"));
    EXPECT_FALSE(fs::exists(folder_ / "out.sqlite"));
}

TEST_F(SliceTest, TakesStepsFromRangesWhereNoTableHasThem) {
    store::Database(spec_.path, store::Database::Mode::read_write).execute("DELETE FROM SHARD_STEPS");
    const SliceResult result = slice({.first_step = 1, .last_step = 2});
    EXPECT_THAT(result.steps, ElementsAre(1, 2));
    EXPECT_EQ(number("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL"), 8);
}

TEST_F(SliceTest, ASliceOfAnUnfinishedRunIsUnfinished) {
    spec_.finished = false;
    write_part(spec_);
    const SliceResult result = slice({.first_step = 1, .last_step = 2});
    EXPECT_THAT(result.notes, ElementsAre(HasSubstr("did not end")));
    EXPECT_EQ(number("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL"), 8);
}

// Split by rank, one part with another clock and another pid, and merged again: each rank has its numbers.
TEST_F(SliceTest, AndMergeGiveTheWholeBack) {
    slice({.ranks = {{0, 0}}}, "r0.sqlite");
    slice({.ranks = {{1, 1}}}, "r1.sqlite");
    {
        store::Database moved(folder_ / "r1.sqlite", store::Database::Mode::read_write);
        for (const auto& [table, columns] : std::vector<std::pair<std::string, std::vector<std::string>>>{
                 {"CUPTI_ACTIVITY_KIND_KERNEL", {"start", "end"}},
                 {"CUPTI_ACTIVITY_KIND_RUNTIME", {"start", "end"}},
                 {"NVTX_EVENTS", {"start", "end"}},
                 {"SHARD_STEPS", {"start", "end"}},
                 {"SHARD_MEMORY", {"time"}},
                 {"SHARD_COUNTERS", {"time"}},
                 {"CUDA_GPU_MEMORY_USAGE_EVENTS", {"start"}}}) {
            for (const std::string& column : columns)
                moved.execute("UPDATE " + table + " SET \"" + column + "\" = \"" + column + "\" + 3000000");
        }
        for (const char* table :
             {"CUPTI_ACTIVITY_KIND_KERNEL", "CUDA_GPU_MEMORY_USAGE_EVENTS", "PROCESSES", "SHARD_RANKS"})
            moved.execute(std::string("UPDATE ") + table + " SET globalPid = globalPid + (9 << 24)");
        for (const char* table : {"CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS", "SHARD_RANKS",
                                  "SHARD_THREADS", "ThreadNames", "SHARD_STEPS"})
            moved.execute(std::string("UPDATE ") + table + " SET globalTid = globalTid + (9 << 24)");
    }
    const MergeResult merged = merge_traces(
        {.inputs = {folder_ / "r0.sqlite", folder_ / "r1.sqlite"}, .output = folder_ / "both.sqlite"});
    EXPECT_EQ(merged.residual_by_wall_ns, 3'000'000);
    EXPECT_LE(merged.worst_ns, 50 * kUs);

    const auto before = store::load_trace(spec_.path), after = store::load_trace(folder_ / "both.sqlite");
    for (const int rank : {0, 1}) {
        const auto a = analysis::summarize(*before, {.rank = rank}).ranks.at(0),
                   b = analysis::summarize(*after, {.rank = rank}).ranks.at(0);
        EXPECT_EQ(a.average_us, b.average_us);
        const auto memory_a = analysis::memory_report(*before, {.rank = rank}).ranks.at(0);
        const auto memory_b = analysis::memory_report(*after, {.rank = rank}).ranks.at(0);
        EXPECT_EQ(memory_a.at_peak, memory_b.at_peak);
        // By its collectives, the part that was moved began 3 ms earlier than the other: time 0 is there.
        EXPECT_EQ(memory_a.peak_time_ns + 3'000'000, memory_b.peak_time_ns);
        const auto collectives_a =
            analysis::collectives_report(*before, {.rank = rank}).ranks.at(0).operations.at(0);
        const auto collectives_b =
            analysis::collectives_report(*after, {.rank = rank}).ranks.at(0).operations.at(0);
        EXPECT_EQ(collectives_a.count, collectives_b.count);
        EXPECT_EQ(collectives_a.transfer_us, collectives_b.transfer_us);
        EXPECT_EQ(collectives_a.waiting_us, collectives_b.waiting_us);
    }
    EXPECT_THAT(analysis::check_trace(*after), IsEmpty());
}

// Memory changes between two pieces of a rank's time are unknown: its memory would not add up.
TEST_F(SliceTest, SlicesOfDifferentTimesAreNotMerged) {
    slice({.last_step = 1}, "early.sqlite");
    slice({.first_step = 3}, "late.sqlite");
    try {
        merge_traces({.inputs = {folder_ / "early.sqlite", folder_ / "late.sqlite"},
                      .output = folder_ / "both.sqlite"});
        FAIL() << "two pieces of one rank were merged";
    } catch (const store::StoreError& error) {
        EXPECT_THAT(error.what(), HasSubstr("both contain rank 0 of one process"));
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::merge
