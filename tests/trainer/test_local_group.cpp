// Collectives of the local process group against their definitions, for even, odd and single groups.
#include <memory>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "trainer/executor/local_group.h"

namespace shardscope::trainer {
namespace {

using Floats = std::vector<float>;

class LocalGroupTest : public ::testing::TestWithParam<int> {
  protected:
    int ranks() const { return GetParam(); }

    // Runs one collective on all ranks; element i of rank r's input is value(r, i).
    std::vector<Floats> run(Operation operation, std::int64_t full, std::int64_t in, std::int64_t out,
                            bool average, bool in_place = false) {
        Scheduler scheduler(2, nullptr);
        LocalGroup group(ranks());
        std::vector<Floats> inputs, outputs;
        std::vector<StreamIndex> streams;
        for (int r = 0; r < ranks(); ++r) {
            Floats& input = inputs.emplace_back();
            for (std::int64_t i = 0; i < in; ++i) input.push_back(value(r, i));
            outputs.emplace_back(static_cast<std::size_t>(out), -1.0F);
            streams.push_back(scheduler.add_stream());
        }
        for (int r = 0; r < ranks(); ++r) {
            const auto rank = static_cast<std::size_t>(r);
            CollectiveCall call{operation, in_place ? inputs[rank].data() : outputs[rank].data(),
                                inputs[rank].data(), full, average};
            scheduler.enqueue_arrival(streams[rank], {}, group.join(r, 0, call), rank);
        }
        scheduler.wait_all();
        return in_place ? inputs : outputs;
    }
    static float value(int rank, std::int64_t i) {
        return static_cast<float>(rank * 1000) + static_cast<float>(i) * 0.25F;
    }
    float sum(std::int64_t i, bool average) const {
        float total = 0;
        for (int r = 0; r < ranks(); ++r) total = r == 0 ? value(0, i) : total + value(r, i);
        return average ? total * (1.0F / static_cast<float>(ranks())) : total;
    }
};

TEST_P(LocalGroupTest, AllGatherJoinsTheShardsInRankOrder) {
    constexpr std::int64_t kShard = 37;
    for (const Floats& out : run(Operation::all_gather, kShard * ranks(), kShard, kShard * ranks(), false)) {
        for (int r = 0; r < ranks(); ++r) {
            for (std::int64_t i = 0; i < kShard; ++i) {
                ASSERT_EQ(out[static_cast<std::size_t>(r * kShard + i)], value(r, i));
            }
        }
    }
}

TEST_P(LocalGroupTest, ReduceScatterSumsInRankOrderAndAveragesOnce) {
    constexpr std::int64_t kShard = 5000;  // more than one block of the summing loop
    for (const bool average : {false, true}) {
        const auto outputs =
            run(Operation::reduce_scatter, kShard * ranks(), kShard * ranks(), kShard, average);
        for (int r = 0; r < ranks(); ++r) {
            for (std::int64_t i = 0; i < kShard; ++i) {
                ASSERT_EQ(outputs[static_cast<std::size_t>(r)][static_cast<std::size_t>(i)],
                          sum(r * kShard + i, average));
            }
        }
    }
}

TEST_P(LocalGroupTest, AllReduceGivesEveryRankTheSameSums) {
    constexpr std::int64_t kElements = 10007;  // not divisible by any group here
    for (const bool in_place : {false, true}) {
        for (const Floats& out :
             run(Operation::all_reduce, kElements, kElements, kElements, true, in_place)) {
            for (std::int64_t i = 0; i < kElements; ++i)
                ASSERT_EQ(out[static_cast<std::size_t>(i)], sum(i, true));
        }
    }
}

TEST_P(LocalGroupTest, BroadcastGivesRankZerosValues) {
    for (const Floats& out : run(Operation::broadcast, 100, 100, 100, false, true)) {
        for (std::int64_t i = 0; i < 100; ++i) ASSERT_EQ(out[static_cast<std::size_t>(i)], value(0, i));
    }
}

TEST_P(LocalGroupTest, BarrierMovesNothing) {
    EXPECT_EQ(run(Operation::barrier, 0, 3, 3, false)[0], Floats(3, -1.0F));
}

INSTANTIATE_TEST_SUITE_P(Sizes, LocalGroupTest, ::testing::Values(1, 2, 3, 4, 8));

TEST(LocalGroup, RefusesRanksThatDisagree) {
    LocalGroup group(2);
    float x = 0;
    group.join(0, 0, {Operation::all_reduce, &x, &x, 1, false});
    EXPECT_THROW(group.join(1, 0, {Operation::broadcast, &x, &x, 1, false}), std::logic_error);
    group.join(0, 1, {Operation::all_reduce, &x, &x, 1, false});
    EXPECT_THROW(group.join(1, 1, {Operation::all_reduce, &x, &x, 2, false}), std::logic_error);
}

}  // namespace
}  // namespace shardscope::trainer
