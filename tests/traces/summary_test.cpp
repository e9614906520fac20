// Execution Summary: step windows on the device side, the split by priority, cut-off steps, selections.
#include "traces/analysis/time/summary.h"

#include <numeric>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

std::int64_t ns(const StepSummary& step, TimeCategory c) {
    return step.ns[static_cast<std::size_t>(c)];
}

TEST(Summary, WindowStartsWhenTheStepBeforeLeavesTheDeviceAndEndsWithItsOwnWork) {
    RunBuilder run;
    run.step(0, 1, 100, 200);
    run.step(0, 2, 200, 300);
    run.kernel(0, 120, 260, 110);  // step 1 keeps the device busy until 260
    run.kernel(0, 270, 280, 210);  // step 2's host ends at 300, after its device work
    const auto trace = run.take();
    const ExecutionSummary summary = summarize(*trace);
    ASSERT_EQ(summary.ranks.size(), 1u);
    const RankSummary& rank = summary.ranks[0];
    ASSERT_EQ(rank.steps.size(), 2u);
    EXPECT_EQ(rank.steps[0].window_start, 100);
    EXPECT_EQ(rank.steps[0].window_end, 260);
    EXPECT_EQ(rank.steps[1].window_start, 260);
    EXPECT_EQ(rank.steps[1].window_end, 300);
    EXPECT_DOUBLE_EQ(rank.average_step_us, (160 + 40) / 2.0 * 1e-3);
}

TEST(Summary, SetUpWorkThatEndsBeforeTheFirstStepsOwnWorkDelaysItsWindow) {
    RunBuilder run;
    run.step(0, 0, 100, 200);
    run.kernel(0, 50, 130, 20);    // launched before the step, ends inside it
    run.kernel(0, 140, 150, 135);  // launched in the step itself
    run.kernel(0, 60, 145, 25);    // ends after the step's own work began: does not delay it
    const auto trace = run.take();
    const auto summary = summarize(*trace);
    EXPECT_EQ(summary.ranks[0].steps[0].window_start, 130);
    EXPECT_EQ(summary.ranks[0].steps[0].window_end, 200);
}

TEST(Summary, EachInstantGoesToTheFirstCategoryThatCoversIt) {
    // Every category covers one stretch of 10 ns alone and overlaps the previous one for 10 ns.
    RunBuilder run;
    run.step(0, 0, 0, 100);
    run.kernel(0, 0, 20);
    run.memcpy(0, 10, 30);
    run.memset(0, 20, 40);
    run.collective(0, 30, 50, {});
    run.runtime(0, 40, 60);
    run.range(0, 50, 70, "enumerate(DataLoader)#Iterator.__next__");
    run.range(0, 60, 80, "aten::linear");
    run.range(0, 0, 100, "nn.Module: Net_0");  // modules are not work themselves
    const auto trace = run.take();
    const StepSummary step = summarize(*trace).ranks[0].steps[0];
    EXPECT_EQ(ns(step, TimeCategory::kernel), 20);         // 0..20
    EXPECT_EQ(ns(step, TimeCategory::memcpy), 10);         // 20..30
    EXPECT_EQ(ns(step, TimeCategory::memset), 10);         // 30..40
    EXPECT_EQ(ns(step, TimeCategory::communication), 10);  // 40..50
    EXPECT_EQ(ns(step, TimeCategory::runtime), 10);        // 50..60
    EXPECT_EQ(ns(step, TimeCategory::data_loader), 10);    // 60..70
    EXPECT_EQ(ns(step, TimeCategory::cpu_exec), 10);       // 70..80
    EXPECT_EQ(ns(step, TimeCategory::other), 20);          // 80..100
}

// The host has finished a step after 100 ns, the device after 150: two durations, each with its name.
TEST(Summary, HasTheHostStepAndTheWindow) {
    RunBuilder run;
    for (std::int64_t step = 0; step < 3; ++step) {
        run.step(0, step, step * 100, step * 100 + 100);
        run.kernel(0, step * 150 + 5, step * 150 + 150, step * 100 + 1);
    }
    const auto trace = run.take();
    const ExecutionSummary summary = summarize(*trace);
    EXPECT_TRUE(summary.stepped);
    EXPECT_EQ(summary.ranks[0].steps[2].window_end - summary.ranks[0].steps[2].window_start, 150);
    EXPECT_EQ(summary.ranks[0].steps[2].host_ns, 100);
    EXPECT_DOUBLE_EQ(summary.ranks[0].average_host_step_us, 0.1);
    EXPECT_DOUBLE_EQ(summary.ranks[0].median_step_us, 0.15);
    EXPECT_EQ(summarize(*trace, {.from_ns = 250}).ranks[0].steps.back().host_ns, 50);
}

