// Allocations with their lifetimes, and plain curves of bytes.
#include "traces/analysis/memory/allocations.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"
#include "traces/analysis/facts/info.h"
#include "traces/analysis/memory/memory.h"
#include "traces/analysis/memory/memory_curves.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::int64_t> starts(const store::Trace& trace, const Allocations& found) {
    std::vector<std::int64_t> times;
    for (const std::uint32_t row : found.row) times.push_back(trace.memory.time[row]);
    return times;
}

TEST(Allocations, LiveUntilTheirAddressIsFreedOrReused) {
    RunBuilder run;
    run.allocate(0, 10, 1, 400);
    run.allocate(0, 20, 2, 300);
    run.free(0, 40, 1, 400);
    run.allocate(0, 50, 2, 250);  // no event frees address 2
    const auto trace = run.take();
    const Allocations found = find_allocations(*trace);
    EXPECT_THAT(starts(*trace, found), ElementsAre(10, 20, 50));
    EXPECT_THAT(found.freed_ns, ElementsAre(40, 50, kNeverFreed));
}

TEST(Allocations, DistinguishAddressesByRankAndSpace) {
    RunBuilder run(2);
    run.allocate(0, 10, 1, 100);
    run.allocate(1, 11, 1, 100);
    run.allocate(0, 12, 1, 100, {.space = schema::MemorySpace::host});
    run.free(1, 30, 1, 100);
    const auto trace = run.take();
    EXPECT_THAT(find_allocations(*trace).freed_ns, ElementsAre(kNeverFreed, 30, kNeverFreed));
    EXPECT_THAT(starts(*trace, find_allocations(*trace, {.rank = 1})), ElementsAre(11));
}

TEST(Allocations, ListsThoseThatAreLiveInTheSelectedRange) {
    RunBuilder run;
    run.allocate(0, 10, 1, 100);  // [10, 20): before the selection
    run.free(0, 20, 1, 100);
    run.allocate(0, 15, 2, 100);  // [15, 25): overlaps its beginning
    run.free(0, 25, 2, 100);
    run.allocate(0, 24, 3, 100);  // [24, forever)
    run.allocate(0, 30, 4, 100);  // from its end on
    const auto trace = run.take();
    EXPECT_THAT(starts(*trace, find_allocations(*trace, {.from_ns = 20, .to_ns = 30})), ElementsAre(15, 24));
}

TEST(Allocations, ListsThoseThatAreLiveInTheSelectedSteps) {
    RunBuilder run;
    for (int s = 0; s < 3; ++s) {
        run.step(0, s, 100 * s, 100 * s + 90);
        run.allocate(0, 100 * s + 10, 1, 64);
        run.free(0, 100 * s + 20, 1, 64);
    }
    const auto trace = run.take();
    EXPECT_THAT(starts(*trace, find_allocations(*trace, {.first_step = 1, .last_step = 1})),
                ElementsAre(110));
    EXPECT_THAT(find_allocations(*trace, {.first_step = 7}).row, IsEmpty());
}

// The allocations alive at an instant are what memory_report() finds there.
TEST(Allocations, SumToTheLiveBytesAtEveryInstant) {
    RunBuilder run;
    std::mt19937 random(5);
    std::vector<std::int64_t> live(20, 0);
    for (int i = 0; i < 400; ++i) {
        const auto address = random() % live.size();
        if (live[address] > 0) {
            run.free(0, 10 * i, address + 1, live[address]);
            live[address] = 0;
        } else {
            live[address] = 1 + static_cast<std::int64_t>(random() % 1000);
            run.allocate(0, 10 * i, address + 1, live[address]);
        }
    }
    const auto trace = run.take();
    const Allocations found = find_allocations(*trace);
    const ByteCurve curve = allocated_curve(*trace, store::RankIndex(0));
    for (std::int64_t t = 5; t < 4000; t += 170) {
        std::int64_t bytes = 0;
        for (std::size_t i = 0; i < found.size(); ++i) {
            if (trace->memory.time[found.row[i]] <= t && t < found.freed_ns[i])
                bytes += trace->memory.bytes[found.row[i]];
        }
        EXPECT_EQ(bytes, memory_report(*trace, {.from_ns = t, .to_ns = t + 1}).ranks[0].peak_bytes);
        EXPECT_EQ(bytes, curve.bytes[static_cast<std::size_t>(t / 10)]);
    }
}

