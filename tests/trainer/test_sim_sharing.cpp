// Ranks that share a device of the simulated cluster: Plans of a few operations, whose times are calculated
// in the comments. A step begins with its range, 1 ns; then each launch takes 1000 ns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim_testing.h"
#include "trainer/sim/simulator.h"

namespace shardscope::trainer::sim {
namespace TEST_FILE {

using testing::Done;
using ::testing::ElementsAre;
using testing::HandPlan;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

// Devices with so many ranks each; a kernel of 1000 operations takes 1 us alone.
Cluster shared_by(int ranks, double kernel_latency = 0) {
    Cluster cluster = testing::round_cluster(4);
    cluster.ranks_per_device = ranks;
    cluster.device.kernel_latency = kernel_latency;
    return cluster;
}

std::vector<Done> work_of(const HandPlan& plan, plan::Mesh mesh, const Cluster& cluster) {
    testing::WorkList list;
    simulate(testing::script_of(plan, mesh), cluster, {}, &list);
    return list.work;
}

// The Plans of two pipeline places, which have no messages for each other.
struct TwoPlaces {
    HandPlan first, second;

    SimResult run(const Cluster& cluster, testing::WorkList* list = nullptr) const {
        Script script = testing::script_of(first, {2, 1, 1, 2});
        script.roles.emplace_back().steps = {&second.plan};
        return simulate(script, cluster, {}, list);
    }
};

TEST(SimSharing, TwoEqualRanksTakeTwiceAsLong) {
    HandPlan plan;
    plan.kernel("a", 10'000);
    EXPECT_THAT(work_of(plan, {2, 2}, shared_by(1)), ElementsAre(Done{0, "a", 1'001, 11'001}));
    EXPECT_THAT(work_of(plan, {2, 2}, shared_by(2)), ElementsAre(Done{0, "a", 1'001, 21'001}));
    EXPECT_THAT(work_of(plan, {4, 4}, shared_by(4)), ElementsAre(Done{0, "a", 1'001, 41'001}));
}

// 4 us of latency, and 10 us of work at half the rate.
TEST(SimSharing, LatenciesAreNotShared) {
    HandPlan plan;
    plan.kernel("a", 10'000);
    EXPECT_THAT(work_of(plan, {2, 2}, shared_by(1, 4e-6)), ElementsAre(Done{0, "a", 1'001, 15'001}));
    EXPECT_THAT(work_of(plan, {2, 2}, shared_by(2, 4e-6)), ElementsAre(Done{0, "a", 1'001, 25'001}));
}

// A kernel of 500 ns leaves the device idle until the next launch, 1000 ns after its own: another rank's
// fits.
TEST(SimSharing, AnotherRankFillsTheGapsBetweenLaunches) {
    HandPlan plan;
    plan.kernel("a", 500).kernel("b", 500);
    EXPECT_THAT(work_of(plan, {2, 2}, shared_by(1)),
                ElementsAre(Done{0, "a", 1'001, 1'501}, Done{0, "b", 2'001, 2'501}));
    EXPECT_THAT(work_of(plan, {2, 2}, shared_by(2)),
                ElementsAre(Done{0, "a", 1'001, 2'001}, Done{0, "b", 2'001, 3'001}));
}

// Both at half the rate until b, which needs 4 us of service, ends 8 us later; the last 6 us of a are alone.
TEST(SimSharing, TheRankThatIsLeftHasTheWholeDevice) {
    TwoPlaces places;
    places.first.kernel("a", 10'000);
    places.second.kernel("b", 4'000);
    testing::WorkList list;
    const SimResult result = places.run(shared_by(2), &list);
    EXPECT_THAT(list.work, ElementsAre(Done{1, "b", 1'001, 9'001}, Done{0, "a", 1'001, 15'001}));
    // From 1001 to 15,001 some kernel runs on the device; 8 us of them two.
    EXPECT_NEAR(result.utilization, 14e-6 / result.of(0).steps.front().seconds, 1e-9);
    // On devices of their own each has its own rate, and their utilization is a mean.
    testing::WorkList apart;
    const SimResult alone = places.run(shared_by(1), &apart);
    EXPECT_THAT(apart.work, ElementsAre(Done{1, "b", 1'001, 5'001}, Done{0, "a", 1'001, 11'001}));
    EXPECT_NEAR(alone.utilization,
                (10e-6 / alone.of(0).steps.front().seconds + 4e-6 / alone.of(1).steps.front().seconds) / 2,
                1e-9);
}

// As on a device of its own, whose model has no contention between streams.
TEST(SimSharing, ARanksOwnStreamsDoNotSlowEachOther) {
    TwoPlaces places;
    places.first.kernel("a", 10'000).kernel("b", 10'000, plan::Stream::unshard);
    testing::WorkList list;
    places.run(shared_by(2), &list);
    EXPECT_THAT(list.work, ElementsAre(Done{0, "a", 1'001, 11'001}, Done{0, "b", 2'001, 12'001}));
}

// Two copies to the device share the bus; the kernel beside them has the device to itself.
TEST(SimSharing, CopiesShareTheBusOfTheirDirection) {
    const auto copy = [](HandPlan& plan, int kind) {
        plan.allocate(10'000).allocate(10'000).plan.buffers[1].space = plan::MemorySpace::pinned;
        plan::Op& op = plan.op(plan::OpKind::memcpy, plan::Stream::compute,
                               plan::MemcpyOp{static_cast<std::uint8_t>(kind)});
        const bool to_device = kind == traces::schema::kCopyHostToDevice;
        op.args = {{to_device ? 0 : 1, 0, 0, 0}, {to_device ? 1 : 0, 0, 0, 0}};
        op.bytes = 10'000;  // 2 us, and 10 us to the device or 20 us from it
    };
    const auto seconds = [&](int first, int second) {
        TwoPlaces both;
        copy(both.first, first);
        copy(both.second, second);
        return both.run(shared_by(2)).of(0).steps.front().copy_s;
    };
    const int to = traces::schema::kCopyHostToDevice, from = traces::schema::kCopyDeviceToHost;
    EXPECT_NEAR(seconds(to, to), 22e-6, 1e-9);
    EXPECT_NEAR(seconds(to, from), 12e-6, 1e-9);
    TwoPlaces apart;
    copy(apart.first, to);
    apart.second.kernel("b", 10'000);
    const SimResult result = apart.run(shared_by(2));
    EXPECT_NEAR(result.of(0).steps.front().copy_s, 12e-6, 1e-9);
    EXPECT_NEAR(result.of(1).steps.front().kernel_s, 10e-6, 1e-9);
}

TEST(SimSharing, RanksOfUnlikeDevicesAreOfDifferentClasses) {
    EXPECT_EQ(classify({8, 8}, shared_by(2), {}, {}).classes.size(), 1u);
    const RankClasses found = classify({8, 8}, shared_by(2), {{3, 2}}, {});
    ASSERT_EQ(found.classes.size(), 3u);  // the slow one, the one beside it, the others
    EXPECT_NE(found.class_of[2], found.class_of[0]);
    EXPECT_EQ(found.class_of[4], found.class_of[0]);
    ASSERT_EQ(found.devices.size(), 2u);
    EXPECT_THAT(found.devices, UnorderedElementsAre(ElementsAre(0), ElementsAre(1, 2)));
    EXPECT_EQ(found.classes[0].beside, 2);
    EXPECT_EQ(found.classes[1].beside, 1);
}

// Ring: 1 us, (p - 1) steps of 10 us, (p - 1)/p of 8000 bytes at the group's part of a link of 1e9 bytes/s.
TEST(SimSharing, TheRanksOfADeviceShareItsLinks) {
    Cluster cluster = shared_by(2);
    cluster.intra = {1e-5, 1e9, false};
    cluster.inter = {1e-4, 1e8, false};
    const auto us = [&](const std::vector<int>& ranks) {
        return collective_seconds(cluster, spread_of({16, 16}, ranks, cluster, {}),
                                  plan::Operation::all_gather, 8'000) *
               1e6;
    };
    EXPECT_NEAR(us({0, 1, 2, 3, 4, 5, 6, 7}), 1 + 70 + 7, 1e-9);  // enters and leaves each device once
    EXPECT_NEAR(us({0, 2, 4, 6}), 1 + 30 + 12, 1e-9);             // 6000 at half the link
    EXPECT_NEAR(us({0, 1}), 1 + 10 + 0.008, 1e-9);                // 4000 read and written at 1e12
    EXPECT_NEAR(us({0, 8}), 1 + 100 + 80, 1e-9);                  // 4000 at half of the adapter's 1e8
    EXPECT_NEAR(us({0, 1, 8, 9}), 1 + 20 + 100 + 60, 1e-9);       // 6000 at the whole of it
    cluster.collectives.inside = Algorithm::direct;  // each fetches its own 7000 at half the link
    EXPECT_NEAR(us({0, 1, 2, 3, 4, 5, 6, 7}), 1 + 10 + 14, 1e-9);
}

TEST(SimSharing, EachRankHasItsPartOfTheMemory) {
    Cluster cluster = shared_by(4);
    cluster.device.memory = 1e6;
    cluster.device.reserve = 1000;  // of each rank's process
    const SimOptions options = options_of({}, cluster);
    EXPECT_EQ(options.memory_limit, 250'000 - 1000);
    EXPECT_EQ(options.memory_place,
              "into the 250000 bytes that each of 4 ranks has of a device of the cluster round less a "
              "reserve of 1000 (device.reserve, an estimate)");
    EXPECT_THAT(options.memory_remedy, StartsWith("lower run.ranks_per_device, "));
}

TEST(SimSharing, RefusesWhatDoesNotFitOrHasNoDevices) {
    HandPlan plan;
    plan.kernel("a", 1);
    const auto error = [&](int ranks, const Cluster& cluster) -> std::string {
        try {
            simulate(testing::script_of(plan, {ranks, ranks}), cluster);
        } catch (const ClusterError& refused) {
            return refused.what();
        }
        return "none";
    };
    Cluster cluster = shared_by(2);
    cluster.nodes = 1;
    EXPECT_EQ(error(8, cluster), "none");
    EXPECT_EQ(
        error(10, cluster),
        "run.ranks: 10 ranks, 2 on each, do not fit the 4 devices of the cluster round (1 node of 4); use "
        "fewer, or another sim.cluster");
    EXPECT_THAT(
        error(8,
              [] {
                  Cluster laptop = load_cluster("laptop");
                  laptop.ranks_per_device = 2;
                  return laptop;
              }()),
        StartsWith("run.ranks_per_device: the ranks of a node of the cluster laptop share its cores"));
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::sim
