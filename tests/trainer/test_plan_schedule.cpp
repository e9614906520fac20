// FSDP1's order of events, read from the Plan: gathers, computation, frees, reductions.
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan_jobs.h"
#include "trainer/plan/print.h"
#include "trainer/sharding/program.h"

namespace shardscope::trainer::sharding {
namespace TEST_FILE {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string host_order(const Program& program) {
    return testing::host_order(testing::steady(program));
}

job::Job four_linears(job::BackwardPrefetch prefetch) {
    job::Job job = testing::with_wrap(testing::mlp_job(4, 8, 1, 2), "module:Linear");
    job.fsdp.backward_prefetch = prefetch;
    return job;
}

constexpr const char* kForward = "AG0 f0 free0 AG1 f1 free1 AG2 f2 free2 AG3 f3 free3 ";

TEST(Schedule, BackwardPreGathersTheNextUnitBeforeTheGradient) {
    EXPECT_EQ(host_order(Program(four_linears(job::BackwardPrefetch::pre))),
              std::string(kForward) + "AG3 AG2 g3 free3 RS3 AG1 g2 free2 RS2 AG0 g1 free1 RS1 g0 free0 RS0");
}

TEST(Schedule, BackwardPostGathersItAfterTheFree) {
    EXPECT_EQ(host_order(Program(four_linears(job::BackwardPrefetch::post))),
              std::string(kForward) + "AG3 g3 free3 AG2 RS3 g2 free2 AG1 RS2 g1 free1 AG0 RS1 g0 free0 RS0");
}

TEST(Schedule, WithoutPrefetchEachUnitIsGatheredWhenItIsNeeded) {
    EXPECT_EQ(host_order(Program(four_linears(job::BackwardPrefetch::none))),
              std::string(kForward) + "AG3 g3 free3 RS3 AG2 g2 free2 RS2 AG1 g1 free1 RS1 AG0 g0 free0 RS0");
}

TEST(Schedule, TheRootIsNotFreedAfterItsForward) {
    EXPECT_EQ(host_order(Program(testing::with_wrap(testing::mlp_job(4, 8, 1, 2), "root"))),
              "AG0 f0 g0 free0 RS0");
}

std::map<plan::Operation, testing::Count> collectives(const job::Job& job) {
    std::map<plan::Operation, testing::Count> counts;
    for (const auto& [what, count] : testing::collectives(Program(job))) counts[what.first] = count;
    return counts;
}

// U units, and a root without parameters of its own: 2U gathers and U reductions of the unit's bytes.
TEST(Schedule, CollectivesPerStepFollowTheClosedForms) {
    const job::Job job = testing::mlp_job(8, 16, 2, 4);
    const std::int64_t w = (16 * 16 + 16) * 4;
    auto wrapped = collectives(testing::with_wrap(job, "module:Linear"));
    EXPECT_EQ(wrapped[plan::Operation::all_gather].count, 16);
    EXPECT_EQ(wrapped[plan::Operation::all_gather].bytes, 16 * w);
    EXPECT_EQ(wrapped[plan::Operation::reduce_scatter].count, 8);
    EXPECT_EQ(wrapped[plan::Operation::reduce_scatter].bytes, 8 * w);
    auto root = collectives(testing::with_wrap(job, "root"));
    EXPECT_EQ(root[plan::Operation::all_gather].count, 1);
    EXPECT_EQ(root[plan::Operation::all_gather].bytes, 8 * w);
    EXPECT_EQ(root[plan::Operation::reduce_scatter].count, 1);
    auto ddp = collectives(testing::with_mode(job, job::ParallelMode::ddp));
    EXPECT_EQ(ddp[plan::Operation::all_reduce].bytes, 8 * w);
}

// A root with parameters of its own is gathered once, the other units twice.
TEST(Schedule, ARootWithParametersSavesOneGather) {
    const testing::SampleText text;
    auto counts = collectives(testing::with_wrap(testing::gpt_job(text, 1, 2), "module:Block"));
    EXPECT_EQ(counts[plan::Operation::all_gather].count, 2 * 3 - 1);
    EXPECT_EQ(counts[plan::Operation::reduce_scatter].count, 3);
}

// The first step has one bucket of everything; then buckets are in the order in which gradients are ready: of
// a Linear the bias (256 bytes), then the weight (16,384).
TEST(Schedule, DdpClosesABucketAtItsLimit) {
    job::Job job = testing::with_mode(testing::mlp_job(8, 64, 2, 2), job::ParallelMode::ddp);
    job.ddp.first_bucket_mb = 0.001;  // 1,049 bytes: the first layer
    job.ddp.bucket_cap_mb = 40'000.0 / (1 << 20);
    const Program program(job);
    ASSERT_EQ(program.units().size(), 1U + 4U);
    EXPECT_EQ(program.units()[0].elements, 8 * (64 + 4096));
    EXPECT_EQ(program.units()[1].elements, 64 + 4096);
    EXPECT_EQ(program.units()[2].elements, 3 * (64 + 4096)) << "closed at 49,920 bytes";
    const auto reductions = [](const plan::Plan& plan) {
        int count = 0;
        for (const plan::Op& op : plan.ops)
            count += op.kind == plan::OpKind::collective &&
                     op.collective().operation == plan::Operation::all_reduce;
        return count;
    };
    EXPECT_EQ(reductions(program.step(0)), 1);
    EXPECT_EQ(reductions(program.step(1)), 4);
}

// The limiter: never more than two frees queued before a gather proceeds, so at most two units gathered in
// host order.
TEST(Schedule, AtMostTwoUnitsAreGatheredInHostOrder) {
    const Program program(four_linears(job::BackwardPrefetch::pre));
    const plan::Plan& plan = program.step(program.warm_up_steps());
    int gathered = 0, most = 0;
    for (const plan::Op& op : plan.ops) {
        if (op.kind != plan::OpKind::allocate && op.kind != plan::OpKind::free) continue;
        const plan::Buffer& buffer = plan.buffers[static_cast<std::size_t>(op.args[0].buffer)];
        if (buffer.category != plan::MemoryCategory::unsharded_parameters) continue;
        gathered += op.kind == plan::OpKind::allocate ? 1 : -1;
        most = std::max(most, gathered);
    }
    EXPECT_EQ(most, 2);
    EXPECT_EQ(gathered, 0);
}

TEST(Schedule, TheLimiterWaitsOncePerGatherInTheSteadyStep) {
    job::Job job = four_linears(job::BackwardPrefetch::pre);
    const auto waits = [](const job::Job& of) {
        const Program program(of);
        int count = 0;
        for (const plan::Op& op : program.step(program.warm_up_steps()).ops)
            count += op.kind == plan::OpKind::host_wait;
        return count;
    };
    EXPECT_EQ(waits(job), 8 + 1) << "8 gathers, and the loss of the step before";
    job.fsdp.limit_all_gathers = false;
    EXPECT_EQ(waits(job), 1);
}

TEST(Schedule, RangesNest) {
    const Program program(four_linears(job::BackwardPrefetch::pre));
    for (std::size_t i = 0; i <= program.warm_up_steps(); ++i) {
        int depth = 0;
        for (const plan::Op& op : program.step(i).ops) {
            depth += op.kind == plan::OpKind::push_range ? 1 : op.kind == plan::OpKind::pop_range ? -1 : 0;
            ASSERT_GE(depth, 0);
        }
        EXPECT_EQ(depth, 0);
    }
}

TEST(Schedule, ThePrintedPlanEndsWithWhatIsAllocated) {
    const Program program(four_linears(job::BackwardPrefetch::pre));
    std::int64_t live = 0;
    const std::string text = plan::print_plan(program.setup(), {}, live);
    EXPECT_EQ(live, 4 * (8 * 8 + 8) * 4 / 2) << "four shards";
    EXPECT_NE(text.find("allocate"), std::string::npos);
    const std::int64_t before = live;
    plan::print_plan(program.step(0), {}, live);
    EXPECT_EQ(live, 2 * before) << "the gradients' shards stay until zero_grad";
}

// The Plan would allocate the tensor and never free it.
TEST(Schedule, APlanIsNotTakenWhileATensorOfItIsReferenced) {
    plan::PlanBuilder builder(plan::PlanKind::steady, {});
    plan::Tensor tensor = builder.new_tensor("x", plan::MemoryCategory::other, 4);
    EXPECT_THROW(builder.take(), std::logic_error);
    tensor = {};
    EXPECT_EQ(builder.take().ops.size(), 2U) << "allocate, free";
}

// The lines of a printed step whose operation is `what`.
std::vector<std::string> lines_of(const job::Job& job, const std::string& what) {
    const Program program(job);
    std::int64_t live = 0;
    const std::string text =
        plan::print_plan(program.setup(), {}, live) + plan::print_plan(program.step(0), {}, live);
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
        if (line.find(' ' + what + ' ') != std::string::npos) lines.push_back(line);
    }
    return lines;
}

TEST(Schedule, ThePrintedPlanShowsWhatAMemsetWrites) {
    const auto starts_with = [](const std::string& what) {
        return lines_of(four_linears(job::BackwardPrefetch::pre), what);
    };
    EXPECT_THAT(starts_with("memset 0xff"), ElementsAre(EndsWith("  non-finite flag")));
    EXPECT_EQ(starts_with("memset 0").size(), 4U) << "padding of four shards";
}

TEST(Schedule, ThePrintedPlanShowsTheGroupAndTheDivisorOfACollective) {
    job::Job job = testing::with_strategy(testing::with_wrap(testing::mlp_job(4, 8, 2, 4), "module:Linear"),
                                          job::ShardingStrategy::hybrid_shard, 2);
    EXPECT_THAT(lines_of(job, "all_gather"), Each(EndsWith("flat_param (unsharded), shard group")));
    EXPECT_THAT(lines_of(job, "reduce_scatter"), Each(EndsWith(", shard group")));
    EXPECT_THAT(lines_of(job, "all_reduce"), Each(EndsWith(", replicate group, divided by 4")));
    EXPECT_EQ(lines_of(job, "all_reduce").size(), 4U);
}

TEST(Schedule, ThePrintedPlanNamesAllArgsAndDimsOfAKernel) {
    const std::vector<std::string> lines =
        lines_of(testing::with_wrap(testing::mlp_job(1, 8, 2, 2), "root"), "mse_loss_backward");
    EXPECT_THAT(lines, ElementsAre(EndsWith("  dy: output.grad, y: net.0.output, target: target | n 16")));
}

TEST(Schedule, ThePrintedPlanNamesTypesThatAreNotFp32) {
    job::Job job = four_linears(job::BackwardPrefetch::pre);
    job.precision.param = job::Precision::bf16;
    EXPECT_THAT(lines_of(job, "all_gather"), AllOf(Not(IsEmpty()), Each(EndsWith(", shard group, bf16"))));
    EXPECT_THAT(lines_of(job, "bgemm_tn"), AllOf(Not(IsEmpty()), Each(EndsWith(" | bf16"))));
    plan::PlanBuilder builder(plan::PlanKind::steady, {});
    const auto tensor = [&](plan::DType type) {
        return builder.new_tensor("t", plan::MemoryCategory::other, 8, type);
    };
    {
        const plan::Tensor sum = tensor(plan::DType::fp32), more = tensor(plan::DType::bf16);
        builder.kernel(plan::Kernel::accumulate, "add_bf16", {sum, more}, {8, input_dim(plan::DType::bf16)});
        builder.kernel(plan::Kernel::accumulate, "add_same", {sum, sum}, {8});
    }
    std::int64_t live = 0;
    const std::string text = plan::print_plan(builder.take(), {}, live);
    EXPECT_THAT(text, HasSubstr("| n 8, dtype of x bf16\n"));
    EXPECT_THAT(text, HasSubstr("| n 8, dtype of x fp32\n"));
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::sharding
