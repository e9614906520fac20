// The tables of the communication panels, made from small reports.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "traces/store/columns/trace.h"
#include "viewer/panels/communication/collective_rows.h"
#include "viewer/panels/units/unit_rows.h"

namespace shardscope::viewer::panels {
namespace TEST_FILE {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::size_t column(const tables::TableModel& table, std::string_view id) {
    for (std::size_t c = 0; c < table.columns().size(); ++c) {
        if (table.columns()[c].id == id) return c;
    }
    ADD_FAILURE() << "no column " << id;
    return 0;
}
std::string text(const tables::TableModel& table, std::size_t row, std::string_view id) {
    return table.text(row, column(table, id));
}
double number(const tables::TableModel& table, std::size_t row, std::string_view id) {
    return table.number(row, column(table, id));
}

std::vector<traces::analysis::UnitPhase> unit_rows() {
    traces::analysis::UnitPhase forward{.name = "blocks.0", .phase = traces::schema::Phase::forward};
    forward.sum.gathers = 4;
    forward.sum.gather_bytes = 8 << 20;
    forward.sum.gather_ns = 40000;
    forward.sum.wait_ns = 6000;
    forward.sum.gather_exposed_ns = 10000;
    forward.hidden_by = "root";
    traces::analysis::UnitPhase backward{.name = "blocks.0", .phase = traces::schema::Phase::backward};
    backward.sum.reductions = 3;
    backward.sum.reduce_ns = 9000;
    backward.sum.reduce_exposed_ns = 9000;
    return {forward, backward};
}

TEST(UnitTable, HoldsMeansOfAStepOrSums) {
    const auto means = unit_table(unit_rows(), 2);
    EXPECT_EQ(text(*means, 0, "unit"), "blocks.0 forward");
    // The JSON and CSV of the verb name the sums "gather_us" and the averages "gather_per_step_us".
    EXPECT_EQ(text(*means, 0, "gathers_per_step"), "2");
    EXPECT_EQ(text(*means, 0, "gathered_per_step_mb"), "4.00");
    EXPECT_EQ(text(*means, 0, "gather_per_step_us"), "20.0");
    EXPECT_EQ(text(*means, 0, "wait_per_step_us"), "3.0");
    EXPECT_EQ(text(*means, 0, "exposed_per_step_us"), "5.0");
    EXPECT_EQ(text(*means, 0, "hidden_by"), "root");
    EXPECT_EQ(means->columns()[3].unit, "\u00b5s per step");
    const auto sums = unit_table(unit_rows(), std::nullopt);
    EXPECT_EQ(sums->columns()[3].unit, "\u00b5s");
    EXPECT_EQ(number(*sums, 0, "gathers"), 4);
    EXPECT_EQ(number(*sums, 0, "gather_us"), 40);
    EXPECT_EQ(number(*sums, 1, "exposed_us"), 9);
}

TEST(AxisTable, HoldsTheMeansOfARankAndStep) {
    traces::analysis::DistributedReport report;
    EXPECT_EQ(axis_table(report), nullptr);
    report.axes.push_back({.axis = "tensor",
                           .groups = 4,
                           .group_size = 2,
                           .collectives = 8,
                           .steps = 4,
                           .parts = 16,
                           .ns = 40000,
                           .exposed_ns = 10000});
    const auto table = axis_table(report);
    EXPECT_EQ(text(*table, 0, "axis"), "tensor");
    EXPECT_EQ(text(*table, 0, "ranks"), "2");
    EXPECT_EQ(number(*table, 0, "count_per_step"), 4);
    EXPECT_EQ(number(*table, 0, "us_per_step"), 10);
    EXPECT_EQ(text(*table, 0, "exposed_us_per_step"), "2.5");
    EXPECT_EQ(text(*table, 0, "mb"), "-") << "bytes are unknown";
}

TEST(UnitTable, SaysNothingOfGathersWhereThereAreNone) {
    const auto table = unit_table(unit_rows(), 2);
    EXPECT_EQ(text(*table, 1, "gather_per_step_us"), "-");
    EXPECT_TRUE(std::isnan(number(*table, 1, "gather_per_step_us")));
    EXPECT_EQ(text(*table, 1, "reductions_per_step"), "1.50");
    EXPECT_EQ(text(*table, 0, "reduce_per_step_us"), "-");
}

TEST(UnitTable, NotesUnitsThatAreGatheredAgainImmediately) {
    auto rows = unit_rows();
    EXPECT_EQ(regather_text(rows, 2, true), "");
    rows[0].sum.regathers = 2;  // two of four gathers of 10 us each, in two steps
    EXPECT_THAT(regather_text(rows, 2, true), HasSubstr("blocks.0 is gathered again"));
    EXPECT_THAT(regather_text(rows, 2, true), HasSubstr("10.00 \u00b5s per step"));
    EXPECT_THAT(regather_text(rows, 1, false), Not(HasSubstr("per step"))) << "the trace names none";
}

TEST(CollectiveTable, MakesItsCellsFromTheList) {
    traces::store::Trace trace;
    trace.units.push_back({.id = 7, .name = "blocks.0"});
    traces::analysis::CollectiveTimes c;
    c.operation = traces::schema::Operation::all_gather;
    c.sequence = 12;
    c.unit = traces::store::UnitIndex(0);
    c.bytes = 3 << 20;
    c.start_ns = 2500000;
    c.transfer_ns = 1500;
    c.ranks = 1;
    const auto list = std::make_shared<const std::vector<traces::analysis::CollectiveTimes>>(1, c);
    const CollectiveTable table(list, trace);
    EXPECT_EQ(text(table, 0, "collective"), "all_gather 12");
    EXPECT_EQ(text(table, 0, "unit"), "blocks.0");
    EXPECT_EQ(text(table, 0, "start_ms"), "2.500");
    EXPECT_EQ(number(table, 0, "mb"), 3);
    EXPECT_EQ(text(table, 0, "transfer_us"), "1.5");
    EXPECT_EQ(text(table, 0, "last_rank"), "-");
    EXPECT_EQ(text(table, 0, "busbw_gbps"), "-");
}

TEST(SizeHistogram, CountsEachOperationByItsClass) {
    traces::analysis::DistributedReport report;
    const auto add = [&](traces::schema::Operation operation, int size_class, std::int64_t count) {
        traces::analysis::Traffic t;
        t.operation = operation;
        t.size_class = size_class;
        t.count = count;
        report.traffic.push_back(t);
    };
    add(traces::schema::Operation::all_gather, 1, 5);
    add(traces::schema::Operation::all_gather, 1, 2);  // another group
    add(traces::schema::Operation::reduce_scatter, 1, 4);
    add(traces::schema::Operation::barrier, -1, 3);
    const SizeHistogram histogram = size_histogram(report);
    ASSERT_EQ(histogram.operations.size(), 3u);
    EXPECT_THAT(histogram.operations[0].count, ElementsAre(0, 7, 0, 0, 0, 0, 0));
    EXPECT_THAT(histogram.operations[2].count, ElementsAre(0, 0, 0, 0, 0, 0, 3));
    EXPECT_EQ(histogram.most, 11);
    EXPECT_EQ(size_class_text(0), "below 4 KiB");
    EXPECT_EQ(size_class_text(1), "4 KiB - 64 KiB");
    EXPECT_EQ(size_class_text(4), "16 MiB - 256 MiB");
    EXPECT_EQ(size_class_text(5), "from 256 MiB");
    EXPECT_EQ(size_class_text(6), "unknown");
}

TEST(RankTable, HoldsMeansOfAStep) {
    traces::analysis::DistributedReport report;
    traces::analysis::RankTraffic rank{
        .rank = 3, .steps = 2, .collectives = 5, .ns = 10000, .transfer_ns = 4000};
    rank.parts = {.computation = 8000, .overlapped = 2000, .exposed_communication = 6000, .other = 0};
    report.ranks = {rank};
    const auto table = rank_table(report);
    EXPECT_EQ(text(*table, 0, "rank"), "3");
    EXPECT_EQ(text(*table, 0, "computation_us"), "4.0");
    EXPECT_EQ(text(*table, 0, "overlap_percent"), "25.00");
    EXPECT_EQ(text(*table, 0, "collectives"), "2.50");
    EXPECT_EQ(text(*table, 0, "waiting_us"), "3.0");
    EXPECT_EQ(text(*table, 0, "mb"), "-");
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::panels
