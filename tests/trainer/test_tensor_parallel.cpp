// Tensor and sequence parallelism: with the same samples, every mesh trains as one rank does, with the
// collectives that Megatron's closed forms count (trainer/model/tensor_parallel.h, vocabulary_parallel.h).
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "mesh_testing.h"

namespace shardscope::trainer {
namespace TEST_FILE {

using testing::Count;
using testing::expect_close;
using testing::SampleText;

// A llama has two heads of keys and values, or one (multi-query attention).
enum class Kind : std::uint8_t { mlp, gpt, gpt_tied, llama, llama_one, bert };
constexpr std::array kKinds = {Kind::mlp,   Kind::gpt,       Kind::gpt_tied,
                               Kind::llama, Kind::llama_one, Kind::bert};

// A model whose heads can be divided among four ranks. Its vocabulary can not: the last rank has padding.
job::Job job_of(Kind kind, const SampleText& text, int batch) {
    if (kind == Kind::mlp) return testing::mlp_job(5, 24, batch, 1);
    job::Job job = testing::gpt_job(text, batch, 1);
    job.model.heads = 4;
    job.model.vocabulary = 259;
    job.model.dropout = 0.1;
    job.model.tied_embeddings = kind == Kind::gpt_tied;
    if (kind == Kind::llama || kind == Kind::llama_one) {
        job.model.type = job::ModelType::llama;
        job.model.kv_heads = kind == Kind::llama ? 2 : 1;
    }
    if (kind == Kind::bert) job.model.type = job::ModelType::bert;
    return job;
}

job::Job on_mesh(job::Job job, int tensor, int data, job::ParallelMode mode, bool sequence = false) {
    job.parallel.tensor = tensor;
    job.parallel.sequence = sequence;
    job.parallel.mode = mode;
    job.run.ranks = tensor * data;
    job.data.batch /= data;
    return job;
}

std::vector<bool> with_and_without_sequence(Kind kind) {
    return kind == Kind::mlp ? std::vector<bool>{false} : std::vector<bool>{false, true};
}

std::string describe(Kind kind, const job::Job& job) {
    return "model " + std::to_string(static_cast<int>(kind)) + ", tensor " +
           std::to_string(job.parallel.tensor) + (job.parallel.sequence ? " with sequence" : "") +
           ", ranks " + std::to_string(job.run.ranks) + ", mode " +
           std::to_string(static_cast<int>(job.parallel.mode));
}

TEST(TensorParallel, TrainsAsOneRankDoes) {
    const SampleText text;
    for (const Kind kind : kKinds) {
        job::Job job = job_of(kind, text, 4);
        job.train.clip_norm = 0.5;
        const std::vector<double> expected =
            testing::run(testing::with_mode(job, job::ParallelMode::none)).losses;
        for (const int tensor : {2, 4}) {
            for (const bool sequence : with_and_without_sequence(kind)) {
                std::vector<job::Job> meshes = {on_mesh(job, tensor, 1, job::ParallelMode::none, sequence),
                                                on_mesh(job, tensor, 2, job::ParallelMode::ddp, sequence),
                                                on_mesh(job, tensor, 2, job::ParallelMode::fsdp, sequence)};
                for (const job::Job& mesh : meshes)
                    expect_close(testing::run(mesh).losses, expected, describe(kind, mesh));
            }
        }
    }
}

// LARS, LAMB and NovoGrad scale by the norms of whole parameters or of their gradients.
TEST(TensorParallel, ScalesByTheNormsOfWholeParameters) {
    const SampleText text;
    for (const job::OptimizerType type :
         {job::OptimizerType::lars, job::OptimizerType::lamb, job::OptimizerType::novograd}) {
        job::Job job = job_of(Kind::gpt, text, 4);
        job.model.vocabulary = 260;
        job.optimizer.type = type;
        job.optimizer.momentum = type == job::OptimizerType::lars ? 0.9 : 0;
        job.optimizer.lr = type == job::OptimizerType::lars ? 1 : 0.01;
        job.optimizer.weight_decay = 0.01;
        const std::vector<double> expected =
            testing::run(testing::with_mode(job, job::ParallelMode::none)).losses;
        EXPECT_LT(expected.back(), expected.front());
        for (const int tensor : {2, 4}) {
            std::vector<job::Job> meshes = {on_mesh(job, tensor, 1, job::ParallelMode::none, true),
                                            on_mesh(job, tensor, 2, job::ParallelMode::ddp),
                                            on_mesh(job, tensor, 2, job::ParallelMode::fsdp, true)};
            meshes.push_back(meshes.back());
            meshes.back().fsdp.layout = job::FsdpLayout::fsdp2;
            for (const job::Job& mesh : meshes)
                expect_close(testing::run(mesh).losses, expected, describe(Kind::gpt, mesh));
        }
    }
}

// The layouts and strategies of the data axes, over a model that a tensor group cuts.
TEST(TensorParallel, GoesWithEveryStrategy) {
    const SampleText text;
    job::Job job = job_of(Kind::gpt_tied, text, 4);
    job.train.clip_norm = 0.5;
    job.memory.activation_checkpointing.names = {"Block"};
    const std::vector<double> expected =
        testing::run(testing::with_mode(job, job::ParallelMode::none)).losses;
    job.fsdp.wrap = job::parse_wrap("module:Block");
    for (const bool sequence : {false, true}) {
        std::vector<job::Job> ways;
        for (const job::FsdpLayout layout :
             {job::FsdpLayout::fsdp1, job::FsdpLayout::fsdp2, job::FsdpLayout::lean}) {
            ways.push_back(on_mesh(job, 2, 2, job::ParallelMode::fsdp, sequence));
            ways.back().fsdp.layout = layout;
            ways.back().fsdp.sync_module_states = true;
            ways.push_back(ways.back());
            ways.back().fsdp.cpu_offload = true;
            ways.push_back(on_mesh(job, 2, 4, job::ParallelMode::fsdp, sequence));
            ways.back().fsdp.layout = layout;
            ways.back() = testing::with_strategy(ways.back(), job::ShardingStrategy::hybrid_shard, 2);
        }
        ways.push_back(testing::with_strategy(on_mesh(job, 2, 2, job::ParallelMode::fsdp, sequence),
                                              job::ShardingStrategy::no_shard));
        ways.push_back(on_mesh(job, 2, 2, job::ParallelMode::ddp, sequence));
        ways.back().ddp.shard_optimizer = true;
        for (std::size_t i = 0; i < ways.size(); ++i)
            expect_close(testing::run(ways[i]).losses, expected, "way " + std::to_string(i));
    }
}

TEST(TensorParallel, HasTheGradientsOfOneRank) {
    const SampleText text;
    for (const Kind kind : kKinds) {
        const job::Job job = job_of(kind, text, 4);
        const testing::Gradients expected =
            testing::gradients_of(testing::with_mode(job, job::ParallelMode::none));
        for (const bool sequence : with_and_without_sequence(kind)) {
            for (const int data : {1, 2}) {
                const job::Job mesh = on_mesh(
                    job, 4, data, data == 1 ? job::ParallelMode::none : job::ParallelMode::ddp, sequence);
                expect_close(testing::gradients_of(mesh), expected, describe(kind, mesh));
            }
        }
    }
}

// N is a micro-batch's activations of the model's width, fp32; a block has two pairs of matmuls.
TEST(TensorParallel, HasTheCollectivesOfTheClosedForm) {
    const SampleText text;
    const job::Job job = job_of(Kind::gpt, text, 4);
    const std::int64_t layers = job.model.layers, rows = std::int64_t{4} * job.model.context,
                       n = rows * job.model.width * 4;
    auto plain = testing::collectives(sharding::Program(on_mesh(job, 4, 1, job::ParallelMode::none)));
    // 4 in each block, the embedding's, and that of the head's input gradient; three numbers of each row for
    // the loss.
    EXPECT_EQ(plain[std::pair(plan::Operation::all_reduce, plan::Group::tensor)],
              (Count{4 * layers + 2 + 3, (4 * layers + 2) * n + 3 * rows * 4}));
    EXPECT_EQ(plain.size(), 1U);

    auto sequence =
        testing::collectives(sharding::Program(on_mesh(job, 4, 1, job::ParallelMode::none, true)));
    const Count each{2 * (2 * layers + 1), 2 * (2 * layers + 1) * n};
    EXPECT_EQ(sequence[std::pair(plan::Operation::all_gather, plan::Group::tensor)], each);
    EXPECT_EQ(sequence[std::pair(plan::Operation::reduce_scatter, plan::Group::tensor)], each);
    // The weight and bias of each norm, and the position embedding.
    const std::int64_t norms = 2 * (2 * layers + 1), width = job.model.width;
    EXPECT_EQ(sequence[std::pair(plan::Operation::all_reduce, plan::Group::tensor)],
              (Count{norms + 1 + 3, (norms + job.model.context) * width * 4 + 3 * rows * 4}));

    // Recomputation ends with the last tensor that the backward needs: dropout's input, or, without dropout,
    // that of the last matmul, whose all-reduce is left out.
    job::Job recomputed = job;
    recomputed.memory.activation_checkpointing.names = {"Block"};
    for (const double dropout : {0.1, 0.0}) {
        recomputed.model.dropout = dropout;
        plain = testing::collectives(sharding::Program(on_mesh(recomputed, 4, 1, job::ParallelMode::none)));
        EXPECT_EQ(plain[std::pair(plan::Operation::all_reduce, plan::Group::tensor)].count,
                  4 * layers + 2 + 3 + (dropout > 0 ? 2 : 1) * layers);
    }
}

// Four ranks share k heads of keys and values, of d features: a layer gathers 2 k d features of all rows,
// with the input's own, and scatters their gradients. A recomputation repeats the all-gather.
TEST(TensorParallel, GathersTheHeadsOfKeysAndValuesThatRanksShare) {
    const SampleText text;
    for (const Kind kind : {Kind::llama, Kind::llama_one}) {
        for (const bool sequence : {false, true}) {
            job::Job job = on_mesh(job_of(kind, text, 4), 4, 1, job::ParallelMode::none, sequence);
            job.model.dropout = 0;
            const std::int64_t layers = job.model.layers, rows = std::int64_t{4} * job.model.context,
                               n = rows * job.model.width * 4,
                               kv = 2 * rows * job.model.kv_heads * (job.model.width / job.model.heads) * 4;
            const std::int64_t of_rows = sequence ? 2 * (2 * layers + 1) : 0;
            const Count expected{of_rows + layers, of_rows * n + layers * kv};
            const auto gathers = std::pair(plan::Operation::all_gather, plan::Group::tensor),
                       scatters = std::pair(plan::Operation::reduce_scatter, plan::Group::tensor);
            auto counts = testing::collectives(sharding::Program(job));
            EXPECT_EQ(counts[gathers], expected) << describe(kind, job);
            EXPECT_EQ(counts[scatters], expected) << describe(kind, job);
            job.memory.activation_checkpointing.names = {"LlamaBlock"};
            counts = testing::collectives(sharding::Program(job));
            const std::int64_t again = sequence ? 2 * layers : 0;  // the inputs of both pairs
            EXPECT_EQ(counts[gathers],
                      (Count{expected.count + again + layers, expected.bytes + again * n + layers * kv}))
                << describe(kind, job);
        }
    }
    // As many ranks as heads have one each.
    const auto two = testing::collectives(
        sharding::Program(on_mesh(job_of(Kind::llama, text, 4), 2, 1, job::ParallelMode::none)));
    EXPECT_FALSE(two.contains({plan::Operation::all_gather, plan::Group::tensor}));
}

// Both attentions, in both precisions: in bf16, sums in another order are rounded to 8 bits.
TEST(TensorParallel, SharesHeadsUnderEveryAttention) {
    const SampleText text;
    for (const job::AttentionKind attention : {job::AttentionKind::plain, job::AttentionKind::fused}) {
        for (const job::Precision precision : {job::Precision::fp32, job::Precision::bf16}) {
            job::Job job = testing::with_wrap(job_of(Kind::llama, text, 4), "module:LlamaBlock");
            job.model.attention = attention;
            job.memory.activation_checkpointing.names = {"LlamaBlock"};
            job.precision.param = job.precision.reduce = job.precision.buffer = precision;
            job.optimizer.type = job::OptimizerType::sgd;  // AdamW enlarges what was rounded
            job.optimizer.lr = 0.1;
            const auto losses_on = [&](int tensor, bool sequence) {
                return testing::run(on_mesh(job, tensor, 2, job::ParallelMode::fsdp, sequence)).losses;
            };
            const double tolerance = precision == job::Precision::fp32 ? 1e-6 : 1e-4;
            const std::vector<double> expected = losses_on(1, false);
            for (const bool sequence : {false, true}) {
                const std::vector<double> found = losses_on(4, sequence);
                ASSERT_EQ(found.size(), expected.size());
                for (std::size_t i = 0; i < found.size(); ++i)
                    EXPECT_NEAR(found[i] / expected[i], 1.0, tolerance) << "step " << i;
            }
        }
    }
}

TEST(TensorParallel, DividesParametersAndActivations) {
    const SampleText text;
    const job::Job job = job_of(Kind::llama, text, 4);
    const auto held = [](const sharding::Program& program) {
        std::int64_t elements = 0;
        for (const model::Parameter* p : program.modules().parameters) elements += p->elements();
        return elements;
    };
    const sharding::Program one(testing::with_mode(job, job::ParallelMode::none)),
        two(on_mesh(job, 2, 1, job::ParallelMode::none)),
        rows(on_mesh(job, 2, 1, job::ParallelMode::none, true));
    const std::int64_t norms = (2 * job.model.layers + 1) * job.model.width;
    const std::int64_t padding = 2 * job.model.width / 2;  // of embedding and head, 259 entries
    EXPECT_EQ(held(two), (held(one) - norms) / 2 + norms + padding);
    EXPECT_LT(two.predict().peak.bytes, one.predict().peak.bytes);
    EXPECT_LT(rows.predict().peak.bytes, two.predict().peak.bytes);
}

std::string refusal(job::Job job) {
    try {
        const sharding::Program program(job);
    } catch (const job::JobError& error) {
        return error.what();
    }
    return "";
}

TEST(TensorParallel, RefusesWhatCannotBeDividedAndNamesTheNearestNumber) {
    const SampleText text;
    job::Job shared = job_of(Kind::llama, text, 4);
    shared.model.heads = 12;
    shared.model.width = 72;
    shared.model.kv_heads = 4;
    EXPECT_EQ(refusal(on_mesh(shared, 4, 1, job::ParallelMode::none)), "");
    EXPECT_EQ(refusal(on_mesh(shared, 12, 1, job::ParallelMode::none)), "");
    EXPECT_EQ(
        refusal(on_mesh(shared, 6, 1, job::ParallelMode::none)),
        "parallel.tensor: 4 model.kv_heads cannot be divided among 6 ranks, nor 6 ranks among them; the "
        "nearest number of ranks that works is 2");
    job::Job one = job_of(Kind::llama_one, text, 4);  // head of 4 features
    one.model.heads = 8;
    EXPECT_EQ(
        refusal(on_mesh(one, 8, 1, job::ParallelMode::none)),
        "parallel.tensor: 4 features of the kv heads cannot be divided among 8 ranks; the nearest number "
        "of ranks that works is 4");
    EXPECT_EQ(
        refusal(on_mesh(job_of(Kind::mlp, text, 4), 5, 1, job::ParallelMode::none)),
        "parallel.tensor: 24 model.width cannot be divided among 5 ranks; the nearest number of ranks that "
        "works is 1");
    job::Job padded = on_mesh(job_of(Kind::gpt, text, 4), 2, 1, job::ParallelMode::none);
    padded.optimizer.type = job::OptimizerType::lamb;
    EXPECT_EQ(refusal(padded),
              "parallel.tensor: 259 entries of the vocabulary, which lars, lamb and novograd need without "
              "padding, cannot "
              "be divided among 2 ranks; the nearest number of ranks that works is 1");
    job::Job odd = on_mesh(job_of(Kind::gpt, text, 1), 2, 1, job::ParallelMode::none, true);
    odd.model.context = 15;
    EXPECT_EQ(
        refusal(odd),
        "parallel.tensor: 15 tokens of a micro-batch cannot be divided among 2 ranks; the nearest number of "
        "ranks that works is 1");
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer
