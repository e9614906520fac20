// memory.offload: the same bits as without, the memory of each space as predicted, what is copied and when.
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jobs.h"
#include "offload_jobs.h"
#include "pipeline_jobs.h"
#include "trainer/model/activation_offload.h"

namespace shardscope::trainer::sharding {
namespace TEST_FILE {

using testing::bytes_of, testing::gpt, testing::losses_as_predicted, testing::offloaded;
using testing::kActivations, testing::kBoth, testing::kDelays, testing::kLayouts, testing::kOffloads,
    testing::kOptimizer;
using testing::SampleText;

using Change = std::function<void(job::Job&)>;
const std::vector<std::pair<const char*, Change>> kChanges = {
    {"as it is", [](job::Job&) {}},
    {"accumulation", [](job::Job& job) { job.train.accumulation = 3; }},
    {"no_sync",
     [](job::Job& job) {
         job.train.accumulation = 3;
         job.train.accumulation_sync = false;
     }},
    {"clipping", [](job::Job& job) { job.train.clip_norm = 0.1; }},
    {"LAMB", [](job::Job& job) { job.optimizer.type = job::OptimizerType::lamb; }},
    {"checkpointing, tied", [](job::Job& job) {
         job.memory.activation_checkpointing.names = {"Block"};
         job.model.tied_embeddings = true;
     }}};

void expect_same_bits(const job::Job& job) {
    for (const auto& [name, change] : kChanges) {
        job::Job changed = job;
        change(changed);
        const std::vector<double> expected = losses_as_predicted(changed);
        for (const job::Offload& offload : kOffloads)
            EXPECT_EQ(losses_as_predicted(offloaded(changed, offload)), expected)
                << name << ", " << to_text(offload);
    }
}

TEST(Offload, ChangesNoBitOnOneRank) {
    const SampleText text;
    expect_same_bits(gpt(text, job::ParallelMode::none, 1));
}

TEST(Offload, ChangesNoBitWithDdp) {
    const SampleText text;
    job::Job job = gpt(text, job::ParallelMode::ddp, 2);
    job.ddp.first_bucket_mb = job.ddp.bucket_cap_mb = 0.05;
    expect_same_bits(job);
    job.ddp.static_graph = true;
    job.ddp.comm_hook = job::parse_comm_hook("bf16");
    EXPECT_EQ(losses_as_predicted(offloaded(job, kBoth)), losses_as_predicted(job));
}

TEST(Offload, ChangesNoBitWithFsdp) {
    const SampleText text;
    for (const job::FsdpLayout layout : kLayouts) {
        job::Job job = gpt(text, job::ParallelMode::fsdp, 2);
        job.fsdp.layout = layout;
        expect_same_bits(job);
    }
}

// The device's shards are in the type that is gathered, which the host rounds to.
TEST(Offload, ChangesNoBitWithLowPrecisionOrOfFrozenParts) {
    const SampleText text;
    for (const job::FsdpLayout layout : kLayouts) {
        for (const job::Precision type : {job::Precision::bf16, job::Precision::fp16}) {
            job::Job job = gpt(text, job::ParallelMode::fsdp, 4);
            job = testing::with_strategy(job, job::ShardingStrategy::hybrid_shard, 2);
            job.fsdp.layout = layout;
            job.fsdp.sync_module_states = true;
            job.precision.param = job.precision.reduce = job.precision.buffer = type;
            job.data.batch = 80;
            const std::vector<double> expected = losses_as_predicted(job);
            EXPECT_EQ(losses_as_predicted(offloaded(job, kBoth)), expected);
            job.train.freeze = job::parse_modules("path:blocks.0,blocks.1.norm_1");
            job.run.steps = 2;
            const std::vector<double> frozen = losses_as_predicted(job);
            EXPECT_EQ(losses_as_predicted(offloaded(job, kOptimizer)), frozen);
        }
    }
}

TEST(Offload, ChangesNoBitInAMesh) {
    const SampleText text;
    for (const job::ParallelMode mode :
         {job::ParallelMode::none, job::ParallelMode::ddp, job::ParallelMode::fsdp}) {
        if (testing::kShort && mode != job::ParallelMode::fsdp) continue;
        const bool data = mode != job::ParallelMode::none;
        job::Job pipeline = gpt(text, mode, data ? 2 : 1);
        pipeline.train.accumulation = 4;
        pipeline.train.accumulation_sync = false;
        for (const testing::Pipe& pipe : {testing::Pipe{2, "1f1b"}, testing::Pipe{2, "zb_v", 2}}) {
            job::Job job = testing::piped(pipeline, pipe);
            job.model.layers = 8;
            job.model.tied_embeddings = pipe.stages > 1;  // the first and the last stage are on one place
            const std::vector<double> expected = losses_as_predicted(job);
            for (const job::Offload& offload : kOffloads)
                EXPECT_EQ(losses_as_predicted(offloaded(job, offload)), expected) << testing::mesh_of(job);
        }
        job::Job tensor = gpt(text, mode, data ? 4 : 2);
        tensor.parallel.tensor = 2;
        tensor.parallel.sequence = true;
        tensor.train.accumulation = 2;
        EXPECT_EQ(losses_as_predicted(offloaded(tensor, kBoth)), losses_as_predicted(tensor))
            << testing::mesh_of(tensor);
    }
}

// Adam has two states: without the host's part the device has 16 bytes of each parameter at the end of a
// step, with it 4, and gradients on their way.
TEST(Offload, LeavesOnlyTheParametersOnTheDevice) {
    const SampleText text;
    job::Job job = gpt(text, job::ParallelMode::none, 1);
    job.model.width = 64;
    job.model.layers = 12;
    job.data.batch = 1;
    const Program program(job);
    std::int64_t elements = 0;
    for (const model::Parameter* p : program.modules().parameters) elements += p->elements();
    EXPECT_GT(program.predict().peak.bytes, 16 * elements);
    EXPECT_LT(Program(offloaded(job, kOptimizer)).predict().peak.bytes, 6 * elements);
    EXPECT_EQ(bytes_of(offloaded(job, kOptimizer), plan::MemorySpace::pinned),
              8 * elements + bytes_of(job, plan::MemorySpace::pinned));
    EXPECT_EQ(bytes_of(offloaded(job, kOptimizer), plan::MemorySpace::host),
              8 * elements + bytes_of(job, plan::MemorySpace::host));
}

// However many layers there are, three of them have activations on the device.
TEST(Offload, LeavesTheActivationsOfAFewLayersOnTheDevice) {
    const SampleText text;
    const auto peak = [&](int layers, const job::Offload& offload) {
        job::Job job = offloaded(gpt(text, job::ParallelMode::none, 1), offload);
        job.optimizer.type = job::OptimizerType::sgd;
        job.data.batch = 100;
        job.model.layers = layers;
        const plan::MemoryPeak found = Program(job).predict().peak;
        return found.at_peak[static_cast<std::size_t>(plan::MemoryCategory::activations)];
    };
    const std::int64_t layer = peak(9, {}) - peak(8, {});
    EXPECT_LT(peak(12, kActivations) - peak(6, kActivations), layer);
    EXPECT_LT(peak(12, kActivations), peak(4, {}));
}

// What is copied out in a step comes back, each tensor once, in the opposite order of layers.
TEST(Offload, BringsBackWhatItTakesAway) {
    const SampleText text;
    const Program program(offloaded(gpt(text, job::ParallelMode::none, 1), kActivations));
    const plan::Plan& step = testing::steady(program);
    std::vector<plan::BufferId> out, back;
    std::vector<int> modules;
    for (const plan::Op& op : step.ops) {
        if (op.kind != plan::OpKind::memcpy) continue;
        const bool leaves = op.stream == plan::Stream::post_backward;
        if (leaves) out.push_back(op.args[1].buffer);
        if (op.stream != plan::Stream::pre_unshard) continue;
        back.push_back(op.args[0].buffer);
        if (modules.empty() || modules.back() != op.module) modules.push_back(op.module);
        EXPECT_GE(op.bytes, model::kSmallestOffload);
        EXPECT_EQ(op.phase, plan::Phase::backward);
    }
    EXPECT_FALSE(out.empty());
    std::sort(out.begin(), out.end());
    std::sort(back.begin(), back.end());
    EXPECT_EQ(out, back);
    EXPECT_EQ(modules.size(), 3U) << "all layers but the last";
    EXPECT_TRUE(std::is_sorted(modules.rbegin(), modules.rend()));
}

// The host updates a large parameter while the device still computes gradients, unless it needs all first.
TEST(Offload, UpdatesDuringTheBackwardUnlessSomethingNeedsAllGradients) {
    const SampleText text;
    const auto updates = [&](double clip) {
        job::Job job = offloaded(testing::mlp_job(8, 2048, 2, 1), kOptimizer);
        job.parallel.mode = job::ParallelMode::none;
        job.train.clip_norm = clip;
        const Program program(job);
        const plan::Plan& step = testing::steady(program);
        int early = 0, waiting = 0;
        for (const plan::Op& op : step.ops) {
            if (is_host_work(op) && op.kind == plan::OpKind::kernel &&
                op.kernel().kernel == plan::Kernel::sgd)
                ++waiting;
            if (op.phase == plan::Phase::backward && op.kind == plan::OpKind::kernel)
                early += std::exchange(waiting, 0);
        }
        return early;
    };
    EXPECT_GE(updates(0), 8);
    EXPECT_EQ(updates(1), 0);
}

// Copies and updates wait for what they read, and nothing writes what is still read: as in test_races.cpp,
// also where the host updates one layer while the others are on their way.
TEST(Offload, DelaysAndPoisonChangeNoBit) {
    const SampleText text;
    for (const job::ParallelMode mode :
         {job::ParallelMode::none, job::ParallelMode::ddp, job::ParallelMode::fsdp}) {
        if (testing::kShort && mode != job::ParallelMode::fsdp) continue;
        const int ranks = mode == job::ParallelMode::none ? 1 : 2;
        job::Job small = gpt(text, mode, ranks);
        small.train.accumulation = 2;
        job::Job large = testing::with_wrap(testing::mlp_job(5, 2304, 1, ranks), "module:Linear");
        large.parallel.mode = mode;
        large.run.steps = 2;
        for (const job::Job& job : {offloaded(small, kBoth), offloaded(large, kOptimizer)}) {
            const std::vector<double> calm = losses_as_predicted(offloaded(job, {}));
            executor::RunOptions delayed;
            delayed.test.poison = true;
            const std::uint64_t seeds = job.memory.offload.activations ? kDelays : 1;
            for (delayed.test.delay_seed = 1; delayed.test.delay_seed <= seeds; ++delayed.test.delay_seed)
                EXPECT_EQ(testing::run(job, delayed).losses, calm) << testing::mesh_of(job);
        }
    }
}

TEST(Offload, OfActivationsIsRefusedIfNoLayerSavesMuch) {
    const SampleText text;
    job::Job job = offloaded(testing::mlp_job(3, 16, 2, 1), kActivations);
    job.origins["memory.offload"] = "job.toml:7";
    try {
        const Program program(job);
        FAIL() << "not refused";
    } catch (const job::JobError& error) {
        EXPECT_THAT(error.what(), ::testing::StartsWith("job.toml:7: memory.offload: no layer of the model"));
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::sharding
