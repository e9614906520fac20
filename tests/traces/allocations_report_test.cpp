// Each allocation with its lifetime and category, and how this is printed. Times in nanoseconds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/traces/run_builder.h"
#include "traces/analysis/memory/allocations.h"
#include "traces/report/report.h"

namespace shardscope::traces::report {
namespace TEST_FILE {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using Json = nlohmann::json;

// On rank 0: 4 MB for 3 ms and 2 MB that stay on the device, 1 MB on the host; on rank 1 nothing.
std::unique_ptr<store::Trace> small_run() {
    RunBuilder run(2);
    run.allocate(0, 1'000'000, 0x1000, 2 << 20, {.category = schema::MemoryCategory::parameters});
    run.allocate(0, 2'000'000, 0x2000, 4 << 20);
    run.allocate(0, 3'000'000, 0x3000, 1 << 20, {.space = schema::MemorySpace::host});
    run.free(0, 5'000'000, 0x2000, 4 << 20);
    return run.take();
}

TEST(AllocationsReport, HasTheLargestFirstWithTheirLifetimes) {
    const auto trace = small_run();
    const analysis::AllocationsReport report = analysis::allocations_report(*trace);
    ASSERT_THAT(report.ranks, SizeIs(2));
    const analysis::RankAllocations& rank = report.ranks[0];
    EXPECT_EQ(rank.count, 3);
    EXPECT_EQ(rank.bytes, 7 << 20);  // 4 + 2 + 1
    ASSERT_THAT(rank.allocations, SizeIs(3));
    EXPECT_EQ(rank.allocations[0].bytes, 4 << 20);
    EXPECT_EQ(rank.allocations[0].time, 2'000'000);
    EXPECT_EQ(rank.allocations[0].freed, 5'000'000);
    EXPECT_EQ(rank.allocations[1].category, schema::MemoryCategory::parameters);
    EXPECT_EQ(rank.allocations[1].freed, std::nullopt);
    EXPECT_EQ(rank.allocations[2].space, schema::MemorySpace::host);
    EXPECT_THAT(report.ranks[1].allocations, IsEmpty());
}

TEST(AllocationsReport, IsLimitedBySpaceRankAndCount) {
    const auto trace = small_run();
    const analysis::AllocationsReport device =
        analysis::allocations_report(*trace, {.rank = 0}, schema::MemorySpace::device, 1);
    ASSERT_THAT(device.ranks, SizeIs(1));
    EXPECT_EQ(device.ranks[0].count, 2);
    EXPECT_EQ(device.ranks[0].bytes, 6 << 20);
    ASSERT_THAT(device.ranks[0].allocations, SizeIs(1));
    EXPECT_EQ(device.ranks[0].allocations[0].bytes, 4 << 20);
    // From 5 ms on, the 4 MB are freed.
    EXPECT_EQ(analysis::allocations_report(*trace, {.from_ns = 5'000'000}, schema::MemorySpace::device)
                  .ranks[0]
                  .bytes,
              2 << 20);
}

TEST(AllocationsReport, PrintsInThreeFormats) {
    const auto trace = small_run();
    const analysis::AllocationsReport report = analysis::allocations_report(*trace, {.rank = 0}, {}, 2);
    const std::string table = render(report, Format::table);
    EXPECT_THAT(table, HasSubstr("Rank 0: 3 allocations, 7.00 MiB in all; the largest 2\n"));
    EXPECT_THAT(table, HasSubstr("4,194,304  4.00      2.000       3.000"));
    EXPECT_THAT(table, HasSubstr("2,097,152  2.00      1.000           -  parameters"));
    EXPECT_THAT(table, HasSubstr("Space"));
    EXPECT_THAT(render(analysis::allocations_report(*trace, {}, schema::MemorySpace::host), Format::table),
                AllOf(HasSubstr("1 allocation of host memory"), Not(HasSubstr("Space"))));
    const Json rank = Json::parse(render(report, Format::json))["ranks"][0];
    EXPECT_EQ(rank["count"], 3);
    EXPECT_EQ(rank["allocations"][0]["freed_ns"], 5'000'000);
    EXPECT_TRUE(rank["allocations"][1]["freed_ns"].is_null());
    EXPECT_TRUE(rank["allocations"][1]["unit"].is_null());
    EXPECT_EQ(rank["allocations"][1]["address"], "0x1000");
    EXPECT_THAT(render(report, Format::csv), HasSubstr("rank,bytes,time_ns,freed_ns,category,space,"));
    EXPECT_THAT(render(report, Format::csv), HasSubstr("\n0,2097152,1000000,,parameters,device,"));
    EXPECT_THAT(render(analysis::allocations_report(*trace, {.rank = 9}), Format::table),
                HasSubstr("The current selection has no rank"));
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::report
