// The memory account against the allocator of a real run: the same bytes, by category, unit and module.
#include <gtest/gtest.h>

#include "jobs.h"

namespace shardscope::trainer::plan {
namespace TEST_FILE {

std::vector<job::Job> jobs(const testing::SampleText& text) {
    std::vector<job::Job> all = {testing::with_wrap(testing::mlp_job(4, 24, 3, 4), "root"),
                                 testing::with_wrap(testing::mlp_job(4, 24, 3, 4), "module:Linear"),
                                 testing::with_mode(testing::mlp_job(4, 24, 3, 3), job::ParallelMode::ddp),
                                 testing::with_mode(testing::mlp_job(4, 24, 3, 1), job::ParallelMode::none),
                                 testing::with_wrap(testing::gpt_job(text, 2, 3), "module:Block"),
                                 testing::with_mode(testing::gpt_job(text, 2, 2), job::ParallelMode::ddp)};
    for (const job::FsdpLayout layout :
         {job::FsdpLayout::fsdp1, job::FsdpLayout::fsdp2, job::FsdpLayout::lean}) {
        job::Job job = testing::with_wrap(testing::gpt_job(text, 1, 4), "module:Block");
        job.fsdp.layout = layout;
        job.train.clip_norm = 1;
        all.push_back(job);
        all.push_back(testing::with_strategy(job, job::ShardingStrategy::hybrid_shard, 2));
        job.fsdp.cpu_offload = true;
        job.memory.activation_checkpointing.names = {"Block"};
        all.push_back(job);
        job.precision.param = job::Precision::bf16;
        job.train.accumulation = 2;
        all.push_back(job);
    }
    for (const bool sequence : {false, true}) {
        job::Job job = testing::with_wrap(testing::gpt_job(text, 2, 4), "module:Block");
        job.parallel.tensor = 2;
        job.parallel.sequence = sequence;
        all.push_back(job);
    }
    for (const bool recomputed : {false, true}) {  // two ranks of four share a head of keys and values
        job::Job job = testing::with_wrap(testing::gpt_job(text, 2, 4), "module:LlamaBlock");
        job.model.type = job::ModelType::llama;
        job.model.heads = 4;
        job.model.kv_heads = 2;
        job.parallel.tensor = 4;
        job.parallel.sequence = recomputed;
        if (recomputed) job.memory.activation_checkpointing.names = {"LlamaBlock"};
        job.precision.param = recomputed ? job::Precision::bf16 : job::Precision::fp32;
        all.push_back(job);
    }
    for (const bool recomputed : {false, true}) {
        job::Job job = testing::with_wrap(testing::gpt_job(text, 2, 4), "module:Block");
        job.parallel.context = 2;
        if (recomputed) job.parallel.context_exchange = job::ContextExchange::ring;
        if (recomputed) job.memory.activation_checkpointing.names = {"Block"};
        job.precision.param = recomputed ? job::Precision::bf16 : job::Precision::fp32;
        all.push_back(job);
    }
    // fp16: shards and what the optimizer updates stay fp32; gradients are unscaled and searched for an
    // overflow, also before they are clipped.
    for (const double clip : {0.0, 1.0}) {
        for (const job::FsdpLayout layout :
             {job::FsdpLayout::fsdp1, job::FsdpLayout::fsdp2, job::FsdpLayout::lean}) {
            job::Job job = testing::with_wrap(testing::gpt_job(text, 2, 4), "module:Block");
            job.fsdp.layout = layout;
            job.precision.param = job.precision.reduce = job.precision.buffer = job::Precision::fp16;
            job.train.clip_norm = clip;
            all.push_back(job);
        }
    }
    for (const char* hook : {"fp16", "powersgd:1", "topk:0.05"}) {
        job::Job job = testing::with_mode(testing::gpt_job(text, 2, 2), job::ParallelMode::ddp);
        job.ddp.comm_hook = job::parse_comm_hook(hook);
        job.ddp.first_bucket_mb = job.ddp.bucket_cap_mb = 0.02;
        all.push_back(job);
    }
    for (const job::OptimizerType type : {job::OptimizerType::onebit_adam, job::OptimizerType::onebit_lamb}) {
        job::Job job = testing::with_mode(testing::gpt_job(text, 2, 2), job::ParallelMode::ddp);
        job.optimizer.type = type;
        job.optimizer.freeze_step = 3;
        all.push_back(job);
    }
    for (const double momentum : {0.0, 0.9}) {
        job::Job job = testing::with_mode(testing::gpt_job(text, 2, 2), job::ParallelMode::ddp);
        job.train.local_steps = 2;
        job.train.outer_momentum = momentum;
        all.push_back(job);
    }
    return all;
}

TEST(Account, AgreesWithTheAllocatorOfARealRun) {
    const testing::SampleText text;
    for (const job::Job& job : jobs(text)) {
        const MemoryPeak predicted = sharding::Program(job).predict().peak;
        for (const MemoryPeak& real : testing::run(job).peaks) {
            EXPECT_EQ(real.bytes, predicted.bytes);
            EXPECT_EQ(real.at_peak, predicted.at_peak);
            EXPECT_EQ(real.units, predicted.units);
            EXPECT_EQ(real.modules, predicted.modules);
            EXPECT_EQ(real.where, predicted.where);
            EXPECT_EQ(real.spaces, predicted.spaces);
        }
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::plan
