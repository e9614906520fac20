// Module view: the tree, host and device time by innermost module, backward parts, units, waits and peaks.
#include "traces/analysis/modules/modules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/module_nodes.h"
#include "tests/traces/run_builder.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Modules 0 Net_0 > 1 FullyShardedDataParallel_1 > 2 Linear_0, and 3 ReLU_0 next to it; unit 5 wraps module
// 1.
void describe_modules(RunBuilder& run) {
    run.sink().add(schema::ModuleRow{.id = 0, .parent = -1, .name = "Net_0"});
    run.sink().add(schema::ModuleRow{.id = 1, .parent = 0, .name = "FullyShardedDataParallel_1"});
    run.sink().add(schema::ModuleRow{.id = 2, .parent = 1, .name = "Linear_0", .parameters = 110});
    run.sink().add(schema::ModuleRow{.id = 3, .parent = 0, .name = "ReLU_0"});
    run.sink().add(schema::UnitRow{.id = 5, .module = 1, .name = "net.0"});
}

void forward(RunBuilder& run, std::int64_t at, int rank = 0) {
    run.range(rank, at, at + 100, "nn.Module: Net_0", 0);
    run.range(rank, at + 10, at + 70, "nn.Module: FullyShardedDataParallel_1", 1);
    run.range(rank, at + 30, at + 60, "nn.Module: Linear_0", 2);
    run.range(rank, at + 35, at + 50, "aten::linear");
    run.range(rank, at + 75, at + 90, "nn.Module: ReLU_0", 3);
}

TEST(Modules, TheTreeIsTheNestingOfModuleRangesAndRowsWithTheSamePathAreOne) {
    RunBuilder run;
    forward(run, 0);
    forward(run, 1000);
    const auto trace = run.take();
    const ModuleView view = module_view(*trace);
    ASSERT_THAT(view.ranks, SizeIs(1));
    ASSERT_THAT(names(view.ranks[0].modules), ElementsAre("Net_0"));
    const ModuleNode& net = view.ranks[0].modules[0];
    ASSERT_THAT(names(net.children), ElementsAre("FullyShardedDataParallel_1", "ReLU_0"));
    const ModuleNode& unit = net.children[0];
    ASSERT_THAT(names(unit.children), ElementsAre("Linear_0"));
    EXPECT_EQ(net.occurrences, 2);
    EXPECT_DOUBLE_EQ(net.host_us, us(2 * 100));
    EXPECT_DOUBLE_EQ(net.host_self_us, us(2 * (100 - 60 - 15)));  // minus the unit and ReLU
    EXPECT_DOUBLE_EQ(unit.host_us, us(2 * 60));
    EXPECT_DOUBLE_EQ(unit.host_self_us, us(2 * 30));
    EXPECT_EQ(unit.operators, 0);
    EXPECT_EQ(unit.children[0].operators, 2);
    EXPECT_DOUBLE_EQ(unit.children[0].host_self_us, us(2 * 30));  // operators inside count as self
}

TEST(Modules, HaveTheirFullyQualifiedNamesFromTheTableOrFromRanges) {
    RunBuilder named;
    named.range(0, 1, 1, "nn.Module path: Linear_0 net.0.linear");
    named.range(0, 2, 2, "nn.Module path: broken");
    forward(named, 10);
    const auto from_ranges = named.take();
    const ModuleNode net = module_view(*from_ranges).ranks.at(0).modules.at(0);
    EXPECT_EQ(net.fqn, "");
    EXPECT_EQ(net.children.at(0).children.at(0).fqn, "net.0.linear");
    EXPECT_EQ(net.children.at(1).fqn, "");  // no range names it

    RunBuilder listed;
    listed.sink().add(schema::ModuleRow{.id = 0, .parent = -1, .name = "Net_0"});
    listed.sink().add(schema::ModuleRow{.id = 2, .parent = 0, .name = "Linear_0", .path = "net.0"});
    listed.range(0, 0, 100, "nn.Module: Net_0", 0);
    listed.range(0, 10, 20, "nn.Module: Linear_0", 2);
    const auto from_table = listed.take();
    EXPECT_EQ(module_view(*from_table).ranks.at(0).modules.at(0).children.at(0).fqn, "net.0");
}

