// Memory: the peak, its contents, predictions, selections, the curve and its index.
#include "traces/analysis/memory/memory.h"

#include <numeric>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"
#include "traces/analysis/memory/memory_curves.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

using ::testing::ElementsAre;

constexpr TestMemory kParameters = {.category = schema::MemoryCategory::parameters};
constexpr TestMemory kActivations = {.category = schema::MemoryCategory::activations};

std::int64_t at(const CategoryBytes& bytes, schema::MemoryCategory c) {
    return bytes[static_cast<std::size_t>(c)];
}
std::int64_t sum(const CategoryBytes& bytes) {
    return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
}
std::int64_t sum(const std::vector<MemoryHolder>& holders) {
    std::int64_t bytes = 0;
    for (const MemoryHolder& h : holders) bytes += h.bytes;
    return bytes;
}

TEST(Memory, ThePeakIsTheLargestLiveTotalAndItsCategoriesSumToIt) {
    RunBuilder run;
    run.allocate(0, 10, 1, 400, kParameters);
    run.allocate(0, 20, 2, 300, kActivations);
    run.allocate(0, 30, 3, 200, kActivations);  // 900 bytes: the peak
    run.free(0, 40, 2, 300, kActivations);
    run.allocate(0, 50, 4, 250, kActivations);                           // 850
    run.allocate(0, 25, 9, 5000, {.space = schema::MemorySpace::host});  // not on the device
    const auto trace = run.take();
    const RankMemory rank = memory_report(*trace).ranks[0];
    EXPECT_EQ(rank.peak_bytes, 900);
    EXPECT_EQ(rank.peak_time_ns, 30);
    EXPECT_EQ(at(rank.at_peak, schema::MemoryCategory::parameters), 400);
    EXPECT_EQ(at(rank.at_peak, schema::MemoryCategory::activations), 500);
    EXPECT_EQ(sum(rank.at_peak), 900);
    EXPECT_EQ(rank.predicted_peak_bytes, -1);
}

TEST(Memory, OfAnotherSpaceFollowsTheSameRules) {
    RunBuilder run;
    run.allocate(0, 10, 1, 400, kParameters);
    run.allocate(0, 20, 1, 70, {.space = schema::MemorySpace::pinned, .name = "shard"});
    run.allocate(0, 30, 2, 30, {.space = schema::MemorySpace::pinned, .name = "gradient"});  // 100: the peak
    run.free(0, 40, 1, 70, {.space = schema::MemorySpace::pinned});
    const auto trace = run.take();
    const RankMemory rank = memory_report(*trace, {}, schema::MemorySpace::pinned).ranks[0];
    EXPECT_EQ(rank.peak_bytes, 100);
    EXPECT_EQ(rank.peak_time_ns, 30);
    ASSERT_EQ(rank.buffers.size(), 2U);
    EXPECT_EQ(rank.buffers[0].name, "shard");
    EXPECT_TRUE(rank.other_spaces.empty()) << "reported with the device's memory";
    EXPECT_EQ(memory_report(*trace).ranks[0].other_spaces.at(0).peak_bytes, 100);
}

TEST(Memory, HoldersAreUnitsModulesAndBuffersLargestFirst) {
    RunBuilder run;
    run.sink().add(schema::UnitRow{.id = 0, .module = 0, .name = "unit_a"});
    run.sink().add(schema::UnitRow{.id = 1, .module = 1, .name = "unit_b"});
    run.sink().add(schema::ModuleRow{.id = 7, .name = "Linear_0"});
    run.allocate(0, 1, 1, 100, {.unit = 0, .module = 7, .name = "weight"});
    run.allocate(0, 2, 2, 300, {.unit = 1, .module = 7, .name = "gradient"});
    run.allocate(0, 3, 3, 50, {.name = "weight"});
    run.free(0, 4, 1, 100, {.unit = 0, .module = 7});
    run.allocate(0, 5, 1, 120, {.unit = 1});  // the address is reused
    const auto trace = run.take();
    const RankMemory rank = memory_report(*trace).ranks[0];
    ASSERT_EQ(rank.peak_bytes, 300 + 50 + 120);
    const auto text = [](const std::vector<MemoryHolder>& holders) {
        std::vector<std::string> all;
        all.reserve(holders.size());
        for (const MemoryHolder& h : holders) all.push_back(h.name + " " + std::to_string(h.bytes));
        return all;
    };
    EXPECT_THAT(text(rank.units), ElementsAre("unit_b 420", "(no unit) 50"));
    EXPECT_THAT(text(rank.modules), ElementsAre("Linear_0 300", "(no module) 170"));
    EXPECT_THAT(text(rank.buffers), ElementsAre("gradient 300", "(no name) 120", "weight 50"));
}

