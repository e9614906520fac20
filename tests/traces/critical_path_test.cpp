// The critical path: what delayed each node, that the parts sum to the step, and what a what-if predicts.
#include "traces/analysis/path/critical_path.h"

#include <array>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"
#include "traces/analysis/path/step_graph.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::SizeIs;

std::int64_t part(const StepPath& step, PathKind kind) {
    return step.parts[static_cast<std::size_t>(kind)];
}

StepPath only_step(const CriticalPathReport& report, std::size_t rank = 0) {
    EXPECT_THAT(report.ranks.at(rank).steps, SizeIs(1));
    return report.ranks.at(rank).steps.front();
}

std::optional<PathFactors> scaled(PathKind kind, double factor) {
    PathFactors factors = kUnscaled;
    factors[static_cast<std::size_t>(kind)] = factor;
    return factors;
}

// A launching call takes 1 ns, so work launched at 10 can start at 11.
TEST(CriticalPath, GoesFromTheHostOverTheLaunchToTheDevice) {
    RunBuilder run;
    run.step(0, 1, 0, 50);
    run.kernel(0, 15, 80, 10);
    const auto trace = run.take();
    const StepPath step = only_step(critical_path(*trace));
    EXPECT_EQ(step.ns, 80);
    EXPECT_EQ(part(step, PathKind::host), 11);         // until the call returns
    EXPECT_EQ(part(step, PathKind::launch_delay), 4);  // 11 to 15
    EXPECT_EQ(part(step, PathKind::compute), 65);
}

TEST(CriticalPath, IsOnTheHostIfTheDeviceIsDoneFirst) {
    RunBuilder run;
    run.step(0, 1, 0, 100);
    run.kernel(0, 15, 30, 10);
    const auto trace = run.take();
    EXPECT_EQ(part(only_step(critical_path(*trace)), PathKind::host), 100);
}

TEST(CriticalPath, FollowsTheStreamWhereTheWorkBeforeEndedAfterTheLaunch) {
    RunBuilder run;
    run.step(0, 1, 0, 20);
    run.kernel(0, 5, 40, 2);
    run.memcpy(0, 41, 90, 10, 7);
    const auto trace = run.take();
    const StepPath step = only_step(critical_path(*trace));
    EXPECT_EQ(part(step, PathKind::host), 3);
    EXPECT_EQ(part(step, PathKind::launch_delay), 2 + 1);  // 3 to 5, and 40 to 41 between the two
    EXPECT_EQ(part(step, PathKind::compute), 35);
    EXPECT_EQ(part(step, PathKind::memcpy), 49);
}

// The unshard stream gathers in [10, 60); the compute stream's kernel starts at 62.
void add_gather_and_kernel(RunBuilder& run) {
    run.step(0, 1, 0, 30);
    run.collective(0, 10, 60, {.launched = 4});
    run.kernel(0, 62, 100, 20);
}

TEST(CriticalPath, CrossesStreamsIfTheHostMadeTheStreamWait) {
    RunBuilder run;
    add_gather_and_kernel(run);
    run.runtime(0, 15, 16, "cudaStreamWaitEvent");
    const auto trace = run.take();
    const StepPath step = only_step(critical_path(*trace));
    EXPECT_EQ(part(step, PathKind::host), 5);
    EXPECT_EQ(part(step, PathKind::communication), 50);
    EXPECT_EQ(part(step, PathKind::launch_delay), 5 + 2);  // 5 to 10, 60 to 62
    EXPECT_EQ(part(step, PathKind::compute), 38);
}

TEST(CriticalPath, IgnoresOtherStreamsWhenThereIsNoWait) {
    RunBuilder run;
    add_gather_and_kernel(run);
    const auto trace = run.take();
    const StepPath step = only_step(critical_path(*trace));
    EXPECT_EQ(part(step, PathKind::communication), 0);
    EXPECT_EQ(part(step, PathKind::host), 21);
    EXPECT_EQ(part(step, PathKind::launch_delay), 41);
    EXPECT_EQ(part(step, PathKind::compute), 38);
}

TEST(CriticalPath, AWaitThatAnEarlierLaunchTookDoesNotDelayALaterOne) {
    RunBuilder run;
    run.step(0, 1, 0, 30);
    run.collective(0, 4, 8, {.launched = 1});
    run.runtime(0, 3, 4, "cudaStreamWaitEvent");
    run.kernel(0, 10, 12, 5);   // the wait delays this kernel
    run.kernel(0, 40, 50, 20);  // only its launch delays this kernel
    run.collective(0, 13, 39, {.sequence = 1, .launched = 6});
    const auto trace = run.take();
    EXPECT_EQ(part(only_step(critical_path(*trace)), PathKind::communication), 0);
}

// A wait that names its stream does not delay work on another.
TEST(CriticalPath, AWaitOfAKnownStreamDelaysOnlyThatStream) {
    RunBuilder run;
    run.step(0, 1, 0, 30);
    run.collective(0, 10, 60, {.launched = 4});
    run.sink().add(schema::RuntimeRow{.start = 15,
                                      .end = 16,
                                      .global_tid = RunBuilder::tid(0),
                                      .correlation = 900,
                                      .name = run.sink().intern("cudaStreamWaitEvent")});
    run.sink().add(schema::SynchronizationRow{.start = 15,
                                              .end = 16,
                                              .device = 0,
                                              .stream = 8,
                                              .correlation = 900,
                                              .global_pid = RunBuilder::pid(0),
                                              .sync_type = schema::kSyncStreamWait});
    run.kernel(0, 62, 100, 20);  // on stream 7
    run.memcpy(0, 61, 64, 22);   // on stream 8
    const auto trace = run.take();
    EXPECT_EQ(part(only_step(critical_path(*trace)), PathKind::communication), 0);
}

TEST(CriticalPath, FollowsTheDeviceIfACallWaitedForIt) {
    RunBuilder run;
    run.step(0, 1, 0, 90);
    run.kernel(0, 10, 68, 5);
    run.runtime(0, 20, 70, "cudaEventSynchronize_v3020");
    run.kernel(0, 80, 85, 75);
    const auto trace = run.take();
    const StepPath step = only_step(critical_path(*trace));
    // host 0..6, launch 6..10, compute 10..68, host from there to the end of the step: the second kernel had
    // finished before.
    EXPECT_EQ(part(step, PathKind::host), 6 + 22);
    EXPECT_EQ(part(step, PathKind::launch_delay), 4);
    EXPECT_EQ(part(step, PathKind::compute), 58);
}

TEST(CriticalPath, ACallThatDidNotBlockIsHostTime) {
    RunBuilder run;
    run.step(0, 1, 0, 90);
    run.kernel(0, 10, 18, 5);
    run.runtime(0, 20, 70, "cudaEventSynchronize_v3020");  // the kernel had finished: the call itself is slow
    const auto trace = run.take();
    EXPECT_EQ(part(only_step(critical_path(*trace)), PathKind::host), 90);
}

