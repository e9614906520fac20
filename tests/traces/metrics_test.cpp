// Metrics as curves: the losses of steps, recorded metrics, and those in the text of marks and ranges; when a
// loss was reached.
#include "traces/analysis/training/metrics.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"
#include "traces/analysis/compare/compare.h"
#include "traces/report/fail_if.h"
#include "traces/report/report.h"
#include "traces/schema/marked_metrics.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

class Metrics : public ::testing::Test {
  protected:
    // Two ranks with four steps of 100 ns; the losses are 4, 3, 2, 1.
    Metrics() {
        for (const int rank : {0, 1}) {
            for (int s = 0; s < 4; ++s) run_.step(rank, s, 1000 + s * 100, 1100 + s * 100);
        }
        for (int s = 0; s < 4; ++s) run_.sink().add(schema::LossRow{.step = s, .loss = 4.0 - s});
    }
    void metric(const char* name, schema::MetricRow row) {
        row.name = run_.sink().intern(name);
        run_.sink().add(row);
    }
    void mark(int rank, std::int64_t time, const std::string& text) {
        schema::RangeRow row{.start = time, .end = {}, .event_type = schema::kNvtxMark};
        row.text = run_.sink().intern(text);
        row.global_tid = RunBuilder::tid(rank);
        run_.sink().add(row);
    }
    static std::vector<std::string> curves(const MetricsReport& report) {
        std::vector<std::string> texts;
        for (const MetricCurve& curve : report.curves) {
            std::string& text = texts.emplace_back(fmt::format("{} {}:", curve.name, curve.rank));
            for (const MetricPoint& p : curve.points)
                text += fmt::format(" {}/{}/{}={}", p.step, p.sample, p.time, p.value);
        }
        return texts;
    }

    RunBuilder run_{2};
};

TEST_F(Metrics, HaveTheLossesFirstAtTheSamplesOfTheOthers) {
    for (int s = 1; s >= 0; --s)
        metric("learning_rate", {.step = s, .sample = 8 * (s + 1), .time = 1150 + s * 100, .value = 0.5});
    metric("accuracy", {.step = 3, .time = 1400, .rank = 1, .value = std::nan("")});
    const auto trace = run_.take();
    EXPECT_THAT(curves(metrics_report(*trace)),
                ElementsAre("loss -1: 0/8/1150=4 1/16/1250=3 2/-1/1300=2 3/-1/1400=1",
                            "accuracy 1: 3/-1/1400=nan", "learning_rate -1: 0/8/1150=0.5 1/16/1250=0.5"));
    EXPECT_THAT(curves(metrics_report(*trace, {.rank = 0, .first_step = 1, .last_step = 2})),
                ElementsAre("loss -1: 1/16/1250=3 2/-1/1300=2", "learning_rate -1: 1/16/1250=0.5"));
    EXPECT_THAT(curves(metrics_report(*trace, {.from_ns = 1250, .to_ns = 1300})),
                ElementsAre("loss -1: 1/16/1250=3", "learning_rate -1: 1/16/1250=0.5"));
    EXPECT_THAT(curves(metrics_report(*trace, {}, "accuracy")), ElementsAre("accuracy 1: 3/-1/1400=nan"));
}

TEST_F(Metrics, AreReadFromMarksAndRanges) {
    mark(1, 1120, "metric loss=2.5 accuracy=1e-1 step=7 sample=64");
    mark(1, 1320, "metric loss=2.25");  // within step 3
    mark(1, 5000, "metric loss=2");     // within none
    mark(0, 1120, "metrics loss=9");
    schema::RangeRow range{.start = 1210, .end = 1212};
    range.text = run_.sink().intern("metric loss=8 step=2");
    range.global_tid = RunBuilder::tid(0);
    run_.sink().add(range);
    EXPECT_THAT(
        curves(metrics_report(*run_.take())),
        ElementsAre("loss -1: 0/-1/1100=4 1/-1/1200=3 2/-1/1300=2 3/-1/1400=1", "loss 0: 2/-1/1210=8",
                    "loss 1: -1/-1/5000=2 3/-1/1320=2.25 7/64/1120=2.5", "accuracy 1: 7/64/1120=0.1"));
}

// Each rank reports its own value of steps 0 and 1; only rank 0 that of step 2.
TEST_F(Metrics, OfSeveralRanksAreTheJobsToo) {
    for (const int rank : {0, 1}) {
        for (int s = 0; s < 2; ++s) {
            const double value = 1 + s + 10 * rank;
            mark(rank, 1150 + s * 100 + rank,
                 fmt::format("metric accuracy={0} words_per_second={0} used_bytes={0} gradient_norm=5",
                             value));
        }
    }
    mark(0, 1350, "metric accuracy=9");
    const auto trace = run_.take();
    const MetricsReport report = metrics_report(*trace);
    const auto jobs = [&](const char* name) {
        const MetricCurve* curve = report.find(name);
        EXPECT_TRUE(curve->rank == -1 && curve->from_ranks) << name;
        std::vector<double> values;
        for (const MetricPoint& point : curve->points) values.push_back(point.value);
        return values;
    };
    EXPECT_THAT(jobs("accuracy"), ElementsAre(6, 7));
    EXPECT_THAT(jobs("words_per_second"), ElementsAre(12, 14));
    EXPECT_THAT(jobs("used_bytes"), ElementsAre(11, 12));
    EXPECT_THAT(jobs("gradient_norm"), ElementsAre(5, 5));
    EXPECT_EQ(report.find("accuracy")->points[1].time, 1251);
    EXPECT_FALSE(report.find("loss")->from_ranks);
    EXPECT_EQ(metrics_report(*trace, {.rank = 1}).find("accuracy")->rank, 1) << "its own, not the job's";
    EXPECT_THAT(render(report, report::Format::json),
                AllOf(HasSubstr(R"("name":"words_per_second","rank":null,"over_ranks":"sum over ranks")"),
                      HasSubstr(R"("name":"used_bytes","rank":1,"over_ranks":null)")));
}

TEST(MarkedMetrics, NeedTheirFormAndNumbers) {
    const schema::MarkedMetrics marked = schema::marked_metrics("metric a=1  b=x c= =3 step=-2 d=-0.5 e");
    EXPECT_THAT(marked.values, ElementsAre(Pair("a", 1), Pair("d", -0.5)));
    EXPECT_EQ(marked.step, -1);
    for (const char* text : {"", "metric", "metric ", "Metric a=1", "metric step=4", "the metric a=1"})
        EXPECT_THAT(schema::marked_metrics(text).values, IsEmpty()) << text;
}

TEST_F(Metrics, SayWhenALossWasReached) {
    const auto trace = run_.take();
    const auto reached = [&](double loss) { return *metrics_report(*trace, {}, "other", loss).reached; };
    EXPECT_EQ(reached(2.5).point->step, 2);
    EXPECT_EQ(reached(2.5).since_start, 300);
    EXPECT_EQ(reached(3).point->step, 1);
    EXPECT_FALSE(reached(0.5).point);
    EXPECT_THAT(curves(metrics_report(*trace, {}, "other", 3)), IsEmpty());
    const auto text = [&](double loss, report::Format format) {
        return render(metrics_report(*trace, {}, {}, loss), format);
    };
    EXPECT_THAT(text(3, report::Format::table), HasSubstr("Loss 3 was reached at step 1, 0.000 s after"));
    EXPECT_THAT(text(0.5, report::Format::table), HasSubstr("The loss did not reach 0.5."));
    EXPECT_THAT(text(0.5, report::Format::json), HasSubstr(R"("to_loss":{"loss":0.5,"step":null,)"));
}

