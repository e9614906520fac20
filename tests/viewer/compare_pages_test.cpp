// The compare panel's other pages: how steps and kernels vary, what was allocated at the peaks, and the
// places of the parts of its tables.
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"
#include "viewer/panels/compare/compare_places.h"
#include "viewer/panels/compare/compare_spread.h"
#include "viewer/panels/compare/compare_tables.h"

namespace shardscope::viewer::panels {
namespace TEST_FILE {

using testing::DoubleEq;
using testing::ElementsAre;
using traces::RunBuilder;
using traces::analysis::CompareBy;

const std::vector<RunHead> kRuns = {{"a", 1}, {"b", 2}};

// Two ranks; step n of rank 0 takes n ms, of rank 1 n + 2 ms; each has one "gemm" of n us and a collective.
std::unique_ptr<traces::store::Trace> run_of_steps(int steps) {
    RunBuilder run(2);
    run.sink().add(traces::schema::UnitRow{.id = 4, .module = -1, .name = "net.0"});
    for (int rank = 0; rank < 2; ++rank) {
        std::int64_t at = 0;
        for (int n = 1; n <= steps; ++n) {
            const std::int64_t length = (n + 2 * rank) * 1'000'000;
            run.step(rank, n, at, at + length);
            run.range(rank, at + 10, at + 900'000, "nn.Module: FullyShardedDataParallel_0");
            run.range(rank, at + 20, at + 800'000 + n, "nn.Module: Net_0");
            run.kernel(rank, at + 1'000, at + 1'000 + n * 1'000, at + 100, 7, "gemm");
            run.collective(rank, at + 1'000, at + 6'000 + n,
                           {.bytes = 32, .sequence = n, .unit = 4, .launched = at + 200});
            run.kernel(rank, at + length - 10, at + length, at + 300, 7, "last");
            at += length;
        }
    }
    return run.take();
}

TEST(StepDurations, AreTheMeanOverTheRanksOfEveryStep) {
    const auto trace = run_of_steps(3);
    const traces::analysis::StepsReport report = traces::analysis::steps_report(*trace);
    const Durations durations = step_durations(*trace, report);
    ASSERT_EQ(durations.us.size(), 3U);
    for (std::size_t s = 0; s < 3; ++s) {  // one rank each, as in the report
        const double a = static_cast<double>(report.ranks[0].steps[s].window()) * 1e-3;
        const double b = static_cast<double>(report.ranks[1].steps[s].window()) * 1e-3;
        EXPECT_DOUBLE_EQ(durations.us[s], (a + b) / 2);
    }
    EXPECT_EQ(durations.longest_rank, traces::store::RankIndex(1));
    EXPECT_EQ(durations.longest.to, report.ranks[1].steps[2].summary.window_end);
}

TEST(KernelDurations, AreOfTheNameInTheSelection) {
    const auto trace = run_of_steps(3);
    const Durations all = kernel_durations(*trace, {}, "gemm");
    EXPECT_EQ(all.us.size(), 6U);
    EXPECT_EQ(all.longest.length(), 3'000);
    traces::analysis::Selection second;
    second.first_step = second.last_step = 2;
    EXPECT_THAT(kernel_durations(*trace, second, "gemm").us, ElementsAre(DoubleEq(2), DoubleEq(2)));
    EXPECT_TRUE(kernel_durations(*trace, {}, "no such kernel").us.empty());
}

TEST(Histogram, HasTheSameBinsForAllRunsAndSharesOfEachRun) {
    Durations a, b;
    a.us = {0, 1, 9, 10};
    b.us = {0, 0};
    const Histogram h = make_histogram({a, b}, 10);
    EXPECT_DOUBLE_EQ(h.low, 0);
    EXPECT_DOUBLE_EQ(h.high, 10);
    EXPECT_THAT(h.percent[0], ElementsAre(25, 25, 0, 0, 0, 0, 0, 0, 0, 50)) << "the last bin holds its end";
    EXPECT_DOUBLE_EQ(h.percent[1][0], 100);
    EXPECT_DOUBLE_EQ(h.largest, 100);
}

TEST(Histogram, EqualValuesGiveOneBinAndNoneGiveNoBin) {
    Durations a, none;
    a.us = {5, 5, 5};
    const Histogram h = make_histogram({a, none}, 4);
    EXPECT_LT(h.low, 5);
    EXPECT_GT(h.high, 5);
    EXPECT_DOUBLE_EQ(h.largest, 100);
    EXPECT_THAT(h.percent[1], ElementsAre(0, 0, 0, 0));
    EXPECT_DOUBLE_EQ(make_histogram({none}, 4).largest, 0);
}

TEST(Durations, AreFoldedWithTheirExtremes) {
    Durations run;
    run.us = {1, 9, 2, 3, 7};
    const auto folded = fold_durations(run, 2);
    ASSERT_EQ(folded.size(), 2U);
    EXPECT_DOUBLE_EQ(folded[0].longest, 9);
    EXPECT_DOUBLE_EQ(folded[0].shortest, 1);
    EXPECT_EQ(folded[1].first, 2U);
    EXPECT_DOUBLE_EQ(folded[1].longest, 7);
    EXPECT_EQ(fold_durations(run, 100).size(), 5U);
}

TEST(DurationsTable, ComparesMeanAndMedianWithTheFirst) {
    Durations a, b;
    a.us = {10, 20, 30};
    b.us = {10, 10, 10, 50};
    const auto table = durations_table(kRuns, {a, b}, "Steps");
    ASSERT_EQ(table->rows(), 2U);
    EXPECT_EQ(table->text(0, 1), "3");
    EXPECT_EQ(table->text(0, 2), "20.0");
    EXPECT_EQ(table->text(0, 3), "-") << "the first is compared with nothing";
    EXPECT_EQ(table->text(1, 2), "20.0");
    EXPECT_EQ(table->text(1, 3), "0.0");
    EXPECT_EQ(table->text(1, 4), "10.0");
    EXPECT_EQ(table->text(1, 5), "-50.0");  // a median of 10 compared with one of 20
    EXPECT_EQ(table->text(1, 8), "50.0");
}

traces::analysis::RankMemory rank_with(std::int64_t parameters, std::int64_t activations) {
    traces::analysis::RankMemory rank;
    rank.peak_bytes = parameters + activations;
    rank.at_peak[static_cast<std::size_t>(traces::schema::MemoryCategory::parameters)] = parameters;
    rank.at_peak[static_cast<std::size_t>(traces::schema::MemoryCategory::activations)] = activations;
    rank.units = {{.name = "net.0", .bytes = parameters}, {.name = "net.1", .bytes = activations}};
    return rank;
}

constexpr std::int64_t kMb = 1024 * 1024;

TEST(MemoryModel, JoinsCategoriesAndPutsThePeakFirst) {
    const traces::analysis::RankMemory a = rank_with(100 * kMb, 20 * kMb), b = rank_with(40 * kMb, 0);
    const MemoryModel model(kRuns, {&a, &b}, MemoryBy::category);
    ASSERT_EQ(model.rows(), 3U);
    EXPECT_EQ(model.text(0, 0), "peak allocated");
    EXPECT_EQ(model.text(0, 1), "120.00");
    EXPECT_EQ(model.text(0, 2), "40.00");
    EXPECT_EQ(model.text(0, 3), "-80.00");
    EXPECT_EQ(model.text(0, 4), "-66.7");
    EXPECT_EQ(model.text(1, 0), "parameters");
    EXPECT_EQ(model.text(1, 4), "-60.0");
    EXPECT_EQ(model.text(2, 0), "activations");
    EXPECT_EQ(model.text(2, 2), "-");
    EXPECT_EQ(model.text(2, 4), "gone");
}

TEST(MemoryModel, JoinsUnitsByNameAndHasRunsWithoutAllocations) {
    const traces::analysis::RankMemory a = rank_with(100 * kMb, 20 * kMb);
    const MemoryModel model(kRuns, {&a, nullptr}, MemoryBy::unit);
    ASSERT_EQ(model.rows(), 3U);
    EXPECT_EQ(model.text(1, 0), "net.0");
    EXPECT_EQ(model.text(1, 2), "-");
    EXPECT_EQ(model.text(0, 4), "gone");
}

TEST(MemoryModel, TheLargestRankIsTheOneWithAPeak) {
    traces::analysis::MemoryReport report;
    EXPECT_EQ(largest_rank(report), nullptr);
    report.ranks.resize(2);
    EXPECT_EQ(largest_rank(report), nullptr) << "no rank allocated anything";
    report.ranks[1].peak_bytes = 5;
    EXPECT_EQ(largest_rank(report), &report.ranks[1]);
}

TEST(Places, AreTheLongestEventOfThePart) {
    const auto trace = run_of_steps(3);
    const PartPlace gemm = longest_of_part(*trace, CompareBy::kernel, "gemm", {});
    EXPECT_TRUE(gemm.found);
    EXPECT_EQ(gemm.time.length(), 3'000);
    EXPECT_EQ(gemm.event.kind, model::EventKind::device);
    const PartPlace gather = longest_of_part(*trace, CompareBy::collective, "all_gather, net.0", {});
    EXPECT_EQ(gather.time.length(), 5'003);
    const PartPlace net = longest_of_part(*trace, CompareBy::module, "Net_0", {});
    EXPECT_EQ(net.event.kind, model::EventKind::range);
    EXPECT_EQ(net.time.length(), 800'003 - 20);
    const PartPlace wrapper = longest_of_part(*trace, CompareBy::module, "Net_0 [FSDP]", {});
    EXPECT_EQ(wrapper.time.length(), 900'000 - 10);
    EXPECT_FALSE(longest_of_part(*trace, CompareBy::kernel, "no such kernel", {}).found);
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::panels