// Nine kernels of 995 us, one after the other; the host launches each just before the previous one ends, and
// polls the device all the time.
TEST(CriticalPath, IsOnTheDeviceIfTheHostPolls) {
    constexpr std::int64_t kUs = 1000;
    RunBuilder run;
    run.step(0, 1, 0, 10'000 * kUs);
    for (std::int64_t k = 0; k < 9; ++k) {
        const std::int64_t at = k * 1000 * kUs;
        run.kernel(0, at + 12 * kUs, at + 1007 * kUs, at + 5 * kUs);
        for (std::int64_t poll = 20; poll < 900; poll += 45)
            run.runtime(0, at + poll * kUs, at + (poll + 3) * kUs, "cudaEventQuery");
    }
    const auto trace = run.take();
    const StepPath step = only_step(critical_path(*trace));
    EXPECT_EQ(part(step, PathKind::compute), 9 * 995 * kUs);
    EXPECT_EQ(part(step, PathKind::host),
              (10'000 - 9007) * kUs + 5 * kUs + 1);  // after the last kernel, and up to the first
    EXPECT_EQ(step.ns, 10'000 * kUs);
}

// The caching allocator queries its events, too: three times in 20 us, and then the host continues working.
TEST(CriticalPath, IsOnTheHostIfTheAllocatorQueriesItsEvents) {
    constexpr std::int64_t kUs = 1000;
    RunBuilder run;
    run.step(0, 1, 0, 1000 * kUs);
    run.kernel(0, 10 * kUs, 500 * kUs, 5 * kUs);
    for (const std::int64_t at : {20, 27, 34}) run.runtime(0, at * kUs, (at + 6) * kUs, "cudaEventQuery");
    run.kernel(0, 910 * kUs, 920 * kUs, 900 * kUs);
    const auto trace = run.take();
    EXPECT_EQ(part(only_step(critical_path(*trace)), PathKind::host), 1000 * kUs);
}

// A host that spins without any call is busy at every instant, and each kernel starts just after its launch.
// The device's chain is as long, except for 5 ns per kernel.
TEST(CriticalPath, IsOnTheDeviceIfBothChainsAreEquallyLong) {
    RunBuilder run;
    run.step(0, 1, 0, 8500);
    for (std::int64_t k = 0; k < 9; ++k) run.kernel(0, 1000 * k + 12, 1000 * k + 1007, 1000 * k + 9);
    const auto trace = run.take();
    const StepPath step = only_step(critical_path(*trace));
    EXPECT_EQ(part(step, PathKind::compute), 9 * 995);
    EXPECT_EQ(part(step, PathKind::host), 10);
    EXPECT_EQ(step.ns, 9007);
}

// The device idles for a tenth of the time, so the host delays it.
TEST(CriticalPath, IsOnTheHostIfTheDeviceIdlesBetweenLaunches) {
    RunBuilder run;
    run.step(0, 1, 0, 8500);
    for (std::int64_t k = 0; k < 9; ++k) run.kernel(0, 1000 * k + 12, 1000 * k + 907, 1000 * k + 9);
    const auto trace = run.take();
    const StepPath step = only_step(critical_path(*trace));
    EXPECT_EQ(part(step, PathKind::compute), 895);  // the last kernel alone
    EXPECT_EQ(part(step, PathKind::host), 8010);
}

// The main thread waits while autograd's thread launches: forward's last launch at 5, backward's at 10 and
// 40, the optimizer's at 50.
TEST(CriticalPath, GoesOverTheThreadThatTheHostWaitedFor) {
    RunBuilder run;
    run.step(0, 1, 0, 60);
    run.kernel(0, 6, 8, 5);
    const auto launch = [&](std::int64_t start, std::int64_t id) {
        run.sink().add(schema::RuntimeRow{.start = start,
                                          .end = start + 1,
                                          .global_tid = RunBuilder::other_tid(0),
                                          .correlation = id,
                                          .name = run.sink().intern("cudaLaunchKernel")});
        run.sink().add(schema::KernelRow{.start = start + 2,
                                         .end = start + 4,
                                         .device = 0,
                                         .stream = 7,
                                         .correlation = id,
                                         .global_pid = RunBuilder::pid(0),
                                         .short_name = run.sink().intern("backward")});
    };
    launch(10, 801);
    launch(40, 802);
    run.range_on(RunBuilder::other_tid(0), 9, 45, "autograd::engine");
    run.kernel(0, 52, 58, 50);
    const auto trace = run.take();
    const CriticalPathReport report = critical_path(*trace);
    EXPECT_EQ(part(only_step(report), PathKind::host), 60);
    // The host's time between the calls at 10 and 40 belongs to autograd: 11 to 40; none until the end of its
    // range, because the optimizer's thread continues from the last call.
    const auto& shares = report.ranks[0].shares;
    const auto autograd = std::find_if(shares.begin(), shares.end(),
                                       [](const PathShare& s) { return s.name == "autograd::engine"; });
    ASSERT_NE(autograd, shares.end());
    EXPECT_DOUBLE_EQ(autograd->us, ((10 - 9) + (40 - 11)) * 1e-3);
}

// Rank 0 is in the collective from 10, rank 1 from 50 on; both leave at 70.
void add_straggler(RunBuilder& run, std::int64_t clock_shift = 0) {
    const TestCollective c = {.sequence = 1, .group_size = 2, .launched = 5};
    run.step(0, 1, 0, 60);
    run.collective(0, 10, 70, c);
    run.step(1, 1, clock_shift, 60 + clock_shift);
    run.kernel(1, 8 + clock_shift, 49 + clock_shift, 2 + clock_shift);
    run.runtime(1, 3 + clock_shift, 4 + clock_shift, "cudaStreamWaitEvent");
    TestCollective late = c;
    late.launched = 5 + clock_shift;
    run.collective(1, 50 + clock_shift, 70 + clock_shift, late);
}

TEST(CriticalPath, WaitsForTheLastRankOfACollective) {
    RunBuilder run(2);
    add_straggler(run);
    const auto trace = run.take();
    const CriticalPathReport report = critical_path(*trace);
    const StepPath first = only_step(report, 0);
    EXPECT_EQ(part(first, PathKind::host), 6);
    EXPECT_EQ(part(first, PathKind::launch_delay), 4);
    EXPECT_EQ(part(first, PathKind::waiting), 40);
    EXPECT_EQ(part(first, PathKind::communication), 20);
    EXPECT_THAT(report.ranks[0].ranks,
                ElementsAre(AllOf(Field(&RankTime::rank, 1), Field(&RankTime::us, 0.04))));
    EXPECT_EQ(part(only_step(report, 1), PathKind::waiting), 0);
    EXPECT_EQ(report.clocks_disagree, 0);
}

TEST(CriticalPath, ContinuesAtTheRankThatOthersWaitedFor) {
    RunBuilder run(2);
    add_straggler(run);
    const auto trace = run.take();
    const CriticalPathReport report = critical_path(*trace);
    ASSERT_TRUE(report.job);
    ASSERT_THAT(report.job->steps, SizeIs(1));
    const StepPath& step = report.job->steps[0];
    EXPECT_EQ(step.ns, 70);
    EXPECT_EQ(part(step, PathKind::waiting), 0);
    EXPECT_EQ(part(step, PathKind::host), 3);              // on rank 1
    EXPECT_EQ(part(step, PathKind::launch_delay), 5 + 1);  // 3 to 8, 49 to 50
    EXPECT_EQ(part(step, PathKind::compute), 41);
    EXPECT_EQ(part(step, PathKind::communication), 20);
}

// Rank 1's clock is 100 ns ahead: its part seems to begin after rank 0's ended. The durations still show it:
// rank 0 took 60, rank 1 20.
TEST(CriticalPath, DerivesWaitingFromDurationsIfClocksDisagree) {
    RunBuilder run(2);
    add_straggler(run, 100);
    const auto trace = run.take();
    const CriticalPathReport report = critical_path(*trace);
    EXPECT_EQ(report.clocks_disagree, 1);
    EXPECT_EQ(part(only_step(report, 0), PathKind::waiting), 40);
    EXPECT_EQ(report.ranks[0].ranks.at(0).rank, 1);
    EXPECT_EQ(part(only_step(report, 1), PathKind::compute), 41);
}

// Rank 1 comes last: it takes 20, rank 2 takes 25. Its clock is 10 behind, so that rank 2 seems to begin
// later.
TEST(CriticalPath, WaitsForTheRankWithTheShortestPartWhereClocksAreALittleOff) {
    RunBuilder run(3);
    const TestCollective c = {.sequence = 1, .group_size = 3, .launched = 5};
    const std::array<Interval, 3> parts = {{{10, 70}, {40, 60}, {45, 70}}};
    for (int rank = 0; rank < 3; ++rank) {
        const Interval part = parts[static_cast<std::size_t>(rank)];
        run.step(rank, 1, 0, 50);
        run.kernel(rank, 8, part.start - 1, 2);
        run.runtime(rank, 3, 4, "cudaStreamWaitEvent");
        run.collective(rank, part.start, part.end, c);
    }
    const auto trace = run.take();
    const CriticalPathReport report = critical_path(*trace);
    EXPECT_EQ(report.clocks_disagree, 0);
    EXPECT_EQ(part(only_step(report, 0), PathKind::waiting), 35);
    EXPECT_EQ(report.ranks[0].ranks.at(0).rank, 1);
    EXPECT_EQ(part(only_step(report, 1), PathKind::waiting), 0);
    EXPECT_EQ(part(only_step(report, 1), PathKind::communication), 20);
}

// Two parts of one rank with the same number: it is unknown which rank came last.
TEST(CriticalPath, HasNoWaitingIfARankHasTwoParts) {
    RunBuilder run(2);
    add_straggler(run);
    run.collective(1, 75, 80, {.sequence = 1, .group_size = 2, .launched = 55});
    const auto trace = run.take();
    const CriticalPathReport report = critical_path(*trace);
    EXPECT_EQ(part(only_step(report, 0), PathKind::waiting), 0);
    EXPECT_EQ(part(only_step(report, 0), PathKind::communication), 60);
    EXPECT_EQ(part(only_step(report, 1), PathKind::waiting), 0);
}

TEST(CriticalPath, WhatIfScalesTheGraph) {
    RunBuilder run;
    add_gather_and_kernel(run);
    run.runtime(0, 15, 16, "cudaStreamWaitEvent");
    const auto trace = run.take();
    // Half the gather: it ends at 35 instead of 60, the kernel starts at 37 and ends at 75.
    const auto half = critical_path(*trace, {}, scaled(PathKind::communication, 0.5));
    EXPECT_DOUBLE_EQ(only_step(half).predicted_ns, 75);
    EXPECT_TRUE(half.what_if);
    // A gather that takes no time ends at 10; then the launch at 20, done at 21, delays the kernel. It would
    // have the usual launch delay, that of the gather: 5. 21 + 5 + 38 = 64.
    const auto none = critical_path(*trace, {}, scaled(PathKind::communication, 0));
    EXPECT_DOUBLE_EQ(only_step(none).predicted_ns, 64);
    EXPECT_DOUBLE_EQ(only_step(critical_path(*trace, {}, kUnscaled)).predicted_ns, 100);
}

TEST(CriticalPath, WhatIfReachesTheOtherRanks) {
    RunBuilder run(2);
    add_straggler(run);
    const auto trace = run.take();
    // Rank 1 computes in 20.5 instead of 41: it joins at 29.5 and both leave at 49.5; the hosts end at 60.
    const auto report = critical_path(*trace, {}, scaled(PathKind::compute, 0.5));
    const TraceSteps steps = find_steps(*trace);
    const GraphSources sources(*trace, steps);
    const StepGraph graph = build_step_graph(sources, 1);
    const auto factors = *scaled(PathKind::compute, 0.5);
    const std::vector<double> when = graph.evaluate(sources, factors);
    for (std::size_t n = 0; n < graph.size(); ++n) {
        if (graph.joined[n] >= 0) {
            EXPECT_DOUBLE_EQ(when[n], 49.5);
        }
    }
    EXPECT_DOUBLE_EQ(only_step(report, 0).predicted_ns, 60);  // the host's own time
    // No rank waits: rank 0's part ends at 10 + 20.
    PathFactors alone = kUnscaled;
    alone[static_cast<std::size_t>(PathKind::waiting)] = 0;
    const std::vector<double> then = graph.evaluate(sources, alone);
    for (std::size_t n = 0; n < graph.size(); ++n) {
        if (graph.joined[n] >= 0 && graph.rank[n] == 0) {
            EXPECT_DOUBLE_EQ(then[n], 30);
        }
    }
}

TEST(CriticalPath, CountsEventsInTheSelectedTime) {
    RunBuilder run;
    run.step(0, 1, 0, 50);
    run.kernel(0, 15, 80, 10);
    const auto trace = run.take();
    const StepPath step = only_step(
        critical_path(*trace, {.rank = {}, .first_step = {}, .last_step = {}, .from_ns = 13, .to_ns = 40}));
    EXPECT_EQ(step.ns, 27);
    EXPECT_EQ(part(step, PathKind::launch_delay), 2);
    EXPECT_EQ(part(step, PathKind::compute), 25);
}

// A window begins where the device finished the previous step, even if the host was far ahead.
TEST(CriticalPath, IsOnlyOnTheDeviceIfTheHostRanAhead) {
    RunBuilder run;
    run.step(0, 1, 0, 20);
    run.kernel(0, 10, 100, 5);
    run.step(0, 2, 20, 40);
    run.kernel(0, 101, 190, 25);
    const auto trace = run.take();
    const CriticalPathReport report = critical_path(*trace);
    ASSERT_THAT(report.ranks[0].steps, SizeIs(2));
    const StepPath& second = report.ranks[0].steps[1];
    EXPECT_EQ(second.ns, 90);  // 100 to 190
    EXPECT_EQ(part(second, PathKind::launch_delay), 1);
    EXPECT_EQ(part(second, PathKind::compute), 89);
}

TEST(CriticalPath, NamesTheEventsOnIt) {
    RunBuilder run;
    run.sink().add(
        schema::ModuleRow{.id = 3, .parent = -1, .name = "Linear_0", .class_name = "Linear", .path = "net"});
    run.step(0, 1, 0, 50);
    run.range(0, 1, 40, "nn.Module: Linear_0", 3);
    run.range(0, 2, 8, "aten::linear");
    run.kernel(0, 15, 80, 10, 7, "gemm_big");
    const auto trace = run.take();
    const RankPath path = critical_path(*trace).ranks.at(0);
    const auto share = [](std::string_view name, PathKind kind, double us) {
        return AllOf(Field(&PathShare::name, name), Field(&PathShare::kind, kind), Field(&PathShare::us, us));
    };
    EXPECT_THAT(
        path.shares,
        ElementsAre(share("gemm_big", PathKind::compute, 0.065), share("aten::linear", PathKind::host, 0.006),
                    share("gemm_big", PathKind::launch_delay, 0.004),
                    share("nn.Module: Linear_0", PathKind::host, 0.003),  // 1 to 2, 8 to 10
                    share("(outside any range)", PathKind::host, 0.001),
                    share("cudaLaunchKernel", PathKind::host, 0.001)));
    ASSERT_THAT(path.modules, SizeIs(1));
    EXPECT_EQ(path.modules[0].name, "Linear_0");
    EXPECT_DOUBLE_EQ(path.modules[0].us, 0.079);  // all except [0, 1)
}

TEST(CriticalPath, CoversTheWholeTraceIfItHasNoSteps) {
    RunBuilder run;
    run.kernel(0, 20, 60, 5);
    const auto trace = run.take();
    const StepPath step = only_step(critical_path(*trace));
    EXPECT_EQ(step.ns, 55);  // from the launching call on
    EXPECT_EQ(part(step, PathKind::host), 1);
    EXPECT_EQ(part(step, PathKind::launch_delay), 14);
    EXPECT_EQ(part(step, PathKind::compute), 40);
    const store::Trace empty;
    EXPECT_TRUE(critical_path(empty).ranks.empty());
}

// For every trace: the parts sum to the step, and the unscaled graph gives the observed times.
TEST(CriticalPath, PartsSumToTheStepAndTheUnscaledGraphIsTheTrace) {
    std::mt19937 random(7);
    const auto upto = [&](std::int64_t n) {
        return static_cast<std::int64_t>(random() % static_cast<unsigned>(n));
    };
    constexpr const char* kCalls[] = {"cudaStreamWaitEvent", "cudaEventSynchronize", "cudaDeviceSynchronize",
                                      "cudaMemcpy", "cudaMalloc"};
    for (int round = 0; round < 60; ++round) {
        const int ranks = 1 + static_cast<int>(upto(3));
        RunBuilder run(ranks);
        std::int64_t sequence = 0;
        for (int r = 0; r < ranks; ++r) {
            std::int64_t at = upto(20);
            for (std::int64_t number = 0; number < 3; ++number) {
                const std::int64_t length = 200 + upto(100);
                run.step(r, number, at, at + length);
                for (int e = 0; e < 20; ++e) {
                    const std::int64_t launched = at + upto(length), start = launched + upto(40) - 2;
                    const int stream = 7 + static_cast<int>(upto(3));
                    switch (upto(4)) {
                        case 0:
                            run.kernel(r, start, start + upto(50), launched, stream);
                            break;
                        case 1:
                            run.memcpy(r, start, start + upto(30), launched, stream);
                            break;
                        case 2:
                            run.runtime(r, launched, launched + upto(60), kCalls[upto(5)]);
                            break;
                        default:
                            run.kernel(r, start, start + upto(50), std::nullopt, stream);
                    }
                }
                for (int c = 0; c < 4; ++c) {
                    const std::int64_t launched = at + upto(length), start = launched + 1 + upto(30);
                    run.collective(
                        r, start, start + 1 + upto(60),
                        {.sequence = sequence + number * 4 + c, .group_size = ranks, .launched = launched});
                }
                at += length + upto(10);
            }
        }
        const auto trace = run.take();
        const CriticalPathReport report = critical_path(*trace, {}, kUnscaled);
        const auto check = [&](const RankPath& path) {
            for (const StepPath& step : path.steps) {
                std::int64_t sum = 0;
                for (const std::int64_t ns : step.parts) sum += ns;
                EXPECT_EQ(sum, step.ns);
                EXPECT_DOUBLE_EQ(step.predicted_ns, static_cast<double>(step.whole_ns));
            }
        };
        for (const RankPath& path : report.ranks) check(path);
        if (report.job) check(*report.job);

        const TraceSteps steps = find_steps(*trace);
        const GraphSources sources(*trace, steps);
        for (std::int64_t number = 0; number < 3; ++number) {
            const StepGraph graph = build_step_graph(sources, number);
            const std::vector<double> when = graph.evaluate(sources, kUnscaled);
            for (std::size_t n = 0; n < graph.size(); ++n) {
                ASSERT_NEAR(when[n], static_cast<double>(graph.time[n]), 1e-6) << "node " << n;
            }
        }
    }
}

TEST(CriticalPath, ItsPiecesFollowEachOtherAndSumToTheStep) {
    RunBuilder run;
    run.step(0, 1, 0, 20);
    run.kernel(0, 5, 40, 2);
    run.memcpy(0, 41, 90, 10, 7);
    const auto trace = run.take();
    const CriticalPathReport report = critical_path(*trace, {}, {}, true);
    const std::vector<PathPiece>& pieces = report.ranks.front().pieces;
    ASSERT_FALSE(pieces.empty());
    std::array<std::int64_t, kPathKinds> sums{};
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        EXPECT_EQ(pieces[i].step, 1);
        if (i > 0) {
            EXPECT_EQ(pieces[i].from, pieces[i - 1].to);
        }
        sums[static_cast<std::size_t>(pieces[i].kind)] += pieces[i].to - pieces[i].from;
    }
    EXPECT_EQ(pieces.back().to - pieces.front().from, only_step(report).ns);
    EXPECT_EQ(sums, only_step(report).parts);
    const auto copy = std::find_if(pieces.begin(), pieces.end(),
                                   [](const PathPiece& p) { return p.kind == PathKind::memcpy; });
    ASSERT_NE(copy, pieces.end());
    EXPECT_EQ(trace->device.start[static_cast<std::size_t>(copy->event)], copy->from);
    EXPECT_TRUE(critical_path(*trace).ranks.front().pieces.empty());  // only on request
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
