// Curves folded with an index, and the rows of the tables of memory, steps and runs.
#include <chrono>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/viewer/mlp_sample.h"
#include "traces/store/columns/column_sink.h"
#include "viewer/draw/fold.h"
#include "viewer/panels/memory/allocation_table.h"
#include "viewer/panels/memory/memory_tables.h"
#include "viewer/panels/memory/memory_words.h"
#include "viewer/panels/runs/runs_rows.h"
#include "viewer/panels/summary/summary_rows.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::panels {
namespace TEST_FILE {

using testing::ElementsAre;
using traces::analysis::MemoryPoint;
using traces::analysis::RankMemory;
using traces::store::RankIndex;

std::string cell(const tables::TableModel& table, std::size_t row, const std::string& column) {
    for (std::size_t c = 0; c < table.columns().size(); ++c) {
        if (table.columns()[c].id == column) return table.text(row, c);
    }
    return "no column " + column;
}

std::vector<MemoryPoint> random_points(std::size_t count, unsigned seed, int most_gap) {
    std::mt19937 random(seed);
    std::vector<MemoryPoint> points;
    MemoryPoint point;
    for (std::size_t i = 0; i < count; ++i) {
        point.time +=
            static_cast<std::int64_t>(random() % static_cast<unsigned>(most_gap));  // 0: same instant
        const std::size_t category = random() % traces::schema::kMemoryCategories;
        const std::int64_t change = static_cast<std::int64_t>(random() % 1000) - 450;
        const std::int64_t now = std::max<std::int64_t>(0, point.bytes[category] + change);
        point.total += now - point.bytes[category];
        point.bytes[category] = now;
        points.push_back(point);
    }
    return points;
}

TEST(MemoryFold, ALineHasTheTotalsOfTheStack) {
    const std::vector<MemoryPoint> points = random_points(2000, 3, 20);
    traces::analysis::ByteCurve totals;
    for (const MemoryPoint& point : points) {
        totals.time.push_back(point.time);
        totals.bytes.push_back(point.total);
    }
    const draw::LineCurve line = draw::line_curve(totals);
    const std::int64_t end = points.back().time;
    const auto stack = draw::fold_curve(points, 10, end, 400);
    const auto folded = fold_line(line, 10, end, 400);
    const auto shifted = fold_line(line, 1010, end + 1000, 400, 1000);
    ASSERT_EQ(folded.size(), stack.size());
    for (std::size_t i = 0; i < stack.size(); ++i) {
        EXPECT_EQ(folded[i].lowest, stack[i].lowest);
        EXPECT_EQ(folded[i].highest, stack[i].highest);
    }
    EXPECT_EQ(folded, shifted);
    EXPECT_EQ(line_at(line, points[700].time), draw::point_at(points, points[700].time)->total);
    EXPECT_EQ(line_at(line, -1), 0);
}

TEST(MemoryFold, NothingFoldsToNothing) {
    EXPECT_EQ(draw::fold_line({}, 0, 10, 1), (std::vector<draw::LineColumn>(1)));
}

TEST(MemoryTables, CategoriesBeginWithAllAndSayTheDifferenceToThePrediction) {
    RankMemory memory;
    memory.peak_bytes = 3 << 20;
    memory.at_peak[0] = 2 << 20;  // parameters
    memory.at_peak[5] = 1 << 20;  // activations
    memory.predicted_peak_bytes = (3 << 20) - 8;
    memory.predicted_at_peak[0] = 2 << 20;
    memory.predicted_at_peak[5] = (1 << 20) - 8;
    const auto table = category_table(memory);
    ASSERT_EQ(table->rows(), 1U + traces::schema::kMemoryCategories);
    EXPECT_EQ(cell(*table, 0, "category"), "all");
    EXPECT_EQ(cell(*table, 0, "bytes"), "3,145,728");
    EXPECT_EQ(cell(*table, 0, "difference_bytes"), "+8");
    EXPECT_EQ(cell(*table, 1, "difference_bytes"), "=");
    EXPECT_EQ(cell(*table, 6, "share_percent"), "33.33");
    memory.prediction_applies = false;  // it is for the whole run, but a part is selected
    EXPECT_EQ(cell(*category_table(memory), 0, "difference_bytes"), "no column difference_bytes");
}

TEST(MemoryTables, HoldersThatNameNobodyAreNotOffered) {
    RankMemory memory;
    memory.units = {{"(no unit)", 10}};
    memory.modules = {{"(no module)", 4}, {"Linear_0", 6}};
    EXPECT_THAT(told_kinds(memory), ElementsAre(HolderKind::module));
    const auto table = holder_table(memory, HolderKind::module);
    EXPECT_EQ(cell(*table, 1, "name"), "Linear_0");
}

TEST(MemoryTables, TwoPeaksAreJoinedByNameTheLargestDifferenceFirst) {
    RankMemory here, there;
    here.units = {{"a", 4 << 20}, {"b", 1 << 20}};
    there.units = {{"b", 3 << 20}, {"a", 4 << 20}, {"c", 1 << 20}};
    const auto table = compared_holders(here, there, HolderKind::unit);
    EXPECT_EQ(cell(*table, 0, "name"), "b");
    EXPECT_EQ(cell(*table, 0, "difference_mb"), "+2.00");  // 3 - 1
    EXPECT_EQ(cell(*table, 0, "change_percent"), "+200.00");
    EXPECT_EQ(cell(*table, 1, "name"), "c");
    EXPECT_EQ(cell(*table, 1, "change_percent"), "new");
    EXPECT_EQ(cell(*table, 2, "difference_mb"), "=");
}

TEST(MemoryTables, EveryAllocationIsARowWithItsLife) {
    const auto trace = mlp_sample({.per_linear = true, .steps = 2}, "linear.sqlite");
    const auto found = std::make_shared<traces::analysis::Allocations>(
        traces::analysis::find_allocations(*trace, {.rank = 0}));
    const AllocationTable table(trace, found);
    ASSERT_GT(table.rows(), 10U);
    std::size_t freed = 0;
    for (std::size_t row = 0; row < table.rows(); ++row) {
        const std::uint32_t i = table.memory_row(row);
        EXPECT_EQ(table.number(row, 0), static_cast<double>(trace->memory.time[i]) * 1e-6);
        EXPECT_EQ(table.number(row, 1), static_cast<double>(trace->memory.bytes[i]));
        if (table.freed_ns(row) == traces::analysis::kNeverFreed) {
            EXPECT_EQ(table.text(row, 2), "-");
        } else {
            ++freed;
            EXPECT_GE(table.number(row, 2), 0);
        }
    }
    EXPECT_GT(freed, 0U);
}

TEST(MemoryTables, ThePeaksSentenceStatesWhatTheTraceRecords) {
    traces::analysis::RankExplanation rank;
    EXPECT_EQ(moment_sentence(rank), "");
    rank.moment.bytes = 4 << 20;
    rank.moment.buffer = "weight.grad";
    rank.moment.unit = "blocks.3";
    rank.moment.phase = traces::schema::Phase::backward;
    rank.moment.step = 2;
    EXPECT_EQ(moment_sentence(rank),
              "Reached by allocating 4.0 MiB (weight.grad) of blocks.3, in the backward of step 2.");
}

TEST(SummaryRows, HaveTheMeanFirstAndSevenRowsWhereCommunicationIsKernel) {
    const auto trace = mlp_sample({}, "root.sqlite");
    const auto whole = traces::analysis::summarize(*trace);
    const auto table = panels::category_times(whole, whole.ranks[0]);
    ASSERT_EQ(table->rows(), 9U);
    EXPECT_EQ(table->number(0, 1), whole.ranks[0].average_step_us);
    double sum = 0;
    for (std::size_t row = 1; row < table->rows(); ++row) sum += table->number(row, 1);
    EXPECT_NEAR(sum, table->number(0, 1), 1e-6) << "the categories are all of the step";
    const auto folded = traces::analysis::summarize(*trace, {}, traces::analysis::CommunicationAs::kernel);
    EXPECT_EQ(panels::category_times(folded, folded.ranks[0])->rows(), 8U);
}

TEST(SummaryRows, StepsSumToTheirWindow) {
    const auto trace = mlp_sample({.steps = 4}, "root.sqlite");
    const auto summary = traces::analysis::summarize(*trace);
    const auto steps = traces::analysis::steps_report(*trace);
    const auto table = step_times(summary, summary.ranks[0], &steps.ranks[0]);
    ASSERT_EQ(table->rows(), summary.ranks[0].steps.size());
    for (std::size_t row = 0; row < table->rows(); ++row) {
        double sum = 0;
        // The categories follow the step, its start, its window and its host step.
        for (std::size_t c = 4; c < 4 + traces::analysis::kTimeCategories; ++c) sum += table->number(row, c);
        EXPECT_NEAR(sum, table->number(row, 2), 1e-6);
    }
    EXPECT_NE(cell(*table, 0, "device_busy_percent"), "no column device_busy_percent");
    EXPECT_EQ(rank_times(summary)->rows(), 2U);
}

TEST(RunsRows, MarkSettingsThatDifferAndPutThemFirst) {
    const auto root = mlp_sample({.per_linear = false}, "root.sqlite"),
               linear = mlp_sample({.per_linear = true}, "linear.sqlite");
    model::Session session;
    session.add_trace(root, "root.sqlite");
    session.add_trace(linear, "linear.sqlite");
    std::vector<RunFacts> runs(2);
    for (std::size_t i = 0; i < 2; ++i) {
        runs[i].entry = &session.open[i];
        runs[i].info = std::make_shared<traces::analysis::TraceInfo>(
            traces::analysis::trace_info(*session.open[i].trace));
    }
    const ConfigurationCount count = count_configuration(runs);
    EXPECT_EQ(count.different, 1U) << "fsdp.wrap; where the trace is written is no difference";
    const auto all = configuration_table(runs, false), only = configuration_table(runs, true);
    EXPECT_EQ(all->rows(), count.keys);
    ASSERT_EQ(only->rows(), 1U);
    EXPECT_EQ(only->text(0, 0), "fsdp.wrap");
    EXPECT_EQ(only->text(0, 1), "root");
    EXPECT_EQ(only->text(0, 2), "module:Linear");
    EXPECT_EQ(all->text(0, 0), "fsdp.wrap");
    EXPECT_NE(all->ink(0, 1), 0U);
    EXPECT_EQ(all->ink(1, 1), 0U);
}

TEST(MemoryWords, SayWhenThePeakWasAndWhatWasForetold) {
    traces::store::Trace trace;
    trace.steps = {{.rank = RankIndex(0), .number = 3, .start = 1'000'000, .end = 9'000'000}};
    EXPECT_EQ(moment(trace, RankIndex(0), 3'000'000), "in step 3, 2.00 ms after its start");
    EXPECT_EQ(moment(trace, RankIndex(0), 9'000'000), "at 9.00 ms") << "a step ends before its end";
    EXPECT_EQ(moment(trace, RankIndex(1), 3'000'000), "at 3.00 ms") << "it is a step of another rank";
    RankMemory memory;
    memory.peak_bytes = 3 << 20;
    memory.predicted_peak_bytes = -1;
    EXPECT_EQ(prediction(trace, memory), "No prediction is stored.");
    trace.config = {{"import.format", "kineto"}};
    EXPECT_EQ(prediction(trace, memory), "") << "no other tool stores one";
    memory.predicted_peak_bytes = (3 << 20) - 8;
    EXPECT_EQ(prediction(trace, memory), "Predicted 3.00 MiB, off by 8 bytes.");
    memory.predicted_peak_bytes = 3 << 20;
    memory.predicted_where = "first step";
    EXPECT_EQ(prediction(trace, memory), "Predicted 3.00 MiB, exact (first step).");
}

// A run of one step, whose predicted peak is that of the later steps.
TEST(MemoryWords, CompareTheFirstStepWithThePredictionOfTheFirstStep) {
    traces::store::Trace trace;
    RankMemory memory;
    memory.peak_bytes = 3 << 20;
    memory.predicted_peak_bytes = 5 << 20;
    memory.prediction_applies = false;
    memory.predicted_of_steps = 3 << 20;
    memory.predicted_step = 1;
    EXPECT_EQ(prediction(trace, memory),
              "Predicted for these steps 3.00 MiB, exact; 5.00 MiB from step 1 on.");
    memory.predicted_of_steps = 2 << 20;
    EXPECT_EQ(prediction(trace, memory),
              "Predicted for these steps 2.00 MiB, off by 1.00 MiB; 5.00 MiB from step 1 on.");
}

TEST(MemoryWords, RunsAreMovedToBeginTheirFirstCommonStepTogether) {
    traces::store::Trace here, there;
    here.steps = {{.rank = RankIndex(0), .number = 1, .start = 100, .end = 200},
                  {.rank = RankIndex(0), .number = 2, .start = 200, .end = 300}};
    there.steps = {{.rank = RankIndex(0), .number = 2, .start = 50, .end = 70}};
    EXPECT_EQ(alignment(here, RankIndex(0), there, RankIndex(0)), 150);  // 200 - 50
    there.steps.clear();
    here.first_ns = 10;
    there.first_ns = 4;
    EXPECT_EQ(alignment(here, RankIndex(0), there, RankIndex(0)), 6)
        << "no step in common: the traces begin together";
}

TEST(SummaryRows, ATraceWithoutStepsIsSummedUpAsAWhole) {
    traces::analysis::ExecutionSummary summary;
    traces::analysis::RankSummary& rank = summary.ranks.emplace_back();
    rank.average_step_us = 10;
    EXPECT_EQ(panels::category_times(summary, rank)->text(0, 0), "Average Step Time");
    EXPECT_EQ(panels::category_times(summary, rank, false)->text(0, 0), "Whole trace");
    EXPECT_EQ(panels::category_times(summary, rank, false)->columns()[1].title, "Time");
}

TEST(RunsRows, ATraceWithoutStepsHasNoFiguresOfAStep) {
    auto info = std::make_shared<traces::analysis::TraceInfo>();
    info->ranks = 1;
    auto figures = std::make_shared<traces::analysis::Comparison>();
    figures->runs.emplace_back();
    figures->runs[0].steps = 1;  // the whole run counts as one step
    figures->runs[0].average_step_us = 4e6;
    figures->runs[0].peak_bytes = 1 << 20;
    model::OpenTrace entry;
    entry.name = "snapshot.pickle";
    entry.trace = std::make_shared<traces::store::Trace>();
    RunFacts run;
    run.entry = &entry;
    run.info = info;
    run.figures = figures;
    const auto table = runs_table({run});
    EXPECT_EQ(cell(*table, 0, "steps"), "none");
    EXPECT_EQ(cell(*table, 0, "average_step_us"), "-");
    EXPECT_EQ(cell(*table, 0, "exposed_communication_us"), "-");
    EXPECT_EQ(cell(*table, 0, "device_busy_percent"), "-") << "it holds no work of a device";
    EXPECT_EQ(cell(*table, 0, "peak_mb"), "1.00");
    info->steps = 1;
    EXPECT_EQ(cell(*runs_table({run}), 0, "average_step_us"), "4,000,000.0");
}

TEST(RunsRows, ARunIsGreenOnlyWhileItIsInProgress) {
    constexpr std::size_t kState = 1;
    auto trace = std::make_shared<traces::store::Trace>();
    trace->ended = false;
    auto info = std::make_shared<traces::analysis::TraceInfo>();
    info->ended = false;
    model::OpenTrace entry;
    entry.trace = trace;
    RunFacts run;
    run.entry = &entry;
    run.info = info;
    entry.grew = std::chrono::steady_clock::now();
    EXPECT_EQ(runs_table({run})->text(0, kState), "running");
    EXPECT_EQ(runs_table({run})->ink(0, kState), theme::good());
    entry.grew.reset();
    EXPECT_EQ(runs_table({run})->text(0, kState), "stopped without finishing");
    EXPECT_EQ(runs_table({run})->ink(0, kState), theme::bad());
    trace->ended = info->ended = true;
    EXPECT_EQ(runs_table({run})->text(0, kState), "finished");
    EXPECT_EQ(runs_table({run})->ink(0, kState), 0U);
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::panels
