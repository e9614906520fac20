// Ticks of an axis: round numbers, with units, inside the range and not too many.
#include "viewer/draw/axis.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardscope::viewer::draw {
namespace TEST_FILE {

std::vector<std::string> labels(const std::vector<Tick>& ticks) {
    std::vector<std::string> texts;
    for (const Tick& tick : ticks) texts.push_back(tick.label);
    return texts;
}

TEST(Axis, StepsAreOneTwoOrFiveTimesAPowerOfTen) {
    EXPECT_DOUBLE_EQ(nice_step(1), 1);
    EXPECT_DOUBLE_EQ(nice_step(1.1), 2);
    EXPECT_DOUBLE_EQ(nice_step(2.01), 5);
    EXPECT_DOUBLE_EQ(nice_step(5.1), 10);
    EXPECT_DOUBLE_EQ(nice_step(0.03), 0.05);
}

TEST(Axis, BytesAreRoundInTheUnitShown) {
    const double mb = 1 << 20;
    const auto ticks = make_ticks(0, 115 * mb, 6, AxisUnit::bytes);
    EXPECT_THAT(labels(ticks),
                testing::ElementsAre("0 MiB", "20 MiB", "40 MiB", "60 MiB", "80 MiB", "100 MiB"));
    EXPECT_DOUBLE_EQ(ticks[1].value, 20 * mb);
}

TEST(Axis, AtLeastTwoTicksSayTheScale) {
    EXPECT_THAT(labels(make_ticks(0, 45e6, 2, AxisUnit::nanoseconds)), testing::ElementsAre("0 ms", "40 ms"));
    EXPECT_THAT(labels(make_ticks(0, 49e6, 2, AxisUnit::nanoseconds)), testing::ElementsAre("0 ms", "40 ms"));
    EXPECT_THAT(labels(make_ticks(0, 50e6, 2, AxisUnit::nanoseconds)), testing::ElementsAre("0 ms", "50 ms"));
}

TEST(Axis, LogarithmicBytesArePowersOfTwo) {
    const double gb = 1 << 30;
    EXPECT_THAT(labels(make_log_ticks(0.4 * gb, 9 * gb, 8, AxisUnit::bytes)),
                testing::ElementsAre("512 MiB", "1 GiB", "2 GiB", "4 GiB", "8 GiB"));
    EXPECT_THAT(labels(make_log_ticks(0.4 * gb, 9 * gb, 3, AxisUnit::bytes)),
                testing::ElementsAre("1 GiB", "4 GiB"))
        << "thinned out";
}

TEST(Axis, LogarithmicTimesAreOneTwoAndFive) {
    EXPECT_THAT(labels(make_log_ticks(0.9e6, 30e6, 8, AxisUnit::nanoseconds)),
                testing::ElementsAre("1 ms", "2 ms", "5 ms", "10 ms", "20 ms"));
    EXPECT_THAT(labels(make_log_ticks(1e6, 1e12, 7, AxisUnit::nanoseconds)),
                testing::ElementsAre("1 ms", "10 ms", "100 ms", "1 s", "10 s", "100 s", "1,000 s"));
    EXPECT_THAT(make_log_ticks(3.1e6, 4.9e6, 5, AxisUnit::nanoseconds), testing::SizeIs(testing::Ge(2)))
        << "between two of them the ticks are linear";
}

TEST(Axis, LogarithmicRangesThatAreNoneHaveNoTicks) {
    EXPECT_TRUE(make_log_ticks(0, 10, 5, AxisUnit::bytes).empty());
    EXPECT_TRUE(make_log_ticks(10, 10, 5, AxisUnit::bytes).empty());
    EXPECT_TRUE(make_log_ticks(1, std::numeric_limits<double>::infinity(), 5, AxisUnit::bytes).empty());
    EXPECT_LE(make_log_ticks(1e-300, 1e300, 5, AxisUnit::nanoseconds).size(), 5U);
    EXPECT_LE(make_log_ticks(1e-300, 1e300, 5, AxisUnit::bytes).size(), 5U);
}

TEST(Axis, TimesChooseTheUnitOfTheRange) {
    EXPECT_THAT(labels(make_ticks(0, 2.1e6, 5, AxisUnit::nanoseconds)),
                testing::ElementsAre("0.0 ms", "0.5 ms", "1.0 ms", "1.5 ms", "2.0 ms"));
    EXPECT_THAT(labels(make_ticks(0, 400, 4, AxisUnit::nanoseconds)),
                testing::ElementsAre("0 ns", "200 ns", "400 ns"));
    EXPECT_THAT(labels(make_ticks(10.2e9, 10.9e9, 4, AxisUnit::nanoseconds)),
                testing::ElementsAre("10.2 s", "10.4 s", "10.6 s", "10.8 s"));
}

TEST(Axis, CountsAreWhole) {
    EXPECT_THAT(labels(make_ticks(0, 2, 10, AxisUnit::count)), testing::ElementsAre("0", "1", "2"));
}

TEST(Axis, NumbersThatWouldBeLongHaveAnExponent) {
    const auto of = [](double low, double high) {
        return labels(make_ticks(low, high, 4, AxisUnit::number));
    };
    EXPECT_THAT(of(0, 1.06e35), testing::ElementsAre("0", "5e+34", "1e+35"));
    EXPECT_THAT(of(-1e35, 1e35), testing::ElementsAre("-1e+35", "0", "1e+35"));
    EXPECT_THAT(of(0, 1.06e308), testing::ElementsAre("0", "5e+307", "1e+308"));
    EXPECT_THAT(of(0, 1.06e-10), testing::ElementsAre("0", "5e-11", "1e-10"));
    EXPECT_THAT(of(1.2e12, 1.206e12), testing::ElementsAre("1.2e+12", "1.202e+12", "1.204e+12", "1.206e+12"));
    EXPECT_THAT(of(0, 4e8), testing::SizeIs(testing::Gt(1)));
    EXPECT_THAT(of(0, 9e8), testing::Contains("500,000,000"));
    EXPECT_THAT(of(0, 1e-5), testing::Contains("0.000005"));
    EXPECT_THAT(labels(make_log_ticks(1e-12, 1e-8, 4, AxisUnit::number)),
                testing::ElementsAre("1e-12", "1e-10", "1e-08"));
    EXPECT_THAT(labels(make_log_ticks(0.01, 1e13, 4, AxisUnit::number)),
                testing::Contains(testing::HasSubstr("e+")));
    for (const Tick& tick : make_ticks(0, 1e300, 4, AxisUnit::bytes)) EXPECT_LT(tick.label.size(), 14U);
}

TEST(Axis, AnEmptyRangeHasNoTicks) {
    EXPECT_TRUE(make_ticks(5, 5, 5, AxisUnit::bytes).empty());
    EXPECT_TRUE(make_ticks(5, 4, 5, AxisUnit::bytes).empty());
    EXPECT_TRUE(make_ticks(0, 1, 0, AxisUnit::bytes).empty());
}

TEST(Axis, TicksAreInsideAndNeverMoreThanRequested) {
    std::mt19937 random(7);
    std::uniform_real_distribution<double> exponent(0, 13), share(0, 1);
    for (int i = 0; i < 2000; ++i) {
        const double low = std::pow(10, exponent(random)) * (share(random) < 0.3 ? 0 : 1);
        const double high = low + std::pow(10, exponent(random));
        const int most = 2 + static_cast<int>(share(random) * 9);
        for (const AxisUnit unit :
             {AxisUnit::count, AxisUnit::bytes, AxisUnit::nanoseconds, AxisUnit::percent}) {
            const auto ticks = make_ticks(low, high, most, unit);
            ASSERT_LE(ticks.size(), static_cast<std::size_t>(most)) << low << ".." << high;
            for (const Tick& tick : ticks) {
                ASSERT_GE(tick.value, low - 1e-6 * (high - low));
                ASSERT_LE(tick.value, high + 1e-6 * (high - low));
            }
        }
    }
}

TEST(Axis, TheScaleGoesBothWays) {
    const LinearScale scale{100, 300, 10, 20};
    EXPECT_DOUBLE_EQ(scale.pixel(100), 10);
    EXPECT_DOUBLE_EQ(scale.pixel(250), 17.5);
    EXPECT_DOUBLE_EQ(scale.value(17.5), 250);
    EXPECT_DOUBLE_EQ((LinearScale{5, 5, 10, 20}.pixel(5)), 10) << "an empty range has one place";
}

TEST(Axis, TheTopLeavesRoom) {
    EXPECT_GT(axis_top(100), 100);
    EXPECT_GT(axis_top(0), 0);
}

// Doubles are 512 apart there: there may be fewer ticks, and the loop must end.
TEST(Ticks, AreFewAndOrderedForTimesBeyondTwoToThe53) {
    const double late = 2305843009213693952.0;  // 2^61
    for (const double span : {512.0, 1000.0, 1e6}) {
        const auto ticks = make_ticks(late, late + span, 12, AxisUnit::nanoseconds);
        EXPECT_LE(ticks.size(), 13U);
        for (std::size_t t = 1; t < ticks.size(); ++t) EXPECT_GT(ticks[t].value, ticks[t - 1].value);
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::draw