TEST(Memory, FreesWithoutAnAllocationAreARowSoThatHoldersStillSumToThePeak) {
    RunBuilder run;
    run.allocate(0, 1, 1, 100);
    run.free(0, 2, 77, 30);  // it was never allocated
    run.allocate(0, 3, 2, 50);
    const auto trace = run.take();
    const RankMemory rank = memory_report(*trace).ranks[0];
    EXPECT_EQ(rank.peak_bytes, 120);
    EXPECT_EQ(sum(rank.units), 120);
    EXPECT_EQ(rank.units.back().name, "(unattributed)");
    EXPECT_EQ(rank.units.back().bytes, -30);
}

TEST(Memory, SetUpIsNotPartOfThePeakButWhatItLeavesIs) {
    RunBuilder run;
    const TestMemory setup = {.category = schema::MemoryCategory::parameters, .phase = schema::Phase::setup};
    run.allocate(0, 1, 1, 1000, setup);  // the whole model, before it is sharded
    run.allocate(0, 2, 2, 250, setup);
    run.free(0, 3, 1, 1000, setup);
    run.allocate(0, 10, 3, 100,
                 {.category = schema::MemoryCategory::activations, .phase = schema::Phase::forward});
    const auto trace = run.take();
    const RankMemory rank = memory_report(*trace).ranks[0];
    EXPECT_EQ(rank.peak_bytes, 350);
    EXPECT_EQ(rank.peak_time_ns, 10);
    // With a selection that includes the set-up.
    EXPECT_EQ(memory_report(*trace, {.from_ns = 0}).ranks[0].peak_bytes, 1250);
}

TEST(Memory, ASelectedRangeStartsWithWhatIsLive) {
    RunBuilder run(2);
    run.step(0, 0, 0, 100);
    run.step(0, 1, 100, 200);
    run.allocate(0, 10, 1, 500);
    run.allocate(0, 50, 2, 400);
    run.free(0, 110, 2, 400);
    run.allocate(0, 150, 3, 100);
    run.allocate(1, 10, 1, 5);
    const auto trace = run.take();
    const MemoryReport step = memory_report(*trace, {.rank = 0, .first_step = 1});
    ASSERT_EQ(step.ranks.size(), 1u);
    EXPECT_EQ(step.ranks[0].peak_bytes, 900);  // the value when the step began
    EXPECT_EQ(step.ranks[0].peak_time_ns, 100);
    const MemoryReport late = memory_report(*trace, {.from_ns = 120});
    EXPECT_EQ(late.ranks[0].peak_bytes, 600);
    EXPECT_EQ(late.ranks[0].peak_time_ns, 150);
    EXPECT_EQ(late.ranks[1].peak_bytes, 5);
    EXPECT_EQ(memory_report(*trace, {.to_ns = 40}).ranks[0].peak_bytes, 500);
    EXPECT_EQ(memory_report(*trace, {.first_step = 9}).ranks[0].peak_bytes, 0);
}

