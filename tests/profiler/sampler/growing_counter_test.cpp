// Rates of counters that grow, wrap, or are reset.
#include "profiler/sampler/growing_counter.h"

#include <gtest/gtest.h>

namespace shardscope::profiler {
namespace TEST_FILE {

constexpr std::int64_t kSecond = 1'000'000'000;

TEST(GrowingCounter, has_no_rate_at_first) {
    GrowingCounter counter;
    EXPECT_FALSE(counter.next(1000, MonotonicTime(0)));
    EXPECT_EQ(counter.next(1500, MonotonicTime(kSecond / 2)), 1000);
    EXPECT_EQ(counter.next(1500, MonotonicTime(kSecond)), 0);
    EXPECT_FALSE(counter.next(1600, MonotonicTime(kSecond)));  // no time has passed
}

TEST(GrowingCounter, of_32_bits_begins_again) {
    GrowingCounter counter;
    counter.next(0xFFFFFF00, MonotonicTime(0));
    EXPECT_EQ(counter.next(0x100, MonotonicTime(kSecond)), 0x200);
}

TEST(GrowingCounter, that_falls_was_reset) {
    GrowingCounter counter;
    counter.next(std::uint64_t{1} << 33, MonotonicTime(0));  // more than 32 bits
    EXPECT_FALSE(counter.next(5, MonotonicTime(kSecond)));
    EXPECT_EQ(counter.next(10, MonotonicTime(2 * kSecond)), 5);
    EXPECT_FALSE(counter.next(9, MonotonicTime(3 * kSecond)));  // far from 2^32
    counter.next(0xC0000000, MonotonicTime(4 * kSecond));
    EXPECT_FALSE(counter.next(0xBFFFFFFF, MonotonicTime(5 * kSecond)));  // nearly all of 2^32 in one step
}

// 2^30 bytes in a second are more than a link of 100 MB/s can move: it was reset.
TEST(GrowingCounter, does_not_begin_again_faster_than_it_can_grow) {
    GrowingCounter fast(2e9), slow(100e6);
    for (GrowingCounter* counter : {&fast, &slow}) counter->next(0xC0000000, MonotonicTime(0));
    EXPECT_EQ(fast.next(0, MonotonicTime(kSecond)), 0x40000000);
    EXPECT_FALSE(slow.next(0, MonotonicTime(kSecond)));
}

}  // namespace TEST_FILE
}  // namespace shardscope::profiler
