// Expert parallelism: with the same samples every mesh trains as one rank does, if nothing is dropped, with
// the all_to_alls of the closed form (trainer/model/expert_parallel.h).
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "mesh_testing.h"
#include "trace_testing.h"

namespace shardscope::trainer {
namespace TEST_FILE {

using job::ParallelMode;
using testing::expect_close;
using testing::SampleText;

job::Job job_of(job::ModelType type, const SampleText& text, int per_token) {
    job::Job job = testing::gpt_job(text, 8, 1);
    job.run.steps = 3;
    job.model.type = type;
    job.model.dropout = 0.1;
    job.model.experts = 4;
    job.model.experts_per_token = per_token;
    job.model.balance_loss = 0.1;
    job.model.attention = job::AttentionKind::fused;  // which a context group needs
    return job;
}

struct MeshOf {
    int expert, data, tensor = 1;
    ParallelMode mode = ParallelMode::fsdp;
    bool sequence = false;
    int pipeline = 1, context = 1;
};

job::Job on_mesh(job::Job job, const MeshOf& mesh) {
    job.parallel.expert = mesh.expert;
    job.parallel.tensor = mesh.tensor;
    job.parallel.sequence = mesh.sequence;
    job.parallel.pipeline = mesh.pipeline;
    job.parallel.mode = mesh.mode;
    job.parallel.context = mesh.context;
    job.run.ranks = mesh.data * mesh.tensor * mesh.pipeline * mesh.context;
    job.data.batch /= mesh.data;
    return job;
}

std::string mesh_name(const job::Job& job) {
    return "expert " + std::to_string(job.parallel.expert) + ", tensor " +
           std::to_string(job.parallel.tensor) + (job.parallel.sequence ? " with sequence" : "") +
           ", pipeline " + std::to_string(job.parallel.pipeline) + ", context " +
           std::to_string(job.parallel.context) + ", ranks " + std::to_string(job.run.ranks) + ", mode " +
           std::to_string(static_cast<int>(job.parallel.mode));
}

const std::vector<MeshOf> kMeshes = {
    {2, 2},
    {2, 2, 1, ParallelMode::ddp},
    {4, 4},
    {4, 4, 1, ParallelMode::ddp},
    {2, 4},
    {2, 4, 1, ParallelMode::ddp},
    {2, 2, 2},
    {2, 2, 2, ParallelMode::ddp},
    {2, 2, 2, ParallelMode::fsdp, true},
    {2, 4, 2, ParallelMode::ddp, true},
    {2, 1, 1, ParallelMode::fsdp, false, 1, 2},
    {4, 2, 1, ParallelMode::ddp, false, 1, 2},
    {2, 2, 2, ParallelMode::fsdp, true, 1, 2},
};

class ExpertParallel : public ::testing::TestWithParam<job::ModelType> {};
INSTANTIATE_TEST_SUITE_P(Models, ExpertParallel,
                         ::testing::Values(job::ModelType::gpt, job::ModelType::llama));

TEST_P(ExpertParallel, TrainsAsOneRankDoes) {
    const SampleText text;
    for (const int per_token : {1, 2}) {
        job::Job job = job_of(GetParam(), text, per_token);
        job.train.clip_norm = 0.5;
        const std::vector<double> expected = testing::run(testing::with_mode(job, ParallelMode::none)).losses;
        for (const MeshOf& mesh : kMeshes) {
            const job::Job there = on_mesh(job, mesh);
            expect_close(testing::run(there).losses, expected, mesh_name(there));
        }
    }
}

TEST_P(ExpertParallel, HasTheGradientsOfOneRank) {
    const SampleText text;
    const job::Job job = job_of(GetParam(), text, 2);
    const testing::Gradients expected = testing::gradients_of(testing::with_mode(job, ParallelMode::none));
    for (const MeshOf& mesh : kMeshes) {
        const job::Job there = on_mesh(job, mesh);
        expect_close(testing::gradients_of(there), expected, mesh_name(there));
    }
}

// The layouts and strategies of the data axes; a unit of experts has a shard group of its own.
TEST_P(ExpertParallel, GoesWithEveryStrategy) {
    const SampleText text;
    job::Job job = job_of(GetParam(), text, 2);
    job.train.clip_norm = 0.5;
    job.train.accumulation = 2;
    job.data.batch = 4;
    const bool gpt = GetParam() == job::ModelType::gpt;
    job.memory.activation_checkpointing.names = {gpt ? "Block" : "LlamaBlock"};
    const std::vector<double> expected = testing::run(testing::with_mode(job, ParallelMode::none)).losses;
    job.fsdp.wrap = job::parse_wrap(gpt ? "module:Block" : "root");
    std::vector<job::Job> ways;
    for (const job::FsdpLayout layout :
         {job::FsdpLayout::fsdp1, job::FsdpLayout::fsdp2, job::FsdpLayout::lean}) {
        ways.push_back(on_mesh(job, {2, 4}));
        ways.back().fsdp.layout = layout;
        ways.back().fsdp.sync_module_states = true;
        ways.push_back(ways.back());
        ways.back().fsdp.cpu_offload = true;
        ways.back().train.accumulation_sync = false;
        ways.push_back(on_mesh(job, {2, 4}));
        ways.back().fsdp.layout = layout;
        ways.back() = testing::with_strategy(ways.back(), job::ShardingStrategy::hybrid_shard, 2);
    }
    ways.push_back(testing::with_strategy(on_mesh(job, {2, 4}), job::ShardingStrategy::no_shard));
    ways.push_back(on_mesh(job, {2, 4, 1, ParallelMode::ddp}));
    ways.back().ddp.gradient_as_bucket_view = true;
    ways.push_back(on_mesh(job, {2, 4, 1, ParallelMode::ddp}));
    ways.back().ddp.first_bucket_mb = ways.back().ddp.bucket_cap_mb = 0.02;
    ways.back().train.accumulation_sync = false;
    for (std::size_t i = 0; i < ways.size(); ++i)
        expect_close(testing::run(ways[i]).losses, expected, "way " + std::to_string(i));
}

// Where the context axis is outside the data axes, other ranks are between those of an expert group that
// share a copy.
TEST_P(ExpertParallel, GoesWithEveryOrder) {
    const SampleText text;
    const job::Job job = job_of(GetParam(), text, 2);
    const std::vector<double> expected = testing::run(testing::with_mode(job, ParallelMode::none)).losses;
    for (const char* order : {"pp-dp-cp-ep-tp", "pp-cp-dp-ep-tp", "tp-cp-dp-ep-pp", "dp-cp-ep-pp-tp"}) {
        job::Job whole = on_mesh(job, {2, 4, 1, ParallelMode::fsdp, false, 1, 2});
        whole.parallel.order = job::parse_order(order);
        job::Job hybrid = testing::with_strategy(whole, job::ShardingStrategy::hybrid_shard, 2);
        hybrid.fsdp.layout = job::FsdpLayout::fsdp2;
        for (const job::Job& there : {whole, hybrid})
            expect_close(testing::run(there).losses, expected, mesh_name(there) + ", " + order);
    }
}

// Each rank's peak is what the account says, whatever the router chooses.
TEST_P(ExpertParallel, HasThePeakOfTheAccount) {
    const SampleText text;
    for (const MeshOf& mesh : kMeshes) {
        const job::Job job = on_mesh(job_of(GetParam(), text, 2), mesh);
        const std::int64_t peak = sharding::Program(job).predict().peak.bytes;
        for (const plan::MemoryPeak& found : testing::run(job).peaks)
            EXPECT_EQ(found.bytes, peak) << mesh_name(job);
    }
}

// T tokens of a rank, k experts each, rows of h fp32: 4 all_to_alls a block of T k h elements, of which
// (e - 1) / e leave the rank under uniform routing, and one of the counts.
TEST(ExpertParallelism, HasTheCollectivesOfTheClosedForm) {
    const SampleText text;
    const job::Job job = on_mesh(job_of(job::ModelType::gpt, text, 2), {2, 4});
    auto found = testing::collectives(sharding::Program(job));
    const std::int64_t layers = job.model.layers, tokens = std::int64_t{job.data.batch} * job.model.context;
    const std::int64_t rows = tokens * 2 * job.model.width * 4, counts = 4 * 4;
    EXPECT_EQ(found[std::pair(plan::Operation::all_to_all, plan::Group::expert)],
              (testing::Count{5 * layers, layers * (4 * rows + counts)}));
    // The shares of the balance loss, over all ranks.
    EXPECT_EQ(found[std::pair(plan::Operation::all_reduce, plan::Group::world)],
              (testing::Count{layers, layers * counts}));
    // A unit of experts for each block, of half the experts, shared by two ranks.
    const std::int64_t experts = 2 * 2 * 4 * job.model.width * job.model.width * 4;
    EXPECT_EQ(found[std::pair(plan::Operation::reduce_scatter, plan::Group::expert_shard)],
              (testing::Count{layers, layers * experts}));
    EXPECT_EQ(found[std::pair(plan::Operation::all_gather, plan::Group::expert_shard)].bytes,
              2 * layers * experts);
}

// Of T tokens k rows each: three matmuls of h x f in the forward, twice as many in the backward.
TEST(ExpertParallelism, CountsTheWorkOfTheChosenExperts) {
    const SampleText text;
    for (const int expert : {1, 2}) {
        const job::Job job = on_mesh(job_of(job::ModelType::llama, text, 2), {expert, 2});
        const sharding::Program program(job);
        std::int64_t flops = 0, features = 0;
        for (const plan::Op& op : testing::steady(program).ops) {
            if (op.kind != plan::OpKind::kernel) continue;
            switch (op.kernel().kernel) {
                case plan::Kernel::grouped_linear_forward:
                    features = std::max(features, op.kernel().dims[2]);
                    [[fallthrough]];
                case plan::Kernel::grouped_linear_backward_input:
                case plan::Kernel::grouped_linear_backward_weight:
                    flops += op.flops;
                    break;
                default:
                    break;
            }
        }
        const std::int64_t rows = std::int64_t{job.data.batch} * job.model.context * 2;
        EXPECT_EQ(flops, job.model.layers * 9 * 2 * rows * job.model.width * features) << expert;
    }
}

// What the ranks send is what the router says: T k rows to the experts, as many in the gradients back from
// the outputs; the results, and the gradients of the inputs, are of the rows that arrived, which differ by
// rank and add up to the same.
TEST(ExpertParallelism, ATraceHasTheBytesThatEachRankSends) {
    const SampleText text;
    job::Job job = on_mesh(job_of(job::ModelType::gpt, text, 2), {2, 2, 1, ParallelMode::ddp});
    job.run.steps = 1;
    const auto trace = testing::record(job);
    const std::int64_t row = job.model.width * 4,
                       rows = std::int64_t{job.data.batch} * job.model.context * 2 * row;
    std::map<std::int64_t, std::vector<std::int64_t>> sent;  // by sequence
    for (std::size_t i = 0; i < trace->collectives.size(); ++i) {
        if (trace->collectives.operation[i] != plan::Operation::all_to_all) continue;
        sent[trace->collectives.sequence[i]].push_back(trace->collectives.bytes[i]);
    }
    ASSERT_EQ(sent.size(), static_cast<std::size_t>(5 * job.model.layers));
    int even = 0, uneven = 0, counts = 0;
    for (const auto& [sequence, bytes] : sent) {
        ASSERT_EQ(bytes.size(), 2U);
        if (bytes[0] == 4 * 4) {
            ++counts;
            continue;
        }
        EXPECT_EQ(bytes[0] + bytes[1], 2 * rows) << sequence;
        EXPECT_EQ(bytes[0] % row, 0) << sequence;
        ++(bytes[0] == rows ? even : uneven);
    }
    EXPECT_EQ(counts, job.model.layers);
    EXPECT_GE(even, 2 * job.model.layers);
    EXPECT_GT(uneven, 0);
}

// A capacity counts a rank's own tokens, so the tokens that are dropped, and the losses, depend on the mesh.
TEST(ExpertParallelism, WithACapacityTrainsButNotAsOneRankDoes) {
    const SampleText text;
    job::Job job = job_of(job::ModelType::gpt, text, 2);
    job.run.steps = 6;
    job.model.capacity_factor = 0.5;
    const std::vector<double> one = testing::run(testing::with_mode(job, ParallelMode::none)).losses;
    const std::vector<double> two = testing::run(on_mesh(job, {2, 2})).losses;
    EXPECT_NE(two.front(), one.front());
    EXPECT_NEAR(two.front(), one.front(), 0.05);
    EXPECT_LT(two.back(), two.front());
}

TEST(ExpertParallelism, RefusesToExcludeDividedExperts) {
    const SampleText text;
    job::Job job = on_mesh(job_of(job::ModelType::gpt, text, 2), {2, 2});
    job.fsdp.exclude.names = {"MixtureOfExperts"};
    EXPECT_NO_THROW(sharding::Program{job});
    job.fsdp.exclude.names = {"Experts"};
    try {
        const sharding::Program program(job);
        FAIL() << "accepted";
    } catch (const job::JobError& error) {
        EXPECT_NE(std::string(error.what()).find("fsdp.exclude: experts that an expert group divides"),
                  std::string::npos);
    }
}

TEST(ExpertParallelism, GoesWithAPipeline) {
    const SampleText text;
    job::Job job = job_of(job::ModelType::llama, text, 2);
    job.train.accumulation = 2;
    job.data.batch = 4;
    job.train.accumulation_sync = false;
    job.train.clip_norm = 0.5;
    const std::vector<double> expected = testing::run(testing::with_mode(job, ParallelMode::none)).losses;
    for (const char* schedule : {"1f1b", "zb_h1"}) {
        for (const ParallelMode mode : {ParallelMode::fsdp, ParallelMode::ddp}) {
            job::Job there = on_mesh(job, {2, 2, 1, mode, false, 2});
            there.parallel.schedule = schedule;
            expect_close(testing::run(there).losses, expected, mesh_name(there) + ", " + schedule);
        }
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer
