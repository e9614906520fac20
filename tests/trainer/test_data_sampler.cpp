// The order of samples: nothing twice, nothing lost, another order each epoch, any position directly.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "trainer/data/dataset.h"
#include "trainer/data/sampler.h"

namespace shardscope::trainer::data {
namespace TEST_FILE {

using Order = std::vector<std::int64_t>;

Order order_of(std::int64_t n, std::int64_t seed, std::int64_t epoch) {
    const Permutation permutation(n, seed, epoch);
    Order order(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) order[static_cast<std::size_t>(i)] = permutation(i);
    return order;
}

Order counted(std::int64_t n) {
    Order order(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    return order;
}

class Sizes : public ::testing::TestWithParam<std::int64_t> {};
INSTANTIATE_TEST_SUITE_P(Sampler, Sizes, ::testing::Values(1, 2, 3, 4, 5, 7, 16, 17, 256, 1000, 4097),
                         ::testing::PrintToStringParamName());

TEST_P(Sizes, EachEpochShowsEverySampleOnce) {
    const std::int64_t n = GetParam();
    for (const std::int64_t epoch : {0, 1, 2, 1000000}) {
        Order order = order_of(n, 42, epoch);
        std::sort(order.begin(), order.end());
        EXPECT_EQ(order, counted(n)) << "epoch " << epoch;
    }
}

TEST_P(Sizes, AnotherEpochOrSeedIsAnotherOrder) {
    const std::int64_t n = GetParam();
    if (n < 16) return;  // few orders: they are repeated by chance
    const std::set<Order> orders = {counted(n),         order_of(n, 1, 0), order_of(n, 1, 1),
                                    order_of(n, 1, 2),  order_of(n, 2, 0), order_of(n, 2, 1),
                                    order_of(n, -1, 0), order_of(n, 0, 0)};
    EXPECT_EQ(orders.size(), 8u);
}

// Together, the ranks take the whole stream of samples: 3 ranks of batch 5 over 4 epochs of n.
TEST_P(Sizes, RanksAndBatchesPartitionTheStream) {
    const std::int64_t n = GetParam();
    constexpr int kRanks = 3, kBatch = 5, kEpochs = 4;
    const Sampler sampler(n, 7);
    const std::int64_t steps = kEpochs * n / (kRanks * kBatch) + 1;
    std::map<std::int64_t, std::map<std::int64_t, int>> shown;  // epoch -> sample -> times
    std::int64_t taken = 0;
    for (std::int64_t step = 0; step < steps; ++step) {
        for (int rank = kRanks - 1; rank >= 0; --rank) {
            for (int row = 0; row < kBatch; ++row, ++taken) {
                const std::int64_t position = first_sample_of(step, kRanks, rank, kBatch) + row;
                ++shown[sampler.epoch_of(position)][sampler.sample_at(position)];
            }
        }
    }
    EXPECT_EQ(taken, steps * kRanks * kBatch);
    for (std::int64_t epoch = 0; epoch < kEpochs; ++epoch) {
        EXPECT_EQ(static_cast<std::int64_t>(shown[epoch].size()), n) << "lost in epoch " << epoch;
        for (const auto& [sample, times] : shown[epoch])
            EXPECT_EQ(times, 1) << sample << " of epoch " << epoch;
    }
}

// 7 samples, 7000 epochs: each sample is at each place 1000 times; 4.5 deviations of sqrt(7000 * 1/7 * 6/7) =
// 29 for 49 counts.
TEST(Sampler, EverySampleIsAtEveryPlaceEquallyOften) {
    constexpr int kSamples = 7, kEpochs = 7000;
    int times[kSamples][kSamples] = {};
    for (int epoch = 0; epoch < kEpochs; ++epoch) {
        const Order order = order_of(kSamples, 3, epoch);
        for (int i = 0; i < kSamples; ++i) ++times[i][order[static_cast<std::size_t>(i)]];
    }
    for (const auto& place : times) {
        for (const int count : place) EXPECT_NEAR(count, 1000, 130);
    }
}

// Of 3 samples there are 3! = 6 orders, each in a sixth of 6000 epochs: deviation sqrt(6000 * 1/6 * 5/6)
// = 29.
TEST(Sampler, AllOrdersOfFewSamplesOccur) {
    std::map<Order, int> times;
    for (int epoch = 0; epoch < 6000; ++epoch) ++times[order_of(3, 5, epoch)];
    EXPECT_EQ(times.size(), 6u);
    for (const auto& [order, count] : times) EXPECT_NEAR(count, 1000, 130);
}

// In a random order of n a place keeps its own sample with probability 1/n, and the next sample follows it
// with about the same: once each per order on average (Poisson). Over 100 orders: 100, deviation 10.
TEST(Sampler, NeighboursAreSeparated) {
    constexpr int kSamples = 4097, kOrders = 100;
    int kept = 0, followed = 0;
    for (int epoch = 0; epoch < kOrders; ++epoch) {
        const Order order = order_of(kSamples, 11, epoch);
        for (std::size_t i = 0; i < order.size(); ++i) {
            kept += order[i] == static_cast<std::int64_t>(i);
            if (i > 0) followed += order[i] == order[i - 1] + 1;
        }
    }
    EXPECT_NEAR(kept, 100, 45);
    EXPECT_NEAR(followed, 100, 45);
}

TEST(Sampler, APositionDependsOnlyOnSeedAndNumber) {
    const Sampler sampler(1000, 1), again(1000, 1);
    for (std::int64_t position = 4990; position < 5010; ++position) {
        EXPECT_EQ(sampler.sample_at(position), again.sample_at(position));
        EXPECT_EQ(sampler.sample_at(position), sampler.order_of(position / 1000)(position % 1000));
    }
    EXPECT_EQ(sampler.epoch_of(4999), 4);
    EXPECT_EQ(sampler.epoch_of(5000), 5);
}

// The largest numbers, still in range and still without a repetition among neighbours.
TEST(Sampler, HugeTextsWork) {
    for (const std::int64_t n :
         {std::int64_t{1} << 62, (std::int64_t{1} << 61) + 12345, std::int64_t{3000000001}}) {
        const Permutation permutation(n, 8, 9);
        std::set<std::int64_t> shown;
        for (std::int64_t i = n - 1000; i < n; ++i) {
            const std::int64_t sample = permutation(i);
            ASSERT_GE(sample, 0);
            ASSERT_LT(sample, n);
            shown.insert(sample);
        }
        EXPECT_EQ(shown.size(), 1000u);
    }
    EXPECT_THROW(Permutation(0, 1, 1), std::invalid_argument);
    EXPECT_THROW(Permutation((std::int64_t{1} << 62) + 1, 1, 1), std::invalid_argument);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::data
