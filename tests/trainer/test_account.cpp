// The memory account against the allocator of a real run: the same bytes, by category, unit and module.
#include <gtest/gtest.h>

#include "jobs.h"

namespace shardscope::trainer {
namespace TEST_FILE {

std::vector<Job> jobs(const testing::SampleText& text) {
    std::vector<Job> all = {testing::with_wrap(testing::mlp_job(4, 24, 3, 4), "root"),
                            testing::with_wrap(testing::mlp_job(4, 24, 3, 4), "module:Linear"),
                            testing::with_mode(testing::mlp_job(4, 24, 3, 3), ParallelMode::ddp),
                            testing::with_mode(testing::mlp_job(4, 24, 3, 1), ParallelMode::none),
                            testing::with_wrap(testing::gpt_job(text, 2, 3), "module:Block"),
                            testing::with_mode(testing::gpt_job(text, 2, 2), ParallelMode::ddp)};
    for (const FsdpLayout layout : {FsdpLayout::fsdp1, FsdpLayout::fsdp2, FsdpLayout::lean}) {
        Job job = testing::with_wrap(testing::gpt_job(text, 1, 4), "module:Block");
        job.fsdp.layout = layout;
        job.train.clip_norm = 1;
        all.push_back(job);
        all.push_back(testing::with_strategy(job, ShardingStrategy::hybrid_shard, 2));
        job.fsdp.cpu_offload = true;
        job.memory.activation_checkpointing.names = {"Block"};
        all.push_back(job);
        job.precision.param = Precision::bf16;
        job.train.accumulation = 2;
        all.push_back(job);
    }
    for (const bool sequence : {false, true}) {
        Job job = testing::with_wrap(testing::gpt_job(text, 2, 4), "module:Block");
        job.parallel.tensor = 2;
        job.parallel.sequence = sequence;
        all.push_back(job);
    }
    return all;
}

TEST(Account, AgreesWithTheAllocatorOfARealRun) {
    const testing::SampleText text;
    for (const Job& job : jobs(text)) {
        const MemoryPeak predicted = Program(job).predict().peak;
        for (const MemoryPeak& real : testing::run(job).peaks) {
            EXPECT_EQ(real.bytes, predicted.bytes);
            EXPECT_EQ(real.at_peak, predicted.at_peak);
            EXPECT_EQ(real.units, predicted.units);
            EXPECT_EQ(real.modules, predicted.modules);
            EXPECT_EQ(real.where, predicted.where);
        }
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer
