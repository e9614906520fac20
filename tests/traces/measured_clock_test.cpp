// Clocks of hosts that were measured by round trips: the line through the measurements, and its correction by
// the ends of collectives.
#include <cmath>

#include <gtest/gtest.h>

#include "traces/merge/clock_fit.h"
#include "traces/merge/part_clocks.h"

namespace shardscope::traces::merge {
namespace TEST_FILE {

constexpr std::int64_t kUs = 1000, kMs = 1'000'000, kSecond = 1'000'000'000;

TEST(MeasuredClock, IsAbsentWithoutMeasurements) {
    EXPECT_FALSE(fit_measures({}, 5, kSecond));
    EXPECT_FALSE(
        fit_measures({{.at = 0, .offset = 7, .uncertainty = 1}}, 0, kSecond));  // no clock to measure
    EXPECT_FALSE(fit_measures({{.at = INT64_MAX, .offset = 7, .uncertainty = 1}}, 5, kSecond));
    EXPECT_FALSE(fit_measures({{.at = 0, .offset = 7, .uncertainty = -1}}, 5, kSecond));
}

TEST(MeasuredClock, IsALineBetweenStartAndEnd) {
    // The offset grows by 200 us over 10 s: 20 ppm.
    const auto clock = fit_measures({{.at = 10 * kSecond, .offset = 5200 * kUs, .uncertainty = 30 * kUs},
                                     {.at = 0, .offset = 5000 * kUs, .uncertainty = 20 * kUs}},
                                    kSecond, 11 * kSecond);
    ASSERT_TRUE(clock);
    EXPECT_TRUE(clock->knows_drift);
    EXPECT_EQ(clock->at, 0);
    EXPECT_EQ(clock->offset, 5000 * kUs);
    EXPECT_NEAR(clock->drift, 20e-6, 1e-12);
    EXPECT_EQ(clock->uncertainty_at(5 * kSecond), 30 * kUs);
    // One second outside the measurements: the drift may be up to 100 ppm there.
    EXPECT_EQ(clock->uncertainty_at(11 * kSecond), 130 * kUs);
    EXPECT_EQ(clock->uncertainty_at(-kSecond), 130 * kUs);
}

TEST(MeasuredClock, HasNoDriftThatMeasurementsDoNotShow) {
    // 2 us in 10 ms would be 200 ppm, but each may be wrong by 20 us; the run lasts 100 s.
    const std::vector<ClockMeasure> measures = {{.at = 0, .offset = 5000, .uncertainty = 20 * kUs},
                                                {.at = 10 * kMs, .offset = 7000, .uncertainty = 10 * kUs}};
    const auto clock = fit_measures(measures, kSecond, 100 * kSecond);
    ASSERT_TRUE(clock);
    EXPECT_FALSE(clock->knows_drift);
    EXPECT_EQ(clock->offset, 7000);  // that of the more precise measurement
    EXPECT_EQ(clock->uncertainty_at(10 * kMs), 10 * kUs);
    EXPECT_EQ(clock->uncertainty_at(10 * kMs + 10 * kSecond), 10 * kUs + kMs);
    // For a run of 15 ms these measurements are the best information.
    EXPECT_TRUE(fit_measures(measures, kSecond, 15 * kMs)->knows_drift);
    // 2 ms in 10 s are not a coincidence.
    const auto clear = fit_measures({{.at = 0, .offset = 0, .uncertainty = 20 * kUs},
                                     {.at = 10 * kSecond, .offset = 2 * kMs, .uncertainty = 20 * kUs}},
                                    kSecond, 100 * kSecond);
    EXPECT_NEAR(clear->drift, 200e-6, 1e-12);
}

TEST(MeasuredClock, TakesTheMostPreciseOfEachEnd) {
    const auto clock = fit_measures({{.at = 0, .offset = 100, .uncertainty = 50},
                                     {.at = kMs, .offset = 0, .uncertainty = 5},
                                     {.at = kSecond, .offset = 1000, .uncertainty = 7},
                                     {.at = kSecond + kMs, .offset = 2000, .uncertainty = 70}},
                                    kSecond, kSecond);
    ASSERT_TRUE(clock);
    EXPECT_EQ(clock->at, kMs);
    EXPECT_EQ(clock->until, kSecond);
    EXPECT_EQ(clock->offset, 0);
    EXPECT_EQ(clock->uncertainty, 7);
}

TEST(MeasuredClock, OfRankZeroIsExact) {
    const auto clock = fit_measures(
        {{.at = 0, .offset = 0, .uncertainty = 0}, {.at = kSecond, .offset = 40, .uncertainty = 100}},
        kSecond, kSecond);
    ASSERT_TRUE(clock);
    EXPECT_EQ(clock->offset, 0);
    EXPECT_EQ(clock->drift, 0);
    EXPECT_EQ(clock->uncertainty_at(100 * kSecond), 0);
}

// Both clocks are relative to rank 0, which is a third clock: rank 0 = own (1 + d) + ..., and its inverse.
TEST(MeasuredClock, MapsBetweenTwoHosts) {
    const MeasuredClock a{.base = 1000 * kSecond, .at = kSecond, .offset = -3 * kSecond, .drift = 30e-6},
        b{.base = 7 * kSecond, .at = 2 * kSecond, .offset = 990 * kSecond, .drift = -40e-6};
    const ClockMap map = map_between(a, b);
    const auto on_rank_0 = [](const MeasuredClock& c, std::int64_t t) {
        return static_cast<double>(t + c.base + c.offset) + c.drift * static_cast<double>(t - c.at);
    };
    for (const std::int64_t t : {std::int64_t{0}, kSecond, 50 * kSecond, 1000 * kSecond})
        EXPECT_NEAR(on_rank_0(b, map(t)) - on_rank_0(a, t), 0, 10) << t;
    EXPECT_EQ(map_between(a, a)(123), 123);
}

// --- with collectives --------------------------------------------------------------------------------

// Part 1 is on host b: its clock began at 50 s and is read directly; rank 0's began at 90 s. Both parts began
// at the same moment, but b's wall clock is 7 ms ahead.
struct TwoHosts {
    PartClock a{.utc_ns = 1000 * kSecond,
                .system_ns = 90 * kSecond,
                .host = "a",
                .has_rank_0 = true,
                .length_ns = 10 * kSecond,
                .ends = {}};
    PartClock b{.utc_ns = 1000 * kSecond + 7 * kMs,
                .system_ns = 50 * kSecond,
                .host = "b",
                .length_ns = 10 * kSecond,
                .ends = {}};

    void measure(std::int64_t wrong_by, std::int64_t uncertainty) {
        for (const std::int64_t at : {std::int64_t{0}, 10 * kSecond})
            b.measures.push_back({at, 40 * kSecond + wrong_by, uncertainty});
    }
    // 100 collectives, which end `late(i)` later on b.
    template <typename Late>
    void gather(Late late) {
        for (std::int64_t i = 0; i < 100; ++i) {
            a.ends[{7, 0, i}] = i * 100 * kMs;
            b.ends[{7, 0, i}] = i * 100 * kMs + late(i);
        }
    }
    Alignment align() const { return align_clocks({a, b}); }
};

TEST(MeasuredClocks, ReplaceTheWallClock) {
    TwoHosts hosts;
    hosts.measure(15 * kUs, 20 * kUs);
    const Alignment alignment = hosts.align();
    EXPECT_EQ(alignment.parts[1].by_wall_ns, 7 * kMs);
    EXPECT_EQ(alignment.parts[1].clock(0), 15 * kUs);
    EXPECT_EQ(alignment.parts[1].uncertainty_ns, 20 * kUs);
    EXPECT_EQ(alignment.parts[0].uncertainty_ns, 0);
    EXPECT_FALSE(alignment.parts[1].by_collectives);
}

TEST(MeasuredClocks, AreRefinedByCollectivesWithinTheirUncertainty) {
    TwoHosts hosts;
    hosts.measure(15 * kUs, 20 * kUs);
    hosts.gather([](std::int64_t) { return 0; });
    const Alignment alignment = hosts.align();
    EXPECT_TRUE(alignment.parts[1].by_collectives);
    EXPECT_EQ(alignment.parts[1].clock(0), 0);
    EXPECT_EQ(alignment.residual_by_wall_ns, 7 * kMs);
    EXPECT_EQ(alignment.residual_measured_ns, 15 * kUs);
    EXPECT_EQ(alignment.residual_ns, 0);
}

// A rank that is always late to notice the end of a collective does not shift its clock.
TEST(MeasuredClocks, BoundTheCorrectionByCollectives) {
    TwoHosts hosts;
    hosts.measure(0, 20 * kUs);
    hosts.gather([](std::int64_t) { return 300 * kUs; });
    const Alignment alignment = hosts.align();
    EXPECT_EQ(alignment.parts[1].clock(0), -20 * kUs);
    EXPECT_EQ(alignment.residual_measured_ns, 300 * kUs);
    EXPECT_EQ(alignment.residual_ns, 280 * kUs);
}

TEST(MeasuredClocks, AreNotMovedByNoisierCollectives) {
    TwoHosts hosts;
    hosts.measure(0, 20 * kUs);
    hosts.gather([](std::int64_t i) { return (i * 37 % 101 - 50) * 8 * kUs; });  // up to 400 us
    EXPECT_EQ(hosts.align().parts[1].clock(0), 0);
    EXPECT_FALSE(hosts.align().parts[1].by_collectives);
}

// Two processes of host b are shifted together; a third, on host a, shares rank 0's clock and is never
// shifted.
TEST(MeasuredClocks, AreTheSameOnOneHost) {
    TwoHosts hosts;
    hosts.measure(15 * kUs, 20 * kUs);
    hosts.gather([](std::int64_t) { return 0; });
    PartClock c = hosts.b, d = hosts.a;
    c.system_ns += kSecond;  // began one second later
    c.utc_ns += kSecond;
    c.length_ns -= kSecond;
    c.measures.clear();
    c.ends.clear();
    d.has_rank_0 = false;
    for (auto& [key, end] : d.ends) end += 500 * kUs;
    const Alignment alignment = align_clocks({hosts.a, hosts.b, c, d});
    EXPECT_EQ(alignment.parts[2].clock(0), alignment.parts[1].clock(0) + kSecond);
    EXPECT_EQ(alignment.parts[2].uncertainty_ns, 20 * kUs);
    EXPECT_EQ(alignment.parts[3].clock(0), 0);
    EXPECT_FALSE(alignment.parts[3].by_collectives);
    EXPECT_EQ(alignment.parts[3].uncertainty_ns, 0);
}

// A process that was killed has measured only at its start; the collectives show the later drift of its
// clock.
TEST(MeasuredClocks, DriftAsCollectivesShowIfOnlyTheStartIsMeasured) {
    TwoHosts hosts;
    hosts.b.measures.push_back({0, 40 * kSecond, 20 * kUs});
    for (std::int64_t i = 0; i < 30; ++i) {
        hosts.a.ends[{7, 0, i}] = i * kSecond;
        hosts.b.ends[{7, 0, i}] = i * kSecond + i * 30 * kUs;  // 30 ppm
    }
    const Alignment alignment = hosts.align();
    EXPECT_NEAR(alignment.parts[1].clock.drift * 1e6, -30, 0.1);
    EXPECT_LE(alignment.worst_ns, 100);
}

// The first part need neither contain rank 0 nor be on its host.
TEST(MeasuredClocks, MayBeGivenInAnyOrder) {
    TwoHosts hosts;
    hosts.measure(15 * kUs, 20 * kUs);
    const Alignment alignment = align_clocks({hosts.b, hosts.a});
    EXPECT_EQ(alignment.parts[1].clock(0), -15 * kUs);
    EXPECT_NEAR(static_cast<double>(alignment.parts[1].uncertainty_ns), 20 * kUs, 5);
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::merge
