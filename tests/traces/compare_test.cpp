// Comparison: configuration differences, means over ranks, medians and spreads over steps.
#include "traces/analysis/compare/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::SizeIs;

TEST(Compare, SpreadIsHalfTheInterquartileRange) {
    const Spread s = spread_of({4, 1, 3, 2, 5});  // quartiles 2 and 4
    EXPECT_DOUBLE_EQ(s.median, 3);
    EXPECT_DOUBLE_EQ(s.spread, 1);
    const Spread even = spread_of({0, 10});  // quartiles 2.5 and 7.5
    EXPECT_DOUBLE_EQ(even.median, 5);
    EXPECT_DOUBLE_EQ(even.spread, 2.5);
    EXPECT_DOUBLE_EQ(spread_of({}).median, 0);
}

TEST(Compare, OnlyDifferingConfigurationIsShown) {
    RunBuilder a, b;
    a.sink().add(schema::RunInfoRow{"model.width", "256"});
    a.sink().add(schema::RunInfoRow{"fsdp.wrap", "root"});
    a.sink().add(schema::RunInfoRow{"run.trace", "a.sqlite"});
    b.sink().add(schema::RunInfoRow{"model.width", "256"});
    b.sink().add(schema::RunInfoRow{"fsdp.wrap", "module:Linear"});
    b.sink().add(schema::RunInfoRow{"run.trace", "b.sqlite"});
    // What was found is no setting.
    a.sink().add(schema::RunInfoRow{"sim.ranks_as_rank_0", "8 of 8 ranks: peak 31591432 bytes"});
    b.sink().add(schema::RunInfoRow{"sim.ranks_as_rank_0", "8 of 8 ranks: peak 66100232 bytes"});
    b.sink().add(schema::RunInfoRow{"merge.parts", "8"});
    b.sink().add(schema::RunInfoRow{"ddp.bucket_cap_mb", ""});  // an empty value is not a missing one
    const auto first = a.take(), second = b.take();
    const Comparison c = compare({first.get(), second.get()});
    ASSERT_THAT(c.runs, SizeIs(2));
    EXPECT_THAT(c.runs[0].config, ElementsAre(Pair("fsdp.wrap", "root"), Pair("ddp.bucket_cap_mb", "")));
    EXPECT_THAT(c.runs[1].config,
                ElementsAre(Pair("fsdp.wrap", "module:Linear"), Pair("ddp.bucket_cap_mb", "")));
}

// One rank with steps of the given lengths, each: 40 ns compute, 40 ns communication of which 10 under
// compute, then a copy of 10 ns.
void add_steps(RunBuilder& run, int rank, const std::vector<std::int64_t>& lengths) {
    std::int64_t at = 0, number = 0;
    for (const std::int64_t length : lengths) {
        run.step(rank, number, at, at + length);
        run.kernel(rank, at, at + 40, at);
        run.collective(rank, at + 30, at + 70,
                       {.operation = schema::Operation::reduce_scatter,
                        .bytes = 80,
                        .sequence = number,
                        .group_size = 2,
                        .launched = at + 1});
        run.memcpy(rank, at + 70, at + 80, at + 2);
        run.file(rank, schema::kCopyHostToDisk, at + 60, at + 95, at + 3);  // not the device's
        at += length;
        ++number;
    }
}

TEST(Compare, FiguresAreMeansOverTheRanks) {
    RunBuilder run(2);
    add_steps(run, 0, {100, 100, 100});
    add_steps(run, 1, {100, 200, 300});
    run.allocate(0, 0, 1, 500);
    run.allocate(1, 0, 2, 700, {.category = schema::MemoryCategory::activations});
    const auto trace = run.take();
    const RunColumn column = compare({trace.get()}).runs[0];
    EXPECT_EQ(column.ranks, 2);
    EXPECT_EQ(column.steps, 3);
    EXPECT_DOUBLE_EQ(column.average_step_us, (100 + 200) / 2.0 * 1e-3);
    EXPECT_NEAR(column.median_step_us, 0.175, 1e-12);   // steps of 150 and 200 ns; the first is excluded
    EXPECT_NEAR(column.spread_step_us, 0.0125, 1e-12);  // quartiles 162.5 and 187.5
    EXPECT_DOUBLE_EQ(column.communication_us, 0.04);
    EXPECT_DOUBLE_EQ(column.exposed_communication_us, 0.03);
    EXPECT_DOUBLE_EQ(column.memcpy_us, 0.01);
    EXPECT_DOUBLE_EQ(column.device_busy_percent, (80.0 + 40.0) / 2);  // 3 x 80 of 300 and of 600 ns
    EXPECT_EQ(column.peak_bytes, 700);
    EXPECT_EQ(column.at_peak[static_cast<std::size_t>(schema::MemoryCategory::activations)], 700);
    ASSERT_THAT(column.collectives, SizeIs(1));
    EXPECT_EQ(column.collectives[0].count, 3);
    EXPECT_DOUBLE_EQ(column.collectives[0].count_per_step, 1);
    EXPECT_DOUBLE_EQ(column.collectives[0].bytes_per_step, 80);
    EXPECT_DOUBLE_EQ(column.collectives[0].us_per_step, 0.04);
    EXPECT_DOUBLE_EQ(column.collectives[0].algbw_gbps, 80 / 40.0);
    EXPECT_DOUBLE_EQ(column.collectives[0].busbw_gbps, 80 / 40.0 * 0.5);
    double categories = 0;
    for (const double us : column.categories_us) categories += us;
    EXPECT_NEAR(categories, column.average_step_us, 1e-9);
}

// The first step of a run creates what the others reuse: it takes 1,000 ns, and they take 100 and 110 ns.
TEST(Compare, TheHeadlineIsTheMedianWithoutTheStepThatWarmsUp) {
    RunBuilder run;
    add_steps(run, 0, {1000, 100, 110});
    const auto trace = run.take();
    const RunColumn column = compare({trace.get()}).runs[0];
    EXPECT_DOUBLE_EQ(column.median_step_us, 0.105);
    EXPECT_DOUBLE_EQ(column.average_step_us, 1.210 / 3);
    const RunColumn later = compare({trace.get()}, Selection{.first_step = 1}).runs[0];
    EXPECT_DOUBLE_EQ(later.median_step_us, 0.105) << "the first step is the run's, not that of the selection";
    RunBuilder two;
    add_steps(two, 0, {1000, 100});
    const auto short_run = two.take();
    EXPECT_DOUBLE_EQ(compare({short_run.get()}).runs[0].median_step_us, 0.550)
        << "a median needs more than one step";
}

TEST(Compare, ATraceWithoutStepsIsComparedAsAWhole) {
    RunBuilder run;
    run.kernel(0, 0, 700, std::nullopt);
    const auto trace = run.take();
    const RunColumn column = compare({trace.get()}).runs[0];
    EXPECT_FALSE(column.stepped);
    EXPECT_DOUBLE_EQ(column.median_step_us, 0.7);
}

TEST(Compare, ADifferenceWithinTheLargerSpreadDoesNotCount) {
    RunColumn a, b;
    a.median_step_us = 100;
    a.spread_step_us = 1;
    b.median_step_us = 104;
    b.spread_step_us = 5;
    EXPECT_TRUE(inside_spread(a, b));
    b.spread_step_us = 3;
    EXPECT_FALSE(inside_spread(a, b));
}

TEST(Compare, ARunWithoutAnythingIsAllZeros) {
    const store::Trace empty;
    const RunColumn column = compare({&empty}).runs[0];
    EXPECT_EQ(column.ranks, 0);
    EXPECT_DOUBLE_EQ(column.average_step_us, 0);
    EXPECT_EQ(column.peak_bytes, 0);
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
