// The rank of a job that stopped first, and what the others waited for: as the remaining ranks recorded it,
// or as the ends of the traces show it. Times in nanoseconds.
#include "traces/analysis/communication/stopped.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/traces/run_builder.h"
#include "traces/analysis/communication/distributed.h"
#include "traces/analysis/facts/info.h"
#include "traces/report/report.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Json = nlohmann::json;

constexpr std::int64_t kSecond = 1'000'000'000;

// Four ranks on two hosts; a reduction over all every second. Rank 2 does not arrive at number 3.
class StoppedRun {
  public:
    StoppedRun() {
        for (std::int64_t i = 0; i < 4; ++i) {
            for (int rank = 0; rank < 4; ++rank) {
                if (i == 3 && rank == 2) continue;
                run.step(rank, i, i * kSecond, i * kSecond + 900);
                run.collective(
                    rank, i * kSecond, i * kSecond + (i == 3 ? kSecond / 2 : 500),
                    {.operation = schema::Operation::all_reduce, .sequence = i, .group = 7, .group_size = 4});
            }
        }
    }
    void stop(int rank, int first, std::int64_t at, const std::string& reason,
              const std::string& waiting = {}, bool lost = true) {
        run.sink().add(schema::StopRow{.rank = rank,
                                       .at_ns = at,
                                       .first_rank = first,
                                       .lost = lost,
                                       .reason = reason,
                                       .waiting = waiting});
    }
    void merged(const std::string& unended) {
        run.sink().add(schema::RunInfoRow{"merge.unended_ranks", unended});
    }

    RunBuilder run{4, 2};
};

TEST(Stopped, IsUnsetInARunThatEnded) {
    StoppedRun run;
    const StopReport report = stop_report(*run.run.take());
    EXPECT_FALSE(report.stopped);
    EXPECT_EQ(stop_sentence(report), "");
}

TEST(Stopped, IsTheRankThatOthersName) {
    StoppedRun run;
    run.stop(0, 2, 3 * kSecond + 100, "(process 4711 on host node1) has ended", "all_reduce 3, step 3");
    run.stop(1, 2, 3 * kSecond + 50, "(process 4711 on host node1) has ended");
    run.stop(3, 0, 3 * kSecond + 40, "gives no sign of life");  // rank 3 noticed something else
    run.merged("2");
    const StopReport report = stop_report(*run.run.take());
    EXPECT_TRUE(report.stopped);
    EXPECT_TRUE(report.told);
    EXPECT_TRUE(report.lost);
    EXPECT_EQ(report.first_rank, 2);
    EXPECT_EQ(report.host, "node1");
    EXPECT_EQ(report.at_ns, 3 * kSecond + 50);
    EXPECT_EQ(stop_sentence(report),
              "Rank 2 on node1 was the first to stop: (process 4711 on host node1) has ended.");
    ASSERT_THAT(report.ranks, SizeIs(4));
    EXPECT_TRUE(report.ranks[0].ended);
    EXPECT_EQ(report.ranks[0].waiting, "all_reduce 3, step 3");
    EXPECT_TRUE(report.ranks[0].said);
    EXPECT_EQ(report.ranks[1].waiting, "");  // its record names nothing that it waited for
    EXPECT_FALSE(report.ranks[2].ended);
    EXPECT_EQ(report.ranks[2].last_ns, 2 * kSecond + 500);
    EXPECT_EQ(report.ranks[2].last_step, 2);
    EXPECT_EQ(report.ranks[2].last_collective, "all_reduce 2 of group 7");
    EXPECT_EQ(report.ranks[0].last_step, 3);
}

TEST(Stopped, ReportsItsOwnFailure) {
    StoppedRun run;
    run.stop(0, 2, 3 * kSecond, "failed");
    run.stop(2, 2, 3 * kSecond + 9, "the disk is full", {}, false);
    const StopReport report = stop_report(*run.run.take());
    EXPECT_EQ(report.reason, "the disk is full");
    EXPECT_FALSE(report.lost);
}