TEST(Modules, ADeviceEventBelongsToTheInnermostModuleOfItsLaunch) {
    RunBuilder run;
    forward(run, 0);
    run.kernel(0, 200, 300, 40);     // launched in Linear_0, runs long after the module ended
    run.kernel(0, 250, 350, 65, 8);  // launched in the unit itself, overlaps it on the device
    run.kernel(0, 400, 500, 150);    // launched outside every module
    const auto trace = run.take();
    const ModuleNode net = module_view(*trace).ranks[0].modules[0];
    const ModuleNode& unit = net.children[0];
    EXPECT_DOUBLE_EQ(unit.children[0].device_us, us(100));
    EXPECT_DOUBLE_EQ(unit.device_us, us(200));
    EXPECT_DOUBLE_EQ(unit.device_self_us, us(100));
    EXPECT_DOUBLE_EQ(unit.device_busy_us, us(150));  // 200..350
    EXPECT_DOUBLE_EQ(net.device_us, us(200));
    EXPECT_DOUBLE_EQ(net.device_self_us, 0);
    EXPECT_DOUBLE_EQ(net.children[1].device_us, 0);
}

TEST(Modules, BackwardAndHooksAreTheBackwardPartOfTheirModulesRow) {
    RunBuilder run;
    describe_modules(run);
    forward(run, 0);
    run.kernel(0, 40, 60, 40);
    // The unit's hook and the Linear's backward inside it; each has work of its own.
    run.range(0, 200, 300, "FullyShardedDataParallel._post_backward_hook", 1);
    run.range(0, 220, 280, "autograd::engine::evaluate_function: AddmmBackward0", 2);
    run.kernel(0, 230, 260, 225);
    run.kernel(0, 290, 300, 285);
    const auto trace = run.take();
    const ModuleNode net = module_view(*trace).ranks[0].modules[0];
    const ModuleNode& unit = net.children[0];
    const ModuleNode& linear = unit.children[0];
    EXPECT_EQ(linear.occurrences, 1);
    EXPECT_DOUBLE_EQ(linear.host_us, us(30 + 60));
    EXPECT_DOUBLE_EQ(linear.backward_host_us, us(60));
    EXPECT_DOUBLE_EQ(linear.device_us, us(20 + 30));
    EXPECT_DOUBLE_EQ(linear.backward_device_us, us(30));
    EXPECT_EQ(unit.occurrences, 1);
    EXPECT_DOUBLE_EQ(unit.host_us, us(60 + 100));
    EXPECT_DOUBLE_EQ(unit.host_self_us, us((60 - 30) + (100 - 60)));
    EXPECT_DOUBLE_EQ(unit.backward_device_us, us(30 + 10));
    EXPECT_DOUBLE_EQ(net.backward_host_us,
                     us(100));  // including its children, though it has no backward range itself
    EXPECT_DOUBLE_EQ(net.host_us, us(100 + 100));
}

TEST(Modules, RecomputationInTheBackwardAddsNoOccurrence) {
    RunBuilder run;
    describe_modules(run);
    forward(run, 0);
    run.range(0, 200, 300, "autograd::engine::evaluate_function: CheckpointFunctionBackward", 1);
    run.range(0, 210, 240, "nn.Module: Linear_0", 2);
    const auto trace = run.take();
    const ModuleNode net = module_view(*trace).ranks[0].modules[0];
    const ModuleNode& linear = net.children[0].children[0];
    EXPECT_EQ(linear.occurrences, 1);
    EXPECT_DOUBLE_EQ(linear.backward_host_us, us(30));
    EXPECT_DOUBLE_EQ(net.children[0].backward_host_us, us(100));
}

