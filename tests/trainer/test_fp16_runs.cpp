// Training in fp16 with a loss scale: skipped steps, what they leave alone, and losses near those of fp32.
#include <cmath>
#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jobs.h"
#include "trace_testing.h"
#include "trainer/executor/rank_runner.h"

namespace shardscope::trainer {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

job::Job in_fp16(job::Job job) {
    job.precision.param = job.precision.reduce = job.precision.buffer = job::Precision::fp16;
    return job;
}

// samples/fp16.toml: its gradients fit into fp16 from a scale of 2^22 on down.
job::Job lab_job(int ranks) {
    job::Job job = in_fp16(testing::with_wrap(testing::mlp_job(4, 256, 32, ranks), "module:Linear"));
    job.run.steps = 8;
    job.optimizer.type = job::OptimizerType::adamw;
    job.optimizer.lr = 1e-3;
    job.precision.scale_rule = job::ScaleRule::deepspeed;
    job.precision.initial_scale = 268435456;
    job.precision.growth_interval = 1000;
    job.precision.hysteresis = 1;
    return job;
}

using Bytes = std::vector<std::byte>;
// Everything that a rank keeps from step to step, by state ("" is the parameters).
using Kept = std::map<std::string, Bytes>;

// What rank 0 keeps after each step.
std::vector<Kept> kept_by_step(job::Job job, executor::RunOptions options = {}) {
    job.checkpoint.every = 1;
    const sharding::Program program(job);
    const data::DataSource data = data::open_data(job);
    std::vector<Kept> all;
    options.hooks.at_step_end = [&](int rank, std::int64_t, executor::RankRunner& runner) {
        if (rank != 0) return;
        Kept& kept = all.emplace_back();
        for (const sharding::StatePiece& piece : program.of(rank).optimizer().pieces(rank)) {
            const plan::HostView view = runner.contents(piece.where);
            Bytes& bytes = kept[piece.state];
            bytes.insert(bytes.end(), view.bytes().begin(), view.bytes().end());
        }
    };
    run_training(program, *data.train, options);
    return all;
}

std::vector<float> floats(const Bytes& bytes) {
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
}

// Lab 2 of the tutorial: 268435456 and five more halvings, in DeepSpeed's words.
TEST(Fp16Runs, PrintTheOverflowLogOfTheLab) {
    for (const int ranks : {1, 2}) {
        std::vector<std::string> log;
        executor::RunOptions options;
        options.on_overflow = [&](const std::string& line) { log.push_back(line); };
        testing::run(lab_job(ranks), options);
        std::vector<std::string> expected;
        double scale = 268435456;
        for (int step = 0; step < 6; ++step, scale /= 2) {
            expected.push_back(
                fmt::format("step {}: OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {:.1f}, "
                            "reducing to {:.1f}",
                            step, scale, scale / 2));
        }
        EXPECT_EQ(expected.front(),
                  "step 0: OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 268435456.0, reducing to "
                  "134217728.0");
        EXPECT_EQ(log, expected) << ranks << " ranks";
    }
}

TEST(Fp16Runs, ASkippedStepLeavesTheBitsOfParametersAndStateAndIsNoUpdateOfAdam) {
    const std::vector<Kept> kept = kept_by_step(lab_job(2));
    ASSERT_EQ(kept.size(), 8u);
    for (std::size_t step = 1; step < 6; ++step) EXPECT_EQ(kept[step], kept[0]) << step;
    EXPECT_NE(kept[6].at(""), kept[5].at(""));
    EXPECT_NE(kept[6].at("exp_avg"), kept[5].at("exp_avg"));
    // The moments are still zeros. The first update of Adam is the learning rate wherever the gradient is not
    // tiny: with the correction of a seventh step it would be a third of that.
    for (const float x : floats(kept[5].at("exp_avg"))) ASSERT_EQ(x, 0);
    const std::vector<float> before = floats(kept[5].at("")), after = floats(kept[6].at(""));
    int whole = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
        const double change = std::abs(after[i] - before[i]);
        ASSERT_LE(change, 1.1e-3) << i;
        if (change > 0.9e-3) ++whole;
    }
    EXPECT_GT(whole, static_cast<int>(before.size() / 2));
}

// NovoGrad's second moment begins with the whole square of the gradient, after skipped steps, too. If it
// began with the part that a later update adds, the next update would about double it.
TEST(Fp16Runs, ASkippedStepIsNoUpdateOfNovograd) {
    job::Job job = lab_job(2);
    job.optimizer.type = job::OptimizerType::novograd;
    const std::vector<Kept> kept = kept_by_step(job);
    ASSERT_EQ(kept.size(), 8u);
    const auto sum = [&](std::size_t step) {
        double total = 0;
        for (const float x : floats(kept[step].at("exp_avg_sq"))) total += x;
        return total;
    };
    EXPECT_EQ(sum(5), 0);
    EXPECT_GT(sum(6), 0);
    EXPECT_NEAR(sum(7) / sum(6), 1, 0.2);
}

