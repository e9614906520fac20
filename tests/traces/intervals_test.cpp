// Interval arithmetic compared with a bitmap with one bit per nanosecond.
#include "traces/analysis/base/intervals.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardscope::traces::analysis {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::size_t kLength = 200;
using Bitmap = std::vector<bool>;

Bitmap bitmap(const std::vector<Interval>& intervals) {
    Bitmap bits(kLength, false);
    for (const Interval& i : intervals) {
        for (std::int64_t t = i.start; t < i.end; ++t) bits[static_cast<std::size_t>(t)] = true;
    }
    return bits;
}

template <typename Op>
Bitmap combine(const Bitmap& a, const Bitmap& b, Op op) {
    Bitmap bits(kLength);
    for (std::size_t t = 0; t < kLength; ++t) bits[t] = op(a[t], b[t]);
    return bits;
}

std::vector<Interval> random_intervals(std::mt19937& random) {
    std::vector<Interval> intervals(random() % 12);
    for (Interval& i : intervals) {
        i.start = static_cast<std::int64_t>(random() % kLength);
        i.end = std::min<std::int64_t>(kLength, i.start + static_cast<std::int64_t>(random() % 40));
    }
    return intervals;
}

void expect_canonical(const IntervalSet& set) {
    for (std::size_t i = 0; i < set.size(); ++i) {
        EXPECT_LT(set[i].start, set[i].end);
        if (i > 0) {
            EXPECT_LT(set[i - 1].end, set[i].start);
        }
    }
}

TEST(Intervals, UnionMergesOverlappingAndTouchingAndDropsEmpty) {
    EXPECT_THAT(make_union({{5, 7}, {0, 2}, {2, 4}, {6, 9}, {20, 20}}),
                ElementsAre(Interval{0, 4}, Interval{5, 9}));
    EXPECT_THAT(make_union({}), IsEmpty());
}

TEST(Intervals, SubtractKeepsTheRestBetweenAndAround) {
    const IntervalSet a = {{0, 10}, {20, 30}};
    const IntervalSet b = {{2, 3}, {8, 22}};
    EXPECT_THAT(subtract(a, b), ElementsAre(Interval{0, 2}, Interval{3, 8}, Interval{22, 30}));
}

TEST(Intervals, AgreeWithABitmapOnRandomSets) {
    std::mt19937 random(1);
    for (int round = 0; round < 2000; ++round) {
        const std::vector<Interval> a = random_intervals(random), b = random_intervals(random);
        const IntervalSet ua = make_union(a), ub = make_union(b);
        const Bitmap ba = bitmap(a), bb = bitmap(b);
        ASSERT_EQ(bitmap(ua), ba);
        ASSERT_EQ(bitmap(intersect(ua, ub)), combine(ba, bb, [](bool x, bool y) { return x && y; }));
        ASSERT_EQ(bitmap(subtract(ua, ub)), combine(ba, bb, [](bool x, bool y) { return x && !y; }));
        ASSERT_EQ(length(ua), std::count(ba.begin(), ba.end(), true));
        for (const IntervalSet& set : {ua, intersect(ua, ub), subtract(ua, ub)}) expect_canonical(set);
    }
}

TEST(Intervals, LengthInsideWindowsAgreesWithABitmap) {
    std::mt19937 random(2);
    for (int round = 0; round < 2000; ++round) {
        const IntervalSet set = make_union(random_intervals(random));
        std::vector<Interval> windows;  // disjoint; may touch or be empty
        for (std::int64_t at = 0; at < static_cast<std::int64_t>(kLength);) {
            const auto end = std::min<std::int64_t>(kLength, at + static_cast<std::int64_t>(random() % 30));
            windows.push_back({at, end});
            at = end + static_cast<std::int64_t>(random() % 5) + (end == at ? 1 : 0);
        }
        const Bitmap bits = bitmap(set);
        const std::vector<std::int64_t> inside = length_inside(set, windows);
        ASSERT_EQ(inside.size(), windows.size());
        for (std::size_t w = 0; w < windows.size(); ++w) {
            const auto begin = bits.begin();
            ASSERT_EQ(inside[w], std::count(begin + windows[w].start, begin + windows[w].end, true));
            ASSERT_EQ(length_within(set, windows[w]), inside[w]);
        }
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
