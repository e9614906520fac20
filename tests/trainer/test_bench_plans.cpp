// The Plans of a bench of collectives: their sizes, what they move, and that messages meet.
#include <map>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/executor/bench_plans.h"

namespace shardscope::trainer::executor {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

plan::Mesh mesh_of(int ranks, int talkers) {
    plan::Mesh mesh;
    mesh.ranks = ranks;
    mesh.shard = ranks;
    mesh.talkers = talkers;
    return mesh;
}

TEST(BenchSizes, AreTheEndsAndPowersOfFourBetweenThem) {
    EXPECT_THAT(bench_sizes(8, 64 << 20), ElementsAre(8, 16, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10,
                                                      256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20));
    EXPECT_THAT(bench_sizes(64, 64), ElementsAre(64));
    EXPECT_THAT(bench_sizes(64, 100), ElementsAre(64, 100));
    EXPECT_THAT(bench_sizes(16, 64), ElementsAre(16, 64));
}

TEST(BenchPlans, HaveWholeElementsOfEveryRank) {
    CollectiveBenchOptions options;
    options.smallest = 8;
    options.largest = 256;
    const BenchPlans plans(mesh_of(3, 0), options);
    std::map<plan::Operation, std::vector<std::int64_t>> sizes;
    for (const BenchPlans::OfCollective& measure : plans.collectives())
        sizes[measure.rate.operation].push_back(measure.rate.bytes);
    EXPECT_THAT(sizes, SizeIs(5));
    // Multiples of 3 ranks * 4 bytes, each once: 8 and 16 are both 12.
    for (const auto& [operation, own] : sizes) EXPECT_THAT(own, ElementsAre(12, 60, 252));
    EXPECT_THAT(plans.messages(), IsEmpty());
}

// Sends and receives of a Plan, in order, by stream.
using Calls = std::map<plan::Stream, std::vector<plan::Operation>>;
Calls calls_of(const plan::Plan& plan, int peer) {
    Calls calls;
    for (const plan::Op& op : plan.ops) {
        if (op.kind != plan::OpKind::collective) continue;
        EXPECT_EQ(op.collective().peer, peer);
        EXPECT_EQ(op.args.size(), 1U) << "a message has one buffer";
        calls[op.stream].push_back(op.collective().operation);
    }
    return calls;
}

TEST(BenchPlans, OfBothEndsOfAMessageMeet) {
    CollectiveBenchOptions options;
    options.largest = 64;
    const BenchPlans plans(mesh_of(4, 2), options);
    ASSERT_THAT(plans.messages(), SizeIs(3)) << "8, 16 and 64 bytes from rank 0 to rank 1";
    for (const BenchPlans::OfMessage& measure : plans.messages()) {
        EXPECT_EQ(std::pair(measure.rate.from, measure.rate.to), std::pair(0, 1));
        const auto repeats = static_cast<std::size_t>(measure.rate.repeats);
        for (const BenchPlans::OfMessage::Ends* ends :
             {&measure.round_trips, &measure.one_way, &measure.both_ways}) {
            const Calls first = calls_of((*ends)[0], 1), second = calls_of((*ends)[1], 0);
            for (const auto& [stream, own] : first) {
                // Both ends of a message lie on streams of the same name, unless messages go both ways.
                const bool both = ends == &measure.both_ways;
                const plan::Stream there = !both                             ? stream
                                           : stream == plan::Stream::unshard ? plan::Stream::post_backward
                                                                             : plan::Stream::unshard;
                const std::vector<plan::Operation>& theirs = second.at(there);
                ASSERT_EQ(own.size(), theirs.size());
                EXPECT_EQ(own.size(), ends == &measure.round_trips ? 2 * repeats : repeats);
                for (std::size_t i = 0; i < own.size(); ++i) EXPECT_NE(own[i], theirs[i]);
            }
        }
    }
}

TEST(BenchPlans, OfPairsHaveTwoSizesOfEach) {
    CollectiveBenchOptions options;
    options.pairs = true;
    options.largest = 16 << 20;
    const BenchPlans plans(mesh_of(3, 3), options);
    std::map<std::pair<int, int>, std::vector<std::int64_t>> sizes;
    for (const BenchPlans::OfMessage& measure : plans.messages())
        sizes[{measure.rate.from, measure.rate.to}].push_back(measure.rate.bytes);
    EXPECT_THAT(sizes, SizeIs(6)) << "each rank to each other one";
    for (const auto& [pair, own] : sizes) {
        if (pair == std::pair(0, 1)) {
            EXPECT_THAT(own, SizeIs(12)) << "all sizes from 8 bytes to 16 MiB";
        } else {
            EXPECT_THAT(own, ElementsAre(8, 4 << 20));
        }
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::executor