TEST(Memory, ReservedAndPredictedAreReported) {
    RunBuilder run(2);
    const schema::StringId reserved = run.sink().intern("reserved_bytes");
    run.allocate(1, 10, 1, 64, kParameters);
    run.sink().add(schema::CounterRow{.time = 5, .rank = 1, .name = reserved, .value = 128});
    run.sink().add(schema::CounterRow{.time = 20, .rank = 1, .name = reserved, .value = 96});
    run.sink().add(schema::CounterRow{.time = 6, .rank = 0, .name = reserved, .value = 4096});
    schema::PredictionRow prediction{.rank = 1, .peak_bytes = 64, .where = "first step, forward"};
    prediction.at_peak[0] = 64;
    run.sink().add(prediction);
    const auto trace = run.take();
    const RankMemory rank = memory_report(*trace).ranks[1];
    EXPECT_EQ(rank.reserved_bytes, 128);
    EXPECT_EQ(rank.predicted_peak_bytes, 64);
    EXPECT_EQ(rank.predicted_at_peak[0], 64);
    EXPECT_EQ(rank.predicted_where, "first step, forward");
    // Memory that was allocated when the range began is still allocated in it.
    EXPECT_EQ(memory_report(*trace, {.rank = 1, .from_ns = 15}).ranks[0].reserved_bytes, 128);
    EXPECT_EQ(memory_report(*trace, {.rank = 1, .from_ns = 25}).ranks[0].reserved_bytes, 96);
}

TEST(Memory, TheCurveHasThePeakAsItsHighestPoint) {
    std::mt19937 random(3);
    for (int round = 0; round < 50; ++round) {
        RunBuilder run;
        std::vector<std::pair<std::uint64_t, TestMemory>> live;
        std::vector<std::int64_t> sizes;
        std::uint64_t next = 1;
        for (int e = 0; e < 60; ++e) {
            if (!live.empty() && random() % 2 == 0) {
                const std::size_t pick = random() % live.size();
                run.free(0, e, live[pick].first, sizes[pick], live[pick].second);
                live.erase(live.begin() + static_cast<std::ptrdiff_t>(pick));
                sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(pick));
                continue;
            }
            const TestMemory m = {
                .category = static_cast<schema::MemoryCategory>(random() % schema::kMemoryCategories),
                .unit = static_cast<int>(random() % 3)};
            live.emplace_back(next, m);
            sizes.push_back(1 + static_cast<std::int64_t>(random() % 1000));
            run.allocate(0, e, next++, sizes.back(), m);
        }
        const auto trace = run.take();
        const RankMemory rank = memory_report(*trace).ranks[0];
        std::int64_t most = 0;
        for (const MemoryPoint& p : memory_curve(*trace, store::RankIndex(0))) {
            EXPECT_EQ(sum(p.bytes), p.total);
            most = std::max(most, p.total);
        }
        ASSERT_EQ(rank.peak_bytes, most);
        ASSERT_EQ(sum(rank.at_peak), most);
        ASSERT_EQ(sum(rank.units), most);
        for (const MemoryHolder& holder : rank.units) ASSERT_GT(holder.bytes, 0);
    }
}

TEST(Memory, ThePeakIndexAgreesWithASearchThroughTheCurve) {
    std::mt19937 random(4);
    RunBuilder run;
    std::int64_t total = 0;
    for (int e = 0; e < 77; ++e) {
        const auto bytes = 1 + static_cast<std::int64_t>(random() % 100);
        const bool frees = bytes <= total && random() % 2 == 0;
        total += frees ? -bytes : bytes;
        run.allocate(0, 3 * (e / 2), static_cast<std::uint64_t>(e), frees ? -bytes : bytes);
    }
    const auto trace = run.take();
    const std::vector<MemoryPoint> curve = memory_curve(*trace, store::RankIndex(0));
    const PeakIndex index(*trace, store::RankIndex(0));
    for (std::int64_t start = -2; start < 120; ++start) {
        for (std::int64_t end = start; end < 125; ++end) {
            std::int64_t most = 0, before = 0;
            for (const MemoryPoint& p : curve) {
                if (p.time <= start) {
                    before = p.total;
                } else if (p.time < end) {
                    most = std::max(most, p.total);
                }
            }
            ASSERT_EQ(index.most(start, end), std::max(most, before)) << start << ".." << end;
        }
    }
    EXPECT_EQ(PeakIndex(*trace, store::RankIndex(1)).most(0, 100), 0);
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
