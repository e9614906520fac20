// The order of events that FSDP1 has, read from the Plan: gathers, computation, frees, reductions.
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "jobs.h"
#include "trainer/plan/print.h"
#include "trainer/sharding/program.h"

namespace shardscope::trainer {
namespace {

// Host order of a steady step: AG gather, f forward kernels, g gradient kernels, free, RS; units by number.
std::string host_order(const Program& program) {
    const Plan& plan = program.step(program.warm_up_steps());
    std::string out;
    std::string last;
    const auto say = [&](const std::string& word) {
        if (word != last) out += (out.empty() ? "" : " ") + word;
        last = word;
    };
    for (const Op& op : plan.ops) {
        const std::string unit = std::to_string(op.unit);
        if (op.kind == OpKind::collective && op.collective == Operation::all_gather) say("AG" + unit);
        if (op.kind == OpKind::collective && op.collective == Operation::reduce_scatter) say("RS" + unit);
        if (op.kind == OpKind::kernel && op.kernel == Kernel::linear_forward) say("f" + unit);
        if (op.kind == OpKind::kernel && op.kernel == Kernel::linear_backward_weight) say("g" + unit);
        if (op.kind == OpKind::free && plan.buffers[static_cast<std::size_t>(op.args[0].buffer)].category ==
                                           MemoryCategory::unsharded_parameters) {
            say("free" + unit);
        }
    }
    return out;
}

Job four_linears(BackwardPrefetch prefetch) {
    Job job = testing::with_wrap(testing::mlp_job(4, 8, 1, 2), "module:Linear");
    job.fsdp.backward_prefetch = prefetch;
    return job;
}

constexpr const char* kForward = "AG0 f0 free0 AG1 f1 free1 AG2 f2 free2 AG3 f3 free3 ";

TEST(Schedule, BackwardPreGathersTheNextUnitBeforeTheGradient) {
    EXPECT_EQ(host_order(Program(four_linears(BackwardPrefetch::pre))),
              std::string(kForward) + "AG3 AG2 g3 free3 RS3 AG1 g2 free2 RS2 AG0 g1 free1 RS1 g0 free0 RS0");
}

TEST(Schedule, BackwardPostGathersItAfterTheFree) {
    EXPECT_EQ(host_order(Program(four_linears(BackwardPrefetch::post))),
              std::string(kForward) + "AG3 g3 free3 AG2 RS3 g2 free2 AG1 RS2 g1 free1 AG0 RS1 g0 free0 RS0");
}

TEST(Schedule, WithoutPrefetchEachUnitIsGatheredWhenItIsNeeded) {
    EXPECT_EQ(host_order(Program(four_linears(BackwardPrefetch::none))),
              std::string(kForward) + "AG3 g3 free3 RS3 AG2 g2 free2 RS2 AG1 g1 free1 RS1 AG0 g0 free0 RS0");
}

TEST(Schedule, TheRootIsNotFreedAfterItsForward) {
    EXPECT_EQ(host_order(Program(testing::with_wrap(testing::mlp_job(4, 8, 1, 2), "root"))),
              "AG0 f0 g0 free0 RS0");
}

struct Count {
    std::int64_t count = 0, bytes = 0;
};

std::map<Operation, Count> collectives(const Job& job) {
    const Program program(job);
    std::map<Operation, Count> counts;
    for (const Op& op : program.step(program.warm_up_steps()).ops) {
        if (op.kind != OpKind::collective) continue;
        ++counts[op.collective].count;
        counts[op.collective].bytes += op.bytes;
    }
    return counts;
}

// U units without own parameters of the root: 2U gathers and U reductions of the unit's bytes.
TEST(Schedule, CollectivesPerStepFollowTheClosedForms) {
    const Job job = testing::mlp_job(8, 16, 2, 4);
    const std::int64_t w = (16 * 16 + 16) * 4;
    auto wrapped = collectives(testing::with_wrap(job, "module:Linear"));
    EXPECT_EQ(wrapped[Operation::all_gather].count, 16);
    EXPECT_EQ(wrapped[Operation::all_gather].bytes, 16 * w);
    EXPECT_EQ(wrapped[Operation::reduce_scatter].count, 8);
    EXPECT_EQ(wrapped[Operation::reduce_scatter].bytes, 8 * w);
    auto root = collectives(testing::with_wrap(job, "root"));
    EXPECT_EQ(root[Operation::all_gather].count, 1);
    EXPECT_EQ(root[Operation::all_gather].bytes, 8 * w);
    EXPECT_EQ(root[Operation::reduce_scatter].count, 1);
    auto ddp = collectives(testing::with_mode(job, ParallelMode::ddp));
    EXPECT_EQ(ddp[Operation::all_reduce].bytes, 8 * w);
}

// A root with parameters of its own is gathered once, the other units twice.
TEST(Schedule, ARootWithParametersSavesOneGather) {
    const testing::SampleText text;
    auto counts = collectives(testing::with_wrap(testing::gpt_job(text, 1, 2), "module:Block"));
    EXPECT_EQ(counts[Operation::all_gather].count, 2 * 3 - 1);
    EXPECT_EQ(counts[Operation::reduce_scatter].count, 3);
}

TEST(Schedule, DdpClosesABucketAtItsLimit) {
    Job job = testing::with_mode(testing::mlp_job(8, 64, 2, 2), ParallelMode::ddp);  // 16,640 bytes a Linear
    job.ddp.first_bucket_mb = 0.001;                                                 // 1,049 bytes
    job.ddp.bucket_cap_mb = 40'000.0 / (1 << 20);
    const Program program(job);
    // The last Linear's bias (256 bytes) and weight (16,384) reach the first limit; then buckets close at
    // 40,000.
    ASSERT_EQ(program.units().size(), 4U);
    EXPECT_EQ(program.units()[0].elements, 64 + 4096);
    EXPECT_EQ(program.units()[1].elements, 3 * (64 + 4096));
}

// The limiter: never more than two frees queued before a gather goes ahead, so at most two units gathered in
// host order.
TEST(Schedule, AtMostTwoUnitsAreGatheredInHostOrder) {
    const Program program(four_linears(BackwardPrefetch::pre));
    const Plan& plan = program.step(program.warm_up_steps());
    int gathered = 0, most = 0;
    for (const Op& op : plan.ops) {
        if (op.kind != OpKind::allocate && op.kind != OpKind::free) continue;
        const Buffer& buffer = plan.buffers[static_cast<std::size_t>(op.args[0].buffer)];
        if (buffer.category != MemoryCategory::unsharded_parameters) continue;
        gathered += op.kind == OpKind::allocate ? 1 : -1;
        most = std::max(most, gathered);
    }
    EXPECT_EQ(most, 2);
    EXPECT_EQ(gathered, 0);
}

TEST(Schedule, TheLimiterWaitsOncePerGatherInTheSteadyStep) {
    Job job = four_linears(BackwardPrefetch::pre);
    const auto waits = [](const Job& of) {
        const Program program(of);
        int count = 0;
        for (const Op& op : program.step(program.warm_up_steps()).ops) count += op.kind == OpKind::host_wait;
        return count;
    };
    EXPECT_EQ(waits(job), 8 + 1) << "8 gathers, and the loss of the step before";
    job.fsdp.limit_all_gathers = false;
    EXPECT_EQ(waits(job), 1);
}

TEST(Schedule, RangesNest) {
    const Program program(four_linears(BackwardPrefetch::pre));
    for (std::size_t i = 0; i <= program.warm_up_steps(); ++i) {
        int depth = 0;
        for (const Op& op : program.step(i).ops) {
            depth += op.kind == OpKind::push_range ? 1 : op.kind == OpKind::pop_range ? -1 : 0;
            ASSERT_GE(depth, 0);
        }
        EXPECT_EQ(depth, 0);
    }
}

TEST(Schedule, ThePrintedPlanEndsWithWhatIsAllocated) {
    const Program program(four_linears(BackwardPrefetch::pre));
    std::int64_t live = 0;
    const std::string text = print_plan(program.setup(), {}, live);
    EXPECT_EQ(live, 4 * (8 * 8 + 8) * 4 / 2) << "four shards";
    EXPECT_NE(text.find("allocate"), std::string::npos);
    const std::int64_t before = live;
    print_plan(program.step(0), {}, live);
    EXPECT_EQ(live, 2 * before) << "the gradients' shards stay until zero_grad";
}

}  // namespace
}  // namespace shardscope::trainer
