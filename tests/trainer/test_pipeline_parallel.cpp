// Pipeline parallelism: with the same micro-batches in turn, a pipeline trains as one rank does, bit for bit
// where the sums are the same, and each place holds what the account of its own Plans says.
#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pipeline_jobs.h"

namespace shardscope::trainer {
namespace TEST_FILE {

using testing::expect_close;
using testing::Kind;
using testing::kKinds;
using testing::kPipes;
using testing::losses_of;
using testing::mesh_of;
using testing::Pipe;
using testing::piped;
using testing::pipeline_job;
using testing::SampleText;

TEST(PipelineParallel, TrainsAsOneRankDoesBitForBit) {
    const SampleText text;
    for (const Kind kind : kKinds) {
        const job::Job job = pipeline_job(kind, text);
        const std::vector<double> expected = losses_of(job);
        for (const Pipe& pipe : kPipes) {
            const job::Job mesh = piped(job, pipe);
            EXPECT_EQ(losses_of(mesh), expected) << mesh_of(mesh);
        }
        // Its backwards take the micro-batches in the reverse order, and so do the sums of gradients.
        const job::Job reverse = piped(job, {2, "looped_bfs", 2});
        expect_close(losses_of(reverse), expected, mesh_of(reverse));
    }
}

// What a pipeline leaves may be trained with any strategy, bit for bit as without it.
std::vector<job::Job> strategies(const SampleText& text) {
    job::Job job = pipeline_job(Kind::gpt, text);
    job.optimizer.type = job::OptimizerType::adamw;
    job.optimizer.lr = 0.01;
    job.run.ranks = 2;
    job.fsdp.wrap = job::parse_wrap("module:Block");
    std::vector<job::Job> ways;
    const auto way = [&](job::ParallelMode mode) -> job::Job& {
        ways.push_back(job);
        ways.back().parallel.mode = mode;
        return ways.back();
    };
    way(job::ParallelMode::ddp);
    way(job::ParallelMode::ddp).ddp.gradient_as_bucket_view = true;
    way(job::ParallelMode::ddp).ddp.shard_optimizer = true;
    for (const job::FsdpLayout layout :
         {job::FsdpLayout::fsdp1, job::FsdpLayout::fsdp2, job::FsdpLayout::lean}) {
        way(job::ParallelMode::fsdp).fsdp.layout = layout;
        way(job::ParallelMode::fsdp).fsdp.layout = layout;
        ways.back().fsdp.wrap = {};
        ways.back().fsdp.sync_module_states = true;
        way(job::ParallelMode::fsdp).fsdp.layout = layout;
        ways.back() = testing::with_strategy(ways.back(), job::ShardingStrategy::shard_grad_op);
        way(job::ParallelMode::fsdp).fsdp.layout = layout;
        ways.back().fsdp.cpu_offload = true;
        ways.back().memory.activation_checkpointing.names = {"Block"};
        way(job::ParallelMode::fsdp).fsdp.layout = layout;
        ways.back().run.ranks = 4;
        ways.back() = testing::with_strategy(ways.back(), job::ShardingStrategy::hybrid_shard, 2);
        way(job::ParallelMode::fsdp).fsdp.layout = layout;
        ways.back().precision = {job::Precision::bf16, job::Precision::bf16, job::Precision::bf16};
    }
    way(job::ParallelMode::fsdp);
    ways.back() = testing::with_strategy(ways.back(), job::ShardingStrategy::no_shard);
    way(job::ParallelMode::none).parallel.tensor = 2;
    way(job::ParallelMode::none).parallel.tensor = 2;
    ways.back().parallel.sequence = true;
    way(job::ParallelMode::fsdp).parallel.tensor = 2;
    ways.back().run.ranks = 4;
    way(job::ParallelMode::none).parallel.tensor = 2;
    ways.back().model.type = job::ModelType::llama;
    ways.back().model.kv_heads = 1;  // the two ranks share it
    return ways;
}

constexpr std::size_t kStrategies = 26;

class PipelineStrategies : public ::testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Of, PipelineStrategies, ::testing::Range<std::size_t>(0, kStrategies));

TEST_P(PipelineStrategies, GoWithAPipeline) {
    const SampleText text;
    const std::vector<job::Job> ways = strategies(text);
    ASSERT_EQ(ways.size(), kStrategies);
    const job::Job& way = ways[GetParam()];
    const std::vector<double> expected = losses_of(way);
    for (const Pipe& pipe :
         {Pipe{2, "1f1b"}, Pipe{2, "interleaved", 2}, Pipe{2, "zb_h1"}, Pipe{2, "zb_v", 2}}) {
        const job::Job mesh = piped(way, pipe);
        EXPECT_EQ(losses_of(mesh), expected) << mesh_of(mesh);
    }
}

// The gradients of the first step by the parameter's path, from the ranks that read the first samples.
std::map<std::string, std::vector<float>> gradients_of(job::Job job) {
    job.run.steps = 1;
    const sharding::Program program(job);
    const data::DataSource data = data::open_data(job);
    std::mutex lock;
    std::map<std::string, std::vector<float>> all;
    executor::RunOptions options;
    options.hooks.at_step_end = [&](int rank, std::int64_t, executor::RankRunner& runner) {
        const std::lock_guard guard(lock);
        if (program.mesh().data_rank(rank) > 0) return;
        for (const sharding::OptimizerSlot& slot : program.of(rank).optimizer().slots()) {
            const plan::HostView view = runner.contents(slot.gradient);
            const auto* values = reinterpret_cast<const float*>(view.bytes().data());
            const auto id = static_cast<std::size_t>(slot.segments[0].parameter);
            EXPECT_TRUE(
                all.try_emplace(program.modules().parameters[id]->path, values, values + slot.elements)
                    .second)
                << "two places hold one parameter";
        }
    };
    options.validation = data.validation.get();
    run_training(program, *data.train, options);
    return all;
}

TEST(PipelineParallel, HasTheGradientsOfOneRank) {
    const SampleText text;
    for (const Kind kind : kKinds) {
        const job::Job job = pipeline_job(kind, text);
        const auto expected = gradients_of(job);
        ASSERT_FALSE(expected.empty());
        for (const Pipe& pipe : kPipes) {
            const job::Job mesh = piped(job, pipe);
            EXPECT_EQ(gradients_of(mesh), expected) << mesh_of(mesh);
        }
    }
}

// The norm of all gradients is summed over the places.
TEST(PipelineParallel, ClipsByTheNormOfTheWholeModel) {
    const SampleText text;
    for (const int tensor : {1, 2}) {
        job::Job job = pipeline_job(Kind::llama, text);
        job.parallel.tensor = job.run.ranks = tensor;
        const std::vector<double> unclipped = losses_of(job);
        job.train.clip_norm = 0.1;
        const std::vector<double> expected = losses_of(job);
        ASSERT_NE(expected, unclipped) << "nothing was clipped";
        for (const Pipe& pipe : kPipes) {
            const job::Job mesh = piped(job, pipe);
            expect_close(losses_of(mesh), expected, mesh_of(mesh));
        }
    }
}

TEST(PipelineParallel, ValidatesAsOneRankDoes) {
    const SampleText text;
    job::Job job = pipeline_job(Kind::gpt, text);
    job.data.validation = 0.2;
    const auto expected = testing::run(job).validation;
    ASSERT_FALSE(expected.empty());
    for (const Pipe& pipe : kPipes) {
        const auto found = testing::run(piped(job, pipe)).validation;
        ASSERT_EQ(found.size(), expected.size());
        for (std::size_t i = 0; i < found.size(); ++i) {
            EXPECT_EQ(found[i].loss, expected[i].loss) << pipe.schedule;
            EXPECT_EQ(found[i].batches, expected[i].batches);
        }
    }
}

// A split backward recomputes in I and keeps what W needs.
TEST(PipelineParallel, RecomputesActivationsInASplitBackward) {
    const SampleText text;
    job::Job job = pipeline_job(Kind::gpt, text);
    const std::vector<double> expected = losses_of(job);
    for (const Pipe& pipe : kPipes) {
        const job::Job kept = piped(job, pipe);
        job::Job recomputed = kept;
        recomputed.memory.activation_checkpointing.names = {"Block"};
        EXPECT_EQ(losses_of(recomputed), expected) << mesh_of(recomputed);
        // On the first place, whose micro-batches wait longest for their backward.
        EXPECT_LT(sharding::Program(recomputed).predict().peak.bytes,
                  sharding::Program(kept).predict().peak.bytes)
            << mesh_of(kept);
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer
