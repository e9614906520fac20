// When things begin and end on the simulated device: Plans of a few operations, whose times are calculated in
// the comments. A step begins with its range, 1 ns; then each launch takes 1000 ns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim_testing.h"
#include "trainer/executor/run.h"
#include "trainer/sim/costs.h"

namespace shardscope::trainer::sim {
namespace TEST_FILE {

using testing::Done;
using ::testing::ElementsAre;
using testing::HandPlan;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

std::vector<Done> work_of(const HandPlan& plan, plan::Mesh mesh = {},
                          const Cluster& cluster = testing::round_cluster(), const SimOptions& options = {}) {
    testing::WorkList list;
    simulate(testing::script_of(plan, mesh), cluster, options, &list);
    return list.work;
}

TEST(SimTimes, AStreamDoesOneThingAfterAnotherWhileTheHostRunsAhead) {
    HandPlan plan;
    plan.kernel("a", 10'000).kernel("b", 2'000).kernel("c", 1'000, plan::Stream::unshard);
    // a is launched at 1 + 1000, b at 2001 after it, c at 3001 on a stream of its own.
    EXPECT_THAT(work_of(plan), ElementsAre(Done{0, "c", 3'001, 4'001}, Done{0, "a", 1'001, 11'001},
                                           Done{0, "b", 11'001, 13'001}));
}

TEST(SimTimes, AnEventBlocksAnotherStreamAndAHostWaitTheHost) {
    HandPlan plan;
    plan.kernel("a", 10'000)
        .record(0, plan::Stream::compute)
        .wait(0, plan::Stream::unshard)
        .kernel("b", 1'000, plan::Stream::unshard);
    plan.record(1, plan::Stream::unshard).host_wait(1).kernel("c", 1'000);
    testing::WorkList list;
    simulate(testing::script_of(plan), testing::round_cluster(), {}, &list);
    // b follows a; the host notices 1 ns after the end of b, and then takes 1000 for the launch of c.
    EXPECT_THAT(list.work, ElementsAre(Done{0, "a", 1'001, 11'001}, Done{0, "b", 11'001, 12'001},
                                       Done{0, "c", 13'002, 14'002}));
    // The host had launched b at 1001 + two events + 1000, and then recorded one more event.
    EXPECT_THAT(list.waits, ElementsAre(Done{0, "wait", 2'004, 12'002}));
}

TEST(SimTimes, FollowAKernelsTypeAndACopysDirection) {
    HandPlan plan;
    plan.kernel("fp32", 1'000).kernel("bf16", 1'000);
    plan.plan.ops.back().kernel().dtype = plan::DType::bf16;
    plan.kernel("fp16", 1'000);
    plan.plan.ops.back().kernel().dtype = plan::DType::fp16;
    const auto work = work_of(plan);
    EXPECT_EQ(work[0].end - work[0].start, 1'000);
    EXPECT_EQ(work[1].end - work[1].start, 250);
    EXPECT_EQ(work[2].end - work[2].start, 125);

    const Cluster cluster = testing::round_cluster();
    const Costs costs(cluster);
    plan::Plan copies;
    for (const plan::MemorySpace space :
         {plan::MemorySpace::device, plan::MemorySpace::pinned, plan::MemorySpace::host})
        copies.buffers.push_back({"", plan::MemoryCategory::other, space, 0, -1, -1});
    const auto seconds = [&](int kind, plan::BufferId to, plan::BufferId from) {
        plan::Op op;
        op.kind = plan::OpKind::memcpy;
        op.own = plan::MemcpyOp{static_cast<std::uint8_t>(kind)};
        op.args = {{to, 0, 0, 0}, {from, 0, 0, 0}};
        op.bytes = 1'000'000;
        return costs.on_device(copies, op);
    };
    EXPECT_DOUBLE_EQ(seconds(traces::schema::kCopyHostToDevice, 0, 1), 2e-6 + 1e-3);
    EXPECT_DOUBLE_EQ(seconds(traces::schema::kCopyDeviceToHost, 1, 0), 2e-6 + 2e-3);
    EXPECT_DOUBLE_EQ(seconds(traces::schema::kCopyHostToDevice, 0, 2), 2e-6 + 4e-3);  // pageable: a quarter
    EXPECT_DOUBLE_EQ(seconds(traces::schema::kCopyDeviceToDevice, 0, 0), 2e-6);  // read and written at 1e12
}

TEST(SimTimes, AKernelTakesTheLongerOfArithmeticAndMemory) {
    Cluster cluster = testing::round_cluster();
    cluster.device.kernel_latency = 5e-6;
    ClassRates& rates = cluster.device.classes[static_cast<std::size_t>(plan::KernelClass::matmul)];
    rates.efficiency.points = {{1e3, 0.1}, {1e5, 0.5}};
    rates.bandwidth_share.points = {{1, 0.25}};
    plan::Op op;
    op.kind = plan::OpKind::kernel;
    op.own = plan::KernelOp{.kernel = plan::Kernel::linear_forward};
    op.flops = 10'000;  // halfway between the points on a logarithmic scale: 0.3
    EXPECT_DOUBLE_EQ(Costs(cluster).on_device({}, op), 5e-6 + 10'000 / (1e9 * 0.3));
    EXPECT_DOUBLE_EQ(Costs(cluster, true).on_device({}, op), 5e-6 + 10'000 / (2e9 * 0.3));  // TF32
    op.bytes = 1'000'000'000;
    EXPECT_DOUBLE_EQ(Costs(cluster).on_device({}, op), 5e-6 + 1e9 / 0.25e12);
    op.kernel().kernel = plan::Kernel::linear_gelu_forward;  // a matmul like any other
    EXPECT_DOUBLE_EQ(Costs(cluster).on_device({}, op), 5e-6 + 1e9 / 0.25e12);
    op.kernel().kernel = plan::Kernel::linear_relu_forward;
    EXPECT_DOUBLE_EQ(Costs(cluster).on_device({}, op), 5e-6 + 1e9 / 0.25e12);
}

// Two ranks of a node: 1 us and half of 4000 bytes at 1 GB/s, 3000 ns.
TEST(SimTimes, ACollectiveBeginsWhenAllHaveArrivedAndEndsForAllTogether) {
    HandPlan plan;
    plan.kernel("work", 10'000).record(0, plan::Stream::compute).wait(0, plan::Stream::unshard);
    plan.collective(plan::Operation::all_gather, 4'000, plan::Stream::unshard);
    const plan::Mesh mesh{2, 2};
    EXPECT_THAT(work_of(plan, mesh),
                ElementsAre(Done{0, "work", 1'001, 11'001}, Done{0, "all_gather", 11'001, 14'001}));

    SimOptions slow;
    slow.slow_ranks = {{1, 2}};  // rank 0's all_gather spins until rank 1 has computed
    EXPECT_THAT(work_of(plan, mesh, testing::round_cluster(), slow),
                ElementsAre(Done{0, "work", 1'001, 11'001}, Done{1, "work", 1'001, 21'001},
                            Done{0, "all_gather", 11'001, 24'001}, Done{1, "all_gather", 21'001, 24'001}));
}

TEST(SimTimes, CollectivesOfACommunicatorKeepTheirOrderOfIssue) {
    HandPlan plan;
    plan.kernel("work", 10'000, plan::Stream::post_backward)
        .collective(plan::Operation::all_gather, 2'000, plan::Stream::post_backward);
    plan.collective(plan::Operation::all_gather, 2'000, plan::Stream::unshard);
    // The second's stream is empty, but it waits for the first: there is one queue per communicator.
    EXPECT_THAT(work_of(plan, {2, 2}),
                ElementsAre(Done{0, "work", 1'001, 11'001}, Done{0, "all_gather", 11'001, 13'001},
                            Done{0, "all_gather", 13'001, 15'001}));
    // Each of two communicators has its own.
    plan.plan.ops[1].collective().group = plan::Group::shard;
    plan.plan.ops[2].collective().group = plan::Group::replicate;
    const auto work = work_of(plan, {4, 2});
    EXPECT_EQ(work[0].name, "all_gather");
    EXPECT_LT(work[0].end, 10'000);
}

// The Plans of two pipeline places; each computes, sends what it has and then works on what it receives.
struct TwoStages {
    HandPlan first, second;

    std::vector<Done> run(const Cluster& cluster, plan::Mesh mesh = {2, 1, 1, 2},
                          const SimOptions& options = {}) const {
        Script script = testing::script_of(first, mesh);
        script.roles.emplace_back().steps = {&second.plan};
        testing::WorkList list;
        simulate(script, cluster, options, &list);
        return list.work;
    }
};

// 4000 bytes: 1 us and 4000 ns at 1 GB/s, from when both ends are there.
TEST(SimTimes, AMessageBeginsWhenBothEndsAreThere) {
    TwoStages stages;
    stages.first.kernel("a", 10'000).record(0, plan::Stream::compute).wait(0, plan::Stream::send);
    stages.first.message(plan::Operation::send, 1, 4'000);
    stages.second.message(plan::Operation::recv, 0, 4'000)
        .record(0, plan::Stream::receive)
        .wait(0, plan::Stream::compute)
        .kernel("b", 2'000);
    EXPECT_THAT(stages.run(testing::round_cluster()),
                UnorderedElementsAre(Done{0, "a", 1'001, 11'001}, Done{0, "send", 11'001, 16'001},
                                     Done{1, "recv", 1'002, 16'001}, Done{1, "b", 16'001, 18'001}));
    // The receiver comes last.
    stages.second.plan.ops.clear();
    stages.second.kernel("c", 20'000).record(0, plan::Stream::compute).wait(0, plan::Stream::receive);
    stages.second.message(plan::Operation::recv, 0, 4'000);
    EXPECT_THAT(stages.run(testing::round_cluster()),
                UnorderedElementsAre(Done{0, "a", 1'001, 11'001}, Done{1, "c", 1'001, 21'001},
                                     Done{0, "send", 11'001, 26'001}, Done{1, "recv", 21'001, 26'001}));
}

TEST(SimTimes, MessagesInBothDirectionsTravelAtTheSameTime) {
    TwoStages stages;
    for (HandPlan* own : {&stages.first, &stages.second}) {
        const int peer = own == &stages.first ? 1 : 0;
        own->message(plan::Operation::send, peer, 2'000).message(plan::Operation::recv, peer, 2'000);
    }
    // The receive is launched at 2004: a step, then a range and a launch for each.
    const auto work = stages.run(testing::round_cluster());
    ASSERT_EQ(work.size(), 4U);
    for (const Done& done : work) EXPECT_EQ(done.end, 2'004 + 3'000) << done.name;
}

// One node holds both ranks of a place, or one rank of each: only then does a message cross the slow link.
TEST(SimTimes, AMessageTakesTheLinkBetweenItsEnds) {
    TwoStages stages;
    stages.first.message(plan::Operation::send, 1, 8'000);
    stages.second.message(plan::Operation::recv, 0, 8'000);
    Cluster cluster = testing::round_cluster(2);
    cluster.inter.latency = 2e-6;
    cluster.inter.bandwidth = 0.5e9;
    const auto end = [&](const plan::Mesh& mesh, const SimOptions& options = {}) {
        return stages.run(cluster, mesh, options).back().end - 1'002;
    };
    EXPECT_EQ(end({2, 1, 1, 2}), 1'000 + 8'000);
    EXPECT_EQ(end({4, 2, 1, 2}), 1'000 + 2'000 + 16'000);
    SimOptions slow;
    slow.slow_links = {{.between_nodes = true, .node = 1, .share = 0.5}};
    EXPECT_EQ(end({4, 2, 1, 2}, slow), 1'000 + 2'000 + 32'000);
}

// Four ranks on two cores: kernels take twice as long; next to a second stream's, four times.
TEST(SimTimes, RanksThatShareCoresSlowEachOtherDown) {
    Cluster cluster = testing::round_cluster();
    cluster.device.cores = 2;
    HandPlan one;
    one.kernel("a", 10'000);
    EXPECT_THAT(work_of(one, {4, 4}, cluster), ElementsAre(Done{0, "a", 1'001, 21'001}));
    EXPECT_THAT(work_of(one, {2, 2}, cluster), ElementsAre(Done{0, "a", 1'001, 11'001}));
    HandPlan two;
    two.kernel("a", 10'000).kernel("b", 1'000, plan::Stream::unshard);
    // a alone from 1001 to 2001 does 500 of its 10000; then both at a quarter: b's 1000 take 4000, until
    // 6001, when a has 1500; its last 8500 take 17000.
    EXPECT_THAT(work_of(two, {4, 4}, cluster),
                ElementsAre(Done{0, "b", 2'001, 6'001}, Done{0, "a", 1'001, 23'001}));
}

// Two ranks on two cores that lose a fifth of their speed when both are busy.
TEST(SimTimes, BusyCoresLoseSpeed) {
    Cluster cluster = testing::round_cluster();
    cluster.device.cores = 2;
    cluster.device.busy_share.points = {{1, 1}, {2, 0.8}};
    HandPlan plan;
    plan.kernel("a", 8'000);
    EXPECT_THAT(work_of(plan, {1, 1}, cluster), ElementsAre(Done{0, "a", 1'001, 9'001}));
    EXPECT_THAT(work_of(plan, {2, 2}, cluster), ElementsAre(Done{0, "a", 1'001, 11'001}));
}

// The first kernel finds an idle core, the second follows it, the third starts when both are done.
// 1e9 bytes/s of the node, 2 ranks: 10,000 bytes take 20 us to read and 40 to write, whatever the cores do.
TEST(SimTimes, FilesAreReadAndWrittenBesideTheCores) {
    HandPlan plan;
    plan.file(traces::schema::kCopyDiskToHost, 10'000).file(traces::schema::kCopyHostToDisk, 10'000);
    plan.kernel("a", 10'000).record(0, plan::Stream::disk_read).host_wait(0).kernel("b", 1'000);
    Cluster cluster = testing::round_cluster();
    cluster.disk = {1e9, 0.5e9};
    cluster.device.wake = 5e-6;  // of the device, not of a disk
    const plan::Mesh two{.ranks = 2, .shard = 2};
    testing::WorkList list;
    const SimResult result = simulate(testing::script_of(plan, two), cluster, {}, &list);
    EXPECT_EQ(result.of(0).steps.front().copy_s, 0) << "the device copies nothing";
    EXPECT_EQ(Costs(cluster).latency(plan.plan.ops.front()), 0);
    EXPECT_THAT(list.work, ElementsAre(Done{0, "a", 8'001, 18'001}, Done{0, "read", 1'001, 21'001},
                                       Done{0, "b", 27'002, 28'002}, Done{0, "write", 2'001, 42'001}));
    // Where both ranks share one core, a takes twice as long; the files do not.
    cluster.device.wake = 0;
    cluster.device.type = DeviceType::cpu;
    cluster.device.cores = 1;
    list = {};
    simulate(testing::script_of(plan, two), cluster, {}, &list);
    EXPECT_THAT(list.work, ElementsAre(Done{0, "read", 1'001, 21'001}, Done{0, "a", 3'001, 23'001},
                                       Done{0, "b", 23'001, 25'001}, Done{0, "write", 2'001, 42'001}));
}

TEST(SimTimes, IdleCoresAndWaitingHostsHaveToWake) {
    for (const int cores : {0, 2}) {
        Cluster cluster = testing::round_cluster();
        cluster.device.cores = cores;
        cluster.device.wake = 300e-9;
        cluster.host.wake = 70e-9;
        HandPlan plan;
        plan.kernel("a", 5'000)
            .kernel("b", 1'000)
            .record(0, plan::Stream::compute)
            .host_wait(0)
            .kernel("c", 1'000);
        const std::vector<Done> work = work_of(plan, {1, 1}, cluster);
        ASSERT_EQ(work.size(), 3u);
        EXPECT_EQ(work[0], (Done{0, "a", 1'301, 6'301})) << cores;
        EXPECT_EQ(work[1], (Done{0, "b", 6'301, 7'301})) << cores;
        // The host continues after 70 and 1 for the end of the wait; the launch takes 1000, the core 300 to
        // wake.
        EXPECT_EQ(work[2], (Done{0, "c", 8'672, 9'672})) << cores;
    }
}

TEST(SimTimes, StepsThatRepeatAreWalkedThroughAFewTimesAndCountAll) {
    HandPlan plan;
    plan.kernel("a", 10'000).record(0, plan::Stream::compute).host_wait(0);
    const SimResult result = simulate(testing::script_of(plan, {}, 1'000'000), testing::round_cluster());
    EXPECT_LT(result.of(0).steps.size(), 10u);
    EXPECT_EQ(result.steps, 1'000'000);
    const double step = result.of(0).steps.back().seconds;
    EXPECT_DOUBLE_EQ(step,
                     11.003e-6);  // launch, kernel, and 1 ns each: range opened, wait done, range closed
    EXPECT_NEAR(result.seconds, step * 1e6, step * 1e3);
    SimOptions every;
    every.every_step = true;
    const SimResult whole = simulate(testing::script_of(plan, {}, 100), testing::round_cluster(), every);
    ASSERT_EQ(whole.of(0).steps.size(), 100u);
    EXPECT_DOUBLE_EQ(whole.of(0).steps.back().seconds, step);
}

TEST(SimTimes, TheHiddenPartOfACollectiveIsNotExposed) {
    HandPlan plan;
    plan.collective(plan::Operation::all_gather, 10'000, plan::Stream::unshard).kernel("a", 2'000);
    const SimResult result = simulate(testing::script_of(plan, {2, 2}), testing::round_cluster());
    const SimStep& step = result.of(0).steps.front();
    EXPECT_DOUBLE_EQ(step.communication_s, 6e-6);  // 1 us and half of the bytes
    EXPECT_DOUBLE_EQ(step.kernel_s, 2e-6);
    EXPECT_DOUBLE_EQ(step.exposed_communication_s, 4e-6);
    ASSERT_EQ(result.of(0).exposures.size(), 1u);
    EXPECT_DOUBLE_EQ(result.of(0).exposures[0].exposed_s, 4e-6);
}

// --- memory ----------------------------------------------------------------------------------------------

// A freed block is reused on its own stream immediately, on another once its last use has ended.
TEST(SimTimes, BlocksAreReturnedWhenTheirStreamsAreDone) {
    HandPlan plan;
    plan.allocate(1'000'000)
        .kernel("a", 10'000)
        .on(0)
        .free(0)
        .allocate(1'000'000, plan::Stream::unshard)
        .free(1);
    EXPECT_EQ(simulate(testing::script_of(plan), testing::round_cluster()).of(0).reserved, 2 * 1'000'448);
    HandPlan later;
    later.allocate(1'000'000).kernel("a", 10'000).on(0).record(0, plan::Stream::compute).host_wait(0);
    later.free(0).allocate(1'000'000, plan::Stream::unshard).free(1);
    const SimResult result = simulate(testing::script_of(later), testing::round_cluster());
    EXPECT_EQ(result.of(0).reserved, 1'000'448);
    EXPECT_EQ(result.of(0).peak.bytes, 1'000'000);
}

TEST(SimTimes, AnAllocationBeyondTheLimitWaitsForBlocksOrEndsTheRun) {
    HandPlan plan;
    plan.allocate(1'000'000).kernel("a", 10'000).on(0).free(0).allocate(2'000'000, plan::Stream::unshard);
    plan.kernel("b", 1'000, plan::Stream::unshard).on(1).free(1);
    SimOptions options;
    options.memory_limit = 2'500'000;  // room for either, but not for both
    const auto work = work_of(plan, {}, testing::round_cluster(), options);
    EXPECT_GE(work[1].start, work[0].end);
    options.memory_limit = 1'500'000;
    options.memory_place = "into the 1500000 bytes of a test";
    try {
        work_of(plan, {}, testing::round_cluster(), options);
        FAIL() << "2 MiB fit into 1.5 MiB";
    } catch (const executor::OutOfMemory& error) {
        EXPECT_THAT(error.what(),
                    ::testing::HasSubstr("2000000 bytes for buffer 1 (none) do not fit into the "
                                         "1500000 bytes of a test"));
    }
}

// Two ranks share 3072 bytes of a node's disks, or of its memory, in blocks of 512.
TEST(SimTimes, WhatIsBeyondTheDiskOrTheHostEndsTheRun) {
    Cluster cluster = testing::round_cluster();
    cluster.disk.capacity = cluster.host.memory = 3072;
    const auto run = [&](std::int64_t bytes, plan::MemorySpace first, plan::MemorySpace second) {
        HandPlan plan;
        plan.allocate(1024, plan::Stream::host, first).allocate(bytes, plan::Stream::host, second);
        plan.free(0).free(1);
        try {
            simulate(testing::script_of(plan, {.ranks = 2, .shard = 2}), cluster, {});
        } catch (const executor::OutOfMemory& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    constexpr auto kDisk = plan::MemorySpace::disk, kHost = plan::MemorySpace::host,
                   kPinned = plan::MemorySpace::pinned;
    EXPECT_EQ(run(400, kDisk, kDisk), "");
    EXPECT_EQ(run(400, kHost, kPinned), "");
    EXPECT_EQ(run(1024, kHost, kDisk), "");
    EXPECT_THAT(
        run(600, kHost, kPinned),
        HasSubstr("step 0, rank 0: the host's memory is full: 600 bytes for buffer 1 (none) do not fit "
                  "into the 3072 bytes of host.memory of round that the ranks of a node share;"));
    EXPECT_THAT(run(600, kDisk, kDisk),
                HasSubstr("step 0, rank 0: the disk is full: 600 bytes for buffer 1 (none) do not fit "
                          "into the 3072 bytes of disk.capacity of round that the ranks of a node share;"));
}

// Two places of a pipeline, of 2048 and 1024 bytes, on one node.
TEST(SimTimes, OnlyTheSumOfANodeHasToFit) {
    TwoStages stages;
    stages.first.allocate(2048, plan::Stream::host, plan::MemorySpace::disk);
    stages.second.allocate(1024, plan::Stream::host, plan::MemorySpace::disk);
    Cluster cluster = testing::round_cluster();
    cluster.disk.capacity = 3072;
    EXPECT_NO_THROW(stages.run(cluster));
    cluster.disk.capacity = 3071;
    EXPECT_THROW(stages.run(cluster), executor::OutOfMemory);
    cluster = testing::round_cluster(1);  // a node for each
    cluster.disk.capacity = 2048;
    EXPECT_NO_THROW(stages.run(cluster));
}

// Four ranks of 1024 bytes on nodes of three devices: three of them share the first node's.
TEST(SimTimes, TheFullestNodeCounts) {
    HandPlan plan;
    plan.allocate(1024, plan::Stream::host, plan::MemorySpace::host).free(0);
    Cluster cluster = testing::round_cluster(3);
    const auto run = [&] { simulate(testing::script_of(plan, {.ranks = 4, .shard = 4}), cluster, {}); };
    cluster.host.memory = 3072;
    EXPECT_NO_THROW(run());
    cluster.host.memory = 3071;
    EXPECT_THROW(run(), executor::OutOfMemory);
}

// A cached block is no longer on the host once another one needs its room.
TEST(SimTimes, WhatIsGivenBackHasRoomForOthers) {
    HandPlan plan;
    plan.allocate(2048, plan::Stream::host, plan::MemorySpace::pinned).free(0);
    plan.allocate(3072, plan::Stream::host, plan::MemorySpace::pinned).free(1);
    Cluster cluster = testing::round_cluster();
    cluster.host.memory = 3072;
    EXPECT_NO_THROW(work_of(plan, {}, cluster));
    cluster.host.memory = 3071;
    EXPECT_THROW(work_of(plan, {}, cluster), executor::OutOfMemory);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::sim