TEST(SelectedCurve, BeginsWithTheLiveBytesAndEndsWithTheTime) {
    RunBuilder run;
    run.step(0, 0, 0, 100);
    run.step(0, 1, 100, 200);
    run.allocate(0, 10, 1, 400);
    run.allocate(0, 120, 2, 30);
    run.free(0, 150, 2, 30);
    run.allocate(0, 250, 3, 7);
    const auto trace = run.take();
    const auto part = selected_memory_curve(*trace, store::RankIndex(0), {.first_step = 1, .last_step = 1});
    std::vector<std::pair<std::int64_t, std::int64_t>> points;
    for (const MemoryPoint& point : part) points.emplace_back(point.time, point.total);
    using P = std::pair<std::int64_t, std::int64_t>;
    EXPECT_THAT(points, ElementsAre(P{100, 400}, P{120, 430}, P{150, 400}, P{200, 400}));
    EXPECT_EQ(selected_memory_curve(*trace, store::RankIndex(0), {}).size(), 4U) << "all of it";
    EXPECT_THAT(selected_memory_curve(*trace, store::RankIndex(0), {.first_step = 9}), IsEmpty());
}

TEST(RowCounts, AreOfTheCurrentSelection) {
    RunBuilder run(2);
    for (int rank = 0; rank < 2; ++rank) {
        for (int s = 0; s < 3; ++s) {
            run.step(rank, s, 100 * s, 100 * s + 90);
            run.range(rank, 100 * s + 1, 100 * s + 50, "aten::mm");
            run.kernel(rank, 100 * s + 20, 100 * s + 40, 100 * s + 10);  // with the call that launches it
            run.allocate(rank, 100 * s + 5, 1, 64);
            run.free(rank, 100 * s + 60, 1, 64);
        }
    }
    const auto trace = run.take();
    const auto count = [&](const char* name, const Selection& selection) {
        for (const auto& [known, rows] : row_counts(*trace, selection)) {
            if (known == name) return rows;
        }
        return std::int64_t{-1};
    };
    EXPECT_EQ(count("kernels", {}), 6);
    EXPECT_EQ(count("kernels", {.rank = 1}), 3);
    EXPECT_EQ(count("kernels", {.first_step = 1, .last_step = 2}), 4);
    EXPECT_EQ(count("runtime_calls", {.rank = 0, .first_step = 1, .last_step = 1}), 1);
    EXPECT_EQ(count("ranges", {.from_ns = 100, .to_ns = 200}), 2);
    EXPECT_EQ(count("memory_events", {.rank = 0, .from_ns = 0, .to_ns = 50}), 1);
    EXPECT_EQ(count("steps", {.first_step = 2}), 2);
    EXPECT_EQ(count("threads", {.rank = 0}), 1);
}

TEST(PoolCurves, AreTheCountersOfTheirNamesAndEmptyWithoutThem) {
    RunBuilder run(2);
    const auto counter = [&](int rank, std::int64_t time, const char* name, double value) {
        run.sink().add(
            schema::CounterRow{.time = time, .rank = rank, .name = run.sink().intern(name), .value = value});
    };
    counter(0, 10, "reserved_bytes", 2048);
    counter(0, 20, "active_bytes", 100);
    counter(0, 30, "reserved_bytes", 4096);
    counter(1, 30, "reserved_bytes", 1);
    const auto trace = run.take();
    const PoolCurves pool = pool_curves(*trace, store::RankIndex(0));
    EXPECT_THAT(pool.reserved.time, ElementsAre(10, 30));
    EXPECT_THAT(pool.reserved.bytes, ElementsAre(2048, 4096));
    EXPECT_THAT(pool.active.bytes, ElementsAre(100));
    EXPECT_TRUE(pool.allocated.empty());
    EXPECT_THAT(pool_curves(*trace, store::RankIndex(1)).reserved.bytes, ElementsAre(1));
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