// Of the backward's 100 ns, the block's forward was recomputed in 60, of which its Linear took 30.
TEST(Modules, RecomputationIsSeparateFromTheRestOfTheBackward) {
    RunBuilder run;
    describe_modules(run);
    forward(run, 0);
    run.range(0, 200, 300, "autograd::engine::evaluate_function: CheckpointFunctionBackward", 1);
    run.range(0, 205, 265, "nn.Module: FullyShardedDataParallel_1", 1);
    run.range(0, 210, 240, "nn.Module: Linear_0", 2);
    run.kernel(0, 400, 440, 215);  // launched by the recomputation
    run.kernel(0, 440, 500, 270);  // by the backward itself
    const auto trace = run.take();
    const ModuleNode net = module_view(*trace).ranks[0].modules[0];
    const ModuleNode& unit = net.children[0];
    const ModuleNode& linear = unit.children[0];
    EXPECT_EQ(linear.recomputations, 1);
    EXPECT_DOUBLE_EQ(linear.recompute_host_us, us(30));
    EXPECT_DOUBLE_EQ(linear.recompute_device_us, us(40));
    EXPECT_EQ(unit.recomputations, 1);
    EXPECT_DOUBLE_EQ(unit.recompute_host_us, us(60));
    EXPECT_DOUBLE_EQ(unit.recompute_device_us, us(40));
    EXPECT_DOUBLE_EQ(unit.backward_host_us, us(100));
    EXPECT_DOUBLE_EQ(unit.backward_device_us, us(40 + 60));
    EXPECT_EQ(net.children[1].recomputations, 0);
}

// FSDP1's hook before the backward runs inside the operator that made the unit's output; it waits for the
// unit.
TEST(Modules, TheWaitOfAHookIsThatOfTheUnitAndNotOfTheModuleInIt) {
    RunBuilder run;
    run.range(0, 0, 100, "nn.Module: FullyShardedDataParallel_0");
    run.range(0, 10, 90, "nn.Module: Linear_0");
    run.range(0, 20, 60, "FullyShardedDataParallel._pre_backward_hook");
    run.range(0, 30, 50, "FullyShardedDataParallel.rate_limiter");
    const auto trace = run.take();
    const ModuleNode unit = module_view(*trace).ranks[0].modules[0];
    EXPECT_DOUBLE_EQ(unit.unshard_wait_us, us(20));
    EXPECT_DOUBLE_EQ(unit.children[0].unshard_wait_us, 0);
}

TEST(Modules, AHookInsideAForwardCallIsPartOfThatCall) {
    RunBuilder run;
    describe_modules(run);
    run.range(0, 0, 100, "nn.Module: Net_0", 0);
    run.range(0, 10, 40, "FullyShardedDataParallel._pre_forward", 1);  // prefetches for another module
    const auto trace = run.take();
    const ModuleNode net = module_view(*trace).ranks[0].modules[0];
    EXPECT_DOUBLE_EQ(net.host_us, us(100));
    EXPECT_DOUBLE_EQ(net.host_self_us, us(100));
    EXPECT_EQ(net.operators, 1);
}

TEST(Modules, ABackwardWithoutAForwardIsPlacedByTheModuleTable) {
    RunBuilder run;
    describe_modules(run);
    run.range(0, 0, 10, "autograd::engine::evaluate_function: AddmmBackward0", 2);
    const auto trace = run.take();
    const ModuleView view = module_view(*trace);
    ASSERT_THAT(names(view.ranks[0].modules), ElementsAre("Net_0"));
    ASSERT_THAT(names(view.ranks[0].modules[0].children), ElementsAre("FullyShardedDataParallel_1"));
    EXPECT_DOUBLE_EQ(view.ranks[0].modules[0].backward_host_us, us(10));
    EXPECT_EQ(view.ranks[0].modules[0].occurrences, 0);
}

TEST(Modules, OtherThreadsOfTheRankMeetInTheSameRows) {
    RunBuilder run;
    describe_modules(run);
    run.sink().add(schema::ThreadRow{.global_tid = RunBuilder::other_tid(0), .name = "autograd", .rank = 0});
    forward(run, 0);
    run.range_on(RunBuilder::other_tid(0), 20, 55, "autograd::engine::evaluate_function: AddmmBackward0", 2);
    const auto trace = run.take();
    const ModuleNode net = module_view(*trace).ranks[0].modules[0];
    // The 35 ns of the other thread are added; nothing is subtracted from the calls that run at the same
    // time.
    EXPECT_DOUBLE_EQ(net.children[0].children[0].host_us, us(30 + 35));
    EXPECT_DOUBLE_EQ(net.host_us, us(100 + 35));
}