TEST(Stopped, MayBeUnnamed) {
    StoppedRun run;
    run.stop(0, -1, 3 * kSecond, "the launcher ended the job");
    const StopReport report = stop_report(*run.run.take());
    EXPECT_TRUE(report.stopped);
    EXPECT_EQ(report.first_rank, -1);
    EXPECT_EQ(stop_sentence(report), "The job failed: the launcher ended the job.");
}

// No rank recorded a reason: one part was cut off while the others ended.
TEST(Stopped, IsTheOnlyRankWhosePartWasCutOff) {
    StoppedRun run;
    run.merged("2");
    const StopReport report = stop_report(*run.run.take());
    EXPECT_EQ(report.first_rank, 2);
    EXPECT_FALSE(report.told);
    EXPECT_EQ(report.at_ns, 2 * kSecond + 500);
    EXPECT_THAT(stop_sentence(report), HasSubstr("Rank 2 on node1 seems to have stopped first"));
    EXPECT_EQ(report.ranks[0].waiting, "all_reduce 3 of group 7");  // rank 2 does not take part in it
    EXPECT_FALSE(report.ranks[0].said);
    EXPECT_EQ(report.ranks[2].waiting, "");
}

TEST(Stopped, IsTheRankThatEndsFirstIfAllWereCutOff) {
    StoppedRun run;
    run.merged("0-3");
    EXPECT_EQ(stop_report(*run.run.take()).first_rank, 2);
}

// The ranks come from an earlier merge; a difference shorter than the interval between the parts' commits is
// not significant.
TEST(Stopped, IsUnknownWhereTracesEndTogether) {
    RunBuilder run(2, 1);
    run.collective(0, 0, 500, {.group_size = 2});
    run.collective(1, 0, kSecond / 2, {.group_size = 2});
    run.sink().add(schema::RunInfoRow{"part.1.merge.unended_ranks", "0"});
    run.sink().add(schema::RunInfoRow{"part.2.merge.unended_ranks", "1"});
    EXPECT_FALSE(stop_report(*run.take()).stopped);
}

// Threads of one process are cut off together, whatever each of them did.
TEST(Stopped, IsUnknownWithinOneProcess) {
    store::ColumnSink sink;
    for (int rank = 0; rank < 2; ++rank) {
        sink.add(schema::RankRow{.rank = rank,
                                 .device = rank,
                                 .global_pid = schema::global_pid(5),
                                 .host = "a",
                                 .device_name = {},
                                 .cpus = {}});
        sink.add(schema::KernelRow{
            .start = 0, .end = rank * 9 * kSecond + 5, .device = rank, .global_pid = schema::global_pid(5)});
    }
    sink.set_ended(false);
    EXPECT_FALSE(stop_report(*sink.take()).stopped);
}

TEST(Stopped, IsReportedByEveryToolThatNamesTheRun) {
    StoppedRun run;
    run.stop(0, 2, 3 * kSecond + 100, "(process 4711 on host node1) has ended", "all_reduce 3 of group 7");
    run.merged("2");
    const auto trace = run.run.take();
    const std::string sentence =
        "Rank 2 on node1 was the first to stop: (process 4711 on host node1) has ended.";
    const DistributedReport report = distributed_report(*trace);
    EXPECT_THAT(render(report, report::Format::table),
                AllOf(HasSubstr(sentence), HasSubstr("cut off"), HasSubstr("(the first to stop)"),
                      HasSubstr("all_reduce 3 of group 7")));
    const Json json = Json::parse(render(report, report::Format::json))["stopped"];
    EXPECT_EQ(json["rank"], 2);
    EXPECT_EQ(json["sentence"], sentence);
    EXPECT_EQ(json["ranks"][2]["ended"], false);
    EXPECT_EQ(json["ranks"][0]["waiting"], "all_reduce 3 of group 7");
    EXPECT_THAT(render(trace_info(*trace), report::Format::table), HasSubstr(sentence));
    EXPECT_EQ(Json::parse(render(trace_info(*trace), report::Format::json))["stopped"]["rank"], 2);
    EXPECT_THAT(check_notes(*trace), Contains(sentence));
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
