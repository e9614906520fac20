// The learning rate of each step, compared with the arithmetic of its definition.
#include <cmath>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "trainer/job/learning_rate.h"

namespace shardscope::trainer::job {
namespace TEST_FILE {

OptimizerSection base(double lr) {
    OptimizerSection optimizer;
    optimizer.lr = lr;
    return optimizer;
}

TEST(LearningRate, IsThatOfTheJobByDefault) {
    for (const int ranks : {1, 8}) {
        for (const int step : {0, 5, 99}) EXPECT_EQ(learning_rate(base(0.25), ranks, 100, step), 0.25);
    }
}

// "When the minibatch size is multiplied by k, multiply the learning rate by k": whatever multiplies it.
TEST(LearningRate, ScalesWithTheSamplesOfAStep) {
    Job job;
    job.run.ranks = 4;
    job.data.batch = 8;
    EXPECT_EQ(batch_factor(job), 4);
    job.train.accumulation = 3;
    EXPECT_EQ(batch_factor(job), 12);
    job.optimizer.lr_batch = 48;  // 4 * 3 * 8 = 96 samples
    EXPECT_EQ(batch_factor(job), 2);
    job.data.batch = 16;
    EXPECT_EQ(batch_factor(job), 4);
    job.optimizer.lr_scaling = LrScaling::linear;
    EXPECT_EQ(scaled_learning_rate(job.optimizer, batch_factor(job)), 4 * job.optimizer.lr);
    job.optimizer.lr_scaling = LrScaling::sqrt;
    EXPECT_EQ(scaled_learning_rate(job.optimizer, batch_factor(job)), 2 * job.optimizer.lr);
}

TEST(LearningRate, ScalesWithTheRanks) {
    OptimizerSection optimizer = base(0.5);
    optimizer.lr_scaling = LrScaling::linear;
    EXPECT_EQ(learning_rate(optimizer, 8, 10, 0), 4.0);  // 8 * 0.5
    EXPECT_EQ(learning_rate(optimizer, 1, 10, 0), 0.5);
    optimizer.lr_scaling = LrScaling::sqrt;
    EXPECT_EQ(learning_rate(optimizer, 16, 10, 0), 2.0);  // 4 * 0.5
}

TEST(LearningRate, WarmsUpGraduallyFromTheUnscaledToTheScaledRate) {
    OptimizerSection optimizer = base(1);
    optimizer.lr_scaling = LrScaling::linear;
    optimizer.warmup_steps = 4;
    // From 1 to 5 in 4 steps: 1, 2, 3, 4, then 5.
    for (int step = 0; step < 4; ++step) EXPECT_EQ(learning_rate(optimizer, 5, 100, step), 1.0 + step);
    EXPECT_EQ(learning_rate(optimizer, 5, 100, 4), 5.0);
    EXPECT_EQ(learning_rate(optimizer, 5, 100, 50), 5.0);
}

TEST(LearningRate, WarmsUpFromZeroIfNothingIsScaled) {
    OptimizerSection optimizer = base(1);
    optimizer.warmup_steps = 3;
    for (int step = 0; step < 3; ++step) EXPECT_EQ(learning_rate(optimizer, 8, 10, step), 0.25 * (step + 1));
    EXPECT_EQ(learning_rate(optimizer, 8, 10, 3), 1.0);
}

TEST(LearningRate, ConstantWarmUpStaysAtTheUnscaledRate) {
    OptimizerSection optimizer = base(1);
    optimizer.lr_scaling = LrScaling::linear;
    optimizer.warmup_steps = 3;
    optimizer.warmup = Warmup::constant;
    for (int step = 0; step < 3; ++step) EXPECT_EQ(learning_rate(optimizer, 4, 10, step), 1.0);
    EXPECT_EQ(learning_rate(optimizer, 4, 10, 3), 4.0);
}

TEST(LearningRate, GoesDownAtEachMilestone) {
    OptimizerSection optimizer = base(1);
    optimizer.schedule = LrSchedule::step;
    optimizer.milestones = {10, 20};
    optimizer.gamma = 0.5;
    EXPECT_EQ(learning_rate(optimizer, 1, 30, 9), 1.0);
    EXPECT_EQ(learning_rate(optimizer, 1, 30, 10), 0.5);
    EXPECT_EQ(learning_rate(optimizer, 1, 30, 19), 0.5);
    EXPECT_EQ(learning_rate(optimizer, 1, 30, 20), 0.25);
}

TEST(LearningRate, MilestonesInsideTheWarmUpCountWhenItEnds) {
    OptimizerSection optimizer = base(1);
    optimizer.schedule = LrSchedule::step;
    optimizer.milestones = {2};
    optimizer.gamma = 0.5;
    optimizer.warmup_steps = 4;
    EXPECT_EQ(learning_rate(optimizer, 1, 30, 3), 0.8);  // 4/5 of the way
    EXPECT_EQ(learning_rate(optimizer, 1, 30, 4), 0.5);
}

TEST(LearningRate, FollowsHalfACosine) {
    OptimizerSection optimizer = base(2);
    optimizer.schedule = LrSchedule::cosine;
    EXPECT_EQ(learning_rate(optimizer, 1, 8, 0), 2.0);
    EXPECT_NEAR(learning_rate(optimizer, 1, 8, 2), 1 + std::sqrt(0.5), 1e-15);  // 2 (1 + cos 45°) / 2
    EXPECT_NEAR(learning_rate(optimizer, 1, 8, 4), 1.0, 1e-15);
    EXPECT_NEAR(learning_rate(optimizer, 1, 8, 6), 1 - std::sqrt(0.5), 1e-15);
    EXPECT_GT(learning_rate(optimizer, 1, 8, 7), 0.0);
}

TEST(LearningRate, FollowsAPolynomial) {
    OptimizerSection optimizer = base(8);
    optimizer.schedule = LrSchedule::polynomial;
    EXPECT_EQ(learning_rate(optimizer, 1, 8, 0), 8.0);
    EXPECT_EQ(learning_rate(optimizer, 1, 8, 4), 2.0);    // 8 (1 - 4/8)^2
    EXPECT_EQ(learning_rate(optimizer, 1, 8, 7), 0.125);  // 8 (1/8)^2
    optimizer.power = 1;
    optimizer.warmup_steps = 4;
    EXPECT_EQ(learning_rate(optimizer, 1, 8, 4), 8.0);
    EXPECT_EQ(learning_rate(optimizer, 1, 8, 5), 6.0);  // a straight line to 0 at step 8
    EXPECT_EQ(learning_rate(optimizer, 1, 8, 7), 2.0);
}

TEST(LearningRate, TheCosineBeginsAfterTheWarmUp) {
    OptimizerSection optimizer = base(1);
    optimizer.schedule = LrSchedule::cosine;
    optimizer.lr_scaling = LrScaling::linear;
    optimizer.warmup_steps = 2;
    EXPECT_EQ(learning_rate(optimizer, 3, 6, 1), 2.0);           // half of the way from 1 to 3
    EXPECT_EQ(learning_rate(optimizer, 3, 6, 2), 3.0);           // cos 0
    EXPECT_NEAR(learning_rate(optimizer, 3, 6, 4), 1.5, 1e-15);  // 2 of the 4 remaining steps
    optimizer.warmup_steps = 10;                                 // longer than the run: no cosine at all
    EXPECT_NEAR(learning_rate(optimizer, 3, 6, 5), 2.0, 1e-15);  // 1 + 2 * 5 / 10
}

// The table of the IGARSS 2021 tutorial on ResNet-50 with many GPUs: 0.1 k n / 256 with k GPUs and n samples
// of each, from the same three lines of a job; 5 epochs of warm-up, then a tenth at epochs 30, 60 and 80
// (Goyal et al., section 5.1).
struct PublishedRate {
    int gpus = 0, batch = 0;
    double rate = 0;
};

TEST(LearningRate, ThePublishedRatesComeFromOneKey) {
    constexpr std::int64_t kSamples = 262144, kEpochs = 90;
    for (const PublishedRate& row : {PublishedRate{8, 64, 0.2}, PublishedRate{128, 64, 3.2},
                                     PublishedRate{128, 128, 6.4}, PublishedRate{128, 256, 12.8}}) {
        const std::int64_t epoch = kSamples / (row.gpus * row.batch);
        const Job job = parse_job(
            fmt::format("[run]\nranks = {}\nsteps = {}\ndevice = 'sim'\n[data]\nbatch = {}\n"
                        "[optimizer]\ntype = 'lars'\nlr = 0.1\nlr_batch = 256\nlr_scaling = 'linear'\n"
                        "warmup_steps = {}\nschedule = 'step'\nmilestones = [{}, {}, {}]\n",
                        row.gpus, kEpochs * epoch, row.batch, 5 * epoch, 30 * epoch, 60 * epoch, 80 * epoch),
            "job.toml");
        const double factor = batch_factor(job);
        EXPECT_DOUBLE_EQ(scaled_learning_rate(job.optimizer, factor), row.rate);
        for (std::int64_t step = 0; step < kEpochs * epoch; ++step) {
            const std::int64_t at = step / epoch;
            const double warm = 0.1 + (row.rate - 0.1) * static_cast<double>(step) / (5.0 * epoch);
            const double later = row.rate * (at < 30 ? 1 : at < 60 ? 0.1 : at < 80 ? 0.01 : 0.001);
            ASSERT_NEAR(learning_rate(job.optimizer, factor, job.run.steps, step) / (at < 5 ? warm : later),
                        1, 1e-14)
                << row.gpus << " GPUs, step " << step;
        }
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::job