TEST(Modules, KnowParametersTrafficOfTheirUnitWaitsAndPeaks) {
    RunBuilder run;
    describe_modules(run);
    run.range(0, 0, 100, "nn.Module: Net_0", 0);
    run.range(0, 10, 90, "nn.Module: FullyShardedDataParallel_1", 1);
    run.range(0, 12, 40, "_pre_forward_unshard");
    run.range(0, 14, 24, "FullyShardedDataParallel.rate_limiter");
    run.runtime(0, 15, 23, "cudaEventSynchronize_v3020");   // inside the limiter, which counts as a whole
    run.runtime(0, 30, 35, "cudaEventSynchronize_v3020");   // another wait of the unshard
    run.runtime(0, 36, 38, "cudaLaunchKernel_v7000");       // not a wait
    run.runtime(0, 50, 60, "cudaStreamSynchronize_v3020");  // not a wait of the unshard
    run.collective(0, 30, 50,
                   {.operation = schema::Operation::all_gather, .bytes = 440, .unit = 5, .launched = 26});
    run.collective(0, 60, 70,
                   {.operation = schema::Operation::reduce_scatter, .bytes = 220, .unit = 5, .launched = 55});
    run.allocate(0, 5, 1, 1000);
    run.allocate(0, 20, 2, 500);
    run.free(0, 80, 2, 500);
    run.allocate(0, 95, 3, 700);
    run.free(0, 200, 3, 700);
    const auto trace = run.take();
    const ModuleNode net = module_view(*trace).ranks[0].modules[0];
    const ModuleNode& unit = net.children[0];
    EXPECT_EQ(net.parameters, 110);
    EXPECT_EQ(unit.parameters, 110);
    EXPECT_EQ(unit.gathered_bytes, 440);
    EXPECT_EQ(unit.reduced_bytes, 220);
    EXPECT_EQ(net.gathered_bytes, 0);
    EXPECT_DOUBLE_EQ(unit.unshard_wait_us, us(10 + 5));
    EXPECT_EQ(unit.peak_bytes, 1500);
    EXPECT_EQ(net.peak_bytes, 1700);
}

TEST(Modules, ASelectionClipsHostTimeAndCountsWhatStartsInIt) {
    RunBuilder run(2);
    for (int rank = 0; rank < 2; ++rank) {
        for (int s = 0; s < 3; ++s) {
            run.step(rank, s, 1000 * s, 1000 * s + 500);
            forward(run, 1000 * s, rank);
            run.kernel(rank, 1000 * s + 200, 1000 * s + 300, 1000 * s + 40);
        }
    }
    const auto trace = run.take();
    const ModuleView by_step = module_view(*trace, {.rank = 1, .first_step = 1, .last_step = 1});
    ASSERT_THAT(by_step.ranks, SizeIs(1));
    EXPECT_EQ(by_step.ranks[0].rank, 1);
    EXPECT_EQ(by_step.ranks[0].modules[0].occurrences, 1);
    EXPECT_DOUBLE_EQ(by_step.ranks[0].modules[0].host_us, us(100));
    EXPECT_DOUBLE_EQ(by_step.ranks[0].modules[0].device_us, us(100));

    // From 1050: the call that started at 1000 contributes its last 50 ns, the kernel launched at 1040 is not
    // included.
    const ModuleView by_time = module_view(*trace, {.rank = 0, .from_ns = 1050, .to_ns = 2000});
    EXPECT_EQ(by_time.ranks[0].modules[0].occurrences, 0);
    EXPECT_DOUBLE_EQ(by_time.ranks[0].modules[0].host_us, us(50));
    EXPECT_DOUBLE_EQ(by_time.ranks[0].modules[0].device_us, 0);
    EXPECT_THAT(module_view(*trace, {.from_ns = 5000}).ranks[0].modules, IsEmpty());
}

