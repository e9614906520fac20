// Parts of a job on several hosts, whose clocks were measured, merged into one file; also parts of processes
// that were killed. The job is described in part_files.h.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/traces/outcome.h"
#include "tests/traces/part_files.h"
#include "tests/traces/temporary_folder.h"
#include "traces/analysis/communication/stopped.h"
#include "traces/import/open.h"
#include "traces/merge/merge.h"
#include "traces/store/load/loader.h"
#include "traces/store/sqlite/sqlite.h"
#include "traces/store/write/finalize.h"

namespace shardscope::traces::merge {
namespace TEST_FILE {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr std::int64_t kMs = 1'000'000, kSecond = 1'000'000'000;
constexpr int kSteps = 20;  // one second each
// Rank 0's part begins this long before the job, so that it is the first.
constexpr std::int64_t kBefore = 10 * kMs;

// A host's clocks relative to the job's time, which is rank 0's clock.
struct Host {
    std::int64_t monotonic;  // CLOCK_MONOTONIC when the job begins
    std::int64_t wall;       // how far its wall clock is ahead
    double drift;
    std::int64_t wrong_start, wrong_end;  // errors of the two measurements
};
constexpr std::int64_t kUncertainty = 50 * kUs;
constexpr Host kHosts[] = {{1000 * kSecond, 0, 0, 0, 0},
                           {2'000'000 * kSecond, 3 * kMs, 40e-6, 45 * kUs, -30 * kUs},
                           {77 * kSecond, -900 * kMs, -25e-6, -50 * kUs, 50 * kUs},
                           {500 * kSecond, 12 * kSecond, 5e-6, 10 * kUs, 20 * kUs}};

class MergeHosts : public ::testing::Test {
  protected:
    // Rank h is on host h, and began h ms after rank 0. At the job's time t the offset of its clock is that
    // of rank 0 (kHosts[0].monotonic + t) minus its own (monotonic + t + drift t).
    PartSpec host(int h) const {
        const Host& from = kHosts[h];
        PartSpec spec;
        spec.path = folder_ / ("rank" + std::to_string(h) + ".sqlite");
        spec.ranks = {h};
        spec.host = "node" + std::to_string(h);
        spec.steps = kSteps;
        spec.step_ns = kSecond;
        spec.origin_ns = -kBefore + h * kMs;
        spec.clock_ns = from.wall;
        spec.system_ns = from.monotonic;
        spec.drift = from.drift;
        spec.group_size = 4;
        const auto measured = [&](std::int64_t t, std::int64_t wrong) {
            const auto gained = static_cast<std::int64_t>(from.drift * static_cast<double>(t));
            spec.clocks.push_back({.rank = h,
                                   .at_ns = t,
                                   .offset_ns = kHosts[0].monotonic - from.monotonic - gained + wrong,
                                   .uncertainty_ns = h == 0 ? 0 : kUncertainty});
        };
        measured(5 * kMs, from.wrong_start);
        measured(kSteps * kSecond, from.wrong_end);
        return spec;
    }
    MergeResult merge(const std::vector<std::string>& inputs) {
        const MergeResult result = merge_traces({.inputs = inputs, .output = out(), .overwrite = true});
        database_.emplace(out(), store::Database::Mode::read_only);
        return result;
    }
    // The largest difference between the ends of the gathers on a rank and their ends in the job's time.
    std::int64_t wrong_by(int rank) {
        std::int64_t worst = 0, step = 0;
        store::Statement row(
            *database_,
            "SELECT \"end\" FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN SHARD_COLLECTIVES c USING "
            "(correlationId) WHERE c.rank = ?1 ORDER BY sequence");
        row.bind(1, std::int64_t{rank});
        for (; row.step(); ++step)
            worst = std::max(worst, std::abs(row.integer(0) - (kBefore + step * kSecond + 100 * kUs)));
        EXPECT_EQ(step, kSteps);
        return worst;
    }
    std::string fact(const std::string& key) {
        store::Statement row(*database_, "SELECT value FROM SHARD_RUN WHERE key = ?1");
        row.bind(1, std::string_view(key));
        return row.step() ? std::string(row.text(0)) : "none";
    }
    std::string out() const { return folder_ / "out.sqlite"; }

    TemporaryFolder folder_;
    std::optional<store::Database> database_;
};

// No two parts have a collective in common, so only the measurements count.
TEST_F(MergeHosts, PutsFourHostsOnOneClockByMeasurements) {
    std::vector<std::string> parts;
    for (int h = 0; h < 4; ++h) {
        PartSpec spec = host(h);
        spec.group = 100 + h;
        parts.push_back(write_part(spec));
    }
    const MergeResult result = merge(parts);
    EXPECT_EQ(wrong_by(0), 0);
    for (int h = 1; h < 4; ++h) {
        EXPECT_LE(wrong_by(h), kUncertainty + 100) << h;  // plus rounding
        EXPECT_GT(wrong_by(h), 0) << h;                   // the measurements are not exact
    }
    EXPECT_EQ(result.parts[0].uncertainty_ns, 0);
    EXPECT_GE(result.uncertainty_ns(), kUncertainty);
    EXPECT_LT(result.uncertainty_ns(), kUncertainty + 20 * kUs);  // a small part is outside the measurements
    EXPECT_NEAR(result.parts[1].drift_ppm, -40, 5);
    EXPECT_EQ(result.collectives, 0);
    EXPECT_EQ(fact("merge.part.1.clock_uncertainty_us"), "0.000");
}

TEST_F(MergeHosts, ImprovesMeasurementsByCollectives) {
    std::vector<std::string> parts;
    for (int h = 0; h < 4; ++h) parts.push_back(write_part(host(h)));
    const MergeResult result = merge(parts);
    EXPECT_EQ(result.collectives, kSteps);
    EXPECT_GT(result.residual_by_wall_ns, 12 * kSecond);
    EXPECT_LE(result.residual_measured_ns, 2 * kUncertainty);
    EXPECT_LT(result.residual_ns, result.residual_measured_ns);
    EXPECT_LT(result.worst_ns, 2 * kUncertainty);
    for (int h = 0; h < 4; ++h) EXPECT_LE(wrong_by(h), kUncertainty + 100) << h;
    EXPECT_NE(fact("merge.residual_measured_us"), "none");
    // Opened together without a merged file, the parts have the same times as merged.
    const auto trace = importer::open_any(parts);
    EXPECT_EQ(trace->config_value("merge.residual_us"), fact("merge.residual_us"));
    EXPECT_EQ(trace->config_value("merge.residual_measured_us"), fact("merge.residual_measured_us"));
    EXPECT_THAT(trace->clocks, SizeIs(8));
}

TEST_F(MergeHosts, IsNotMisledByARankThatIsAlwaysLate) {
    std::vector<std::string> parts;
    for (int h = 0; h < 4; ++h) {
        PartSpec spec = host(h);
        if (h == 2) spec.late_ns = 5 * kMs;
        parts.push_back(write_part(spec));
    }
    const MergeResult result = merge(parts);
    EXPECT_GT(result.residual_ns, 4 * kMs);  // the trace causes it, not the clocks
    for (const int h : {1, 3}) EXPECT_LE(wrong_by(h), 2 * kUncertainty + 100) << h;
    EXPECT_GT(wrong_by(2), 4 * kMs);
}

// Two merges of two parts each are as precise as one of four.
TEST_F(MergeHosts, MergesMergedPartsByTheClockOfTheirFirst) {
    std::vector<std::string> parts;
    for (int h = 0; h < 4; ++h) {
        PartSpec spec = host(h);
        spec.group = 100 + h;
        parts.push_back(write_part(spec));
    }
    const std::string left = folder_ / "left.sqlite", right = folder_ / "right.sqlite";
    merge_traces({.inputs = {parts[0], parts[1]}, .output = left});
    merge_traces({.inputs = {parts[2], parts[3]}, .output = right});
    merge({left, right});
    for (int h = 0; h < 4; ++h) EXPECT_LE(wrong_by(h), 3 * kUncertainty) << h;
    EXPECT_EQ(database_->integer("SELECT count(*) FROM SHARD_CLOCKS"), 8);
}

// --- processes that were killed ----------------------------------------------------------------------

class KilledPart : public MergeHosts {
  protected:
    // A process that records the part, commits it and is killed while its trace is open.
    static void record_and_kill(PartSpec spec) {
        spec.finished = false;
        int ready[2];
        ASSERT_EQ(::pipe(ready), 0);
        const pid_t child = ::fork();
        if (child == 0) {
            const PartWriter writer(spec);
            [[maybe_unused]] const auto told = ::write(ready[1], "x", 1);
            for (;;) ::pause();
        }
        char byte = 0;
        ::close(ready[1]);
        EXPECT_EQ(::read(ready[0], &byte, 1), 1);
        ::close(ready[0]);
        ::kill(child, SIGKILL);
        int status = 0;
        ::waitpid(child, &status, 0);
        EXPECT_TRUE(WIFSIGNALED(status));
    }
};

TEST_F(KilledPart, IsMergedUpToThatMoment) {
    const PartSpec whole = host(0);
    PartSpec killed = host(1);
    killed.steps = kSteps / 2;
    killed.clocks.pop_back();  // it was killed before it measured at its end
    write_part(whole);
    record_and_kill(killed);
    ASSERT_TRUE(fs::exists(killed.path + "-wal"));
    const std::string before = bytes_of(killed.path) + bytes_of(killed.path + "-wal");

    const MergeResult result = merge({whole.path, killed.path});
    EXPECT_EQ(database_->integer("SELECT count(*) FROM SHARD_STEPS WHERE rank = 0"), kSteps);
    EXPECT_EQ(database_->integer("SELECT count(*) FROM SHARD_STEPS WHERE rank = 1"), kSteps / 2);
    EXPECT_EQ(result.collectives, kSteps / 2);
    EXPECT_THAT(result.notes, ElementsAre(HasSubstr("the run of " + killed.path + " did not end")));
    EXPECT_EQ(bytes_of(killed.path) + bytes_of(killed.path + "-wal"), before);
}

// Rank 1 is killed in step 10; the others are notified, and record it.
TEST_F(KilledPart, IsNamedByTheRemainingRanks) {
    std::vector<std::string> parts;
    for (int h = 0; h < 4; ++h) {
        PartSpec spec = host(h);
        if (h == 1) {
            spec.steps = kSteps / 2;
            record_and_kill(spec);
        } else {
            spec.stops = {{.rank = h,
                           .at_ns = kSteps * kSecond,
                           .first_rank = 1,
                           .lost = true,
                           .reason = "(process 500 on host node1) has ended",
                           .waiting = "all_gather 10 of group 7"}};
            write_part(spec);
        }
        parts.push_back(spec.path);
    }
    merge(parts);
    EXPECT_EQ(fact("merge.unended_ranks"), "1");
    const analysis::StopReport report = analysis::stop_report(*store::load_trace(out()));
    EXPECT_EQ(stop_sentence(report),
              "Rank 1 on node1 was the first to stop: (process 500 on host node1) has ended.");
    ASSERT_THAT(report.ranks, SizeIs(4));
    EXPECT_FALSE(report.ranks[1].ended);
    EXPECT_EQ(report.ranks[1].last_step, kSteps / 2 - 1);
    EXPECT_EQ(report.ranks[2].waiting, "all_gather 10 of group 7");
    // The same parts, opened together, give the same result.
    EXPECT_EQ(stop_sentence(analysis::stop_report(*importer::open_any(parts))), stop_sentence(report));
}

TEST_F(KilledPart, IsFoundIfNoRankReportsIt) {
    PartSpec killed = host(1);
    killed.steps = kSteps / 2;
    record_and_kill(killed);
    merge({write_part(host(0)), killed.path});
    const analysis::StopReport report = analysis::stop_report(*store::load_trace(out()));
    EXPECT_EQ(report.first_rank, 1);
    EXPECT_FALSE(report.told);
    EXPECT_EQ(report.ranks[0].waiting, "all_gather 19 of group 7");
    // It makes no difference if a part is finalized before the merge.
    store::finalize_trace(killed.path);
    merge({host(0).path, killed.path});
    EXPECT_EQ(analysis::stop_report(*store::load_trace(out())).first_rank, 1);
}

TEST_F(KilledPart, IsKeptIfAMergeFails) {
    const PartSpec whole = host(0), killed = host(1);
    write_part(whole);
    record_and_kill(killed);
    const std::string before = bytes_of(killed.path) + bytes_of(killed.path + "-wal") + bytes_of(whole.path);
    EXPECT_THROW(
        merge_traces({.inputs = {whole.path, killed.path}, .output = folder_ / "missing/out.sqlite"}),
        store::StoreError);
    std::atomic<bool> cancel = true;
    EXPECT_THROW(merge_traces({.inputs = {whole.path, killed.path}, .output = out()}, {.cancel = &cancel}),
                 Cancelled);
    EXPECT_EQ(bytes_of(killed.path) + bytes_of(killed.path + "-wal") + bytes_of(whole.path), before);
    EXPECT_FALSE(fs::exists(out()));
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::merge
