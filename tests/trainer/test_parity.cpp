// The rule of numerics: in fp32 every mode, wrap and option gives the same bits at one number of ranks, and
// the same losses within 1e-6 at another with the same global batch.
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "jobs.h"

namespace shardscope::trainer {
namespace TEST_FILE {

using Losses = std::vector<double>;

std::vector<job::Job> every_way(const job::Job& job, const char* wrap_class) {
    std::vector<job::Job> jobs;
    for (const std::string& wrap :
         {std::string("root"), std::string("module:") + wrap_class, std::string("size:600")}) {
        jobs.push_back(testing::with_wrap(job, wrap));
    }
    for (const job::BackwardPrefetch prefetch : {job::BackwardPrefetch::none, job::BackwardPrefetch::post}) {
        jobs.push_back(jobs[1]);
        jobs.back().fsdp.backward_prefetch = prefetch;
    }
    jobs.push_back(jobs[1]);
    jobs.back().fsdp.limit_all_gathers = false;
    jobs.push_back(jobs[1]);
    jobs.back().run.workers = 1;
    jobs.push_back(jobs[1]);
    jobs.back().run.workers = 5;
    jobs.push_back(testing::with_mode(job, job::ParallelMode::ddp));
    jobs.push_back(jobs.back());
    jobs.back().ddp.first_bucket_mb = jobs.back().ddp.bucket_cap_mb = 0.001;
    return jobs;
}

void expect_close(const Losses& a, const Losses& b, double tolerance) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i] / b[i], 1.0, tolerance) << "step " << i;
}

TEST(Parity, MlpIsTheSameUnderEveryMode) {
    const Losses single =
        testing::run(testing::with_mode(testing::mlp_job(4, 24, 24, 1), job::ParallelMode::none)).losses;
    for (const int ranks : {1, 2, 3, 4}) {
        for (const double momentum : {0.0, 0.9}) {
            job::Job job = testing::mlp_job(4, 24, 24 / ranks, ranks);
            job.optimizer.momentum = momentum;
            const auto jobs = every_way(job, "Linear");
            const Losses first = testing::run(jobs[0]).losses;
            for (std::size_t i = 1; i < jobs.size(); ++i) {
                EXPECT_EQ(testing::run(jobs[i]).losses, first) << ranks << " ranks, way " << i;
            }
            if (momentum == 0.0) expect_close(first, single, 1e-6);
        }
    }
}

TEST(Parity, GptIsTheSameUnderEveryMode) {
    const testing::SampleText text;
    const Losses single =
        testing::run(testing::with_mode(testing::gpt_job(text, 4, 1), job::ParallelMode::none)).losses;
    for (const int ranks : {1, 2, 4}) {
        const auto jobs = every_way(testing::gpt_job(text, 4 / ranks, ranks), "Block");
        const Losses first = testing::run(jobs[0]).losses;
        for (std::size_t i = 1; i < jobs.size(); ++i) {
            EXPECT_EQ(testing::run(jobs[i]).losses, first) << ranks << " ranks, way " << i;
        }
        expect_close(first, single, 1e-6);
    }
}

// Parameters that are not divisible by the number of ranks, some smaller than it: padding and empty shards.
TEST(Parity, UnevenAndEmptyShardsChangeNothing) {
    for (const int ranks : {3, 5, 7}) {
        job::Job job = testing::mlp_job(3, 5, 2, ranks);
        job.optimizer.type = job::OptimizerType::adamw;
        job.train.clip_norm = 0.1;
        job::Job reference = testing::with_mode(job, job::ParallelMode::none);
        reference.run.ranks = 1;
        reference.train.accumulation = ranks;
        const Losses expected = testing::run(reference).losses;
        for (const job::FsdpLayout layout :
             {job::FsdpLayout::fsdp1, job::FsdpLayout::fsdp2, job::FsdpLayout::lean}) {
            for (const bool offload : {false, true}) {
                job::Job sharded = testing::with_wrap(job, "module:Linear");
                sharded.fsdp.layout = layout;
                sharded.fsdp.cpu_offload = offload;
                sharded.fsdp.sync_module_states = offload;
                EXPECT_EQ(testing::run(sharded).losses, expected) << ranks << " ranks";
            }
        }
        job::Job zero = testing::with_mode(job, job::ParallelMode::ddp);
        zero.ddp.shard_optimizer = true;
        EXPECT_EQ(testing::run(zero).losses, expected) << ranks << " ranks";
    }
}

// Units of which some, all or none of the parameters are trained.
TEST(Parity, FrozenParametersStayAndTheOthersLearnAlike) {
    const testing::SampleText text;
    for (const char* frozen : {"LayerNorm", "Embedding", "CausalSelfAttention"}) {
        job::Job job = testing::gpt_job(text, 1, 4);
        job.train.freeze.names = {frozen};
        job::Job reference = testing::with_mode(job, job::ParallelMode::none);
        reference.run.ranks = 1;
        reference.train.accumulation = 4;
        const Losses expected = testing::run(reference).losses;
        for (const char* wrap : {"root", "module:Block", "module:LayerNorm,Embedding,Linear"}) {
            for (const job::FsdpLayout layout :
                 {job::FsdpLayout::fsdp1, job::FsdpLayout::fsdp2, job::FsdpLayout::lean}) {
                job::Job sharded = testing::with_wrap(job, wrap);
                sharded.fsdp.layout = layout;
                EXPECT_EQ(testing::run(sharded).losses, expected) << frozen << ", wrap " << wrap;
            }
        }
        EXPECT_EQ(testing::run(testing::with_mode(job, job::ParallelMode::ddp)).losses, expected) << frozen;
        job.ddp.shard_optimizer = true;
        EXPECT_EQ(testing::run(testing::with_mode(job, job::ParallelMode::ddp)).losses, expected) << frozen;
    }
}

// LARS, LAMB and NovoGrad scale a parameter's step by the norm of all of it, of which each rank of a shard
// group has a part; some parameters are frozen.
TEST(Parity, NormsAreThoseOfWholeParameters) {
    const testing::SampleText text;
    for (const job::OptimizerType type :
         {job::OptimizerType::lars, job::OptimizerType::lamb, job::OptimizerType::novograd}) {
        job::Job job = testing::gpt_job(text, 1, 4);
        job.optimizer = {};
        job.optimizer.type = type;
        job.optimizer.momentum = type == job::OptimizerType::lars ? 0.9 : 0;
        job.optimizer.lr = type == job::OptimizerType::lars ? 2 : 0.02;
        job.optimizer.weight_decay = 0.01;
        job.train.freeze.names = {"LayerNorm"};
        job::Job reference = testing::with_mode(job, job::ParallelMode::none);
        reference.run.ranks = 1;
        reference.train.accumulation = 4;
        const Losses expected = testing::run(reference).losses;
        EXPECT_LT(expected.back(), expected.front() - 0.01);
        std::vector<job::Job> ways = {testing::with_mode(job, job::ParallelMode::ddp)};
        ways.push_back(ways[0]);
        ways.back().ddp.shard_optimizer = true;
        for (const job::FsdpLayout layout :
             {job::FsdpLayout::fsdp1, job::FsdpLayout::fsdp2, job::FsdpLayout::lean}) {
            ways.push_back(testing::with_wrap(job, "module:Block"));
            ways.back().fsdp.layout = layout;
            ways.push_back(ways.back());
            ways.back().fsdp.cpu_offload = true;
        }
        ways.push_back(testing::with_strategy(ways[2], job::ShardingStrategy::hybrid_shard, 2));
        for (std::size_t i = 0; i < ways.size(); ++i) {
            SCOPED_TRACE(static_cast<int>(type));
            SCOPED_TRACE(i);
            expect_close(testing::run(ways[i]).losses, expected, 1e-6);
        }
    }
}

// A table that the embedding and the head share, wrapped separately: it belongs to the unit around both.
TEST(Parity, SharedParametersMayBeWrappedSeparately) {
    const testing::SampleText text;
    job::Job job = testing::gpt_job(text, 1, 2);
    job.model.tied_embeddings = true;
    const Losses expected = testing::run(testing::with_wrap(job, "root")).losses;
    for (const char* wrap : {"module:Embedding,Linear", "module:Block,Embedding,Linear", "size:500"}) {
        EXPECT_EQ(testing::run(testing::with_wrap(job, wrap)).losses, expected) << wrap;
    }
}

// A prefetched unit's gradients are reduced by nodes of the forward, not of the recomputation.
TEST(Parity, UnitsInsideCheckpointedModulesMayBePrefetched) {
    const testing::SampleText text;
    job::Job job = testing::with_wrap(testing::gpt_job(text, 1, 2), "module:Linear");
    const Losses expected = testing::run(job).losses;
    job.memory.activation_checkpointing.names = {"Block"};
    job.fsdp.forward_prefetch = true;
    for (const job::FsdpLayout layout :
         {job::FsdpLayout::fsdp1, job::FsdpLayout::fsdp2, job::FsdpLayout::lean}) {
        job.fsdp.layout = layout;
        EXPECT_EQ(testing::run(job).losses, expected);
    }
}

TEST(Parity, TheSameRunTwiceGivesTheSameBits) {
    const job::Job job = testing::with_wrap(testing::mlp_job(4, 24, 4, 4), "module:Linear");
    EXPECT_EQ(testing::run(job).losses, testing::run(job).losses);
}

TEST(Parity, AnotherSeedGivesAnotherRun) {
    job::Job job = testing::with_wrap(testing::mlp_job(4, 24, 4, 2), "root");
    const Losses first = testing::run(job).losses;
    job.run.seed = 2;
    EXPECT_NE(testing::run(job).losses, first);
}

TEST(Parity, MlpLearns) {
    job::Job job = testing::with_wrap(testing::mlp_job(2, 16, 32, 2), "module:Linear");
    job.run.steps = 200;
    job.optimizer.lr = 0.5;
    const Losses losses = testing::run(job).losses;
    EXPECT_LT(losses.back(), 0.7 * losses.front());
}

TEST(Parity, GptLearns) {
    const testing::SampleText text;
    job::Job job = testing::with_wrap(testing::gpt_job(text, 4, 2), "module:Block");
    job.run.steps = 60;
    job.optimizer.lr = 0.003;
    const Losses losses = testing::run(job).losses;
    EXPECT_LT(losses.back(), 0.8 * losses.front());
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer
