// Operators: calls, host total and self, device total and self, by name and by shape.
#include "traces/analysis/modules/operators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"
#include "traces/store/columns/names.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

using ::testing::IsEmpty;
using ::testing::SizeIs;

// An operator as Kineto records it.
void op(RunBuilder& run, std::int64_t start, std::int64_t end, std::string_view name,
        std::string_view detail = "", int rank = 0, std::int64_t external_id = 0) {
    run.sink().add(schema::RangeRow{.start = start,
                                    .end = end,
                                    .text = run.sink().intern(name),
                                    .domain = run.sink().intern(store::kOperatorDomain),
                                    .global_tid = RunBuilder::tid(rank),
                                    .detail = run.sink().intern(detail),
                                    .external_id = external_id});
}

const OperatorStats& find(const OperatorsReport& report, std::string_view name,
                          std::string_view shapes = "") {
    for (const OperatorStats& o : report.ranks.at(0).operators) {
        if (o.name == name && o.shapes == shapes) return o;
    }
    ADD_FAILURE() << name << ' ' << shapes;
    static const OperatorStats none;
    return none;
}

TEST(Operators, SelfIsWithoutOperatorsInsideAndWithoutRuntimeCalls) {
    RunBuilder run;
    op(run, 0, 100, "aten::linear");
    op(run, 10, 80, "aten::addmm");
    // A user's range is not an operator, and does not affect the others.
    run.range(0, 15, 75, "a user's range", -1, store::kAnnotationDomain);
    op(run, 20, 30, "aten::view");
    run.runtime(0, 40, 55, "cudaMalloc");
    run.kernel(0, 200, 260, 60);  // launched by a call 60..61 in addmm
    run.kernel(0, 300, 310, 85);  // in linear, outside addmm
    const auto trace = run.take();
    const OperatorsReport report = operators_report(*trace);
    ASSERT_THAT(report.ranks, SizeIs(1));
    EXPECT_EQ(report.ranks[0].distinct, 3);
    const OperatorStats& linear = find(report, "aten::linear");
    EXPECT_EQ(linear.calls, 1);
    EXPECT_EQ(linear.host_total, 100);
    EXPECT_EQ(linear.host_self, 100 - 70 - 1);
    EXPECT_EQ(linear.device_total, 60 + 10);
    EXPECT_EQ(linear.device_self, 10);
    const OperatorStats& addmm = find(report, "aten::addmm");
    EXPECT_EQ(addmm.host_self, 70 - 10 - 15 - 1);
    EXPECT_EQ(addmm.device_total, 60);
    EXPECT_EQ(addmm.device_self, 60);
    EXPECT_EQ(report.ranks[0].operators[0].name, "aten::addmm");  // most device self time
    EXPECT_EQ(report.ranks[0].device_self, 70);
}

TEST(Operators, FilesAreNotDeviceTime) {
    RunBuilder run;
    op(run, 0, 100, "swap_out");
    run.memcpy(0, 200, 230, 10);
    run.file(0, schema::kCopyHostToDisk, 230, 900, 20);
    EXPECT_EQ(find(operators_report(*run.take()), "swap_out").device_total, 230 - 200);
}

TEST(Operators, ADriversCallInsideARuntimeCallIsTakenOnce) {
    RunBuilder run;
    op(run, 0, 100, "aten::mm");
    run.runtime(0, 10, 40, "cudaLaunchKernel");
    run.runtime(0, 15, 30, "cuLaunchKernel");
    run.runtime(0, 90, 120, "cudaStreamSynchronize");  // ends after the operator does
    const auto trace = run.take();
    EXPECT_EQ(find(operators_report(*trace), "aten::mm").host_self, 100 - 30 - 10);
}

TEST(Operators, TheOperatorThatTheSourceNamesCountsIfThereIsNoLaunch) {
    RunBuilder run;
    op(run, 0, 100, "aten::mm", "", 0, 77);
    run.sink().add(schema::KernelRow{.start = 200,
                                     .end = 250,
                                     .device = 0,
                                     .stream = 7,
                                     .correlation = 5,
                                     .global_pid = RunBuilder::pid(0),
                                     .short_name = run.sink().intern("gemm"),
                                     .external_id = 77});
    const auto trace = run.take();
    EXPECT_EQ(find(operators_report(*trace), "aten::mm").device_self, 50);
}

TEST(Operators, ByShapeANameHasARowPerInputShape) {
    RunBuilder run;
    op(run, 0, 10, "aten::mm", R"({"Input Dims":[[2,3],[3,4]],"Sequence number":1})");
    op(run, 20, 40, "aten::mm", R"({"Sequence number":2,"Input Dims":[[2,3],[3,4]]})");
    op(run, 50, 90, "aten::mm", R"({"Input Dims":[[8,3],[3,4]]})");
    op(run, 100, 105, "aten::mm");
    const auto trace = run.take();
    const OperatorsReport report = operators_report(*trace, {}, true);
    EXPECT_EQ(report.ranks[0].distinct, 3);
    EXPECT_EQ(find(report, "aten::mm", "[[2,3],[3,4]]").host_total, 10 + 20);
    EXPECT_EQ(find(report, "aten::mm", "[[2,3],[3,4]]").calls, 2);
    EXPECT_EQ(find(report, "aten::mm", "[[8,3],[3,4]]").host_total, 40);
    EXPECT_EQ(find(report, "aten::mm", "").calls, 1);
    EXPECT_EQ(find(operators_report(*trace), "aten::mm").calls, 4);
}

TEST(Operators, AreTheRangesOfATraceWithoutOperators) {
    RunBuilder run;
    run.range(0, 0, 10, "aten::mm, seq = 3, op_id = 9, sizes = [[2, 3], [3, 4]]");
    run.range(0, 20, 40, "aten::mm, op_id = 10");
    run.range(0, 50, 60, "nn.Module: Net_0");
    run.range(0, 70, 80, "ProfilerStep#1");
    const auto trace = run.take();
    const OperatorsReport by_name = operators_report(*trace, {}, false);
    EXPECT_EQ(by_name.ranks[0].distinct, 1);
    EXPECT_EQ(find(by_name, "aten::mm").calls, 2);
    const OperatorsReport by_shape = operators_report(*trace, {}, true);
    EXPECT_EQ(find(by_shape, "aten::mm", "[[2, 3], [3, 4]]").host_total, 10);
    EXPECT_EQ(find(by_shape, "aten::mm", "").host_total, 20);
}

TEST(Operators, ASelectionCountsCallsThatStartInIt) {
    RunBuilder run(2);
    for (int rank = 0; rank < 2; ++rank) {
        for (int s = 0; s < 2; ++s) {
            run.step(rank, s, 100 * s, 100 * s + 100);
            op(run, 100 * s + 10, 100 * s + 30 + rank, "aten::mm", "", rank);
        }
    }
    const auto trace = run.take();
    const auto one = operators_report(*trace, {.rank = 1, .first_step = 1, .last_step = 1});
    ASSERT_THAT(one.ranks, SizeIs(1));
    EXPECT_EQ(one.ranks[0].rank, 1);
    EXPECT_EQ(find(one, "aten::mm").host_total, 21);
    EXPECT_THAT(operators_report(*trace, {.from_ns = 115}).ranks[0].operators, IsEmpty());
    EXPECT_THAT(operators_report(*trace, {}, false, 1).ranks[0].operators, SizeIs(1));
}

TEST(OperatorNames, ShapesAreAWholeListOrNothing) {
    EXPECT_EQ(operator_text("aten::mm").name, "aten::mm");
    EXPECT_EQ(operator_text("a, b").name, "a, b");
    EXPECT_EQ(operator_text("aten::mm, op_id = 3").name, "aten::mm");
    EXPECT_EQ(operator_text("aten::mm, sizes = [[1], []], input_op_ids = [(2,0)]").shapes, "[[1], []]");
    EXPECT_EQ(operator_text("aten::mm, sizes = [[1], [").shapes, "");
    EXPECT_EQ(input_shapes(R"({"Input Dims":[["]"],[2]],"x":[1]})"), R"([["]"],[2]])");
    EXPECT_EQ(input_shapes(R"({"Input Dims": [[1]]})"), "[[1]]");
    EXPECT_EQ(input_shapes(R"({"Input dims":[[1]]})"), "[[1]]");
    EXPECT_EQ(input_shapes(R"({"Input Dims":7})"), "");
    EXPECT_EQ(input_shapes(R"({"Input Dims":[[1)"), "");
    EXPECT_EQ(input_shapes(""), "");
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
