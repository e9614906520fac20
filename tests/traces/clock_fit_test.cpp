// Clocks from events that end together: pure arithmetic, in nanoseconds.
#include "traces/merge/clock_fit.h"

#include <gtest/gtest.h>

#include "traces/merge/part_clocks.h"

namespace shardscope::traces::merge {
namespace TEST_FILE {

constexpr std::int64_t kMs = 1'000'000, kSecond = 1'000'000'000;

TEST(ClockFit, IsTheMedianOfTheDifferences) {
    // Differences 10, 12, 14, 1000000 and -5: the median is 12; their distances from it are 2, 0, 2, 999988,
    // 17, with median 2.
    const std::vector<ClockPair> pairs = {{100, 110}, {200, 212}, {300, 314}, {400, 1'000'400}, {500, 495}};
    const ClockFit fit = fit_clock(pairs, true);
    EXPECT_EQ(fit.offset, 12);
    EXPECT_EQ(fit.drift, 0);
    EXPECT_EQ(fit.spread, 2);
}

TEST(ClockFit, SeesDriftOnlyOverTimeEnough) {
    // A clock that gains 10 us per second on the other, which is 3 ms ahead at the start; 24 pairs, one per
    // second, every fifth of them late by 1 ms.
    std::vector<ClockPair> pairs;
    for (int i = 0; i < 24; ++i) {
        const std::int64_t own = i * kSecond;
        pairs.push_back({own, own + 3 * kMs - i * 10'000 + (i % 5 == 4 ? kMs : 0)});
    }
    const ClockFit line = fit_clock(pairs, true);
    EXPECT_NEAR(line.drift * 1e6, -10, 0.01);
    EXPECT_NEAR(static_cast<double>(line.offset), 3e6, 100);
    EXPECT_LE(line.spread, 100);

    EXPECT_EQ(fit_clock(pairs, false).drift, 0);
    EXPECT_EQ(fit_clock(std::span(pairs).first(kPairsForDrift - 1), true).drift, 0);
    for (ClockPair& pair : pairs) {  // the same pairs within 2.3 s
        const std::int64_t difference = pair.other - pair.own;
        pair.own /= 10;
        pair.other = pair.own + difference;
    }
    EXPECT_EQ(fit_clock(pairs, true).drift, 0);
}

TEST(ClockFit, TakesNoDriftFromJitter) {
    std::vector<ClockPair> pairs;  // ends that differ by up to 40 us, without a trend
    for (int i = 0; i < 60; ++i) pairs.push_back({i * kSecond, i * kSecond + (i * 7919) % 40'000});
    EXPECT_EQ(fit_clock(pairs, true).drift, 0);
}

CollectiveEnds ends(std::int64_t clock, std::initializer_list<std::int64_t> times) {
    CollectiveEnds result;
    std::int64_t sequence = 0;
    for (const std::int64_t time : times) result[{7, 0, sequence++}] = time + clock;
    return result;
}

TEST(Clocks, UseTheWallClockIfNothingElseIsInCommon) {
    const Alignment alignment = align_clocks({{.utc_ns = 1000, .host = "a"}, {.utc_ns = 4000, .host = "b"}});
    EXPECT_EQ(alignment.parts[1].clock(0), 3000);
    EXPECT_FALSE(alignment.parts[1].by_collectives);
    EXPECT_EQ(alignment.collectives, 0);
}

TEST(Clocks, UseTheUnadjustedClockOnOneHost) {
    // The wall clock was set by 5 us between the two starts; the machine's monotonic clock says 3000.
    const Alignment alignment = align_clocks(
        {{.utc_ns = 1000, .system_ns = 100, .host = "a"}, {.utc_ns = 9000, .system_ns = 3100, .host = "a"}});
    EXPECT_EQ(alignment.parts[1].clock(0), 3000);
    // After a reboot, the machine's monotonic clock has another origin.
    const Alignment rebooted = align_clocks({{.utc_ns = 1000, .system_ns = 100 * kSecond, .host = "a"},
                                             {.utc_ns = 9000, .system_ns = 3 * kSecond, .host = "a"}});
    EXPECT_EQ(rebooted.parts[1].clock(0), 8000);
}

TEST(Clocks, AreMovedUntilCollectivesEndTogether) {
    // Host b's clock is 3 ms ahead, which the wall clock does not show.
    const Alignment alignment =
        align_clocks({{.utc_ns = 1, .host = "a", .ends = ends(0, {kMs, 2 * kMs, 3 * kMs})},
                      {.utc_ns = 1, .host = "b", .ends = ends(3 * kMs, {kMs, 2 * kMs, 3 * kMs + 10})}});
    EXPECT_TRUE(alignment.parts[1].by_collectives);
    EXPECT_EQ(alignment.parts[1].clock.shift, -3 * kMs);
    EXPECT_EQ(alignment.residual_by_wall_ns, 3 * kMs);
    EXPECT_EQ(alignment.residual_ns, 0);
    EXPECT_EQ(alignment.worst_ns, 10);
    EXPECT_EQ(alignment.collectives, 3);
}

TEST(Clocks, ReachPartsThroughOthers) {
    // a and c have no collective in common; b is 3 ms ahead of a, c another 4 ms.
    PartClock a{.utc_ns = 1, .host = "a", .ends = ends(0, {kMs, 2 * kMs})};
    PartClock b{.utc_ns = 1, .host = "b", .ends = ends(3 * kMs, {kMs, 2 * kMs})};
    PartClock c{.utc_ns = 1, .host = "c", .ends = {}};
    for (std::int64_t i = 0; i < 3; ++i) {
        b.ends[{9, 0, i}] = i * kMs + 3 * kMs;
        c.ends[{9, 0, i}] = i * kMs + 7 * kMs;
    }
    const Alignment alignment = align_clocks({a, b, c});
    EXPECT_EQ(alignment.parts[0].clock(0), 0);
    EXPECT_EQ(alignment.parts[1].clock(0), -3 * kMs);
    EXPECT_EQ(alignment.parts[2].clock(0), -7 * kMs);
    EXPECT_EQ(alignment.worst_ns, 0);
}

// Two all_reduces of group 7 on each rank, without sequence numbers and not in order of time.
TEST(Clocks, UseTheOrderIfNothingIsNumbered) {
    PartClock a{.utc_ns = 1, .host = "a"}, b{.utc_ns = 1, .host = "b"};
    a.add(schema::Operation::all_reduce, 7, 2, -1, 0, 2 * kMs, 3 * kMs);
    a.add(schema::Operation::all_reduce, 7, 2, -1, 0, 0, kMs);
    b.add(schema::Operation::all_reduce, 7, 2, -1, 1, 3 * kMs, 4 * kMs);  // b is 3 ms ahead
    b.add(schema::Operation::all_reduce, 7, 2, -1, 1, 5 * kMs, 6 * kMs);
    const Alignment alignment = align_clocks({a, b});
    EXPECT_EQ(alignment.collectives, 2);
    EXPECT_EQ(alignment.parts[1].clock(0), -3 * kMs);
    // One rank has a third: it is unknown which of the three the other rank lacks.
    b.add(schema::Operation::all_reduce, 7, 2, -1, 1, 7 * kMs, 8 * kMs);
    EXPECT_EQ(align_clocks({a, b}).collectives, 0);
    EXPECT_EQ(align_clocks({a, b}).parts[1].clock(0), 0);
}

TEST(Clocks, UseTheOrderOfEachRankOfAPart) {
    // a holds ranks 0 and 1, whose ends differ by only 10 ns.
    PartClock a{.utc_ns = 1, .host = "a"}, b{.utc_ns = 1, .host = "b"};
    for (std::int64_t i = 0; i < 2; ++i) {
        a.add(schema::Operation::all_gather, 7, 3, -1, 0, i * kMs, i * kMs + 100);
        a.add(schema::Operation::all_gather, 7, 3, -1, 1, i * kMs + 50, i * kMs + 110);
        b.add(schema::Operation::all_gather, 7, 3, -1, 2, i * kMs + 3 * kMs, i * kMs + 3 * kMs + 110);
    }
    const Alignment alignment = align_clocks({a, b});
    EXPECT_EQ(alignment.collectives, 2);
    EXPECT_EQ(alignment.parts[1].clock(0), -3 * kMs);
    EXPECT_EQ(alignment.worst_ns, 0);
}

TEST(Clocks, DoNotUseCollectivesThatOneRankCanLeaveEarly) {
    PartClock a{.utc_ns = 1, .host = "a"};
    a.add(schema::Operation::broadcast, 7, 2, 0, 0, 0, kMs);   // the root may finish before others arrive
    a.add(schema::Operation::all_reduce, 7, 1, 1, 0, 0, kMs);  // no other rank takes part
    EXPECT_TRUE(a.ends.empty());
    EXPECT_TRUE(a.unnumbered.empty());
}

TEST(Clocks, FollowADriftOverTime) {
    // Host b's clock is 3 ms ahead and gains 20 us a second; a collective each second for half a minute.
    PartClock a{.utc_ns = 1, .host = "a", .ends = {}}, b{.utc_ns = 1, .host = "b", .ends = {}};
    for (std::int64_t i = 0; i < 30; ++i) {
        a.ends[{7, 0, i}] = i * kSecond;
        b.ends[{7, 0, i}] = i * kSecond + 3 * kMs + i * 20'000;
    }
    const Alignment alignment = align_clocks({a, b});
    EXPECT_NEAR(alignment.parts[1].clock.drift * 1e6, -20, 0.01);
    EXPECT_LE(alignment.worst_ns, 100);
    EXPECT_GT(alignment.residual_by_wall_ns, 3 * kMs);
}

TEST(Clocks, SharedOnesStayIfTheEndsAgreeWithinTheirSpread) {
    // Differences -300, 100 and 200: the median 100 is within the spread 100.
    const PartClock a{.utc_ns = 1000, .system_ns = 1000, .host = "a", .ends = ends(0, {1000, 2000, 3000})};
    PartClock b{.utc_ns = 1000, .system_ns = 1000, .host = "a", .ends = ends(0, {700, 2100, 3200})};
    EXPECT_EQ(align_clocks({a, b}).parts[1].clock(0), 0);
    for (auto& [key, end] : b.ends) end += 3 * kMs;  // as if something else had shifted the times
    EXPECT_EQ(align_clocks({a, b}).parts[1].clock(0), -3 * kMs - 100);
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::merge
