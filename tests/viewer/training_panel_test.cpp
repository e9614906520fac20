// The Training panel, drawn without a screen: what it says without metrics, its cost, what a session keeps of
// it, and where a click leads.
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"
#include "tests/viewer/panel_fixture.h"
#include "viewer/panels/training/training_chart.h"
#include "viewer/panels/training/training_rows.h"

namespace shardscope::viewer::panels {
namespace TEST_FILE {

using testing::HasSubstr;

class TrainingPanelTest : public PanelsTest {
  protected:
    TrainingPanelTest() { draw::items::keep(true); }
    std::unique_ptr<model::Panel> panel_ = make_panel("training");
};

// The trace has the last of `steps` steps only; each rank reports its own accuracy.
model::TracePtr long_run(int steps) {
    traces::RunBuilder run(2);
    for (const int rank : {0, 1}) run.step(rank, steps - 1, 1'000'000, 1'001'000);
    auto& sink = run.sink();
    for (int step = 0; step < steps; ++step) {
        sink.add(traces::schema::MetricRow{.step = step,
                                           .sample = 4 * step,
                                           .time = 900 * step,
                                           .name = sink.intern("gradient_norm"),
                                           .value = 1.0 / (1 + step % 7)});
        for (const int rank : {0, 1})
            sink.add(traces::schema::MetricRow{.step = step,
                                               .time = 900 * step,
                                               .rank = rank,
                                               .name = sink.intern("accuracy"),
                                               .value = 0.25 * rank});
    }
    return run.take();
}

TEST_F(TrainingPanelTest, SaysWhatToRecord) {
    session_.add_trace(std::make_shared<traces::store::Trace>(), "empty.sqlite");
    EXPECT_THAT(draw(*panel_), HasSubstr("torch.cuda.nvtx.mark(\"metric loss=2.31 step=4\")"));
}

TEST_F(TrainingPanelTest, StaysCheapWithAHundredThousandSteps) {
    session_.add_trace(long_run(100'000), "a.sqlite");
    session_.add_trace(long_run(100'000), "b.sqlite");
    draw(*panel_);
    click(*panel_, "training.smooth.exponential");
    EXPECT_EQ(item("training.chart.gradient_norm"), "2 curves");
    EXPECT_LT(ImGui::GetDrawData()->TotalVtxCount, 4 * 12'000);
    EXPECT_LT(commands(), 100);
    for (const float size : {1.0F, 60.0F, 300.0F, 1000.0F}) draw(*panel_, size, size);
}

// A card of one curve.
class CardPanel final : public model::Panel {
  public:
    explicit CardPanel(const MetricChart& chart) : chart_(chart) {}
    std::string_view name() const override { return "card"; }
    void draw(model::Session&, const model::Frame&) override {
        card_.draw({.chart = &chart_, .version = 1, .heads = heads_, .x = {0, 9}}, {900, 300});
    }

  private:
    const MetricChart& chart_;
    std::vector<RunHead> heads_ = std::vector<RunHead>(1);
    TrainingCard card_;
};

// A frame that visited the points of a curve would see that they have changed.
TEST_F(TrainingPanelTest, AFrameVisitsNoPointsButTheBest) {
    traces::analysis::MetricsReport report;
    report.curves.push_back({.name = "loss", .rank = -1, .points = {}});
    for (int step = 0; step < 10; ++step)
        report.curves[0].points.push_back({.step = step, .value = step == 6 ? 0.5 : 2.0});
    const auto charts = metric_charts(std::vector<RunMetrics>{{&report, 0, {}}}, Over::steps);
    CardPanel panel(charts[0]);
    EXPECT_THAT(draw(panel), HasSubstr("2 at last, lowest 0.5 at step 6"));
    for (traces::analysis::MetricPoint& point : report.curves[0].points) {
        if (point.step != 6) point = {.step = -7, .value = -1};
    }
    EXPECT_THAT(draw(panel), HasSubstr("2 at last, lowest 0.5 at step 6"));
}

TEST_F(TrainingPanelTest, ShowsTheChosenRanksOwnMetric) {
    session_.add_trace(long_run(4), "run.sqlite");
    session_.rank = traces::store::RankIndex(1);
    draw(*panel_);
    const auto place = draw::items::find("training.chart.accuracy");
    ASSERT_TRUE(place);
    ImGui::GetIO().MousePos = {place->max.x - 2, place->min.y + 10};
    EXPECT_THAT(draw(*panel_), HasSubstr("rank 1"));
    EXPECT_EQ(item("training.value.accuracy.1"), "0.25");
    EXPECT_EQ(item("training.step.accuracy.1"), "3");
}

TEST_F(TrainingPanelTest, AClickLeadsToTheStepIfTheTraceHasIt) {
    session_.add_trace(long_run(4), "run.sqlite");
    draw(*panel_);
    const auto place = draw::items::find("training.chart.gradient_norm");
    ASSERT_TRUE(place);
    click_at(*panel_, {place->min.x + 1, place->min.y + 10});
    EXPECT_EQ(session_.wanted_panel, "");
    EXPECT_EQ(session_.to_say, "Step 0 is not in the part of the run that this trace has.");
    click_at(*panel_, {place->max.x - 2, place->min.y + 10});
    EXPECT_EQ(session_.wanted_panel, "timeline");
    EXPECT_EQ(session_.open[0].lit, (model::TimeRange{1'000'000, 1'001'000}));
    EXPECT_EQ(session_.open[0].cursor, 1'000'000);
}

TEST_F(TrainingPanelTest, ASessionKeepsWhatItShows) {
    session_.add_trace(long_run(4), "a.sqlite");
    session_.add_trace(long_run(4), "b.sqlite");
    draw(*panel_);
    EXPECT_EQ(panel_->content(session_), "");
    for (const char* name :
         {"training.over.samples", "training.smooth.moving_average", "training.log", "training.run.2"})
        click(*panel_, name);
    const std::string content = panel_->content(session_);
    EXPECT_EQ(content, R"(["Samples","window 10","log","hidden 1"])");
    const auto other = make_panel("training");
    other->show_content(content, session_);
    EXPECT_EQ(other->content(session_), content);
    other->show_content(R"(["weight 0.9"])", session_);
    EXPECT_EQ(other->content(session_), R"(["weight 0.9"])");
    for (const char* damaged : {"", "[1]", R"(["weight 2","window 0","hidden 9","hidden x","window"])"}) {
        other->show_content(damaged, session_);
        EXPECT_EQ(other->content(session_), "") << damaged;
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::panels
