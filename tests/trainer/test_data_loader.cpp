// Batches in order, loaded ahead or not; where they start and end; errors of a worker; a quick stop.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "trainer/data/dataset.h"
#include "trainer/data/loader.h"
#include "trainer/data/synthetic.h"

namespace shardscope::trainer::data {
namespace TEST_FILE {

using namespace std::chrono_literals;
using Numbers = std::vector<std::int64_t>;

// Sample i is the number i, its target -i. The dataset counts what was filled, and can be slow or fail.
class Counting final : public Dataset {
  public:
    std::int64_t input_bytes() const override { return 8; }
    std::int64_t target_bytes() const override { return 8; }
    std::int64_t samples() const override { return 0; }
    void fill(std::int64_t first_sample, int count, void* input, void* target) const override {
        for (int i = 0; i < count; ++i) {
            const std::int64_t sample = first_sample + i;
            if (sample == fails_at) throw DataError("sample cannot be made");
            std::this_thread::sleep_for(pause);
            static_cast<std::int64_t*>(input)[i] = sample;
            static_cast<std::int64_t*>(target)[i] = -sample;
            ++filled;
        }
    }

    std::int64_t fails_at = -1;
    std::chrono::microseconds pause{0};
    mutable std::atomic<int> filled{0};
};

Numbers next_of(DataLoader& loader, std::size_t batch) {
    Numbers input(batch), target(batch);
    loader.next(input.data(), target.data());
    for (std::size_t i = 0; i < batch; ++i) EXPECT_EQ(target[i], -input[i]);
    return input;
}

bool comes_true(const std::function<bool()>& condition) {
    for (int i = 0; i < 5000; ++i) {
        if (condition()) return true;
        std::this_thread::sleep_for(1ms);
    }
    return false;
}

class Workers : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(DataLoader, Workers, ::testing::Values(0, 1, 2, 3, 7),
                         ::testing::PrintToStringParamName());

// Rank 1 of 3, batch 4: micro-step s has the samples 12 s + 4 … 12 s + 7.
TEST_P(Workers, BatchesArriveInTheOrderOfMicroSteps) {
    const Counting data;
    DataLoader loader(data, {.ranks = 3, .rank = 1, .batch = 4, .workers = GetParam()});
    for (std::int64_t step = 0; step < 50; ++step) {
        EXPECT_EQ(loader.micro_step(), step);
        const std::int64_t first = 12 * step + 4;
        ASSERT_EQ(next_of(loader, 4), (Numbers{first, first + 1, first + 2, first + 3}));
    }
}

TEST_P(Workers, AResumedRunContinuesWhereItStopped) {
    const Counting data;
    DataLoader whole(data, {.ranks = 2, .rank = 0, .batch = 3, .workers = GetParam()});
    for (int step = 0; step < 11; ++step) next_of(whole, 3);
    DataLoader resumed(data,
                       {.ranks = 2, .rank = 0, .batch = 3, .workers = GetParam(), .first_micro_step = 11});
    for (int step = 11; step < 30; ++step) ASSERT_EQ(next_of(resumed, 3), next_of(whole, 3));
}

TEST_P(Workers, AllRanksTogetherTakeTheWholeStream) {
    const Counting data;
    std::set<std::int64_t> taken;
    for (int rank = 0; rank < 4; ++rank) {
        DataLoader loader(
            data, {.ranks = 4, .rank = rank, .batch = 2, .workers = GetParam(), .end_micro_step = 10});
        for (int step = 0; step < 10; ++step) {
            for (const std::int64_t sample : next_of(loader, 2)) EXPECT_TRUE(taken.insert(sample).second);
        }
    }
    EXPECT_EQ(taken.size(), 80u);
    EXPECT_EQ(*taken.rbegin(), 79);
    EXPECT_EQ(data.filled, 80) << "nothing is filled beyond the end";
}

TEST_P(Workers, AfterTheLastBatchThereIsNone) {
    const Counting data;
    DataLoader loader(data, {.batch = 1, .workers = GetParam(), .first_micro_step = 5, .end_micro_step = 7});
    EXPECT_EQ(next_of(loader, 1), Numbers{5});
    EXPECT_EQ(next_of(loader, 1), Numbers{6});
    EXPECT_THROW(next_of(loader, 1), std::out_of_range);
}

// Batch 2: sample 13 belongs to micro-step 6; the six before are valid.
TEST_P(Workers, AnErrorReachesNextAtItsMicroStep) {
    Counting data;
    data.fails_at = 13;
    DataLoader loader(data, {.batch = 2, .workers = GetParam()});
    for (int step = 0; step < 6; ++step) next_of(loader, 2);
    EXPECT_THROW(next_of(loader, 2), DataError);
    EXPECT_EQ(loader.micro_step(), 6);
    EXPECT_THROW(next_of(loader, 2), DataError) << "again when asked again";
}

// Two batches of 3 samples per worker are filled in advance, and no more.
TEST(DataLoader, FillsTwoBatchesPerWorkerAhead) {
    const Counting data;
    DataLoader loader(data, {.batch = 3, .workers = 2});
    EXPECT_TRUE(comes_true([&] { return data.filled == 2 * 2 * 3; }));
    next_of(loader, 3);
    EXPECT_TRUE(comes_true([&] { return data.filled == 2 * 2 * 3 + 3; }));
    std::this_thread::sleep_for(20ms);
    EXPECT_EQ(data.filled, 15) << "it waits for room";
}

TEST(DataLoader, WithoutWorkersNothingIsFilledAhead) {
    const Counting data;
    DataLoader loader(data, {.batch = 3});
    EXPECT_EQ(data.filled, 0);
    next_of(loader, 3);
    EXPECT_EQ(data.filled, 3);
}

// A batch of 10,000 samples of a millisecond takes 10 s; a stop does not wait for it.
TEST(DataLoader, StopsInTheMiddleOfABatch) {
    Counting data;
    data.pause = 1000us;
    const auto start = std::chrono::steady_clock::now();
    {
        DataLoader loader(data, {.batch = 10000, .workers = 2});
        EXPECT_TRUE(comes_true([&] { return data.filled > 0; }));
    }
    EXPECT_LT(std::chrono::steady_clock::now() - start, 4s);
}

TEST(DataLoader, StopsBeforeAnythingWasTaken) {
    const Counting data;
    std::atomic<int> begun = 0;
    for (int i = 0; i < 50; ++i) {
        const int before = begun;
        LoaderOptions options{.batch = 2, .workers = 3};
        options.on_worker_start = [&](int) { ++begun; };
        { DataLoader loader(data, options); }
        const int after = begun;  // the workers have ended with it, so the count does not change
        std::this_thread::yield();
        EXPECT_EQ(begun, after);
        EXPECT_LE(after - before, 3);
    }
}

TEST(DataLoader, EachWorkerIsAnnouncedOnItsOwnThread) {
    const Counting data;
    std::mutex mutex;
    std::set<int> workers;
    std::set<std::thread::id> threads = {std::this_thread::get_id()};
    {
        LoaderOptions options{.batch = 1, .workers = 3};
        options.on_worker_start = [&](int worker) {
            const std::lock_guard lock(mutex);
            workers.insert(worker);
            threads.insert(std::this_thread::get_id());
        };
        DataLoader loader(data, options);
        for (int step = 0; step < 3; ++step) next_of(loader, 1);
    }
    EXPECT_EQ(workers, (std::set<int>{0, 1, 2}));
    EXPECT_EQ(threads.size(), 4u);
}

TEST(DataLoader, AnExceptionOfTheAnnouncementReachesNext) {
    const Counting data;
    LoaderOptions options{.batch = 1, .workers = 2};
    options.on_worker_start = [](int worker) {
        if (worker == 1) throw std::runtime_error("no log");
    };
    DataLoader loader(data, options);
    EXPECT_EQ(next_of(loader, 1), Numbers{0});
    EXPECT_THROW(next_of(loader, 1), std::runtime_error);
}

TEST(DataLoader, ReportsThatTheMemoryDoesNotSuffice) {
#ifdef SHARDSCOPE_SANITIZED
    GTEST_SKIP() << "the sanitizers end the process instead";
#endif
    const SyntheticDataset data(1, 1 << 20);  // samples of 8 MB
    try {
        const DataLoader loader(data, {.batch = 1 << 26, .workers = 2});
        FAIL() << "batches of 512 TB";
    } catch (const DataError& error) {
        EXPECT_STREQ(
            error.what(),
            "data.workers: 2 workers with 2 batches each do not fit into memory; lower data.workers or "
            "data.batch");
    }
}

// Real samples, many ranks at the same time: the same with and without workers.
TEST(DataLoader, WorkersDoNotChangeTheSamples) {
    constexpr int kWidth = 16, kBatch = 4, kRanks = 3;
    const SyntheticDataset data(3, kWidth);
    std::vector<std::thread> ranks;
    ranks.reserve(kRanks);
    for (int rank = 0; rank < kRanks; ++rank) {
        ranks.emplace_back([&data, rank] {
            DataLoader direct(data, {.ranks = kRanks, .rank = rank, .batch = kBatch});
            DataLoader ahead(data, {.ranks = kRanks, .rank = rank, .batch = kBatch, .workers = 2});
            std::vector<float> x1(kBatch * kWidth), y1(x1), x2(x1), y2(x1);
            for (int step = 0; step < 20; ++step) {
                direct.next(x1.data(), y1.data());
                ahead.next(x2.data(), y2.data());
                EXPECT_EQ(x1, x2);
                EXPECT_EQ(y1, y2);
            }
        });
    }
    for (std::thread& rank : ranks) rank.join();
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::data
