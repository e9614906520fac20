// Several ranks: distributed, stragglers, scaling. Times in nanoseconds.
#include "traces/analysis/communication/distributed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"
#include "traces/analysis/communication/matching.h"
#include "traces/analysis/communication/stragglers.h"
#include "traces/analysis/compare/scaling.h"
#include "traces/report/report.h"
#include "traces/store/columns/names.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// Three ranks arrive at a collective at these times, and it ends at 1000 for all.
void arrive(RunBuilder& run, std::int64_t base, std::int64_t sequence, const std::array<int, 3>& at,
            schema::Operation operation = schema::Operation::all_reduce, std::int64_t bytes = 0) {
    for (int rank = 0; rank < 3; ++rank) {
        run.collective(rank, base + at[static_cast<std::size_t>(rank)], base + 1000,
                       {.operation = operation, .bytes = bytes, .sequence = sequence, .group_size = 3});
    }
}

TEST(Stragglers, TheShortestDurationCameLast) {
    RunBuilder run(3);
    arrive(run, 0, 0, {0, 300, 900});       // rank 2 arrives last, 600 after rank 1
    arrive(run, 2000, 1, {100, 100, 500});  // rank 2 arrives last, 400 after both
    arrive(run, 4000, 2, {0, 200, 100});    // rank 1 arrives last, 100 after rank 2
    const StragglersReport report = straggler_report(*run.take());
    EXPECT_EQ(report.collectives, 3);
    ASSERT_THAT(report.ranks, SizeIs(3));
    const Arrivals& latest = report.ranks[0];
    EXPECT_EQ(latest.rank, 2);
    EXPECT_EQ(latest.last, 2);
    EXPECT_EQ(latest.late_ns, 900 + 400 + 100);  // after the first arrival at each collective
    EXPECT_EQ(latest.held_ns, 600 + 400);        // only where it was last: after the last but one
    EXPECT_EQ(latest.waited_ns, 0 + 0 + 100);
    EXPECT_EQ(report.ranks[1].rank, 1);
    EXPECT_EQ(report.ranks[1].late_ns, 300 + 0 + 200);
    EXPECT_EQ(report.ranks[1].held_ns, 100);
    EXPECT_EQ(report.ranks[2].rank, 0);
    EXPECT_EQ(report.ranks[2].waited_ns, 900 + 400 + 200);
}

TEST(Stragglers, ClocksOfRanksDoNotMatter) {
    RunBuilder run(2);
    run.collective(0, 0, 100, {.sequence = 0, .group_size = 2});
    run.collective(1, 5000, 5300, {.sequence = 0, .group_size = 2});  // its clock is ahead; it waited 200
    const StragglersReport report = straggler_report(*run.take());
    EXPECT_EQ(report.ranks[0].rank, 0);
    EXPECT_EQ(report.ranks[0].late_ns, 200);
}

TEST(Stragglers, TwoThatCameTogetherAreBothNotLast) {
    RunBuilder run(2);
    run.collective(0, 0, 100, {.sequence = 0, .group_size = 2});
    run.collective(1, 0, 100, {.sequence = 0, .group_size = 2});
    const StragglersReport report = straggler_report(*run.take());
    EXPECT_EQ(report.collectives, 1);
    EXPECT_EQ(report.ranks[0].last + report.ranks[1].last, 0);
}

TEST(Stragglers, AreCountedByOperationAndSelection) {
    RunBuilder run(3);
    arrive(run, 0, 0, {0, 300, 900}, schema::Operation::all_gather);
    arrive(run, 2000, 0, {500, 0, 0}, schema::Operation::all_reduce);
    const auto trace = run.take();
    const StragglersReport report = straggler_report(*trace);
    ASSERT_THAT(report.kinds, SizeIs(2));
    EXPECT_EQ(report.kinds[0].operation, schema::Operation::all_gather);
    EXPECT_EQ(report.kinds[0].ranks[0].rank, 2);
    EXPECT_EQ(report.kinds[1].ranks[0].rank, 0);
    const StragglersReport late = straggler_report(*trace, {.rank = 0, .from_ns = 2000});
    EXPECT_EQ(late.collectives, 1);
    ASSERT_THAT(late.ranks, SizeIs(1));
    EXPECT_EQ(late.ranks[0].late_ns, 500);  // relative to all ranks, including those not shown
}

TEST(Stragglers, OfOneRankAreUnknown) {
    RunBuilder run;
    run.collective(0, 0, 100, {.group_size = 2});
    const StragglersReport report = straggler_report(*run.take());
    EXPECT_EQ(report.trace_ranks, 1);
    EXPECT_EQ(report.collectives, 0);
    EXPECT_THAT(report.ranks, IsEmpty());
}

TEST(Matching, KernelsWithoutMetadataMatchByOrderWithinTheirOperation) {
    // NCCL's SendRecv kernel serves several operations: the range around its launch shows which.
    const auto matches = [](int on_second_rank) {
        RunBuilder run(2);
        for (int rank = 0; rank < 2; ++rank) {
            for (int i = 0; i < (rank == 0 ? 2 : on_second_rank); ++i) {
                const std::int64_t at = 1000 * i;
                run.range(rank, at, at + 50, "nccl:all_to_all", -1, store::kAnnotationDomain);
                run.kernel(rank, at + 100, at + 200 + 100 * rank, at + 10, 7, "ncclKernel_SendRecv_RING");
            }
            run.kernel(rank, 5000, 5100 + rank, 4000, 7, "ncclKernel_AllReduce_RING_LL_Sum_float");
        }
        return straggler_report(*run.take());
    };
    const StragglersReport agree = matches(2);
    EXPECT_EQ(agree.collectives, 3);
    EXPECT_EQ(agree.unmatched, 0);
    ASSERT_THAT(agree.kinds, SizeIs(2));
    EXPECT_EQ(agree.kinds[1].operation, schema::Operation::all_to_all);
    EXPECT_EQ(agree.kinds[1].ranks[0].late_ns, 2 * 100);
    const StragglersReport disagree = matches(3);
    EXPECT_EQ(disagree.collectives, 1);  // the all-reduce
    EXPECT_EQ(disagree.unmatched, 5);
}

