// Context parallelism: with the same samples, every mesh trains as one rank does, with the collectives of the
// closed form (trainer/model/context_parallel.h).
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "mesh_testing.h"

namespace shardscope::trainer {
namespace TEST_FILE {

using testing::Count;
using testing::SampleText;

enum class Kind : std::uint8_t { gpt, gpt_tied, llama, bert, experts };

// A llama shares keys and values among its heads.
job::Job job_of(Kind kind, const SampleText& text, int batch) {
    job::Job job = testing::gpt_job(text, batch, 1);
    job.model.heads = 4;
    job.model.vocabulary = 259;
    job.model.dropout = 0.1;
    job.model.tied_embeddings = kind == Kind::gpt_tied;
    if (kind == Kind::llama) {
        job.model.type = job::ModelType::llama;
        job.model.kv_heads = 2;
    }
    if (kind == Kind::bert) job.model.type = job::ModelType::bert;
    if (kind == Kind::experts) job.model.experts = 4;
    job.train.clip_norm = 0.5;
    return job;
}

struct Axes {
    int context = 1, data = 1, tensor = 1, pipeline = 1;
    bool sequence = false, ring = false;
};

job::Job on_mesh(job::Job job, const Axes& axes, job::ParallelMode mode) {
    job.parallel.context = axes.context;
    if (axes.ring) job.parallel.context_exchange = job::ContextExchange::ring;
    job.parallel.tensor = axes.tensor;
    job.parallel.sequence = axes.sequence;
    job.parallel.pipeline = axes.pipeline;
    job.parallel.mode = mode;
    if (axes.pipeline > 1) job.train.accumulation_sync = false;
    job.run.ranks = axes.context * axes.data * axes.tensor * axes.pipeline;
    job.data.batch /= axes.data;
    return job;
}

std::string mesh_text(const job::Job& job) {
    std::string text;
    for (const auto& [key, value] : job::describe(job)) {
        if (key == "model.type" || key == "model.tied_embeddings" || key.starts_with("parallel.") ||
            key == "run.ranks" || key.starts_with("fsdp."))
            text += key + "=" + value + " ";
    }
    return text;
}

std::vector<double> losses_of_one_rank(const job::Job& job) {
    return testing::run(testing::with_mode(job, job::ParallelMode::none)).losses;
}

void expect_losses(const job::Job& job, const std::vector<double>& expected) {
    testing::expect_close(testing::run(job).losses, expected, mesh_text(job));
}

class EveryModel : public ::testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(ContextParallel, EveryModel,
                         ::testing::Values(Kind::gpt, Kind::gpt_tied, Kind::llama, Kind::bert,
                                           Kind::experts));

TEST_P(EveryModel, TrainsAsOneRankDoes) {
    const SampleText text;
    const job::Job job = job_of(GetParam(), text, 4);
    const std::vector<double> expected = losses_of_one_rank(job);
    for (const int context : {2, 4}) {
        expect_losses(on_mesh(job, {.context = context}, job::ParallelMode::ddp), expected);
        expect_losses(on_mesh(job, {.context = context}, job::ParallelMode::fsdp), expected);
    }
    expect_losses(on_mesh(job, {.context = 2, .data = 2}, job::ParallelMode::ddp), expected);
    expect_losses(on_mesh(job, {.context = 2, .data = 2}, job::ParallelMode::fsdp), expected);
}

TEST_P(EveryModel, TrainsAsOneRankDoesInATensorGroup) {
    const SampleText text;
    const job::Job job = job_of(GetParam(), text, 4);
    const std::vector<double> expected = losses_of_one_rank(job);
    for (const bool sequence : {false, true})
        expect_losses(on_mesh(job, {.context = 2, .data = 2, .tensor = 2, .sequence = sequence},
                              job::ParallelMode::fsdp),
                      expected);
}

TEST_P(EveryModel, TrainsAsOneRankDoesInAPipeline) {
    const SampleText text;
    job::Job job = job_of(GetParam(), text, 4);
    job.train.accumulation = 2;
    const std::vector<double> expected = losses_of_one_rank(job);
    expect_losses(on_mesh(job, {.context = 2, .pipeline = 2}, job::ParallelMode::ddp), expected);
    expect_losses(
        on_mesh(job, {.context = 2, .tensor = 2, .pipeline = 2, .sequence = true}, job::ParallelMode::fsdp),
        expected);
}

TEST_P(EveryModel, TrainsAsOneRankDoesInARing) {
    const SampleText text;
    const job::Job job = job_of(GetParam(), text, 4);
    const std::vector<double> expected = losses_of_one_rank(job);
    expect_losses(on_mesh(job, {.context = 2, .ring = true}, job::ParallelMode::ddp), expected);
    expect_losses(on_mesh(job, {.context = 4, .ring = true}, job::ParallelMode::fsdp), expected);
    expect_losses(on_mesh(job, {.context = 2, .data = 2, .tensor = 2, .sequence = true, .ring = true},
                          job::ParallelMode::fsdp),
                  expected);
}

TEST_P(EveryModel, TrainsAsOneRankDoesInARingAndAPipeline) {
    const SampleText text;
    job::Job job = job_of(GetParam(), text, 4);
    job.train.accumulation = 4;
    const std::vector<double> expected = losses_of_one_rank(job);
    const job::Job mesh = on_mesh(job, {.context = 2, .pipeline = 2, .ring = true}, job::ParallelMode::fsdp);
    expect_losses(mesh, expected);
    job::Job orders = on_mesh(job, {.context = 4, .pipeline = 2, .ring = true}, job::ParallelMode::ddp);
    orders.parallel.order = job::parse_order("cp-dp-tp-pp");
    expect_losses(orders, expected);
}

// The keys of c - 1 other ranks arrive, twice, and c sums of gradients, the last of which is the rank's own.
TEST(ContextParallel, HasTheMessagesOfTheClosedForm) {
    const SampleText text;
    for (const int context : {2, 4}) {
        const job::Job job = job_of(Kind::llama, text, 4);
        const std::int64_t layers = job.model.layers, own = 2 * std::int64_t{4} * job.model.context /
                                                            context * 2 * (job.model.width / 4) * 4;
        const sharding::Program program(
            on_mesh(job, {.context = context, .ring = true}, job::ParallelMode::ddp));
        auto found = testing::collectives(program);
        const std::int64_t messages = layers * (2 * (context - 1) + context);
        for (const plan::Operation end : {plan::Operation::send, plan::Operation::recv})
            EXPECT_EQ(found[std::pair(end, plan::Group::context)], (Count{messages, messages * own}));
        EXPECT_EQ(found.count(std::pair(plan::Operation::all_gather, plan::Group::context)), 0U);
    }
}

TEST(ContextParallel, PassesOnKeysInARecomputation) {
    const SampleText text;
    job::Job job = job_of(Kind::gpt, text, 4);
    job.memory.activation_checkpointing.names = {"Block"};
    const std::vector<double> expected = losses_of_one_rank(job);
    job.fsdp.wrap = job::parse_wrap("module:Block");
    expect_losses(on_mesh(job, {.context = 4, .ring = true}, job::ParallelMode::fsdp), expected);
}

TEST(ContextParallel, AddsUpMicroBatches) {
    const SampleText text;
    job::Job job = job_of(Kind::gpt, text, 4);
    job.train.accumulation = 2;
    const std::vector<double> expected = losses_of_one_rank(job);
    for (const bool each : {true, false}) {
        job.train.accumulation_sync = each;
        expect_losses(on_mesh(job, {.context = 2, .data = 2}, job::ParallelMode::ddp), expected);
        const job::Job fsdp = on_mesh(job, {.context = 2, .data = 2}, job::ParallelMode::fsdp);
        expect_losses(fsdp, expected);
        expect_losses(testing::with_strategy(fsdp, job::ShardingStrategy::no_shard), expected);
    }
}

TEST(ContextParallel, GoesWithEveryStrategy) {
    const SampleText text;
    job::Job job = job_of(Kind::gpt_tied, text, 4);
    job.memory.activation_checkpointing.names = {"Block"};
    const std::vector<double> expected = losses_of_one_rank(job);
    job.fsdp.wrap = job::parse_wrap("module:Block");
    for (const job::FsdpLayout layout :
         {job::FsdpLayout::fsdp1, job::FsdpLayout::fsdp2, job::FsdpLayout::lean}) {
        job::Job own = on_mesh(job, {.context = 2, .data = 2}, job::ParallelMode::fsdp);
        own.fsdp.layout = layout;
        own.fsdp.sync_module_states = true;
        expect_losses(own, expected);
        expect_losses(testing::with_strategy(own, job::ShardingStrategy::hybrid_shard, 1), expected);
        own.fsdp.cpu_offload = true;
        expect_losses(own, expected);
    }
    const job::Job two = on_mesh(job, {.context = 2, .data = 2}, job::ParallelMode::fsdp);
    expect_losses(testing::with_strategy(two, job::ShardingStrategy::no_shard), expected);
    job::Job zero = on_mesh(job, {.context = 2, .data = 2}, job::ParallelMode::ddp);
    zero.ddp.shard_optimizer = true;
    expect_losses(zero, expected);
}

// The places of the ranks change with the order of the axes, not what they compute.
TEST(ContextParallel, GoesWithEveryOrder) {
    const SampleText text;
    const job::Job job = job_of(Kind::gpt, text, 4);
    const std::vector<double> expected = losses_of_one_rank(job);
    for (const char* order : {"pp-cp-dp-tp", "tp-dp-cp-pp", "cp-pp-tp-dp", "dp-tp-cp-pp"}) {
        job::Job mesh = on_mesh(job, {.context = 2, .data = 2, .tensor = 2}, job::ParallelMode::fsdp);
        mesh.parallel.order = job::parse_order(order);
        expect_losses(mesh, expected);
        expect_losses(testing::with_strategy(mesh, job::ShardingStrategy::hybrid_shard, 1), expected);
    }
    job::Job micro = job;
    micro.train.accumulation = 2;
    job::Job pipeline = on_mesh(micro, {.context = 2, .data = 2, .pipeline = 2}, job::ParallelMode::ddp);
    pipeline.parallel.order = job::parse_order("dp-cp-tp-pp");
    expect_losses(pipeline, losses_of_one_rank(micro));
}

TEST_P(EveryModel, HasTheGradientsOfOneRank) {
    const SampleText text;
    const job::Job job = job_of(GetParam(), text, 4);
    const testing::Gradients expected =
        testing::gradients_of(testing::with_mode(job, job::ParallelMode::none));
    for (const Axes& axes : {Axes{.context = 2}, Axes{.context = 4}, Axes{.context = 2, .data = 2},
                             Axes{.context = 4, .ring = true}}) {
        const job::Job mesh = on_mesh(job, axes, job::ParallelMode::ddp);
        testing::expect_close(testing::gradients_of(mesh), expected, mesh_text(mesh));
    }
}

// M is a rank's keys and values: two of each token, of all their heads.
TEST(ContextParallel, HasTheCollectivesOfTheClosedForm) {
    const SampleText text;
    for (const Kind kind : {Kind::gpt, Kind::llama}) {
        job::Job job = job_of(kind, text, 4);
        const std::int64_t layers = job.model.layers, heads = kind == Kind::llama ? 2 : 4,
                           whole =
                               2 * std::int64_t{4} * job.model.context * heads * (job.model.width / 4) * 4;
        for (const bool recomputed : {false, true}) {
            if (recomputed)
                job.memory.activation_checkpointing.names = {kind == Kind::llama ? "LlamaBlock" : "Block"};
            const sharding::Program program(on_mesh(job, {.context = 4}, job::ParallelMode::ddp));
            auto found = testing::collectives(program);
            const std::int64_t gathers = layers * (recomputed ? 2 : 1);
            EXPECT_EQ(found[std::pair(plan::Operation::all_gather, plan::Group::context)],
                      (Count{gathers, gathers * whole}));
            EXPECT_EQ(found[std::pair(plan::Operation::reduce_scatter, plan::Group::context)],
                      (Count{layers, layers * whole}));
        }
    }
}

TEST(ContextParallel, DividesActivations) {
    const SampleText text;
    job::Job job = job_of(Kind::gpt, text, 4);
    job.model.context = 64;
    job.model.attention = job::AttentionKind::fused;
    const auto peak = [](const job::Job& own) { return sharding::Program(own).predict().peak; };
    const auto activations = [&](const job::Job& own) {
        return testing::at_peak(peak(own), plan::MemoryCategory::activations);
    };
    const std::int64_t one = activations(on_mesh(job, {}, job::ParallelMode::ddp));
    EXPECT_LT(activations(on_mesh(job, {.context = 2}, job::ParallelMode::ddp)), one);
    EXPECT_LT(activations(on_mesh(job, {.context = 4}, job::ParallelMode::ddp)), one / 2);
}

TEST(ContextParallel, ValidatesAsOneRankDoes) {
    const SampleText text;
    job::Job job = job_of(Kind::gpt, text, 4);
    job.data.validation = 0.3;
    const auto expected = testing::run(testing::with_mode(job, job::ParallelMode::none)).validation;
    const auto found =
        testing::run(on_mesh(job, {.context = 2, .data = 2}, job::ParallelMode::ddp)).validation;
    ASSERT_EQ(found.size(), expected.size());
    ASSERT_FALSE(found.empty());
    EXPECT_NEAR(found.back().loss / expected.back().loss, 1.0, 1e-6);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer
