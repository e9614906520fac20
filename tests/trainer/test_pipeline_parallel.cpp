// Pipeline parallelism: with the same micro-batches in turn, a pipeline trains as one rank does, bit for bit
// where the sums are the same, and each place holds what the account of its own Plans says.
#include <cmath>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "jobs.h"
#include "trainer/executor/rank_runner.h"
#include "trainer/job/job.h"

namespace shardscope::trainer {
namespace TEST_FILE {

using testing::SampleText;

enum class Kind : std::uint8_t { mlp, gpt, llama, bert };
constexpr std::array kKinds = {Kind::mlp, Kind::gpt, Kind::llama, Kind::bert};

// A step of four micro-batches through a model of eight layers.
job::Job job_of(Kind kind, const SampleText& text) {
    job::Job job = kind == Kind::mlp ? testing::mlp_job(8, 16, 2, 1) : testing::gpt_job(text, 2, 1);
    job.parallel.mode = job::ParallelMode::none;
    job.train.accumulation = 4;
    job.train.accumulation_sync = false;
    job.optimizer.type = job::OptimizerType::sgd;
    job.optimizer.lr = 0.5;
    if (kind == Kind::mlp) return job;
    job.model.layers = 8;
    job.model.dropout = 0.1;
    if (kind == Kind::llama) job.model.type = job::ModelType::llama;
    if (kind == Kind::bert) job.model.type = job::ModelType::bert;
    return job;
}

struct Pipe {
    int places = 2;
    const char* schedule = "1f1b";
    int stages = 1;
};

job::Job piped(job::Job job, const Pipe& pipe) {
    job.parallel.pipeline = pipe.places;
    job.parallel.schedule = pipe.schedule;
    job.parallel.virtual_stages = pipe.stages;
    job.run.ranks *= pipe.places;
    return job;
}

std::string mesh_of(const job::Job& job) {
    return fmt::format("model {}, {} places, {}, {} stages each, {} ranks, mode {}, tensor {}",
                       static_cast<int>(job.model.type), job.parallel.pipeline, job.parallel.schedule,
                       job.parallel.virtual_stages, job.run.ranks, static_cast<int>(job.parallel.mode),
                       job.parallel.tensor);
}

// Runs it, and checks that every rank's memory is what its role's account says.
std::vector<double> losses_of(const job::Job& job) {
    const executor::RunResult run = testing::run(job);
    const sharding::Program program(job);
    for (int rank = 0; rank < job.run.ranks; ++rank) {
        EXPECT_EQ(run.peaks[static_cast<std::size_t>(rank)].bytes, program.of(rank).predict().peak.bytes)
            << mesh_of(job) << ", rank " << rank;
    }
    return run.losses;
}

void expect_close(const std::vector<double>& losses, const std::vector<double>& expected,
                  const std::string& what) {
    ASSERT_EQ(losses.size(), expected.size()) << what;
    for (std::size_t i = 0; i < losses.size(); ++i)
        EXPECT_NEAR(losses[i] / expected[i], 1.0, 1e-6) << what << ", step " << i;
}

constexpr std::array kPipes = {Pipe{2, "1f1b"},    Pipe{4, "1f1b"},           Pipe{2, "gpipe"},
                               Pipe{4, "gpipe"},   Pipe{2, "interleaved", 2}, Pipe{4, "interleaved", 2},
                               Pipe{2, "zb_h1"},   Pipe{4, "zb_h1"},          Pipe{2, "interleaved_zb", 2},
                               Pipe{2, "zb_v", 2}, Pipe{4, "zb_v", 2},        Pipe{2, "dualpipe_v", 2}};

TEST(PipelineParallel, TrainsAsOneRankDoesBitForBit) {
    const SampleText text;
    for (const Kind kind : kKinds) {
        const job::Job job = job_of(kind, text);
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

std::string refusal(const job::Job& job) {
    try {
        const sharding::Program program(job);
    } catch (const job::JobError& error) {
        return error.what();
    }
    return "";
}

// What a pipeline leaves may be trained with any strategy, bit for bit as without it.
std::vector<job::Job> strategies(const SampleText& text) {
    job::Job job = job_of(Kind::gpt, text);
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
    return ways;
}

constexpr std::size_t kStrategies = 25;

class PipelineStrategies : public ::testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Of, PipelineStrategies, ::testing::Range<std::size_t>(0, kStrategies));

TEST_P(PipelineStrategies, GoWithAPipeline) {
    const SampleText text;
    const std::vector<job::Job> ways = strategies(text);
    ASSERT_EQ(ways.size(), kStrategies);
    const job::Job& way = ways[GetParam()];
    const std::vector<double> expected = losses_of(way);
    for (const Pipe& pipe : {Pipe{2, "1f1b"}, Pipe{2, "interleaved", 2}, Pipe{2, "zb_h1"}}) {
        const job::Job mesh = piped(way, pipe);
        if (mesh.parallel.schedule == "zb_h1" && !mesh.memory.activation_checkpointing.names.empty()) {
            EXPECT_NE(refusal(mesh).find("zb_h1 splits a backward in two"), std::string::npos);
            continue;
        }
        if (pipe.stages > 1 && mesh.parallel.mode == job::ParallelMode::fsdp &&
            mesh.fsdp.wrap.kind == job::Wrap::Kind::root) {
            EXPECT_NE(refusal(mesh).find("fsdp.wrap: the unit root has parameters of stages"),
                      std::string::npos);
            continue;
        }
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
        const job::Job job = job_of(kind, text);
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
        job::Job job = job_of(Kind::llama, text);
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
    job::Job job = job_of(Kind::gpt, text);
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

TEST(PipelineParallel, RefusesWhatDoesNotFitAndNamesTheNearestThatDoes) {
    const SampleText text;
    job::Job job = job_of(Kind::gpt, text);
    EXPECT_EQ(refusal(piped(job, {3, "gpipe", 1})), "");
    job.model.layers = 5;
    EXPECT_EQ(
        refusal(piped(job, {3, "interleaved", 2})),
        "parallel.pipeline: 5 layers cannot be dealt to 6 stages (3 places with 2 each); the nearest number "
        "of places that works is 2");
    EXPECT_EQ(refusal(piped(job, {5, "1f1b"})),
              "train.accumulation: 1f1b takes 5 micro-batches or more on 5 ranks (m >= p), not 4; use 5");
    EXPECT_EQ(refusal(piped(job, {2, "1f1b", 2})),
              "parallel.virtual_stages: 1f1b has 1 stages on each place, not 2; use 1");
    EXPECT_EQ(
        refusal(piped(job, {2, "zigzag"})),
        "parallel.schedule: \"zigzag\" is unknown; use one of gpipe, 1f1b, interleaved, looped_bfs, zb_h1, "
        "interleaved_zb, zb_v, dualpipe_v");
    job::Job tied = job;
    tied.model.tied_embeddings = true;
    EXPECT_NE(refusal(piped(tied, {2, "1f1b"})).find("would share a parameter"), std::string::npos);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer
