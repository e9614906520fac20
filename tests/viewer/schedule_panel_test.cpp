// The Schedule panel: its rows and their folding without drawing; the panel drawn without a screen.
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"
#include "tests/viewer/panel_fixture.h"
#include "traces/analysis/pipeline/pipeline.h"
#include "viewer/draw/format.h"
#include "viewer/panels/schedule/schedule_rows.h"

namespace shardscope::viewer::panels {
namespace TEST_FILE {

using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;
using traces::analysis::IdleCause;
using traces::analysis::kComputeKinds;
using traces::store::RankIndex;

constexpr std::int64_t kUnit = 1'000'000;

std::string action(int stage, char kind, int micro_batch) {
    return "PP:" + std::to_string(stage) + kind + std::to_string(micro_batch);
}

// GPipe of `replicas` pipelines of `places` ranks, two micro-batches, F of 1 unit and B of 2, in two steps;
// the second one takes twice as long. Rank = place x replicas + replica. With a plan, allocations and
// kernels.
std::unique_ptr<traces::store::Trace> gpipe(int places, int replicas, bool planned = true,
                                            bool memory = true) {
    traces::RunBuilder run(0);
    for (int rank = 0; rank < places * replicas; ++rank) {
        run.sink().add(traces::schema::RankRow{.rank = rank,
                                               .device = rank,
                                               .global_pid = run.pid(rank),
                                               .global_tid = run.tid(rank),
                                               .host = "",
                                               .device_name = "",
                                               .data = rank % replicas,
                                               .pipeline = rank / replicas,
                                               .cpus = {}});
        run.sink().add(traces::schema::ThreadRow{.global_tid = run.tid(rank), .name = "rank", .rank = rank});
        const int place = rank / replicas;
        std::int64_t begin = 0;
        for (int step = 0; step < 2; ++step) {
            const std::int64_t unit = kUnit * (step + 1), end = begin + (3 * (places + 1) + 1) * unit;
            run.step(rank, step, begin, end);
            const auto work = [&](std::int64_t at, std::int64_t units, char kind, int micro_batch) {
                const std::int64_t start = begin + at * unit;
                run.range(rank, start, start + units * unit, action(place, kind, micro_batch));
                run.kernel(rank, start + 1, start + units * unit, start);
                if (memory && kind == 'F') run.allocate(rank, start, 64 + micro_batch, 1 << 20);
                if (memory && kind == 'B') run.free(rank, start + units * unit, 64 + micro_batch, 1 << 20);
            };
            for (int m = 0; m < 2; ++m) {
                work(place + m, 1, 'F', m);
                work(places + 1 + 2 * (places - 1 - place) + 2 * m, 2, 'B', m);
            }
            begin = end;
        }
        int position = 0;
        for (const auto& [kind, micro_batch] : {std::pair("F", 0), {"F", 1}, {"B", 0}, {"B", 1}}) {
            if (planned)
                run.sink().add(traces::schema::ScheduleRow{.rank = rank,
                                                           .position = position++,
                                                           .stage = place,
                                                           .kind = kind,
                                                           .micro_batch = micro_batch});
        }
    }
    return run.take();
}

// --- rows

TEST(ScheduleRows, CoverTheMakespanAndSumToTheReport) {
    const auto trace = gpipe(4, 2);
    const auto timeline = traces::analysis::pipeline_timeline(*trace);
    const ScheduleView view = schedule_view(*trace, timeline, 1, 1);
    ASSERT_THAT(view.rows, SizeIs(4));
    traces::analysis::Selection selection;
    selection.first_step = selection.last_step = 1;
    const auto report = traces::analysis::pipeline_report(*trace, selection);
    EXPECT_NEAR(view.bubble_percent(), report.bubble_percent(), 1e-9) << "both pipelines are alike";
    for (const ScheduleRow& row : view.rows) {
        EXPECT_EQ(row.actual.front().start, view.makespan.from);
        EXPECT_EQ(row.actual.back().end, view.makespan.to);
        for (std::size_t i = 1; i < row.actual.size(); ++i)
            EXPECT_EQ(row.actual[i].start, row.actual[i - 1].end);
        const auto rank = std::find_if(report.ranks.begin(), report.ranks.end(),
                                       [&](const auto& r) { return r.rank == row.rank; });
        ASSERT_NE(rank, report.ranks.end());
        EXPECT_EQ(row.idle_ns, rank->idle());
        EXPECT_EQ(row.row->idle_ns()[static_cast<std::size_t>(IdleCause::peer)], rank->peer);
        EXPECT_THAT(row.planned, SizeIs(4));
    }
    EXPECT_EQ(view.rows[0].rank, 1);
    EXPECT_EQ(view.rows[3].stages, "3");
    EXPECT_THAT(schedule_view(*trace, timeline, 1, {}).rows, SizeIs(8));
}

TEST(ScheduleRows, OverlappingWorkIsDrawnOnce) {
    traces::RunBuilder run;
    run.range(0, 0, 5, "PP:0F0");
    run.range(0, 5, 9, "PP:0W7");
    run.kernel(0, 10, 40, 1);
    run.kernel(0, 30, 60, 6, 8);
    const auto trace = run.take();
    const auto timeline = traces::analysis::pipeline_timeline(*trace);
    const ScheduleView view = schedule_view(*trace, timeline, 0, 0);
    ASSERT_THAT(view.rows[0].actual, SizeIs(2));
    EXPECT_EQ(view.rows[0].actual[1].start, 40);
    EXPECT_EQ(view.rows[0].actual[1].end, 60);
}

// Whatever the zoom, every visible nanosecond of each kind is drawn once.
TEST(ScheduleRows, FoldingKeepsEachKindsShareOfThePicture) {
    std::mt19937 random(7);
    std::vector<ScheduleSpan> spans;
    for (std::int64_t at = 0; at < 100'000;) {
        const std::int64_t length = 1 + static_cast<std::int64_t>(random() % 900);
        spans.push_back({at, at + length, static_cast<int>(random() % kSpanKinds), 0, false});
        at += length + (random() % 5 == 0 ? 200 : 0);
    }
    for (const auto& [from, to] :
         {std::pair<std::int64_t, std::int64_t>(0, 100'000), {-500, 250'000}, {31'007, 33'990}}) {
        for (const double least : {2.0, 8.0}) {
            const model::TimeView view{from, to, 777};
            std::array<double, kSpanKinds> drawn{}, wanted{};
            const FoldedSpans folded = fold_spans(spans, view, least);
            for (const SpanBox& box : folded.boxes)
                drawn[static_cast<std::size_t>(box.kind)] += box.x1 - box.x0;
            for (const SpanColumn& column : folded.columns) {
                double sum = 0;
                for (int kind = 0; kind < kSpanKinds; ++kind) {
                    sum += column.pixels[static_cast<std::size_t>(kind)];
                    drawn[static_cast<std::size_t>(kind)] += column.pixels[static_cast<std::size_t>(kind)];
                }
                EXPECT_LE(sum, column.x1 - column.x0 + 1e-4);
                EXPECT_LE(column.x1 - column.x0, least + 1e-9);
            }
            for (const ScheduleSpan& span : spans) {
                const double ns = static_cast<double>(std::min(span.end, to) - std::max(span.start, from));
                if (ns > 0) wanted[static_cast<std::size_t>(span.kind)] += ns / view.ns_per_pixel();
            }
            for (int kind = 0; kind < kSpanKinds; ++kind)
                EXPECT_NEAR(drawn[static_cast<std::size_t>(kind)], wanted[static_cast<std::size_t>(kind)],
                            0.01);
        }
    }
}

// The host runs ahead: what it allocates between two computations is drawn between their work.
TEST(ScheduleRows, MemoryIsDrawnWhereTheDeviceRunsWhatAllocates) {
    traces::RunBuilder run;
    run.range(0, 10, 20, "PP:0F0");
    run.kernel(0, 100, 200, 11);
    run.range(0, 30, 40, "PP:0B0");
    run.kernel(0, 300, 500, 31);
    const auto timeline = traces::analysis::pipeline_timeline(*run.take());
    const traces::analysis::ByteCurve curve =
        memory_at_work({{5, 10, 15, 25, 40, 45}, {1, 2, 3, 4, 5, 6}}, timeline, RankIndex(0));
    EXPECT_THAT(curve.time, testing::ElementsAre(95, 100, 150, 250, 500, 505));
    EXPECT_THAT(curve.bytes, testing::ElementsAre(1, 2, 3, 4, 5, 6));
}

// Folded at any width, the band is the lowest and the highest column of all curves.
TEST(ScheduleRows, TheBandOfCurvesHasTheirExtremes) {
    std::mt19937 random(11);
    std::vector<traces::analysis::ByteCurve> curves(20);
    for (traces::analysis::ByteCurve& curve : curves) {
        std::int64_t time = static_cast<std::int64_t>(random() % 50);
        for (int i = 0; i < 60; ++i, time += static_cast<std::int64_t>(random() % 3)) {
            curve.time.push_back(time);  // often the time of others, and of its own last point
            curve.bytes.push_back(static_cast<std::int64_t>(random() % 1000));
        }
    }
    const MemoryBand band = memory_band(curves);
    const draw::LineCurve lowest = draw::line_curve(band.lowest), highest = draw::line_curve(band.highest);
    for (const int columns : {1, 7, 60, 150}) {
        const auto low = fold_line(lowest, -10, 140, columns), high = fold_line(highest, -10, 140, columns);
        std::vector<std::int64_t> least(low.size(), INT64_MAX), most(low.size(), INT64_MIN);
        for (const traces::analysis::ByteCurve& curve : curves) {
            const auto line = fold_line(draw::line_curve(curve), -10, 140, columns);
            for (std::size_t c = 0; c < line.size(); ++c) {
                least[c] = std::min(least[c], line[c].lowest);
                most[c] = std::max(most[c], line[c].highest);
            }
        }
        for (std::size_t c = 0; c < low.size(); ++c) {
            EXPECT_EQ(low[c].lowest, least[c]) << c << " of " << columns;
            EXPECT_EQ(high[c].highest, most[c]) << c << " of " << columns;
        }
    }
}

TEST(ScheduleRows, OnePassMakesTheCurveOfEveryRank) {
    const auto trace = gpipe(4, 2);
    const auto curves = traces::analysis::allocated_curves(*trace);
    ASSERT_THAT(curves, SizeIs(8));
    for (std::size_t r = 0; r < curves.size(); ++r) {
        const auto plain = traces::analysis::allocated_curve(*trace, RankIndex(r));
        EXPECT_THAT(plain.bytes, SizeIs(8));
        EXPECT_EQ(curves[r].time, plain.time);
        EXPECT_EQ(curves[r].bytes, plain.bytes);
    }
}

// --- the panel

class SchedulePanelTest : public PanelsTest {
  protected:
    SchedulePanelTest() { draw::items::keep(true); }
    const traces::store::Trace& trace() { return *session_.trace(); }
};

TEST_F(SchedulePanelTest, ShowsTheStepsBubbleAndCellsOfTheRanksPipeline) {
    session_.add_trace(gpipe(4, 1), "gpipe.sqlite");
    const auto panel = make_panel("schedule");
    const std::string text = draw(*panel);
    EXPECT_EQ(item("schedule.step"), "1");
    EXPECT_THAT(text, HasSubstr("4 ranks"));
    const auto report = traces::analysis::pipeline_report(trace());
    EXPECT_EQ(item("schedule.bubble"), draw::format_percent(report.bubble_percent()));
    EXPECT_EQ(item("schedule.row.3"), draw::format_percent(100 * static_cast<double>(report.ranks[3].idle()) /
                                                           static_cast<double>(report.ranks[3].makespan)));
    EXPECT_EQ(item("schedule.cell.2.2B1"), draw::format_duration(4e6 - 1));
    EXPECT_EQ(item("schedule.memory.0"), "2.0 MiB");
    EXPECT_THAT(text, HasSubstr("the plan alone"));
    click(*panel, "schedule.previous");
    EXPECT_EQ(item("schedule.step"), "0");
    EXPECT_EQ(item("schedule.cell.2.2B1"), draw::format_duration(2e6 - 1));
    panel->act("schedule_next", session_);
    draw(*panel);
    EXPECT_EQ(item("schedule.step"), "1");
}

TEST_F(SchedulePanelTest, KeepsItsStepWhenTheTimeFilterChangesTheListOfSteps) {
    session_.add_trace(gpipe(4, 1), "gpipe.sqlite");
    const auto panel = make_panel("schedule");
    draw(*panel);
    EXPECT_EQ(item("schedule.step"), "1");
    session_.open[0].limit = model::TimeRange{17 * kUnit, 100 * kUnit};
    draw(*panel);
    EXPECT_EQ(item("schedule.step"), "1");
    session_.open[0].limit.reset();
    draw(*panel);
    EXPECT_EQ(item("schedule.step"), "1") << "it is the second of two steps again";
    session_.open[0].limit = model::TimeRange{0, 15 * kUnit};
    draw(*panel);
    EXPECT_EQ(item("schedule.step"), "0") << "the filter excludes the step that was shown";
}

TEST_F(SchedulePanelTest, AClickOnACellGoesToItsKernelOnTheTimeline) {
    session_.add_trace(gpipe(4, 1), "gpipe.sqlite");
    const auto panel = make_panel("schedule");
    draw(*panel);
    click(*panel, "schedule.cell.1.1F1");
    EXPECT_EQ(session_.wanted_panel, "timeline");
    EXPECT_EQ(session_.rank, RankIndex(1));
    ASSERT_EQ(session_.selected.kind, model::EventKind::device);
    const auto event = static_cast<std::size_t>(session_.selected.index);
    EXPECT_EQ(trace().device.rank[event], 1);
    const auto launch = static_cast<std::size_t>(trace().device.launch[event]);
    const auto range = static_cast<std::size_t>(trace().runtime.range[launch]);
    EXPECT_EQ(trace().strings[trace().ranges.name[range]], "PP:1F1");
}

TEST_F(SchedulePanelTest, ADragMovesTheTimeAndLeavesThePanel) {
    session_.add_trace(gpipe(4, 1), "gpipe.sqlite");
    const auto panel = make_panel("schedule");
    draw(*panel);
    const auto before = draw::items::find("schedule.cell.1.1F1");
    ASSERT_TRUE(before);
    ImGuiIO& io = ImGui::GetIO();
    const ImVec2 at = {(before->min.x + before->max.x) / 2, (before->min.y + before->max.y) / 2};
    io.MousePos = at;
    frame(*panel, 1600, 820);
    io.MouseDown[0] = true;
    frame(*panel, 1600, 820);
    io.MousePos = {at.x + 60, at.y};
    frame(*panel, 1600, 820);
    io.MouseDown[0] = false;
    frame(*panel, 1600, 820);
    io.MousePos = {-1e9F, -1e9F};
    draw(*panel);
    const auto after = draw::items::find("schedule.cell.1.1F1");
    ASSERT_TRUE(after);
    EXPECT_NEAR(after->min.x, before->min.x + 60, 1);
    EXPECT_EQ(session_.wanted_panel, "");
    panel->act("schedule_fit", session_);
    draw(*panel);
    EXPECT_NEAR(draw::items::find("schedule.cell.1.1F1")->min.x, before->min.x, 1);
    panel->act("schedule_in", session_);
    draw(*panel);
    const auto closer = draw::items::find("schedule.cell.1.1F1");
    EXPECT_GT(closer->max.x - closer->min.x, before->max.x - before->min.x);
}

TEST_F(SchedulePanelTest, ShowsTheTablesOfTheVerb) {
    session_.add_trace(gpipe(4, 1), "gpipe.sqlite");
    const auto panel = make_panel("schedule");
    draw(*panel);
    click(*panel, "schedule.show.by_rank");
    draw(*panel);
    traces::analysis::Selection selection;
    selection.first_step = selection.last_step = 1;
    const auto report = traces::analysis::pipeline_report(trace(), selection);
    EXPECT_EQ(item("schedule.ranks.2.peer_us"), us_text(report.ranks[2].peer));
    click(*panel, "schedule.show.by_stage");
    draw(*panel);
    EXPECT_EQ(item("schedule.stages.rows"), "8");
}

TEST_F(SchedulePanelTest, ManyRanksAreThinRowsThatCostLittle) {
    session_.add_trace(gpipe(8, 16), "many.sqlite");
    const auto panel = make_panel("schedule");
    draw(*panel);
    EXPECT_EQ(item("schedule.lanes"), "8 rows") << "the pipeline of rank 0";
    click(*panel, "schedule.pipeline");
    click(*panel, "schedule.pipeline.all");
    draw(*panel);
    EXPECT_EQ(item("schedule.lanes"), "128 rows");
    EXPECT_THAT(item("schedule.row.127"), HasSubstr("%"));
    EXPECT_LT(ImGui::GetDrawData()->TotalVtxCount, 4 * 12000);
    EXPECT_LT(commands(), 100);
    EXPECT_EQ(item("schedule.memory.0"), "2.0 MiB") << "the chosen rank's line in the band";
    click(*panel, "schedule.show.by_rank");
    EXPECT_THAT(draw(*panel), HasSubstr("Step 1 of all pipelines by rank"));
}

TEST_F(SchedulePanelTest, SaysWhatToRecordWhereSomethingIsMissing) {
    session_.add_trace(gpipe(4, 1, false, false), "bare.sqlite");
    const auto panel = make_panel("schedule");
    const std::string text = draw(*panel);
    EXPECT_THAT(text, HasSubstr("has no plan"));
    EXPECT_THAT(text, HasSubstr("profile_memory=True"));
    EXPECT_THAT(text, Not(HasSubstr("Plan above")));
    session_.open[0].limit = model::TimeRange{0, 1};
    session_.open[0].limit->from = -10;
    session_.open[0].limit->to = -5;
    EXPECT_THAT(draw(*panel), HasSubstr("time filter"));
    session_.add_trace(std::make_shared<traces::store::Trace>(), "empty.sqlite");
    session_.set_active(1);
    EXPECT_THAT(draw(*panel), HasSubstr("has no pipeline"));
}

TEST_F(SchedulePanelTest, SurvivesAnySizeAndAMouseThatClicksEverywhere) {
    session_.add_trace(gpipe(8, 2), "gpipe.sqlite");
    const auto panel = make_panel("schedule");
    for (const float size : {1.0F, 40.0F, 200.0F, 1000.0F}) draw(*panel, size, size);
    draw(*panel);
    for (float y = 5; y < 800; y += 41) {
        for (float x = 5; x < 1600; x += 67) {
            ImGui::GetIO().MousePos = {x, y};
            ImGui::GetIO().MouseWheel = static_cast<int>(y) % 3 == 0 ? 1.0F : 0.0F;
            ImGui::GetIO().MouseDown[0] = static_cast<int>(x) % 2 == 0;
            frame(*panel, 1600, 820);
        }
    }
    ImGui::GetIO().MouseDown[0] = false;
    ImGui::GetIO().MousePos = {-1e9F, -1e9F};
    panel->closed(trace(), nullptr);
    EXPECT_NE(draw(*panel), "");
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::panels