// Another program's marks may name no step, and its trace may have none.
TEST_F(Metrics, WithoutStepsReachALossByTime) {
    RunBuilder marks;
    const schema::StringId loss = marks.sink().intern("loss");
    const auto add = [&](std::int64_t step, std::int64_t time, double value) {
        marks.sink().add(schema::MetricRow{.step = step, .time = time, .name = loss, .value = value});
    };
    add(-1, 8'000'000'000, 1.1);
    add(1, 1'000'000'000, 2.9);
    add(2, 2'000'000'000, 2.1);
    const auto trace = marks.take();
    ASSERT_TRUE(trace->steps.empty());
    const auto text = [&](double asked, report::Format format) {
        return render(metrics_report(*trace, {}, {}, asked), format);
    };
    EXPECT_THAT(text(2.5, report::Format::table),
                HasSubstr("Loss 2.5 was reached at step 2, 2.000 s after the capture began."));
    EXPECT_THAT(text(1.5, report::Format::table),
                HasSubstr("Loss 1.5 was reached 8.000 s after the capture began."));
    EXPECT_THAT(text(1.5, report::Format::json), HasSubstr(R"("step":null,"seconds":8)"));
}

TEST_F(Metrics, CompareTheTimesToALoss) {
    RunBuilder slower;
    for (int s = 0; s < 2; ++s) slower.step(0, s, 1000 + s * 4000, 5000 + s * 4000);
    slower.sink().add(schema::LossRow{.step = 1, .loss = 3});
    const auto first = run_.take(), second = slower.take();
    const std::vector<const store::Trace*> runs = {first.get(), second.get()};
    Comparison comparison = compare(runs);
    const std::size_t figures = compared_figures(comparison).size();
    add_times_to_loss(comparison, runs, 3);
    const std::vector<ComparedFigure> all = compared_figures(comparison);
    ASSERT_EQ(all.size(), figures + 1);
    const auto to_loss = std::find_if(all.begin(), all.end(), [](const ComparedFigure& figure) {
        return figure.title == "Time to loss 3 (µs)";
    });
    ASSERT_NE(to_loss, all.end());
    EXPECT_DOUBLE_EQ(to_loss->runs.at(0).mean, 0.2);
    EXPECT_DOUBLE_EQ(to_loss->runs.at(1).mean, 8);
    add_times_to_loss(comparison, runs, 1);
    EXPECT_DOUBLE_EQ(comparison.runs.at(0).to_loss_us, 0.4);
    add_times_to_loss(comparison, runs, 0.5);
    EXPECT_THAT(render(comparison, report::Format::json), HasSubstr(R"("to_loss_us":null)"));
}

// The last values of the job's metrics; memory and divergence have rows of their own.
TEST_F(Metrics, AreComparedByTheirLastValues) {
    RunBuilder other;
    other.step(0, 0, 1000, 5000);
    for (const int s : {0, 1})
        metric("images_per_second", {.step = s, .time = 1150 + s * 100, .value = 8.0 + s});
    metric("peak_bytes", {.step = 1, .time = 1250, .value = 4096});
    other.sink().add(
        schema::MetricRow{.step = 0, .time = 5000, .name = other.sink().intern("<b>accuracy"), .value = 0.5});
    other.sink().add(schema::MetricRow{
        .step = 0, .time = 5000, .rank = 0, .name = other.sink().intern("marked"), .value = 3});
    const auto first = run_.take(), second = other.take();
    const Comparison comparison = compare({first.get(), second.get()});
    std::map<std::string, std::vector<double>> rows;
    for (const ComparedFigure& figure : compared_figures(comparison))
        rows[figure.title] = {figure.runs[0].mean, figure.runs[1].mean};
    EXPECT_THAT(rows.at("loss, last (mean over ranks)"), ElementsAre(1, testing::IsNan()));
    EXPECT_THAT(rows.at("images_per_second, last (sum over ranks)"), ElementsAre(9, testing::IsNan()));
    EXPECT_THAT(rows.at("<b>accuracy, last (mean over ranks)"), ElementsAre(testing::IsNan(), 0.5));
    EXPECT_THAT(rows.at("marked, last (of one rank)"), ElementsAre(testing::IsNan(), 3))
        << "only one rank reports it";
    EXPECT_FALSE(rows.contains("peak_bytes, last (largest of the ranks)"));
    EXPECT_THAT(render(comparison, report::Format::json),
                HasSubstr(R"("metrics":{"loss":1.0,"images_per_second":9.0,"peak_bytes":4096.0})"));
}

TEST_F(Metrics, SayFromWhichStepARunDiverged) {
    RunBuilder marked(1), infinite(1);
    for (RunBuilder* run : {&marked, &infinite}) {
        for (int s = 0; s < 3; ++s) run->step(0, s, 1000 + s * 100, 1100 + s * 100);
    }
    marked.sink().add(schema::MetricRow{.step = 0, .name = marked.sink().intern("diverged"), .value = 0});
    marked.sink().add(schema::MetricRow{.step = 2, .name = marked.sink().intern("diverged"), .value = 1});
    infinite.sink().add(schema::LossRow{.step = 1, .loss = INFINITY});
    const auto well = run_.take(), large = marked.take(), not_finite = infinite.take();
    EXPECT_EQ(diverged_step(*well), std::nullopt);
    EXPECT_EQ(diverged_step(*large), 2);
    EXPECT_EQ(diverged_step(*not_finite), 1);
    const auto figure = [](const std::vector<const store::Trace*>& runs) -> std::vector<double> {
        for (const ComparedFigure& compared : compared_figures(compare(runs))) {
            if (compared.title == "Diverged from step") return {compared.runs[0].mean, compared.runs[1].mean};
        }
        return {};
    };
    EXPECT_THAT(figure({well.get(), large.get()}), ElementsAre(testing::IsNan(), 2));
    EXPECT_THAT(figure({well.get(), well.get()}), IsEmpty());
}

TEST_F(Metrics, FailARunThatDoesNotReachTheLoss) {
    const auto failures = [](const char* runs) {
        return report::failures(report::parse_fail_if({"to_loss_us>+5%"}), runs);
    };
    EXPECT_THAT(failures(R"({"runs":[{"file":"a","to_loss_us":5},{"file":"b","to_loss_us":null}]})"),
                testing::ElementsAre(HasSubstr("holds for b: it did not reach the loss")));
    EXPECT_THAT(failures(R"({"runs":[{"file":"a","to_loss_us":5},{"file":"b","to_loss_us":5.1}]})"),
                IsEmpty());
    EXPECT_THROW(failures(R"({"runs":[{"file":"a","to_loss_us":null},{"file":"b","to_loss_us":5}]})"),
                 report::BadCondition);
}

TEST_F(Metrics, ArePrintedAsASummaryOrPointByPoint) {
    const auto trace = run_.take();
    const auto text = [&](const char* name, report::Format format) {
        return render(metrics_report(*trace, {}, name), format);
    };
    EXPECT_THAT(text("", report::Format::table), AllOf(HasSubstr("Lowest"), HasSubstr("loss")));
    EXPECT_THAT(text("loss", report::Format::table), AllOf(HasSubstr("Step"), Not(HasSubstr("Lowest"))));
    EXPECT_THAT(text("", report::Format::csv),
                AllOf(HasSubstr("name,rank,step,sample,time_ns,value"), HasSubstr("loss,,1,,1200,3")));
    EXPECT_THAT(
        text("", report::Format::json),
        HasSubstr(
            R"("lowest":1.0,"lowest_step":3,"highest":4.0,"highest_step":0,"points":[{"name":"loss",)"));
    EXPECT_THAT(text("nothing", report::Format::table), HasSubstr("no such metric"));
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
