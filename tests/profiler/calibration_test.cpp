// Ticks become nanoseconds of CLOCK_MONOTONIC by linear interpolation between measured anchors.
#include "profiler/recorder/calibration.h"

#include <chrono>
#include <cstdlib>
#include <thread>

#include <gtest/gtest.h>

namespace shardscope::profiler {
namespace TEST_FILE {

TEST(Ticks, never_run_backwards_on_a_thread) {
    Ticks last = ticks();
    for (int i = 0; i < 100'000; ++i) {
        const Ticks now = ticks();
        ASSERT_GE(now, last);
        last = now;
    }
}

TEST(Calibration, agrees_with_the_monotonic_clock) {
    Calibration clock(clock_source());
    for (int i = 0; i < 5; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        // The tick lies between two readings of the clock, and so must its conversion, within the error of an
        // anchor (well under 20 us, even if this thread is interrupted while it reads both).
        const std::int64_t before = monotonic_ns();
        const Ticks tick = ticks();
        const std::int64_t after = monotonic_ns();
        clock.update();
        EXPECT_GE(clock.to_monotonic(tick).ns, before - 20'000);
        EXPECT_LE(clock.to_monotonic(tick).ns, after + 20'000);
    }
}

TEST(Calibration, is_monotone_across_anchors) {
    Calibration clock(clock_source());
    const Ticks first = ticks();
    for (int i = 0; i < 10; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        clock.update();
    }
    const Ticks last = ticks();
    std::int64_t before = clock.to_monotonic(Ticks(first.count - 1000)).ns;
    for (Ticks t = first; t < last + (last - first); t = t + (last - first) / 5000) {
        const std::int64_t now = clock.to_monotonic(t).ns;
        ASSERT_GE(now, before);
        before = now;
    }
}

TEST(Calibration, of_the_monotonic_source_is_the_identity) {
    const Calibration clock(ClockSource::monotonic);
    EXPECT_EQ(clock.to_monotonic(Ticks(123'456'789)).ns, 123'456'789);
}

// From here on the anchors are given, in a future that the constructor's own anchors never reach.
class GivenAnchors : public ::testing::Test {
  protected:
    Calibration clock_{ClockSource::counter};
    const Ticks t_ = ticks() + (std::uint64_t{1} << 50);
    const std::int64_t ns_ = monotonic_ns() + (std::int64_t{1} << 50);
};

TEST_F(GivenAnchors, are_met_exactly_and_joined_by_lines) {
    clock_.add({t_, MonotonicTime(ns_)});
    clock_.add({t_ + 1000, MonotonicTime(ns_ + 500)});   // 0.5 ns per tick
    clock_.add({t_ + 2000, MonotonicTime(ns_ + 2500)});  // then 2 ns per tick
    EXPECT_EQ(clock_.to_monotonic(t_).ns, ns_);
    EXPECT_EQ(clock_.to_monotonic(t_ + 500).ns, ns_ + 250);
    EXPECT_EQ(clock_.to_monotonic(t_ + 1000).ns, ns_ + 500);
    EXPECT_EQ(clock_.to_monotonic(t_ + 1250).ns, ns_ + 500 + 500);
    EXPECT_EQ(clock_.to_monotonic(t_ + 2000).ns, ns_ + 2500);
}

TEST_F(GivenAnchors, that_do_not_advance_are_ignored) {
    clock_.add({t_, MonotonicTime(ns_)});
    const std::size_t anchors = clock_.anchors();
    clock_.add({t_, MonotonicTime(ns_ + 10)});
    clock_.add({t_ + 10, MonotonicTime(ns_)});
    EXPECT_EQ(clock_.anchors(), anchors);
}

TEST_F(GivenAnchors, are_thinned_but_stay_true) {
    for (std::uint64_t i = 0; i < 4 * Calibration::kMaxAnchors; ++i) {
        clock_.add({t_ + i * 1000, MonotonicTime(ns_ + static_cast<std::int64_t>(i) * 2000)});
    }
    EXPECT_LE(clock_.anchors(), Calibration::kMaxAnchors);
    // All anchors lie on one line, which the remaining ones must still give (the first few may have been
    // dropped).
    for (std::uint64_t i = Calibration::kMaxAnchors; i < 4 * Calibration::kMaxAnchors; i += 777) {
        EXPECT_EQ(clock_.to_monotonic(t_ + i * 1000).ns, ns_ + static_cast<std::int64_t>(i) * 2000);
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::profiler
