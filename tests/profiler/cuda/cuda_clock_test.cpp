// The system's clock relative to trace time, with and without jumps.
#include "profiler/recorder/cuda_clock.h"

#include <gtest/gtest.h>

namespace shardscope::profiler {
namespace TEST_FILE {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kEpoch = 1'700'000'000 * kSecond;  // the realtime at trace time 0

TEST(CudaClock, knows_nothing_before_the_first_pair) {
    EXPECT_FALSE(CudaClock().to_trace(kEpoch).has_value());
}

TEST(CudaClock, keeps_one_offset_if_both_clocks_run_alike) {
    CudaClock clock;
    EXPECT_FALSE(clock.add(kEpoch, 0).has_value());
    EXPECT_FALSE(clock.add(kEpoch + kSecond, kSecond).has_value());
    EXPECT_EQ(clock.to_trace(kEpoch + 5), 5);
    EXPECT_EQ(clock.to_trace(kEpoch - 7), -7);                     // before the first pair
    EXPECT_EQ(clock.to_trace(kEpoch + 3 * kSecond), 3 * kSecond);  // after the last pair
}

TEST(CudaClock, interpolates_between_pairs) {
    CudaClock clock;
    clock.add(kEpoch, 0);
    clock.add(kEpoch + kSecond, kSecond - 1000);  // the measurements differ by 1 us
    EXPECT_EQ(clock.to_trace(kEpoch + kSecond / 2), kSecond / 2 - 500);
}

TEST(CudaClock, follows_a_step_ahead) {
    CudaClock clock;
    clock.add(kEpoch, 0);
    clock.add(kEpoch + kSecond, kSecond);
    // Within the next second the clock is set 100 s ahead.
    EXPECT_EQ(clock.add(kEpoch + 102 * kSecond, 2 * kSecond), 100 * kSecond);
    EXPECT_EQ(clock.to_trace(kEpoch + kSecond / 2), kSecond / 2);                // before the jump
    EXPECT_EQ(clock.to_trace(kEpoch + kSecond + 1000), kSecond + 1000);          // just before the jump
    EXPECT_EQ(clock.to_trace(kEpoch + 102 * kSecond - 500), 2 * kSecond - 500);  // just after the jump
    EXPECT_EQ(clock.to_trace(kEpoch + 103 * kSecond), 3 * kSecond);
}

TEST(CudaClock, follows_a_step_back) {
    CudaClock clock;
    clock.add(kEpoch, 0);
    clock.add(kEpoch + 10 * kSecond, 10 * kSecond);
    EXPECT_EQ(clock.add(kEpoch + 6 * kSecond, 11 * kSecond), -5 * kSecond);
    // A time that the clock showed twice belongs to its first occurrence, except close to the newest pair.
    EXPECT_EQ(clock.to_trace(kEpoch + 10 * kSecond + 1000), 10 * kSecond + 1000);
    clock.add(kEpoch + 8 * kSecond, 13 * kSecond);
    EXPECT_EQ(clock.to_trace(kEpoch + 7 * kSecond), 12 * kSecond);
}

TEST(CudaClock, stays_small_and_right_over_days) {
    CudaClock clock;
    for (std::int64_t i = 0; i < 200'000; ++i) clock.add(kEpoch + i * kSecond, i * kSecond);
    EXPECT_EQ(clock.to_trace(kEpoch + 100'000 * kSecond + 17), 100'000 * kSecond + 17);
}

}  // namespace TEST_FILE
}  // namespace shardscope::profiler
