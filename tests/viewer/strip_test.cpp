// The small trace strip of a card: busy time per pixel column of every stream.
#include "viewer/draw/strip.h"

#include <gtest/gtest.h>

namespace shardscope::viewer::draw {
namespace TEST_FILE {

using traces::store::DeviceKind;
using traces::store::Trace;

// Two streams of rank 0, one of rank 1.
class StripTest : public testing::Test {
  protected:
    StripTest() {
        trace.ranks.resize(2);
        const traces::store::RankIndex first(0), second(1);
        trace.streams = {{first, 7, "compute"}, {first, 8, ""}, {second, 7, "compute"}};
    }
    void add(std::int64_t start, std::int64_t end, std::uint16_t stream, DeviceKind kind,
             std::uint16_t rank = 0) {
        trace.device.start.push_back(start);
        trace.device.end.push_back(end);
        trace.device.stream.push_back(stream);
        trace.device.rank.push_back(rank);
        trace.device.kind.push_back(kind);
    }
    Trace trace;
};

TEST_F(StripTest, BusyIsTheShareOfEachColumn) {
    add(0, 15, 0, DeviceKind::kernel);  // columns of 10: all of the first, half of the second
    const auto rows = fold_streams(trace, traces::store::RankIndex(0), 0, 40, 4);
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0].name, "compute");
    ASSERT_EQ(rows[0].runs.size(), 2U);
    EXPECT_EQ(rows[0].runs[0], (StripRun{0, 1, 1.0F, DeviceKind::kernel}));
    EXPECT_EQ(rows[0].runs[1], (StripRun{1, 1, 0.5F, DeviceKind::kernel}));
}

TEST_F(StripTest, FullColumnsOfOneKindAreOneRun) {
    add(0, 30, 0, DeviceKind::kernel);
    add(30, 40, 0, DeviceKind::communication);
    const auto rows = fold_streams(trace, traces::store::RankIndex(0), 0, 40, 4);
    ASSERT_EQ(rows[0].runs.size(), 2U);
    EXPECT_EQ(rows[0].runs[0].count, 3);
    EXPECT_EQ(rows[0].runs[1].kind, DeviceKind::communication);
}

TEST_F(StripTest, TheKindWithMostTimeColoursTheColumn) {
    add(0, 2, 0, DeviceKind::kernel);
    add(2, 8, 0, DeviceKind::memcpy);
    const auto rows = fold_streams(trace, traces::store::RankIndex(0), 0, 10, 1);
    EXPECT_EQ(rows[0].runs[0], (StripRun{0, 1, 0.8F, DeviceKind::memcpy}));
}

TEST_F(StripTest, OnlyTheRequestedRankAndTimeCount) {
    add(0, 10, 0, DeviceKind::kernel);      // before the range
    add(15, 25, 1, DeviceKind::kernel);     // begins before the range: counts from 20 on
    add(20, 30, 2, DeviceKind::kernel, 1);  // another rank
    add(40, 50, 0, DeviceKind::kernel);     // after the range
    const auto rows = fold_streams(trace, traces::store::RankIndex(0), 20, 40, 2);
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0].name, "stream 8");
    ASSERT_EQ(rows[0].runs.size(), 1U);
    EXPECT_EQ(rows[0].runs[0], (StripRun{0, 1, 0.5F, DeviceKind::kernel}));
}

TEST_F(StripTest, DrawsNothingOfAnEmptyTrace) {
    EXPECT_TRUE(fold_streams(trace, traces::store::RankIndex(0), 0, 100, 10).empty());
    add(0, 10, 0, DeviceKind::kernel);
    EXPECT_TRUE(fold_streams(trace, traces::store::RankIndex(0), 5, 5, 10).empty());
    EXPECT_TRUE(fold_streams(trace, traces::store::RankIndex(0), 0, 10, 0).empty());
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::draw