TEST(Fp16Runs, TheTraceHasTheScaleOfEachStepAndAMarkOfEachSkippedOne) {
    job::Job job = lab_job(2);
    job.train.gradient_norm = true;
    const auto trace = testing::record(job);
    std::vector<double> scales, skipped;
    std::vector<std::int64_t> with_norm;
    for (const traces::schema::MetricRow& row : trace->metrics) {
        const std::string_view name = trace->strings[row.name];
        if (name == "loss_scale") scales.push_back(row.value);
        if (name == "skipped_steps") skipped.push_back(row.value);
        if (name != "gradient_norm") continue;
        with_norm.push_back(row.step);
        EXPECT_TRUE(std::isfinite(row.value)) << row.step;
    }
    EXPECT_THAT(scales, ElementsAre(0x1p28, 0x1p27, 0x1p26, 0x1p25, 0x1p24, 0x1p23, 0x1p22, 0x1p22));
    EXPECT_THAT(skipped, ElementsAre(1, 2, 3, 4, 5, 6, 6, 6));
    EXPECT_THAT(with_norm, ElementsAre(6, 7));  // the gradients of a skipped step have none
    int marks = 0;
    for (std::size_t i = 0; i < trace->marks.size(); ++i)
        marks += trace->strings[trace->marks.name[i]].starts_with("OVERFLOW! Rank ") ? 1 : 0;
    EXPECT_EQ(marks, 12);  // of each rank
    // A skipped step launches no kernel of the optimizer.
    int updates = 0;
    for (std::size_t i = 0; i < trace->device.size(); ++i)
        updates += trace->strings[trace->device.name[i]] == "adamw_step" ? 1 : 0;
    EXPECT_EQ(updates, 2 * 4 * 2);  // ranks, units, steps
}

// The gradients of one rank alone overflow: the largest of the ranks' findings decides for all.
TEST(Fp16Runs, AnOverflowOnOneRankSkipsTheStepOnAll) {
    job::Job job = lab_job(4);
    job.precision.initial_scale = 0x1p23;  // of the first steps' gradients only some overflow
    std::mutex lock;
    std::map<int, std::vector<double>> scales;
    job.checkpoint.every = 1;
    executor::RunOptions options;
    options.hooks.at_step_end = [&](int rank, std::int64_t, executor::RankRunner& runner) {
        const std::lock_guard guard(lock);
        scales[rank].push_back(runner.loss_scaler()->state().scale);
    };
    testing::run(job, options);
    ASSERT_EQ(scales.size(), 4u);
    for (const auto& [rank, path] : scales) EXPECT_EQ(path, scales[0]) << rank;
    EXPECT_LT(scales[0].back(), 0x1p23);
}

// The unscaled gradients, not the scaled ones, are clipped.
TEST(Fp16Runs, ClipTheUnscaledGradients) {
    job::Job job = lab_job(2);
    job.optimizer.type = job::OptimizerType::sgd;
    job.optimizer.lr = 1;
    job.run.steps = 1;
    job.train.clip_norm = 1e-3;
    job.precision.initial_scale = 1024;
    const std::vector<float> without = floats(kept_by_step([&] {
                                                  job::Job frozen = job;
                                                  frozen.optimizer.lr = 0;
                                                  return frozen;
                                              }())[0]
                                                  .at(""));
    const std::vector<float> with = floats(kept_by_step(job)[0].at(""));
    double sum = 0;
    for (std::size_t i = 0; i < with.size(); ++i) sum += std::pow(with[i] - without[i], 2);
    EXPECT_GT(std::sqrt(sum), 0.3e-3);  // of half of the parameters
    EXPECT_LT(std::sqrt(sum), 1e-3);
}

TEST(Fp16Runs, AtTheSmallestScaleAnOverflowEndsTheRunWithASentence) {
    job::Job job = lab_job(2);
    job.precision.min_scale = 134217728;
    EXPECT_THAT([&] { testing::run(job); },
                ::testing::ThrowsMessage<executor::RunError>(
                    HasSubstr("step 1: the gradients overflow, and the loss scale is 134217728 already")));
}

// Gradients below 2^-24 are 0 in fp16 unless the loss is scaled.
TEST(Fp16Runs, AScaleSavesSmallGradients) {
    job::Job job = testing::with_wrap(testing::mlp_job(2, 64, 8, 1), "module:Linear");
    job.run.steps = 30;
    job.optimizer.lr = 0.5;
    const std::vector<double> wide = testing::run(job).losses;
    job = in_fp16(job);
    const std::vector<double> scaled = testing::run(job).losses;
    job.precision.loss_scale = 0x1p-10;  // as if the loss were that much smaller
    const std::vector<double> lost = testing::run(job).losses;
    EXPECT_NEAR(scaled.back() / wide.back(), 1, 0.01);
    EXPECT_GT(std::abs(lost.back() - wide.back()), 5 * std::abs(scaled.back() - wide.back()));
}

// Within 0.5 % of fp32 (a rounding is 2^-11), and the same on 1, 2 and 4 ranks' layouts and strategies of
// FSDP.
TEST(Fp16Runs, StayNearFp32AndAgreeWithEachOther) {
    const testing::SampleText text;
    for (job::Job job : {testing::mlp_job(3, 16, 4, 2), testing::gpt_job(text, 2, 2)}) {
        job = testing::with_wrap(job, "module:Linear");
        const std::vector<double> wide = testing::run(job).losses;
        job = in_fp16(job);
        std::vector<double> first;
        for (const auto strategy : {job::ShardingStrategy::full_shard, job::ShardingStrategy::shard_grad_op,
                                    job::ShardingStrategy::no_shard}) {
            for (const auto layout :
                 {job::FsdpLayout::fsdp1, job::FsdpLayout::fsdp2, job::FsdpLayout::lean}) {
                if (strategy == job::ShardingStrategy::no_shard && layout != job::FsdpLayout::fsdp1) continue;
                for (const bool offload : {false, true}) {
                    if (offload && strategy == job::ShardingStrategy::no_shard) continue;
                    job.fsdp.sharding_strategy = strategy;
                    job.fsdp.layout = layout;
                    job.fsdp.cpu_offload = offload;
                    const std::vector<double> losses = testing::run(job).losses;
                    if (first.empty()) first = losses;
                    EXPECT_EQ(losses, first);
                    for (std::size_t i = 0; i < losses.size(); ++i)
                        EXPECT_NEAR(losses[i] / wide[i], 1, 0.005);
                }
            }
        }
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer
