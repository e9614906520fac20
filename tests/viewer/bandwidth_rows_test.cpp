// Bus bandwidth over size: axes, bounds and table of the Collectives panel, without drawing.
#include "viewer/panels/communication/bandwidth_rows.h"

#include <string>

#include <gtest/gtest.h>

namespace shardscope::viewer::panels {
namespace TEST_FILE {

using namespace traces;

analysis::BandwidthCurve curve(double bound) {
    analysis::BandwidthCurve made;
    made.operation = schema::Operation::all_gather;
    made.ranks = 4;
    made.bound = {bound, "memory of one host"};
    made.points = {{.bytes = 1024, .count = 3, .low_gbps = 1, .busbw_gbps = 2, .high_gbps = 3},
                   {.bytes = 1 << 20, .count = 3, .low_gbps = 8, .busbw_gbps = 9, .high_gbps = 10}};
    return made;
}

TEST(BandwidthAxes, HoldAllPointsAndBoundsThatAreNear) {
    analysis::BusBandwidthReport report;
    report.curves = {curve(20)};
    const BandwidthAxes axes = bandwidth_axes(report);
    EXPECT_LT(axes.x_low, 1024);
    EXPECT_GT(axes.x_high, 1 << 20);
    EXPECT_GE(axes.y_high, 20);
    EXPECT_EQ(bounds_beyond(report), "");
}

TEST(BandwidthAxes, LeaveOutABoundFarAboveAndSayIt) {
    analysis::BusBandwidthReport report;
    report.curves = {curve(400)};
    EXPECT_LT(bandwidth_axes(report).y_high, 40) << "the points reach 10 GB/s";
    EXPECT_EQ(bounds_beyond(report), "Bounds above the chart: " + curve_name(report.curves[0]) +
                                         ": 400.0 GB/s (memory of one host).");
}

TEST(BandwidthAxes, AreValidWithoutPoints) {
    const BandwidthAxes axes = bandwidth_axes({});
    EXPECT_GT(axes.x_low, 0);
    EXPECT_GT(axes.x_high, axes.x_low);
    EXPECT_GT(axes.y_high, 0);
}

TEST(BandwidthTable, HasARowForEachPoint) {
    analysis::BusBandwidthReport report;
    report.curves = {curve(0), curve(20)};
    EXPECT_EQ(bandwidth_table(report)->rows(), 4U);
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::panels
