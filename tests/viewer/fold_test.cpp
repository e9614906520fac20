// Folding a memory curve into pixel columns loses no extreme and adds none.
#include "viewer/draw/fold.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace shardscope::viewer::draw {
namespace TEST_FILE {

using traces::analysis::MemoryPoint;

// A point whose bytes are all activations.
MemoryPoint point(std::int64_t time, std::int64_t total) {
    MemoryPoint p;
    p.time = time;
    p.total = total;
    p.bytes[static_cast<std::size_t>(traces::schema::MemoryCategory::activations)] = total;
    return p;
}

TEST(Fold, AColumnHoldsTheLowestAndHighestWithinIt) {
    // 0..10: 5, then 9 at 12, 2 at 18, and constant until the end.
    const std::vector<MemoryPoint> curve = {point(0, 5), point(12, 9), point(18, 2)};
    const auto columns = fold_curve(curve, 0, 30, 3);
    ASSERT_EQ(columns.size(), 3U);
    EXPECT_EQ(columns[0].lowest, 5);
    EXPECT_EQ(columns[0].highest, 5);
    EXPECT_EQ(columns[1].lowest, 2);
    EXPECT_EQ(columns[1].highest, 9);
    EXPECT_EQ(columns[2].lowest, 2);
    EXPECT_EQ(columns[2].highest, 2);
}

TEST(Fold, NothingIsLiveBeforeTheFirstPoint) {
    const std::vector<MemoryPoint> curve = {point(15, 4)};
    const auto columns = fold_curve(curve, 0, 20, 2);
    EXPECT_EQ(columns[0].highest, 0);
    EXPECT_EQ(columns[1].lowest, 0);  // 10..15
    EXPECT_EQ(columns[1].highest, 4);
}

TEST(Fold, AValueThatEndsWhereTheColumnBeginsDoesNotCount) {
    const std::vector<MemoryPoint> curve = {point(0, 8), point(10, 3)};
    const auto columns = fold_curve(curve, 0, 20, 2);
    EXPECT_EQ(columns[1].highest, 3);
}

TEST(Fold, APeakOfOneInstantIsSeen) {
    // Allocated and freed in the same nanosecond: no width, but it is the peak.
    const std::vector<MemoryPoint> curve = {point(0, 1), point(5, 100), point(5, 1)};
    const auto columns = fold_curve(curve, 0, 1000, 2);
    EXPECT_EQ(columns[0].highest, 100);
    EXPECT_EQ(columns[0].at_highest[static_cast<std::size_t>(traces::schema::MemoryCategory::activations)],
              100);
    EXPECT_EQ(columns[1].highest, 1);
}

TEST(Fold, MoreColumnsThanNanosecondsRepeatTheValue) {
    const std::vector<MemoryPoint> curve = {point(0, 1), point(1, 2), point(2, 3)};
    const auto columns = fold_curve(curve, 0, 3, 12);
    ASSERT_EQ(columns.size(), 12U);
    EXPECT_EQ(columns.front().highest, 1);
    EXPECT_EQ(columns.back().highest, 3);
    const bool rising = std::is_sorted(columns.begin(), columns.end(),
                                       [](const auto& a, const auto& b) { return a.highest < b.highest; });
    EXPECT_TRUE(rising);
}

TEST(Fold, EmptyRangesGiveNoColumns) {
    const std::vector<MemoryPoint> none;
    EXPECT_TRUE(fold_curve(none, 5, 5, 10).empty());
    EXPECT_TRUE(fold_curve(none, 0, 5, 0).empty());
    EXPECT_EQ(fold_curve(none, 0, 5, 2)[0].highest, 0) << "no curve: nothing lives";
}

// Compared with a slow and obvious computation: the value at every nanosecond of the column, and every point
// in it.
TEST(Fold, AgreesWithLookingAtEveryNanosecond) {
    std::mt19937 random(11);
    for (int round = 0; round < 200; ++round) {
        std::vector<MemoryPoint> curve;
        std::int64_t time = static_cast<std::int64_t>(random() % 20);
        const int size = static_cast<int>(random() % 40);
        for (int i = 0; i < size; ++i) {
            curve.push_back(point(time, static_cast<std::int64_t>(random() % 1000)));
            time += static_cast<std::int64_t>(random() % 5);  // several at the same instant, too
        }
        const std::int64_t from = static_cast<std::int64_t>(random() % 30);
        const int columns = 1 + static_cast<int>(random() % 9);
        const std::int64_t width = 1 + static_cast<std::int64_t>(random() % 12);
        const auto folded = fold_curve(curve, from, from + columns * width, columns);
        for (int i = 0; i < columns; ++i) {
            std::int64_t lowest = INT64_MAX, highest = INT64_MIN;
            for (std::int64_t t = from + i * width; t < from + (i + 1) * width; ++t) {
                const MemoryPoint* held = point_at(curve, t);
                lowest = std::min(lowest, held ? held->total : 0);
                highest = std::max(highest, held ? held->total : 0);
                for (const MemoryPoint& p : curve) {
                    if (p.time != t) continue;
                    lowest = std::min(lowest, p.total);
                    highest = std::max(highest, p.total);
                }
            }
            ASSERT_EQ(folded[static_cast<std::size_t>(i)].lowest, lowest)
                << "round " << round << " column " << i;
            ASSERT_EQ(folded[static_cast<std::size_t>(i)].highest, highest)
                << "round " << round << " column " << i;
        }
    }
}

// --- with an index, as the viewer folds curves of millions of points: the plain fold is the reference

std::vector<MemoryPoint> random_points(std::size_t count, unsigned seed, unsigned most_gap) {
    std::mt19937 random(seed);
    std::vector<MemoryPoint> points;
    MemoryPoint point;
    for (std::size_t i = 0; i < count; ++i) {
        point.time += static_cast<std::int64_t>(random() % most_gap);  // 0: at the same instant
        const std::size_t category = random() % traces::schema::kMemoryCategories;
        const std::int64_t change = static_cast<std::int64_t>(random() % 1000) - 450;
        const std::int64_t now = std::max<std::int64_t>(0, point.bytes[category] + change);
        point.total += now - point.bytes[category];
        point.bytes[category] = now;
        points.push_back(point);
    }
    return points;
}

// The counts are near the sizes of the index's blocks (16, 256, 4096) and its stride (64).
TEST(FoldWithAnIndex, IsThePlainFoldAtEveryZoom) {
    for (const std::size_t count : {0U, 1U, 15U, 16U, 17U, 63U, 64U, 65U, 255U, 4096U, 5000U}) {
        for (const unsigned gap : {1U, 2U, 5U, 1000U}) {
            const std::vector<MemoryPoint> points = random_points(count, 7, gap);
            const CategoryCurve curve = category_curve(points);
            const std::int64_t end = points.empty() ? 10 : points.back().time + 1;
            for (const auto& [from, to] : {std::pair<std::int64_t, std::int64_t>{0, end},
                                           {-50, end + 50},
                                           {end / 3, end / 2 + 1},
                                           {end / 2, end / 2 + 3},
                                           {end + 1, end + 100},
                                           {5, 5}}) {
                for (const int columns : {0, 1, 7, 333, 2000}) {
                    ASSERT_EQ(fold_curve(curve, from, to, columns), fold_curve(points, from, to, columns))
                        << count << " points, gaps below " << gap << ", " << from << " to " << to << ", "
                        << columns << " columns";
                }
            }
            for (const std::size_t first : {std::size_t{0}, count / 3}) {
                const std::size_t part = (count - first) / 2;
                for (const int columns : {1, 7, 333}) {
                    ASSERT_EQ(fold_by_order(curve, first, part, columns),
                              fold_by_order(std::span(points).subspan(first, part), columns))
                        << count << " points";
                }
            }
        }
    }
}

TEST(FoldWithAnIndex, FindsTheExtremesOfAnyStretch) {
    std::mt19937 random(3);
    std::vector<std::int64_t> values(5000);
    for (std::int64_t& value : values) value = static_cast<std::int64_t>(random() % 500);  // many are equal
    const auto value = [&](std::size_t i) { return values[i]; };
    const CurveIndex<std::int64_t> index(
        values.size(), [](std::size_t i) { return static_cast<std::int64_t>(i); }, value);
    for (int round = 0; round < 2000; ++round) {
        const std::size_t first = random() % values.size();
        const std::size_t last = first + 1 + random() % (values.size() - first);
        const auto [lowest, highest] =
            std::pair{std::min_element(values.begin() + static_cast<std::ptrdiff_t>(first),
                                       values.begin() + static_cast<std::ptrdiff_t>(last)),
                      std::max_element(values.begin() + static_cast<std::ptrdiff_t>(first),
                                       values.begin() + static_cast<std::ptrdiff_t>(last))};
        const Extremes<std::int64_t> found = index.of(first, last, value);
        // Among equal values the first counts.
        ASSERT_EQ(found.at_lowest, lowest - values.begin()) << first << " to " << last;
        ASSERT_EQ(found.at_highest, highest - values.begin()) << first << " to " << last;
        ASSERT_EQ(found.lowest, *lowest);
        ASSERT_EQ(found.highest, *highest);
    }
}

TEST(FoldWithAnIndex, TakesLessThanTwoBytesForAPoint) {
    constexpr std::size_t kPoints = 1'000'000;
    const auto number = [](std::size_t i) { return static_cast<std::int64_t>(i); };
    const CurveIndex<std::int64_t> index(kPoints, number, number);
    // A block of 16 points takes 24 bytes, 16 blocks another 24 and so on: 24/16 + 24/256 + ..., and every
    // 64th time 8 bytes.
    EXPECT_LT(static_cast<double>(index.memory()) / kPoints, 2.0);
}

TEST(FoldByOrder, EveryPointIsEquallyWide) {
    // The second state gets two columns like the others, however long it lasts.
    const std::vector<MemoryPoint> curve = {point(0, 5), point(1, 9), point(1000, 2)};
    const auto columns = fold_by_order(curve, 6);
    std::vector<std::int64_t> highest;
    for (const FoldedColumn& column : columns) highest.push_back(column.highest);
    EXPECT_EQ(highest, (std::vector<std::int64_t>{5, 5, 9, 9, 2, 2}));
}

TEST(FoldByOrder, FewerColumnsThanPointsKeepTheExtremes) {
    const std::vector<MemoryPoint> curve = {point(0, 5), point(1, 9), point(2, 2), point(3, 4)};
    const auto columns = fold_by_order(curve, 2);
    ASSERT_EQ(columns.size(), 2U);
    EXPECT_EQ(columns[0].highest, 9);
    EXPECT_EQ(columns[0].lowest, 5);
    EXPECT_EQ(columns[1].lowest, 2);
    EXPECT_EQ(columns[1].highest, 4);
    EXPECT_TRUE(fold_by_order({}, 3).empty());
}

TEST(Fold, EqualNeighboursBecomeOneRun) {
    const std::vector<MemoryPoint> curve = {point(0, 5), point(20, 9)};
    const auto columns = fold_curve(curve, 0, 40, 4);
    const auto runs = equal_runs(columns);
    ASSERT_EQ(runs.size(), 2U);
    EXPECT_EQ(runs[0].first, 0);
    EXPECT_EQ(runs[0].count, 2);
    EXPECT_EQ(runs[1].first, 2);
    EXPECT_EQ(runs[1].count, 2);
}

TEST(Fold, ThePointAtAnInstantIsTheLastOneUpToIt) {
    const std::vector<MemoryPoint> curve = {point(10, 1), point(10, 2), point(20, 3)};
    EXPECT_EQ(point_at(curve, 9), nullptr);
    EXPECT_EQ(point_at(curve, 10)->total, 2);
    EXPECT_EQ(point_at(curve, 19)->total, 2);
    EXPECT_EQ(point_at(curve, 500)->total, 3);
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::draw
