// Runs with communication hooks: what they compute, and that the trace and the simulation say what was sent.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "jobs.h"

namespace shardscope::trainer {
namespace TEST_FILE {

using Losses = std::vector<double>;

job::Job hooked(job::Job job, const std::string& hook) {
    job = testing::with_mode(std::move(job), job::ParallelMode::ddp);
    job.run.steps = 12;
    job.ddp.first_bucket_mb = job.ddp.bucket_cap_mb = 0.02;
    job.ddp.comm_hook = job::parse_comm_hook(hook);
    return job;
}

Losses losses_of(const job::Job& job) {
    return testing::run(job).losses;
}

void expect_close(const Losses& a, const Losses& b, double tolerance) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i] / b[i], 1.0, tolerance) << "step " << i;
}

// Each rank's gradient of a Linear is a sum over its 2 samples, so that of 2 ranks has rank 4.
TEST(CommHookRuns, PowerSgdIsExactWhereItsRankIsThatOfTheGradients) {
    job::Job job = testing::mlp_job(4, 48, 2, 2);
    job.optimizer.lr = 0.1;
    const Losses whole = losses_of(hooked(job, "none"));
    expect_close(losses_of(hooked(job, "powersgd:4")), whole, 2e-5);
    const Losses rough = losses_of(hooked(job, "powersgd:1"));
    EXPECT_GT(std::abs(rough.back() / whole.back() - 1), 1e-4) << "rank 1 is not exact";
}

TEST(CommHookRuns, TopkOfEverythingIsTheAllReduceToTheBit) {
    const testing::SampleText text;
    for (const job::Job& job : {testing::mlp_job(3, 24, 2, 3), testing::gpt_job(text, 1, 4)})
        EXPECT_EQ(losses_of(hooked(job, "topk:1")), losses_of(hooked(job, "none")));
}

// Without what was kept, the small numbers would never be sent; with it, the loss falls as it does without a
// hook, later.
TEST(CommHookRuns, WhatIsNotSentIsSentLater) {
    job::Job job = testing::mlp_job(3, 32, 4, 2);
    job.optimizer.lr = 0.2;
    for (const std::string hook : {"topk:0.05", "powersgd:1"}) {
        job::Job own = hooked(job, hook), whole = hooked(job, "none");
        own.run.steps = whole.run.steps = 60;
        const Losses compressed = losses_of(own), exact = losses_of(whole);
        EXPECT_LT(compressed.back(), exact[0] - 0.8 * (exact[0] - exact.back())) << hook;
    }
}

TEST(CommHookRuns, NarrowTypesStayNear) {
    const testing::SampleText text;
    const job::Job job = testing::gpt_job(text, 2, 2);
    const Losses whole = losses_of(hooked(job, "none"));
    for (const std::string hook : {"bf16", "fp16"}) {
        const Losses narrow = losses_of(hooked(job, hook));
        EXPECT_NE(narrow, whole) << hook;
        expect_close(narrow, whole, 2e-2);
    }
}

// The other options of DDP, and the axes of the mesh, leave a hook's results alone.
TEST(CommHookRuns, AreTheSameUnderEveryOptionOfDdp) {
    const testing::SampleText text;
    for (const std::string hook : {"bf16", "powersgd:1", "topk:0.1"}) {
        const job::Job job = hooked(testing::gpt_job(text, 2, 2), hook);
        const Losses first = losses_of(job);
        job::Job views = job, sharded = job, checkpointed = job, alone = job;
        views.ddp.gradient_as_bucket_view = true;
        sharded.ddp.shard_optimizer = true;
        checkpointed.memory.activation_checkpointing.names = {"Block"};
        alone.run.workers = 1;
        for (const job::Job& other : {views, sharded, checkpointed, alone})
            EXPECT_EQ(losses_of(other), first) << hook;
    }
}

TEST(CommHookRuns, WorkOnEveryAxisOfTheMesh) {
    const testing::SampleText text;
    for (const std::string hook : {"bf16", "powersgd:1", "topk:1"}) {
        job::Job job = testing::gpt_job(text, 2, 2);
        job.optimizer.type = job::OptimizerType::sgd;
        const Losses reference = losses_of(hooked(job, "none"));
        job = hooked(job, hook);
        job.run.ranks = 4;
        job::Job tensor = job, context = job, pipeline = job;
        tensor.parallel.tensor = 2;
        context.parallel.context = 2;
        pipeline.parallel.pipeline = 2;
        pipeline.data.batch = 1;
        pipeline.train.accumulation = 2;
        pipeline.train.accumulation_sync = false;
        for (const job::Job& other : {tensor, context, pipeline})
            expect_close(losses_of(other), reference, hook == "topk:1" ? 1e-5 : 2e-2);
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer
