// Local SGD: with an average after each step it is DDP; else ranks are on their own in between.
#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "jobs.h"

namespace shardscope::trainer {
namespace TEST_FILE {

job::Job local(job::Job job, std::int64_t steps) {
    job = testing::with_mode(std::move(job), job::ParallelMode::ddp);
    job.train.local_steps = steps;
    return job;
}

// One step of plain SGD is linear in the gradient: the mean of the parameters after it is that after one with
// the mean of the gradients.
TEST(LocalSteps, OneIsDdp) {
    const testing::SampleText text;
    for (job::Job job : {testing::mlp_job(3, 24, 2, 3), testing::gpt_job(text, 2, 4)}) {
        for (const int accumulation : {1, 3}) {
            job.run.steps = 8;
            job.train.accumulation = accumulation;
            job.optimizer = {.lr = 0.05};
            const auto together = testing::run(local(job, 0)).losses;
            const auto apart = testing::run(local(job, 1)).losses;
            ASSERT_EQ(apart.size(), together.size());
            for (std::size_t i = 0; i < apart.size(); ++i)
                EXPECT_NEAR(apart[i] / together[i], 1, 1e-6) << "step " << i;
        }
    }
}

TEST(LocalSteps, OfOneRankArePlainTraining) {
    job::Job job = testing::mlp_job(3, 24, 2, 1);
    job.run.steps = 8;
    const auto plain = testing::run(local(job, 0)).losses;
    EXPECT_EQ(testing::run(local(job, 3)).losses, plain);
}

// A rate of 1 without momentum goes all the way to the mean. Then p - (p - m) may differ from m by rounding.
TEST(LocalSteps, AnOuterStepOfOneIsTheMean) {
    job::Job job = local(testing::mlp_job(3, 24, 2, 2), 3);
    job.run.steps = 12;
    const auto mean = testing::run(job).losses;
    job.train.outer_lr = 1 - 1e-9;
    const auto moved = testing::run(job).losses;
    EXPECT_NE(testing::run(local(job, 0)).losses, mean);
    for (std::size_t i = 0; i < mean.size(); ++i) EXPECT_NEAR(moved[i] / mean[i], 1, 1e-5) << "step " << i;
}

struct Reduced {
    std::int64_t collectives = 0, bytes = 0;
    bool operator==(const Reduced&) const = default;
};

Reduced reduced_in(const plan::Plan& plan) {
    Reduced sum;
    for (const plan::Op& op : plan.ops) {
        if (op.kind != plan::OpKind::collective) continue;
        ++sum.collectives;
        sum.bytes += op.bytes;
    }
    return sum;
}

// An mlp of 4 layers of 64 features has 16640 parameters.
TEST(LocalSteps, ReduceOnceInACycle) {
    for (const double momentum : {0.0, 0.9}) {
        job::Job job = local(testing::mlp_job(4, 64, 2, 4), 5);
        job.train.outer_momentum = momentum;
        for (const std::int64_t before : {0, 3}) {
            const sharding::Program program(job, sharding::Purpose::train, before);
            EXPECT_EQ(program.cycle(), 5U);
            EXPECT_LE(program.stretches().size(), 6U);
            for (std::size_t step = 0; step < 23; ++step) {
                const bool averages = (static_cast<std::size_t>(before) + step + 1) % 5 == 0;
                EXPECT_EQ(reduced_in(program.step(step)), (averages ? Reduced{1, 4 * 16640} : Reduced{}))
                    << before << " + " << step;
            }
            std::size_t steps = 0;
            program.for_cycle([&](const plan::Plan&, std::size_t own) { steps += own; });
            EXPECT_EQ(steps, 5U);
        }
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer
