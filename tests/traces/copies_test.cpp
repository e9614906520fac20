// Copies by kind: counts, bytes, rates, and the part that kernels hide.
#include "traces/analysis/time/copies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::SizeIs;

TEST(Copies, AreSummedByKindAndExposedOutsideKernels) {
    RunBuilder run;
    run.kernel(0, 100, 200, 10);
    run.collective(0, 250, 300, {.launched = 20});
    run.memcpy(0, 150, 280, 30);  // 50 are outside kernels: 200 to 250
    run.memcpy(0, 400, 420, 40);
    run.memset(0, 500, 501, 50);
    const auto trace = run.take();
    const CopiesReport report = copies_report(*trace);
    ASSERT_THAT(report.ranks, SizeIs(1));
    ASSERT_THAT(report.ranks[0].copies, SizeIs(2));
    const CopyStats& copies = report.ranks[0].copies[0];
    EXPECT_EQ(copies.name, "Memcpy HtoD");
    EXPECT_EQ(copies.count, 2);
    EXPECT_EQ(copies.total, 130 + 20);
    EXPECT_EQ(copies.longest, 130);
    EXPECT_EQ(copies.exposed, 50 + 20);
    EXPECT_EQ(report.ranks[0].copies[1].name, "Memset");
}

TEST(Copies, HaveTheRateOfTheirBytes) {
    RunBuilder run;
    for (const std::int64_t start : {0, 1000}) {
        run.sink().add(schema::MemcpyRow{.start = start,
                                         .end = start + 100,
                                         .device = 0,
                                         .stream = 7,
                                         .global_pid = RunBuilder::pid(0),
                                         .bytes = 1'600});
    }
    const auto trace = run.take();
    EXPECT_DOUBLE_EQ(copies_report(*trace).ranks.at(0).copies.at(0).gbps(), 16.0);  // 3,200 bytes in 200 ns
}

// The host's optimizer works from 100 to 160, then waits until 200 for the next read; what is written
// meanwhile and after it hides nothing from the host.
TEST(Copies, OfFilesAreExposedWhileTheHostWaits) {
    RunBuilder run;
    run.file(0, schema::kCopyDiskToHost, 100, 200);
    run.file(0, schema::kCopyHostToDisk, 190, 290);
    run.kernel(0, 150, 170, 10);
    for (const int type : {schema::kSyncEvent, schema::kSyncStreamWait}) {
        const bool waits = type == schema::kSyncEvent;
        run.sink().add(schema::SynchronizationRow{.start = waits ? 160 : 200,
                                                  .end = waits ? 200 : 290,
                                                  .device = 0,
                                                  .global_pid = RunBuilder::pid(0),
                                                  .sync_type = type});
    }
    const auto trace = run.take();
    const RankCopies rank = copies_report(*trace).ranks.at(0);
    const std::vector<CopyStats>& copies = rank.copies;
    ASSERT_THAT(copies, SizeIs(2));
    EXPECT_EQ(copies[0].name, "Read of a file");
    EXPECT_EQ(copies[0].exposed, 200 - 170);
    EXPECT_DOUBLE_EQ(copies[0].gbps(), 4.0);
    EXPECT_EQ(copies[1].name, "Write of a file");
    EXPECT_EQ(copies[1].exposed, 200 - 190);
    EXPECT_EQ(rank.file_waits, 200 - 170) << "both run from 190 to 200";
}

TEST(Copies, CountsThoseThatStartInTheSelection) {
    RunBuilder run;
    run.memcpy(0, 100, 150, 10);
    run.memcpy(0, 300, 310, 20);
    const auto trace = run.take();
    Selection selection;
    selection.from_ns = 200;
    EXPECT_EQ(copies_report(*trace, selection).ranks.at(0).copies.at(0).total, 10);
}

// A kernel may have the same name as a copy.
TEST(Copies, OfAKindAreTheEventsThatItsRowCounts) {
    RunBuilder run(2);
    run.memcpy(0, 100, 150, 10);
    run.kernel(0, 160, 170, 20, 7, "Memcpy HtoD");
    run.memset(0, 200, 201, 30);
    run.memcpy(0, 300, 310, 40);
    run.memcpy(1, 400, 420, 50);
    const auto trace = run.take();
    const auto starts = [&](const Selection& selection, std::string_view name) {
        std::vector<std::int64_t> found;
        for (const std::uint32_t event : copy_events(*trace, selection, name))
            found.push_back(trace->device.start[event]);
        return found;
    };
    EXPECT_THAT(starts({.rank = 0}, "Memcpy HtoD"), ElementsAre(100, 300));
    EXPECT_THAT(starts({.rank = 1}, "Memcpy HtoD"), ElementsAre(400));
    EXPECT_THAT(starts({.rank = 0}, "Memset"), ElementsAre(200));
    EXPECT_THAT(starts({.rank = 0, .from_ns = 200}, "Memcpy HtoD"), ElementsAre(300));
    EXPECT_THAT(starts({}, "Memcpy DtoD"), ElementsAre());
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