TEST(Summary, PercentIsOfTheMeanWindow) {
    RunBuilder run;
    run.step(0, 0, 0, 1000);
    run.step(0, 1, 1000, 2000);
    run.kernel(0, 0, 500, 0);
    run.kernel(0, 1000, 1250, 1000);
    const auto trace = run.take();
    const RankSummary rank = summarize(*trace).ranks[0];
    EXPECT_DOUBLE_EQ(rank.average_us[0], (500 + 250) / 2.0 * 1e-3);
    EXPECT_DOUBLE_EQ(rank.percent(TimeCategory::kernel), 37.5);
}

TEST(Summary, ALastStepWithUnderFourFifthsOfTheDeviceEventsWasCutOff) {
    const auto cut_of = [](std::vector<int> counts) {
        RunBuilder run;
        for (std::size_t s = 0; s < counts.size(); ++s) {
            const auto start = static_cast<std::int64_t>(s) * 1000;
            run.step(0, static_cast<std::int64_t>(s), start, start + 1000);
            for (int k = 0; k < counts[s]; ++k)
                run.kernel(0, start + 10 * k, start + 10 * k + 5, start + 10 * k);
        }
        const auto trace = run.take();
        return summarize(*trace).ranks[0].cut_steps;
    };
    EXPECT_EQ(cut_of({10, 8}), 0);  // 8 = 80 %
    EXPECT_EQ(cut_of({10, 7}), 1);
    EXPECT_EQ(cut_of({10, 10, 7, 0}), 2);  // steps without any device work at the end are cut with it
    EXPECT_EQ(cut_of({0, 0}), 0);          // a host-only run has no device work that could be missing
    EXPECT_EQ(cut_of({5}), 0);
}

TEST(Summary, WorkWithoutALaunchBelongsToTheStepInWhichItStarts) {
    RunBuilder run;
    run.step(0, 0, 0, 100);
    run.step(0, 1, 100, 200);
    run.kernel(0, 10, 20, 5);  // the trace contains no earlier work
    run.kernel(0, 90, 150);
    run.kernel(0, 150, 160, 110);
    run.kernel(0, 160, 170, 120);
    const auto trace = run.take();
    const auto rank = summarize(*trace).ranks[0];
    ASSERT_EQ(rank.steps.size(), 2u);  // each has two events
    EXPECT_EQ(rank.steps[0].window_end, 150);
    EXPECT_EQ(rank.steps[1].window_start, 150);
}

TEST(Summary, ATraceWithoutStepsIsOneStepFromItsFirstToItsLastEvent) {
    RunBuilder run;
    run.range(0, 50, 60, "aten::add");
    run.kernel(0, 70, 90, 65);
    const auto trace = run.take();
    const auto rank = summarize(*trace).ranks[0];
    ASSERT_EQ(rank.steps.size(), 1u);
    EXPECT_EQ(rank.steps[0].window_start, 50);
    EXPECT_EQ(rank.steps[0].window_end, 90);
    EXPECT_EQ(rank.cut_steps, 0);
}

TEST(Summary, ASelectionKeepsItsRankStepsAndTime) {
    RunBuilder run(2);
    for (int rank = 0; rank < 2; ++rank) {
        for (int s = 0; s < 4; ++s) {
            run.step(rank, s, 100 * s, 100 * s + 100);
            run.kernel(rank, 100 * s + 10, 100 * s + 60, 100 * s + 5);
        }
    }
    const auto trace = run.take();
    const auto by_step = summarize(*trace, {.rank = 1, .first_step = 1, .last_step = 2});
    ASSERT_EQ(by_step.ranks.size(), 1u);
    EXPECT_EQ(by_step.ranks[0].rank, 1);
    ASSERT_EQ(by_step.ranks[0].steps.size(), 2u);
    EXPECT_EQ(by_step.ranks[0].steps[0].number, 1);

    // [150, 230) holds the second half of step 1 and the first 30 ns of step 2.
    const auto by_time = summarize(*trace, {.rank = 0, .from_ns = 150, .to_ns = 230});
    const auto& steps = by_time.ranks[0].steps;
    ASSERT_EQ(steps.size(), 2u);
    EXPECT_EQ(steps[0].window_end - steps[0].window_start, 50);
    EXPECT_EQ(ns(steps[0], TimeCategory::kernel), 10);  // 150..160
    EXPECT_EQ(ns(steps[1], TimeCategory::kernel), 20);  // 210..230
    EXPECT_TRUE(summarize(*trace, {.rank = 7}).ranks.empty());
}

// The plain reference: for each nanosecond of a window, the first category that covers it.
std::array<std::int64_t, kTimeCategories> split_by_nanosecond(const store::Trace& trace,
                                                              const StepSummary& step) {
    std::array<std::int64_t, kTimeCategories> sums{};
    for (std::int64_t t = step.window_start; t < step.window_end; ++t) {
        auto best = TimeCategory::other;
        const auto cover = [&](std::int64_t start, std::int64_t end, TimeCategory c) {
            if (start <= t && t < end) best = std::min(best, c);
        };
        for (std::size_t i = 0; i < trace.device.size(); ++i) {
            cover(trace.device.start[i], trace.device.end[i],
                  static_cast<TimeCategory>(trace.device.kind[i]));
        }
        for (std::size_t i = 0; i < trace.runtime.size(); ++i) {
            cover(trace.runtime.start[i], trace.runtime.end[i], TimeCategory::runtime);
        }
        for (std::size_t i = 0; i < trace.ranges.size(); ++i) {
            const store::RangeKind kind = trace.ranges.kind[i];
            if (kind == store::RangeKind::data_loader) {
                cover(trace.ranges.start[i], trace.ranges.end[i], TimeCategory::data_loader);
            } else if (kind == store::RangeKind::annotation || kind == store::RangeKind::communication) {
                cover(trace.ranges.start[i], trace.ranges.end[i], TimeCategory::cpu_exec);
            }
        }
        ++sums[static_cast<std::size_t>(best)];
    }
    return sums;
}

TEST(Summary, TheSplitAgreesWithOneByNanosecondAndSumsToTheWindowOnRandomRuns) {
    for (unsigned seed = 0; seed < 60; ++seed) {
        std::mt19937 random(seed);
        const auto below = [&](int n) {
            return static_cast<std::int64_t>(random() % static_cast<unsigned>(n));
        };
        RunBuilder run;
        for (int s = 0; s < 3; ++s) run.step(0, s, 300 * s + below(20), 300 * s + 250 + below(50));
        for (int e = 0; e < 40; ++e) {
            const std::int64_t start = below(1000), end = start + below(60);
            const std::optional<std::int64_t> launched =
                random() % 3 == 0 ? std::nullopt
                                  : std::optional(std::max<std::int64_t>(0, start - below(100)));
            switch (random() % 7) {
                case 0:
                    run.kernel(0, start, end, launched);
                    break;
                case 1:
                    run.memcpy(0, start, end, launched);
                    break;
                case 2:
                    run.memset(0, start, end, launched);
                    break;
                case 3:
                    run.collective(0, start, end, {.launched = launched});
                    break;
                case 4:
                    run.runtime(0, start, end);
                    break;
                case 5:
                    run.range(0, start, end, "enumerate(DataLoader)#x.__next__");
                    break;
                case 6:
                    run.range(0, start, end, "aten::op");
                    break;
            }
        }
        const auto trace = run.take();
        const RankSummary rank = summarize(*trace).ranks[0];
        for (const StepSummary& step : rank.steps) {
            ASSERT_EQ(step.ns, split_by_nanosecond(*trace, step))
                << "seed " << seed << " step " << step.number;
            ASSERT_EQ(std::accumulate(step.ns.begin(), step.ns.end(), std::int64_t{0}),
                      step.window_end - step.window_start);
        }
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