// PyTorch gives all collectives of a coalescing group the same number.
TEST(Matching, CoalescedCollectivesOfOneNumberMatchByOrder) {
    const auto of = [](int small_on_second_rank) {
        RunBuilder run(2);
        for (int rank = 0; rank < 2; ++rank) {
            run.collective(rank, 1000, 401'000, {.bytes = 4000, .sequence = 17, .group_size = 2});
            for (int i = 0; i < (rank == 0 ? 1 : small_on_second_rank); ++i)
                run.collective(rank, 401'000 + 10'000 * i, 411'000 + 10'000 * i,
                               {.bytes = 100, .sequence = 17, .group_size = 2});
        }
        return straggler_report(*run.take());
    };
    const StragglersReport agree = of(1);
    EXPECT_EQ(agree.collectives, 2);
    EXPECT_EQ(agree.unmatched, 0);
    ASSERT_THAT(agree.ranks, SizeIs(2));
    EXPECT_EQ(agree.ranks[0].late_ns, 0);  // the 400 us of one are not compared with the 10 us of the other
    EXPECT_EQ(agree.ranks[1].late_ns, 0);
    const StragglersReport disagree = of(2);
    EXPECT_EQ(disagree.collectives, 0);
    EXPECT_EQ(disagree.unmatched, 5);
}

TEST(Matching, OperationsAreReadFromTheRangesOfPyTorchAndNccl) {
    EXPECT_EQ(operation_of_range("nccl:_all_gather_base"), schema::Operation::all_gather);
    EXPECT_EQ(operation_of_range("nccl:reduce_scatter_tensor_coalesced"), schema::Operation::reduce_scatter);
    EXPECT_EQ(operation_of_range("c10d::_allgather_base_"), schema::Operation::all_gather);
    EXPECT_EQ(operation_of_range("ncclAllReduce"), schema::Operation::all_reduce);
    EXPECT_EQ(operation_of_range("nccl:send 0->1"), schema::Operation::send);
    EXPECT_EQ(operation_of_range("FSDP::all_gather (scatter.0)"), schema::Operation::all_gather);
    EXPECT_EQ(operation_of_range("FSDP::post_backward_reduce (x)"), schema::Operation::reduce_scatter);
    EXPECT_EQ(operation_of_range("FSDP::all_gather_copy_out (x)"), schema::Operation::other);
    EXPECT_EQ(operation_of_range("aten::gather"), schema::Operation::other);
    EXPECT_EQ(operation_of_range("aten::reduce"), schema::Operation::other);
}

TEST(Distributed, TransferWaitingAndBandwidthByGroupAndSize) {
    RunBuilder run(2);
    for (int rank = 0; rank < 2; ++rank) {
        // 8192 bytes twice: durations 400 and 100, then 100 and 100; 1 MiB once: 2000 each.
        run.collective(rank, 300 * rank, 400, {.bytes = 8192, .sequence = 0, .group = 7, .group_size = 2});
        run.collective(rank, 1000, 1100, {.bytes = 8192, .sequence = 1, .group = 7, .group_size = 2});
        run.collective(rank, 2000, 4000, {.bytes = 1 << 20, .sequence = 2, .group = 7, .group_size = 2});
        run.kernel(rank, 3000, 5000);
    }
    const auto trace = run.take();
    const DistributedReport report = distributed_report(*trace);
    EXPECT_EQ(report.collectives, 3);
    ASSERT_THAT(report.traffic, SizeIs(2));
    const Traffic& small = report.traffic[0];
    EXPECT_EQ(small.size_class, 1);  // 4 KiB .. 64 KiB
    EXPECT_EQ(small.count, 2);
    EXPECT_EQ(small.bytes, 2 * 8192);
    EXPECT_EQ(small.transfer_ns, 100 + 100);
    EXPECT_EQ(small.waiting_ns, 300);  // by rank 0, once
    EXPECT_EQ(small.parts, 4);
    EXPECT_EQ(small.nodes, 1);  // both ranks' host is "host"
    EXPECT_DOUBLE_EQ(small.algbw_gbps, 16384.0 / 200);
    EXPECT_DOUBLE_EQ(small.busbw_gbps, 16384.0 / 200 / 2);  // all_gather of 2: (n - 1) / n
    EXPECT_EQ(report.traffic[1].size_class, 3);             // 1 MiB begins a class
    ASSERT_THAT(report.ranks, SizeIs(2));
    EXPECT_EQ(report.ranks[0].parts.overlapped, 1000);   // 3000..4000
    EXPECT_EQ(report.ranks[0].parts.computation, 1000);  // 4000..5000
    EXPECT_EQ(report.ranks[0].ns, 400 + 100 + 2000);
    EXPECT_EQ(report.ranks[0].transfer_ns, 100 + 100 + 2000);
    ASSERT_THAT(report.slowest, SizeIs(1));  // only if some rank waited
    EXPECT_EQ(report.slowest[0].waiting_ns, 300);
    EXPECT_EQ(report.slowest[0].last_rank, 1);

    const DistributedReport one = distributed_report(*trace, {.rank = 1});
    ASSERT_THAT(one.ranks, SizeIs(1));
    EXPECT_EQ(one.traffic[0].parts, 2);
    EXPECT_EQ(one.traffic[0].waiting_ns, 0);
}

// A mesh of 2 shards x 2 parts of a tensor group: rank = tensor + 2 * shard.
//
//   each rank, step 0..1000:   kernel 0..400
//                              all_gather over its shard group      300..500, group 1 or 2, 1,000 bytes
//                              all_reduce over its tensor group     500..600, of rank 0: 400..600, group 3 or
//                              4,
//                                                                   2,000 bytes
//                              all_reduce over all                  700..710, group 0, 8 bytes
std::unique_ptr<store::Trace> run_on_mesh(bool axes_known) {
    RunBuilder run(0);
    for (int rank = 0; rank < 4; ++rank) {
        const int tensor = rank % 2, shard = rank / 2;
        run.sink().add(schema::RankRow{.rank = rank,
                                       .device = rank,
                                       .global_pid = run.pid(rank),
                                       .global_tid = run.tid(rank),
                                       .host = "host",
                                       .device_name = "",
                                       .shard = shard,
                                       .tensor = tensor});
        run.step(rank, 0, 0, 1000);
        run.kernel(rank, 0, 400, 0);
        run.collective(rank, 300, 500,
                       {.bytes = 1000, .sequence = 0, .group = 1 + tensor, .group_size = 2, .launched = 1});
        run.collective(rank, rank == 0 ? 400 : 500, 600,
                       {.operation = schema::Operation::all_reduce,
                        .bytes = 2000,
                        .sequence = 0,
                        .group = 3 + shard,
                        .group_size = 2,
                        .launched = 2});
        run.collective(rank, 700, 710,
                       {.operation = schema::Operation::all_reduce,
                        .bytes = 8,
                        .sequence = 0,
                        .group = 0,
                        .group_size = 4,
                        .launched = 3});
    }
    const char* const axes[] = {"shard+tensor", "shard", "shard", "tensor", "tensor"};
    for (int group = 4; axes_known && group >= 0; --group)
        run.sink().add(schema::GroupRow{
            .group = group, .axis = axes[group], .ranks = {}, .name = {}, .description = {}});
    return run.take();
}

TEST(Distributed, TwoAxesOfEqualSizeAreTwoRows) {
    const auto trace = run_on_mesh(true);
    const std::vector<AxisTraffic> axes = distributed_report(*trace).axes;
    ASSERT_THAT(axes, SizeIs(3));
    const AxisTraffic &shard = axes[0], &both = axes[1], &tensor = axes[2];
    EXPECT_EQ(shard.axis, "shard");
    EXPECT_EQ(both.axis, "shard+tensor");
    EXPECT_EQ(tensor.axis, "tensor");
    EXPECT_EQ(shard.group_size, tensor.group_size);
    EXPECT_EQ(shard.groups, 2);
    EXPECT_EQ(both.groups, 1);
    EXPECT_EQ(tensor.collectives, 2);  // one in each of the two groups
    EXPECT_EQ(tensor.bytes, 2 * 2000);
    EXPECT_EQ(tensor.transfer_ns, 100 + 100);
    EXPECT_DOUBLE_EQ(tensor.algbw_gbps, 4000.0 / 200);
    EXPECT_DOUBLE_EQ(tensor.busbw_gbps, 4000.0 / 200);  // all_reduce of 2: 2 (n - 1) / n = 1
    EXPECT_DOUBLE_EQ(shard.busbw_gbps, 2000.0 / 400 / 2);
    // Summed over the 4 ranks, each of one step.
    EXPECT_EQ(tensor.steps, 4);
    EXPECT_EQ(tensor.parts, 4);
    EXPECT_EQ(tensor.part_bytes, 4 * 2000);
    EXPECT_EQ(tensor.ns, 200 + 3 * 100);
    EXPECT_EQ(tensor.waiting_ns, 100);  // by rank 0
    EXPECT_EQ(tensor.exposed_ns, 200 + 3 * 100);
    EXPECT_EQ(shard.ns, 4 * 200);
    EXPECT_EQ(shard.exposed_ns, 4 * 100);  // 300..400 is beside the kernel
    EXPECT_EQ(both.ns, 4 * 10);
}

TEST(Distributed, AxesAreThoseOfTheSelection) {
    const auto trace = run_on_mesh(true);
    const std::vector<AxisTraffic> axes = distributed_report(*trace, {.rank = 3}).axes;
    ASSERT_THAT(axes, SizeIs(3));
    EXPECT_EQ(axes[2].collectives, 1);
    EXPECT_EQ(axes[2].steps, 1);
    EXPECT_EQ(axes[2].ns, 100);
    EXPECT_EQ(axes[2].waiting_ns, 0);
}

TEST(Distributed, SaysPlaceAndAxisWhereTheyAreKnown) {
    const auto trace = run_on_mesh(true);
    const DistributedReport report = distributed_report(*trace);
    EXPECT_EQ(report.ranks[1].place, "shard 0, tensor 1");
    const std::string text = render(report, report::Format::table);
    EXPECT_THAT(text, HasSubstr("By axis of the mesh: a rank's mean per step"));
    EXPECT_THAT(text, HasSubstr("shard 1, tensor 0"));
    EXPECT_THAT(render(report, report::Format::csv), HasSubstr("name,group,axis,group_size"));

    DistributedReport by_axis = report;
    by_axis.by_axis = true;
    EXPECT_THAT(render(by_axis, report::Format::csv), HasSubstr("axis,groups,group_size,"));
    EXPECT_THAT(render(by_axis, report::Format::json), HasSubstr("{\"axes\":[{\"axis\":\"shard\""));
    EXPECT_THAT(render(by_axis, report::Format::table), Not(HasSubstr("Traffic")));

    const DistributedReport unknown = distributed_report(*run_on_mesh(false));
    EXPECT_THAT(unknown.axes, IsEmpty());
    EXPECT_THAT(render(unknown, report::Format::table), Not(HasSubstr("axis")));
    EXPECT_THAT(render(unknown, report::Format::json), HasSubstr("\"axes\":[]"));
}

TEST(Distributed, AGroupSpansTheHostsOfItsRanks) {
    store::ColumnSink sink;
    for (int rank = 0; rank < 3; ++rank) {
        sink.add(
            schema::RankRow{.rank = rank, .device = rank, .host = rank < 2 ? "a" : "b", .device_name = ""});
        for (const int group : {0, 1}) {
            if (group == 1 && rank == 2) continue;
            const std::int64_t id = 10 + 2 * rank + group;
            sink.add(schema::KernelRow{.start = 100 * group,
                                       .end = 100 * group + 50,
                                       .device = rank,
                                       .correlation = id,
                                       .short_name = sink.intern("ncclDevKernel_AllGather_RING_LL")});
            sink.add(schema::CollectiveRow{.rank = rank,
                                           .correlation = id,
                                           .operation = schema::Operation::all_gather,
                                           .bytes = 64,
                                           .group = group,
                                           .group_size = group == 0 ? 3 : 2});
        }
    }
    const DistributedReport report = distributed_report(*sink.take());
    ASSERT_THAT(report.traffic, SizeIs(2));
    EXPECT_EQ(report.traffic[0].nodes, 2);
    EXPECT_EQ(report.traffic[1].nodes, 1);
}

std::unique_ptr<store::Trace> run_of(int ranks, std::int64_t step, std::int64_t compute, const char* batch) {
    RunBuilder run(ranks);
    if (batch != nullptr) run.sink().add(schema::RunInfoRow{"data.batch", batch});
    for (int rank = 0; rank < ranks; ++rank) {
        run.step(rank, 0, 0, step);
        run.kernel(rank, 0, compute, 0);
        run.collective(
            rank, compute, step,
            {.operation = schema::Operation::all_reduce, .bytes = 8, .group_size = ranks, .launched = 1});
    }
    return run.take();
}

TEST(Scaling, SpeedUpAndEfficiencyAreAgainstTheFewestRanks) {
    // 4 samples per rank: 2 ranks do 8 in 1000 ns, 4 ranks 16 in 1250 ns: 1.6 times as many per second.
    const auto small = run_of(2, 1000, 800, "4"), large = run_of(4, 1250, 800, "4");
    const ScalingReport report = scaling_report({large.get(), small.get()});
    ASSERT_THAT(report.runs, SizeIs(2));
    EXPECT_EQ(report.runs[0].ranks, 2);
    EXPECT_DOUBLE_EQ(report.runs[0].samples_per_second(), 8 / 1000e-9);
    EXPECT_DOUBLE_EQ(report.runs[0].efficiency, 1);
    EXPECT_DOUBLE_EQ(report.runs[1].speed_up, 1.6);
    EXPECT_DOUBLE_EQ(report.runs[1].efficiency, 0.8);
    EXPECT_EQ(report.runs[1].grew, static_cast<int>(TimeCategory::communication));
    EXPECT_DOUBLE_EQ(report.runs[1].grew_us, 0.25);  // 200 -> 450 ns, all of it exposed
    ASSERT_THAT(report.runs[1].operations, SizeIs(1));
    EXPECT_DOUBLE_EQ(report.runs[1].operations[0].us, 0.45);
    EXPECT_DOUBLE_EQ(report.runs[1].operations[0].count, 1);
}

std::unique_ptr<store::Trace> run_of_model(int ranks,
                                           const std::vector<std::pair<std::string, std::string>>& config,
                                           std::int64_t parameters) {
    RunBuilder run(ranks);
    run.sink().add(schema::RunInfoRow{"data.batch", "4"});
    for (const auto& [key, value] : config) run.sink().add(schema::RunInfoRow{key, value});
    run.sink().add(schema::ModuleRow{.id = 0, .name = "Net_0", .parameters = parameters});
    for (int rank = 0; rank < ranks; ++rank) {
        run.step(rank, 0, 0, 1000);
        run.kernel(rank, 0, 900, 0);
    }
    return run.take();
}

TEST(Scaling, GivesNoSpeedUpBetweenUnlikeModels) {
    const auto gpt = run_of_model(4, {{"model.type", "gpt"}, {"parallel.mode", "fsdp"}}, 1000);
    const auto mlp = run_of_model(2, {{"model.type", "mlp"}, {"parallel.mode", "ddp"}}, 100);
    const ScalingReport report = scaling_report({gpt.get(), mlp.get()});
    EXPECT_FALSE(report.runs[1].same_model);
    EXPECT_DOUBLE_EQ(report.runs[1].speed_up, 0);
    EXPECT_EQ(report.runs[1].grew, -1);
    EXPECT_THAT(report.runs[1].differs,
                ElementsAre("model.type (mlp, gpt)", "parallel.mode (ddp, fsdp)", "parameters (100, 1000)"));
    const std::string text = render(report, report::Format::table);
    EXPECT_THAT(text, HasSubstr("trains another model than"));
    EXPECT_THAT(text, HasSubstr("model.type (mlp, gpt)"));
    // Without a configuration, the number of parameters shows it.
    const auto large = run_of_model(4, {}, 1000), small = run_of_model(2, {}, 100);
    EXPECT_DOUBLE_EQ(scaling_report({large.get(), small.get()}).runs[1].speed_up, 0);
}

TEST(Scaling, NamesWhatDiffersBesidesTheSize) {
    const auto fsdp =
        run_of_model(4, {{"model.type", "gpt"}, {"parallel.mode", "fsdp"}, {"run.ranks", "4"}}, 1000);
    const auto ddp =
        run_of_model(2, {{"model.type", "gpt"}, {"parallel.mode", "ddp"}, {"run.ranks", "2"}}, 1000);
    const ScalingReport report = scaling_report({fsdp.get(), ddp.get()});
    EXPECT_TRUE(report.runs[1].same_model);
    EXPECT_GT(report.runs[1].speed_up, 0);
    EXPECT_THAT(report.runs[1].differs, ElementsAre("parallel.mode (ddp, fsdp)"));
    EXPECT_THAT(render(report, report::Format::table), HasSubstr("differs from"));
}

TEST(Scaling, HasNoSpeedUpWithoutABatch) {
    const auto small = run_of(2, 1000, 800, nullptr), large = run_of(4, 1250, 800, "4");
    const ScalingReport report = scaling_report({small.get(), large.get()});
    EXPECT_DOUBLE_EQ(report.runs[0].samples_per_second(), 0);
    EXPECT_DOUBLE_EQ(report.runs[1].speed_up, 0);
    EXPECT_DOUBLE_EQ(report.runs[1].grew_us, 0.25);
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
