// The flame chart of a call, and the call that it shows.
#include "viewer/panels/modules/modules_flame.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"

namespace shardscope::viewer::panels {
namespace TEST_FILE {

using testing::ElementsAre;
using traces::RunBuilder;

// Block_0 runs [0, 100) with Linear_0 in [10, 60) and Linear_1 in [60, 90), each of which launches a kernel
// on stream 7; a gather on stream 20 is launched in Linear_0. Another call follows at 1000.
std::unique_ptr<traces::store::Trace> two_calls() {
    RunBuilder run;
    for (const std::int64_t at : {0, 1000}) {
        run.range(0, at, at + 100, "nn.Module: Block_0");
        run.range(0, at + 10, at + 60, "nn.Module: Linear_0");
        run.kernel(0, at + 40, at + 140, at + 20, 7, "gemm");
        run.kernel(0, at + 30, at + 50, at + 25, 20, "gather");
        run.range(0, at + 60, at + 90, "nn.Module: Linear_1");
        run.kernel(0, at + 140, at + 200, at + 70, 7, "gemm");
    }
    return run.take();
}

std::vector<std::string> names(const traces::store::Trace& trace, const FlameLane& lane) {
    std::vector<std::string> all;
    for (const FlameBar& bar : lane.bars) {
        const auto i = static_cast<std::size_t>(bar.index);
        all.emplace_back(trace.strings[lane.kind == model::EventKind::device ? trace.device.name[i]
                                                                             : trace.ranges.name[i]]);
    }
    return all;
}

std::vector<const FlameLane*> lanes_of(const FlameChart& chart, model::EventKind kind) {
    std::vector<const FlameLane*> lanes;
    for (const FlameLane& lane : chart.lanes) {
        if (lane.kind == kind) lanes.push_back(&lane);
    }
    return lanes;
}

TEST(Flame, HasTheNestedRangesByDepthAndTheDeviceWorkLaunchedInside) {
    const auto trace = two_calls();
    const FlameChart chart = make_flame(*trace, 0);
    EXPECT_EQ(chart.call, (model::TimeRange{0, 100}));
    EXPECT_EQ(chart.time, (model::TimeRange{0, 200})) << "to the end of the last kernel";
    EXPECT_EQ(chart.ranges, 2);
    EXPECT_EQ(chart.device_events, 3);
    EXPECT_EQ(chart.device_ns, 100 + 20 + 60);
    const auto host = lanes_of(chart, model::EventKind::range);
    ASSERT_EQ(host.size(), 2U);
    EXPECT_EQ(host[0]->title, "host");
    EXPECT_THAT(names(*trace, *host[0]), ElementsAre("nn.Module: Block_0"));
    EXPECT_THAT(names(*trace, *host[1]), ElementsAre("nn.Module: Linear_0", "nn.Module: Linear_1"));
    const auto device = lanes_of(chart, model::EventKind::device);
    ASSERT_EQ(device.size(), 2U) << "a lane for each stream";
    EXPECT_THAT(names(*trace, *device[0]), ElementsAre("gemm", "gemm"));
    EXPECT_THAT(names(*trace, *device[1]), ElementsAre("gather"));
}

TEST(Flame, AnInnerCallShowsOnlyItsOwnWork) {
    const auto trace = two_calls();
    const FlameChart chart = make_flame(*trace, 1);  // Linear_0 of the first call
    EXPECT_EQ(chart.ranges, 0);
    EXPECT_EQ(chart.device_events, 2);
    EXPECT_EQ(chart.time, (model::TimeRange{10, 140}));
}

TEST(Flame, FramesOfTheProgramAreShownWhereTheyAreWanted) {
    RunBuilder run;
    run.range(0, 0, 100, "nn.Module: Block_0");
    run.range(0, 5, 95, "module.py(10): forward");
    run.range(0, 10, 60, "nn.Module: Linear_0");
    const auto trace = run.take();
    trace->ranges.kind[1] = traces::store::RangeKind::function;
    const FlameChart hidden = make_flame(*trace, 0);
    ASSERT_EQ(hidden.lanes.size(), 2U);
    EXPECT_THAT(names(*trace, hidden.lanes[1]), ElementsAre("nn.Module: Linear_0")) << "moves up";
    EXPECT_EQ(hidden.frames, 1);
    EXPECT_EQ(hidden.ranges, 1);
    const FlameChart shown = make_flame(*trace, 0, Frames::shown);
    EXPECT_EQ(shown.lanes.size(), 3U);
    EXPECT_EQ(shown.ranges, 2);
}

TEST(Flame, RangesOfOtherThreadsAreNoPartOfIt) {
    RunBuilder run(2);
    run.range(0, 0, 100, "nn.Module: Block_0");
    run.range(1, 10, 50, "nn.Module: Block_0");
    const auto trace = run.take();
    EXPECT_EQ(make_flame(*trace, 0).ranges, 0);
}

TEST(Flame, OverlappingDeviceWorkOfOneStreamHasItsOwnLanes) {
    RunBuilder run;
    run.range(0, 0, 100, "nn.Module: Block_0");
    run.kernel(0, 20, 80, 10, 7, "a");
    run.kernel(0, 30, 40, 11, 7, "b");
    run.kernel(0, 80, 90, 12, 7, "c");
    const auto trace = run.take();
    const auto lanes = lanes_of(make_flame(*trace, 0), model::EventKind::device);
    EXPECT_EQ(lanes.size(), 2U);
}

FlameLane lane_of(const std::vector<std::pair<int, int>>& bars) {
    FlameLane lane;
    for (const auto& [start, end] : bars) lane.bars.push_back({start, end, 0});
    return lane;
}

TEST(ShownBars, AreWhatLiesInTheView) {
    const FlameLane lane = lane_of({{0, 100}, {100, 200}, {300, 400}, {500, 600}});
    const auto shown = shown_bars(lane, {150, 450, 300});  // a pixel is 1 ns
    ASSERT_EQ(shown.size(), 2U);
    EXPECT_EQ(shown[0].first, 1U);
    EXPECT_DOUBLE_EQ(shown[0].x0, 0);
    EXPECT_DOUBLE_EQ(shown[0].x1, 50);
    EXPECT_DOUBLE_EQ(shown[1].x0, 150);
    EXPECT_DOUBLE_EQ(shown[1].x1, 250);
}

TEST(ShownBars, ShorterThanAPixelAreOneWithTheirNeighbours) {
    std::vector<std::pair<int, int>> many;
    for (int i = 0; i < 100'000; ++i) many.emplace_back(i * 10, i * 10 + 6);
    const FlameLane lane = lane_of(many);  // 1,000,000 ns over 500 pixels: 200 bars per pixel
    const auto shown = shown_bars(lane, {0, 1'000'000, 500});
    EXPECT_LE(shown.size(), 1000U);
    EXPECT_GE(shown.size(), 500U);
    std::size_t counted = 0;
    for (const ShownBar& bar : shown) {
        EXPECT_EQ(bar.first, counted) << "every bar is in exactly one";
        counted += bar.count;
        EXPECT_GE(bar.x1 - bar.x0, 1);
    }
    EXPECT_EQ(counted, many.size());
}

TEST(Calls, TheSlowestAndTheMedianAreByTheHostsTime) {
    RunBuilder run;
    std::int64_t at = 0;
    for (const std::int64_t length : {30, 50, 10, 40}) {
        run.range(0, at, at + length, "nn.Module: Linear_0");
        at += 100;
    }
    const auto trace = run.take();
    const std::vector<std::int32_t> calls = {0, 1, 2, 3};
    EXPECT_EQ(slowest_call(*trace, calls), 1U);
    EXPECT_EQ(median_call(*trace, calls), 0U) << "of 30 and 40 the shorter";
    EXPECT_EQ(slowest_call(*trace, {}), std::nullopt);
    EXPECT_EQ(median_call(*trace, {}), std::nullopt);
    EXPECT_THAT(longest_by_column(*trace, calls, 2), ElementsAre(50, 40));
    EXPECT_THAT(longest_by_column(*trace, calls, 9), ElementsAre(30, 50, 10, 40));
}

TEST(Calls, ForwardAndBackwardAreApart) {
    const traces::analysis::CallsOfModule module{"Linear_0", 0, {{3, false}, {7, true}, {9, false}}};
    EXPECT_THAT(calls_in(module, CallDirection::forward), ElementsAre(3, 9));
    EXPECT_THAT(calls_in(module, CallDirection::backward), ElementsAre(7));
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::panels