TEST(Modules, AModuleTableThatRunsInACircleIsNotFollowed) {
    RunBuilder run;
    run.sink().add(schema::ModuleRow{.id = 0, .parent = 1, .name = "A_0", .parameters = 5});
    run.sink().add(schema::ModuleRow{.id = 1, .parent = 0, .name = "B_0", .parameters = 7});
    run.sink().add(schema::ModuleRow{.id = 2, .parent = 1, .name = "C_0", .parameters = 1});
    run.range(0, 0, 10, "autograd::engine::evaluate_function: AddmmBackward0", 2);
    const auto trace = run.take();
    const ModuleView view = module_view(*trace);
    ASSERT_THAT(names(view.ranks[0].modules), ElementsAre("C_0"));
    EXPECT_EQ(view.ranks[0].modules[0].parameters, 1);
}

TEST(Modules, VeryDeepNestingIsFoldedInsteadOfFollowed) {
    RunBuilder run;
    constexpr int kDeep = 5000;
    for (int d = 0; d < kDeep; ++d) run.range(0, d, 2 * kDeep - d, "nn.Module: Deep_0");
    const auto trace = run.take();
    const ModuleView view = module_view(*trace);
    EXPECT_DOUBLE_EQ(view.ranks[0].modules[0].host_us, us(2 * kDeep));
}

// The ranges of a program without our module ids: the backward part is found by its module's name.
TEST(Modules, TheBackwardOfAForeignProgramsModuleBelongsToTheModulesRow) {
    RunBuilder run;
    run.range(0, 0, 100, "nn.Module: Net_0");
    run.range(0, 10, 40, "nn.Module: Linear_0");
    run.range(0, 50, 90, "nn.Module: Linear_1");
    run.range(0, 200, 230, "nn.Module: Linear_1 (backward)");
    run.range(0, 210, 220, "nn.Module: Linear_0");  // recomputed by a checkpoint
    run.range(0, 240, 245, "nn.Module: Linear_0 (backward)");
    run.range(0, 250, 255, "nn.Module: Gone_0 (backward)");  // its forward was not recorded
    run.range(0, 260, 265, "Linear_0");                      // not a module's range
    const auto trace = run.take();
    const ModuleView view = module_view(*trace);
    ASSERT_THAT(names(view.ranks[0].modules), ElementsAre("Net_0"));
    const ModuleNode& net = view.ranks[0].modules[0];
    ASSERT_THAT(names(net.children), ElementsAre("Linear_0", "Linear_1"));
    EXPECT_EQ(net.children[0].occurrences, 1);
    EXPECT_DOUBLE_EQ(net.children[0].backward_host_us, us(10 + 5));
    EXPECT_DOUBLE_EQ(net.children[1].backward_host_us, us(30 - 10));
    EXPECT_DOUBLE_EQ(net.backward_host_us, us(10 + 5 + 20));
    EXPECT_DOUBLE_EQ(net.host_us, us(100 + 35));
}

TEST(Modules, TheCallsOfARowAreItsRangesInOrder) {
    RunBuilder run;
    describe_modules(run);
    forward(run, 0);
    run.range(0, 200, 260, "LinearBackward", 2);
    forward(run, 1000);
    const auto trace = run.take();
    const auto calls = module_calls(*trace);
    ASSERT_THAT(calls, SizeIs(1));
    ASSERT_THAT(calls[0].modules, SizeIs(4));
    EXPECT_EQ(calls[0].modules[0].path, "Net_0");
    const CallsOfModule& linear = calls[0].modules[2];
    EXPECT_EQ(linear.path, "Net_0/FullyShardedDataParallel_1/Linear_0");
    EXPECT_EQ(linear.module, 2);
    ASSERT_THAT(linear.calls, SizeIs(3));
    const auto start = [&](std::size_t call) {
        return trace->ranges.start[static_cast<std::size_t>(linear.calls[call].range)];
    };
    EXPECT_EQ(start(0), 30);
    EXPECT_EQ(start(1), 200);
    EXPECT_EQ(start(2), 1030);
    EXPECT_FALSE(linear.calls[0].backward);
    EXPECT_TRUE(linear.calls[1].backward);

    Selection late;
    late.from_ns = 500;
    const auto selected = module_calls(*trace, late);
    ASSERT_THAT(selected[0].modules, SizeIs(4));
    EXPECT_THAT(selected[0].modules[2].calls, SizeIs(1)) << "of three calls one starts after 500 ns";
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
