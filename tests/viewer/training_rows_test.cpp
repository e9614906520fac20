// Metrics of training as charts: which curve of a run is taken, where its points lie, means, ranges, units.
#include "viewer/panels/training/training_rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"

namespace shardscope::viewer::panels {
namespace TEST_FILE {

using testing::DoubleNear;
using testing::ElementsAre;
using traces::analysis::MetricsReport;

MetricsReport report_of(std::vector<traces::analysis::MetricCurve> curves) {
    MetricsReport report;
    report.curves = std::move(curves);
    return report;
}

// A curve whose points have the steps 0, 1, 2 ..., eight samples a step, and 100 ns each.
traces::analysis::MetricCurve curve(const char* name, int rank, std::vector<double> values) {
    traces::analysis::MetricCurve made{.name = name, .rank = rank, .points = {}};
    for (std::size_t i = 0; i < values.size(); ++i) {
        const auto step = static_cast<std::int64_t>(i);
        made.points.push_back({step, 8 * (step + 1), 1000 + 100 * step, values[i]});
    }
    return made;
}

TEST(MetricLooks, HaveTitlesAndUnits) {
    EXPECT_EQ(look_of("validation_loss").title, "Validation loss");
    EXPECT_EQ(value_text(look_of("loss"), 2.3456789), "2.34568");
    EXPECT_EQ(value_text(look_of("learning_rate"), 1e-4), "0.0001");
    EXPECT_EQ(look_of("tokens_per_second").title, "Tokens per second");
    EXPECT_EQ(value_text(look_of("tokens_per_second"), 71216.8), "71,217 tokens/s");
    EXPECT_EQ(value_text(look_of("images_per_second"), 1.25), "1.25 images/s");
    EXPECT_EQ(value_text(look_of("tokens_per_second"), 3445.34), "3,445 tokens/s");
    EXPECT_EQ(value_text(look_of("peak_bytes"), 3 << 20), "3.0 MiB");
    EXPECT_EQ(value_text(look_of("wait_us"), 1500), "1.50 ms");
    EXPECT_EQ(value_text(look_of("top1_percent"), 76.13), "76.13 %");
    EXPECT_EQ(value_text(look_of("loss"), std::nan("")), "not a number");
    EXPECT_EQ(value_text(look_of("peak_bytes"), 1e300), "1e+300 bytes");
    EXPECT_EQ(place_text(Over::steps, 1200), "step 1,200");
    EXPECT_EQ(place_text(Over::samples, 4096), "4,096 samples");
    EXPECT_EQ(place_text(Over::time, 2.5e9), "2.500 s");
}

TEST(MetricLooks, TellTheHighestOfAccuraciesSizesAndRates) {
    for (const char* name : {"accuracy", "validation_accuracy", "accuracy_top5", "top1", "top_5_percent",
                             "val_top_1", "peak_bytes", "tokens_per_second"})
        EXPECT_TRUE(look_of(name).highest) << name;
    for (const char* name : {"loss", "validation_loss", "gradient_norm", "stop", "loss_topology", "top"})
        EXPECT_FALSE(look_of(name).highest) << name;
    EXPECT_FALSE(look_of("accuracy").from_zero);
}

TEST(Smoothing, MeansSkipWhatIsNotANumber) {
    const std::vector<double> values = {4, 2, std::nan(""), 6};
    EXPECT_THAT(smoothed(values, {.how = Smooth::mean, .window = 2}), ElementsAre(4, 3, 3, 4));
    EXPECT_THAT(smoothed(values, {.how = Smooth::mean, .window = 1}), ElementsAre(4, 2, 2, 6));
    // 4; (0.5 * 2 + 0.25 * 4) / 0.75; the same; (0.5 * 6 + 0.25 * 2 + 0.125 * 4) / 0.875
    EXPECT_THAT(
        smoothed(values, {.how = Smooth::exponential, .weight = 0.5}),
        ElementsAre(4, DoubleNear(8.0 / 3, 1e-12), DoubleNear(8.0 / 3, 1e-12), DoubleNear(4 / 0.875, 1e-12)));
    EXPECT_THAT(smoothed(values, {.how = Smooth::exponential, .weight = 0}), ElementsAre(4, 2, 2, 6));
}

TEST(Smoothing, AMeanHoldsExactlyTheValuesOfItsWindow) {
    std::vector<double> values = {1e300};  // no later mean may have lost its digits to it
    for (int i = 1; i < 100; ++i) values.push_back(i % 9 == 4 ? std::nan("") : i * i % 37);
    for (const int window : {2, 3, 7, 50, 500}) {
        const std::vector<double> means = smoothed(values, {.how = Smooth::mean, .window = window});
        std::vector<double> kept;
        for (std::size_t i = 0; i < values.size(); ++i) {
            if (std::isfinite(values[i])) kept.push_back(values[i]);
            const std::size_t count = std::min(kept.size(), static_cast<std::size_t>(window));
            const double sum =
                std::accumulate(kept.end() - static_cast<std::ptrdiff_t>(count), kept.end(), 0.0);
            ASSERT_DOUBLE_EQ(means[i], sum / static_cast<double>(count)) << window << " at " << i;
        }
    }
}

TEST(TrainingCharts, KnowTheBestValueOfACurve) {
    const double nan = std::nan("");
    const MetricsReport report =
        report_of({curve("loss", -1, {nan, 3, 1, nan, 1, 2}), curve("tokens_per_second", -1, {5, 7, 7}),
                   curve("x", -1, {nan})});
    const auto charts = metric_charts(std::vector<RunMetrics>{{&report, 0, {}}}, Over::steps);
    EXPECT_EQ(charts[0].curves[0].best, 2U);
    EXPECT_EQ(charts[1].curves[0].best, 1U) << "a rate at its highest";
    EXPECT_EQ(charts[2].curves[0].best, 0U);
}

TEST(TrainingCharts, HaveACardForEachMetricAndACurveForEachRun) {
    const MetricsReport a =
        report_of({curve("loss", -1, {3, 2}), curve("zeta", 0, {1}), curve("zeta", 2, {5})});
    const MetricsReport b = report_of({curve("alpha", -1, {9}), curve("loss", -1, {4, 3, 2.5})});
    const std::vector<RunMetrics> runs = {{&a, 2, {0, 1, 900}}, {&b, 2, {1, 2, 1100}}};
    const auto charts = metric_charts(runs, Over::steps);
    ASSERT_EQ(charts.size(), 3U);
    EXPECT_EQ(charts[0].metric, "loss");
    EXPECT_EQ(charts[1].metric, "alpha");
    EXPECT_EQ(charts[2].metric, "zeta");
    ASSERT_EQ(charts[0].curves.size(), 2U);
    EXPECT_EQ(charts[1].curves[0].run, 1U);
    EXPECT_EQ(charts[2].curves[0].rank, 2) << "the wanted rank's, where only ranks report it";
    const RunCurve& of_b = charts[0].curves[1];
    EXPECT_EQ(*of_b.profile_from, 1) << "its trace begins with step 1";
    EXPECT_EQ(*of_b.profile_to, 2);
    EXPECT_THAT(of_b.x, ElementsAre(0, 1, 2));
    EXPECT_EQ(of_b.nearest(0.6, 0), 1U);
    EXPECT_EQ(of_b.nearest(2.3, 0.2), std::nullopt);
    EXPECT_EQ(of_b.nearest(2.3, 0.4), 2U);
    EXPECT_EQ(whole_range(charts), (XRange{0, 2}));
    // Time begins with the first step or, where a value is earlier, with that.
    const auto timed = metric_charts(runs, Over::time);
    EXPECT_THAT(timed[0].curves[0].x, ElementsAre(100, 200));
    EXPECT_THAT(timed[0].curves[1].x, ElementsAre(0, 100, 200));
    EXPECT_THAT(metric_charts(runs, Over::samples)[0].curves[0].x, ElementsAre(8, 16));
}

TEST(TrainingCharts, PutPointsInOrderAndLeaveOutThoseWithoutAPlace) {
    MetricsReport report = report_of({curve("loss", -1, {3, 2, 1}), curve("free", -1, {7})});
    report.curves[0].points[0].sample = 100;
    report.curves[0].points[1].sample = -1;
    report.curves[1].points[0].step = -1;
    const std::vector<RunMetrics> runs = {{&report, 0, {}}};
    auto by_sample = metric_charts(runs, Over::samples);
    smooth_charts(by_sample, {.how = Smooth::mean, .window = 2});
    EXPECT_THAT(by_sample[0].curves[0].x, ElementsAre(24, 100));
    EXPECT_THAT(by_sample[0].curves[0].y, ElementsAre(1, 3));
    EXPECT_THAT(by_sample[0].curves[0].smooth, ElementsAre(1, 2)) << "in the order that is shown";
    const auto by_step = metric_charts(runs, Over::steps);
    EXPECT_EQ(by_step[1].curves.size(), 0U);
    EXPECT_EQ(by_step[1].placeless, 1U);
    EXPECT_FALSE(by_step[0].curves[0].profile_from) << "the trace has no step";
}

TEST(TrainingCharts, AxesHoldWhatIsInSight) {
    const MetricsReport report = report_of({curve("loss", -1, {100, 4, 2, std::nan("")})});
    const std::vector<RunMetrics> runs = {{&report, 0, {}}};
    const auto charts = metric_charts(runs, Over::steps);
    draw::PlotRange range;
    ASSERT_TRUE(y_range(charts[0], look_of("loss"), {1, 3}, false, range));
    EXPECT_GT(range.y_low, 1.5);
    EXPECT_LT(range.y_high, 4.5);
    ASSERT_TRUE(y_range(charts[0], look_of("x_per_second"), {0, 3}, false, range));
    EXPECT_EQ(range.y_low, 0);
    ASSERT_TRUE(y_range(charts[0], look_of("loss"), {0, 3}, true, range));
    EXPECT_GT(range.y_low, 0);
    EXPECT_GE(range.y_high, 100);
    EXPECT_FALSE(y_range(charts[0], look_of("loss"), {3, 4}, false, range));
    // A smoothed curve comes from values out of sight, and is in sight.
    std::vector<MetricChart> smoothed = charts;
    smooth_charts(smoothed, {.how = Smooth::exponential, .weight = 0.99});
    ASSERT_TRUE(y_range(smoothed[0], look_of("loss"), {1, 3}, false, range));
    EXPECT_GT(range.y_high, *std::max_element(smoothed[0].curves[0].smooth.begin() + 1,
                                              smoothed[0].curves[0].smooth.begin() + 3));
    // The line is cut at the edge of the range, where it crosses it.
    const auto folded =
        fold_curve_of(charts[0].curves[0], charts[0].curves[0].y, {0.5, 2, 0, 100}, false, 10);
    ASSERT_FALSE(folded.empty());
    EXPECT_DOUBLE_EQ(folded.front().first, 52);
    EXPECT_DOUBLE_EQ(folded.back().last, 2);
}

// A loss for each step, a validation loss for each fifth; the trace has the steps 6 to 8.
TEST(TrainingCharts, ShowTheRecordedStepsOfSparseMetrics) {
    MetricsReport report =
        report_of({curve("loss", -1, std::vector<double>(12, 1)), curve("validation_loss", -1, {2, 2, 2})});
    for (std::size_t i = 0; i < 3; ++i) report.curves[1].points[i] = report.curves[0].points[5 * i];
    const StepsOfRun steps{6, 8, 1550, 1820};
    const std::vector<RunMetrics> runs = {{&report, 0, steps}};
    const auto strip = [&](Over over) {
        const auto charts = metric_charts(runs, over);
        EXPECT_EQ(charts[0].curves[0].profile_from, charts[1].curves[0].profile_from);
        return std::pair(*charts[1].curves[0].profile_from, *charts[1].curves[0].profile_to);
    };
    EXPECT_EQ(strip(Over::steps), std::pair(6.0, 8.0));
    EXPECT_EQ(strip(Over::samples), std::pair(56.0, 72.0)) << "of the loss";
    EXPECT_EQ(strip(Over::time), std::pair(550.0, 820.0));
    report.curves.erase(report.curves.begin());
    EXPECT_FALSE(place_of_steps(runs[0], Over::samples, 0, steps)) << "no metric has samples in them";
}

// A resumed run repeats the steps 1 and 2: from both sides the value is the last one.
TEST(TrainingCharts, TakeTheLastOfRepeatedSteps) {
    MetricsReport report = report_of({curve("loss", -1, {3, 5, 7, 4, 6})});
    for (const std::size_t i : {1, 2}) report.curves[0].points[i].step = 1;
    for (const std::size_t i : {3, 4}) report.curves[0].points[i].step = 2;
    const auto charts = metric_charts(std::vector<RunMetrics>{{&report, 0, {}}}, Over::steps);
    const RunCurve& loss = charts[0].curves[0];
    for (const double at : {0.6, 1.0, 1.4}) EXPECT_EQ(loss.nearest(at, 0), 2U) << at;
    for (const double at : {1.6, 2.0, 2.4}) EXPECT_EQ(loss.nearest(at, 1), 4U) << at;
    EXPECT_EQ(loss.nearest(0.4, 0), 0U);
}

// 200 losses of which those of the steps 80 to 119 are not numbers: more points than have dots.
TEST(TrainingCharts, BreakTheLineWhereAValueIsNotANumber) {
    std::vector<double> values(200, 2);
    for (std::size_t i = 80; i < 120; ++i) values[i] = i % 2 == 0 ? std::nan("") : INFINITY;
    values[160] = -1;
    const MetricsReport report = report_of({curve("loss", -1, values)});
    const std::vector<RunMetrics> runs = {{&report, 0, {}}};
    auto charts = metric_charts(runs, Over::steps);
    smooth_charts(charts, {.how = Smooth::mean, .window = 2});
    const RunCurve& loss = charts[0].curves[0];
    const auto breaks = [&](std::span<const double> of, bool log) {
        std::vector<int> columns;
        for (const draw::PlotColumn& column : fold_curve_of(loss, of, {0, 256, -3, 3}, log, 256))
            if (column.apart) columns.push_back(column.column);
        return columns;
    };
    EXPECT_THAT(breaks(loss.y, false), ElementsAre(120));
    EXPECT_THAT(breaks(loss.smooth, false), ElementsAre(120)) << "a mean bridges no gap either";
    EXPECT_THAT(breaks(loss.y, true), ElementsAre(120, 161)) << "-1 has no place on a logarithmic axis";
    using Lost = ColumnsWithoutNumber;
    EXPECT_THAT(columns_without_number(loss, {0, 256}, 256), ElementsAre(Lost{80, 119}));
    EXPECT_THAT(columns_without_number(loss, {0, 256}, 8), ElementsAre(Lost{2, 3})) << "one a column";
    EXPECT_THAT(columns_without_number(loss, {100, 228}, 128), ElementsAre(Lost{0, 19}));
    EXPECT_THAT(columns_without_number(loss, {130, 200}, 100), ElementsAre()) << "-1 is a number";
}

TEST(TrainingCharts, KnowTheRecordedSteps) {
    traces::RunBuilder run(2);
    for (const int rank : {0, 1}) {
        run.step(rank, 5, 2000 + rank, 2100);
        run.step(rank, 4, 1000 + rank, 1100);
    }
    const StepsOfRun steps = steps_of_run(*run.take());
    EXPECT_EQ(steps.first, 4);
    EXPECT_EQ(steps.last, 5);
    EXPECT_EQ(steps.start, 1000);
    EXPECT_LT(steps_of_run(traces::store::Trace{}).last, steps_of_run(traces::store::Trace{}).first);
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::panels
