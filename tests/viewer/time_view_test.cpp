// Time to pixels and back, zooming and panning.
#include "viewer/model/time_view.h"

#include <gtest/gtest.h>

namespace shardscope::viewer::model {
namespace TEST_FILE {

TEST(TimeView, MapsItsEndsToItsEdges) {
    const TimeView view{1000, 3000, 500};  // 4 ns per pixel
    EXPECT_DOUBLE_EQ(view.ns_per_pixel(), 4);
    EXPECT_DOUBLE_EQ(view.pixel(1000), 0);
    EXPECT_DOUBLE_EQ(view.pixel(2000), 250);
    EXPECT_EQ(view.time(250), 2000);
    EXPECT_EQ(view.time(250.5), 2002);
}

TEST(TimeView, ColumnsCoverTheViewWithoutHoleOrOverlap) {
    const TimeView view{-7, 1000, 333};
    EXPECT_EQ(view.column_start(0, 333), -7);
    EXPECT_EQ(view.column_start(333, 333), 1000);
    for (std::int64_t t = view.from; t < view.to; ++t) {
        const auto column = static_cast<int>(view.column_of(t, 333));
        EXPECT_LE(view.column_start(column, 333), t);
        EXPECT_GT(view.column_start(column + 1, 333), t);
    }
    EXPECT_LT(view.column_of(-8, 333), 0);
    EXPECT_GE(view.column_of(1000, 333), 333);
}

TEST(TimeView, ColumnsStayExactWhereADayIsSeenOnAWideScreen) {
    constexpr std::int64_t kDay = 86'400'000'000'000;
    const TimeView view{kDay * 300, kDay * 301, 7680};
    const std::int64_t t = kDay * 300 + kDay / 7680 * 5000;
    EXPECT_EQ(view.column_of(t, 7680), 5000);
    EXPECT_EQ(view.column_start(5000, 7680), t);
}

TEST(Zoom, KeepsTheInstantUnderTheMouse) {
    // The anchor is at a quarter: after halving, 250 ns before it and 750 ns after.
    const TimeSpan next = zoomed({0, 2000}, {0, 10000}, 500, 0.5);
    EXPECT_EQ(next, (TimeSpan{250, 1250}));
}

TEST(Zoom, StopsAtItsFinestAndWidest) {
    TimeSpan view{0, 1000};
    for (int i = 0; i < 100; ++i) view = zoomed(view, {0, 1000}, 500, 0.5);
    EXPECT_EQ(view.to - view.from, kShortestView);
    for (int i = 0; i < 100; ++i) view = zoomed(view, {0, 1000}, 500, 2);
    EXPECT_EQ(view.to - view.from, 4000);
    EXPECT_LT(view.from, 1000);
    EXPECT_GT(view.to, 0);
}

TEST(Pan, NeverLosesSightOfTheTrace) {
    TimeSpan view{0, 1000};
    for (int i = 0; i < 100; ++i) view = panned(view, {0, 5000}, 700);
    EXPECT_EQ(view.to - view.from, 1000);
    EXPECT_EQ(view.from, 4950);  // a twentieth of the view still shows the end
    for (int i = 0; i < 100; ++i) view = panned(view, {0, 5000}, -700);
    EXPECT_EQ(view.to, 50);
}

TEST(Frame, LeavesAirAroundItsTarget) {
    EXPECT_EQ(framed({1000, 1400}, {0, 5000}), (TimeSpan{900, 1500}));
    // An event without length is shown in the shortest view.
    EXPECT_EQ(framed({1000, 1000}, {0, 5000}), (TimeSpan{975, 1125}));
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::model
