// The system's clock relative to trace time, with and without jumps.
#include "profiler/recorder/cuda_clock.h"

#include <gtest/gtest.h>

namespace shardscope::profiler {
namespace TEST_FILE {

constexpr std::int64_t kSecond = 1'000'000'000;
// The real time at this trace time.
constexpr RealTime real(std::int64_t trace) {
    return RealTime(1'700'000'000 * kSecond + trace);
}

TEST(CudaClock, knows_nothing_before_the_first_pair) {
    EXPECT_FALSE(CudaClock().to_trace(real(0)).has_value());
}

TEST(CudaClock, keeps_one_offset_if_both_clocks_run_alike) {
    CudaClock clock;
    EXPECT_FALSE(clock.add(real(0), 0).has_value());
    EXPECT_FALSE(clock.add(real(kSecond), kSecond).has_value());
    EXPECT_EQ(clock.to_trace(real(5)), 5);
    EXPECT_EQ(clock.to_trace(real(-7)), -7);                    // before the first pair
    EXPECT_EQ(clock.to_trace(real(3 * kSecond)), 3 * kSecond);  // after the last pair
}

TEST(CudaClock, interpolates_between_pairs) {
    CudaClock clock;
    clock.add(real(0), 0);
    clock.add(real(kSecond), kSecond - 1000);  // the measurements differ by 1 us
    EXPECT_EQ(clock.to_trace(real(kSecond / 2)), kSecond / 2 - 500);
}

TEST(CudaClock, follows_a_step_ahead) {
    CudaClock clock;
    clock.add(real(0), 0);
    clock.add(real(kSecond), kSecond);
    // Within the next second the clock is set 100 s ahead.
    EXPECT_EQ(clock.add(real(102 * kSecond), 2 * kSecond), 100 * kSecond);
    EXPECT_EQ(clock.to_trace(real(kSecond / 2)), kSecond / 2);                // before the jump
    EXPECT_EQ(clock.to_trace(real(kSecond + 1000)), kSecond + 1000);          // just before the jump
    EXPECT_EQ(clock.to_trace(real(102 * kSecond - 500)), 2 * kSecond - 500);  // just after the jump
    EXPECT_EQ(clock.to_trace(real(103 * kSecond)), 3 * kSecond);
}

TEST(CudaClock, follows_a_step_back) {
    CudaClock clock;
    clock.add(real(0), 0);
    clock.add(real(10 * kSecond), 10 * kSecond);
    EXPECT_EQ(clock.add(real(6 * kSecond), 11 * kSecond), -5 * kSecond);
    // A time that the clock showed twice belongs to its first occurrence, except close to the newest pair.
    EXPECT_EQ(clock.to_trace(real(10 * kSecond + 1000)), 10 * kSecond + 1000);
    clock.add(real(8 * kSecond), 13 * kSecond);
    EXPECT_EQ(clock.to_trace(real(7 * kSecond)), 12 * kSecond);
}

TEST(CudaClock, stays_small_and_right_over_days) {
    CudaClock clock;
    for (std::int64_t i = 0; i < 200'000; ++i) clock.add(real(i * kSecond), i * kSecond);
    EXPECT_EQ(clock.to_trace(real(100'000 * kSecond + 17)), 100'000 * kSecond + 17);
}

}  // namespace TEST_FILE
}  // namespace shardscope::profiler
