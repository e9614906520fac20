// Tied embeddings in a pipeline: the first and the last place have a copy each, and both step with the sum of
// their gradients.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "pipeline_jobs.h"
#include "tests/traces/temporary_folder.h"

namespace shardscope::trainer {
namespace TEST_FILE {

using testing::expect_close;
using testing::Kind;
using testing::kPipes;
using testing::losses_of;
using testing::mesh_of;
using testing::Pipe;
using testing::piped;
using testing::pipeline_job;
using testing::refusal;
using testing::SampleText;

constexpr std::array kTiedKinds = {Kind::gpt, Kind::llama, Kind::bert};

job::Job tied_job(Kind kind, const SampleText& text) {
    job::Job job = pipeline_job(kind, text);
    job.model.tied_embeddings = true;
    return job;
}

bool is_v(const job::Job& job) {
    return job.parallel.schedule == "zb_v" || job.parallel.schedule == "dualpipe_v";
}

class TiedPipelines : public ::testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(Of, TiedPipelines, ::testing::ValuesIn(kTiedKinds));

TEST_P(TiedPipelines, TrainAsOneRankDoes) {
    const SampleText text;
    job::Job job = tied_job(GetParam(), text);
    const std::vector<double> expected = losses_of(job);
    EXPECT_NE(expected, losses_of(pipeline_job(GetParam(), text)));
    job::Job clipped = job;
    clipped.train.clip_norm = 0.1;
    const std::vector<double> expected_clipped = losses_of(clipped);
    EXPECT_NE(expected_clipped, expected);
    for (const Pipe& pipe : kPipes) {
        expect_close(losses_of(piped(job, pipe)), expected, mesh_of(piped(job, pipe)));
        expect_close(losses_of(piped(clipped, pipe)), expected_clipped, mesh_of(piped(clipped, pipe)));
    }
}

// What a pipeline leaves may be trained with any strategy.
std::vector<job::Job> strategies(const SampleText& text) {
    job::Job job = tied_job(Kind::gpt, text);
    job.optimizer.type = job::OptimizerType::adamw;
    job.optimizer.lr = 0.01;
    job.train.clip_norm = 0.5;
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
        ways.back().fsdp.cpu_offload = true;
    }
    way(job::ParallelMode::fsdp);
    ways.back() = testing::with_strategy(ways.back(), job::ShardingStrategy::no_shard);
    way(job::ParallelMode::none).parallel.tensor = 2;
    way(job::ParallelMode::none).parallel.tensor = 2;
    ways.back().parallel.sequence = true;
    return ways;
}

constexpr std::size_t kStrategies = 12;
class TiedStrategies : public ::testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Of, TiedStrategies, ::testing::Range<std::size_t>(0, kStrategies));

TEST_P(TiedStrategies, GoWithAPipeline) {
    const SampleText text;
    const std::vector<job::Job> ways = strategies(text);
    ASSERT_EQ(ways.size(), kStrategies);
    const job::Job& way = ways[GetParam()];
    const std::vector<double> expected = losses_of(way);
    for (const Pipe& pipe : {Pipe{2, "1f1b"}, Pipe{4, "zb_h1"}, Pipe{2, "interleaved", 2}, Pipe{4, "zb_v", 2},
                             Pipe{2, "dualpipe_v", 2}}) {
        const job::Job mesh = piped(way, pipe);
        if (!is_v(mesh) && (way.ddp.shard_optimizer || way.fsdp.cpu_offload))
            EXPECT_NE(refusal(mesh).find("the ends of the pipeline exchange"), std::string::npos);
        else
            expect_close(losses_of(mesh), expected, mesh_of(mesh));
    }
}

// The collectives of the tied table's unit in a step of the first place.
std::map<plan::Operation, int> collectives_of_table(const job::Job& job) {
    const sharding::Program program(job);
    const sharding::Program& first = program.role(0);
    const model::Parameter& table = **std::find_if(
        first.modules().parameters.begin(), first.modules().parameters.end(),
        [](const model::Parameter* parameter) { return parameter->path == "token_embedding.weight"; });
    std::map<plan::Operation, int> found;
    for (const plan::Op& op : first.step(first.warm_up_steps()).ops)
        if (op.kind == plan::OpKind::collective && op.unit == program.unit_of(table))
            ++found[op.collective().operation];
    return found;
}

// In a V one place has both ends and one table, which is gathered once and reduced when both have had their
// last backward, whichever comes last: in the file it is that of the last stage.
TEST(TiedEmbeddings, AreReducedOnceInAV) {
    const SampleText text;
    const traces::TemporaryFolder folder;
    const std::string file = folder / "own.csv";
    std::string first, second;
    for (const char micro : {'0', '1', '2', '3'}) {
        for (const char* action : {"0F", "3F", "3I", "0I", "0W", "3W"})
            first += std::string(action) + micro + ",";
        for (const char* action : {"1F", "2F", "2B", "1B"}) second += std::string(action) + micro + ",";
    }
    first.back() = second.back() = '\n';
    std::ofstream(file) << first << second;
    job::Job job = tied_job(Kind::gpt, text);
    job.run.ranks = 2;
    job.fsdp.wrap = job::parse_wrap("module:Block");
    const std::vector<double> expected = losses_of(testing::with_mode(job, job::ParallelMode::ddp));
    for (const Pipe& pipe : {Pipe{2, "zb_v", 2}, Pipe{2, "dualpipe_v", 2}, Pipe{2, file.c_str(), 2}}) {
        for (const job::FsdpLayout layout :
             {job::FsdpLayout::fsdp1, job::FsdpLayout::fsdp2, job::FsdpLayout::lean}) {
            job::Job mesh = piped(testing::with_mode(job, job::ParallelMode::fsdp), pipe);
            mesh.fsdp.layout = layout;
            EXPECT_EQ(collectives_of_table(mesh),
                      (std::map<plan::Operation, int>{{plan::Operation::all_gather, 1},
                                                      {plan::Operation::reduce_scatter, 1}}))
                << mesh_of(mesh);
            if (pipe.schedule == file) expect_close(losses_of(mesh), expected, mesh_of(mesh));
        }
        const job::Job ddp = piped(testing::with_mode(job, job::ParallelMode::ddp), pipe);
        EXPECT_EQ(collectives_of_table(ddp),
                  (std::map<plan::Operation, int>{{plan::Operation::all_reduce, 1}}))
            << mesh_of(ddp);
        if (pipe.schedule == file) expect_close(losses_of(ddp), expected, mesh_of(ddp));
    }
}

// Of a place: how often the table's gradient is sent and received in a step, and its bytes.
struct Exchange {
    int sent = 0, received = 0;
    bool operator==(const Exchange&) const = default;
};
Exchange exchange_of(const sharding::Program& program, int place) {
    const sharding::Program& role = program.role(place);
    const job::ModelSection& model = program.job().model;
    const std::int64_t bytes = std::int64_t{256} * model.width / program.job().parallel.tensor * 4;
    Exchange found;
    for (const plan::Op& op : role.step(role.warm_up_steps()).ops) {
        if (op.kind != plan::OpKind::collective || op.bytes != bytes) continue;
        found.sent += op.collective().operation == plan::Operation::send;
        found.received += op.collective().operation == plan::Operation::recv;
    }
    return found;
}

TEST(TiedEmbeddings, AreExchangedOnceByTheEndsOfAPipeline) {
    const SampleText text;
    for (const int tensor : {1, 2}) {
        job::Job job = tied_job(Kind::gpt, text);
        job.parallel.tensor = job.run.ranks = tensor;
        for (const Pipe& pipe : kPipes) {
            const job::Job mesh = piped(job, pipe);
            const sharding::Program program(mesh);
            for (int place = 0; place < pipe.places; ++place) {
                const bool ends = (place == 0 || place + 1 == pipe.places) && !is_v(mesh);
                EXPECT_EQ(exchange_of(program, place), (ends ? Exchange{1, 1} : Exchange{}))
                    << mesh_of(mesh) << ", place " << place;
            }
        }
    }
}

TEST(TiedEmbeddings, HaveOneGradientOnBothEnds) {
    const SampleText text;
    job::Job job = piped(tied_job(Kind::llama, text), {4, "1f1b"});
    job.run.steps = 1;
    const sharding::Program program(job);
    const data::DataSource data = data::open_data(job);
    std::mutex lock;
    std::map<int, std::vector<float>> copies;  // by rank
    executor::RunOptions options;
    options.hooks.at_step_end = [&](int rank, std::int64_t, executor::RankRunner& runner) {
        const std::lock_guard guard(lock);
        for (const sharding::OptimizerSlot& slot : program.of(rank).optimizer().slots()) {
            if (slot.name != "token_embedding.weight") continue;
            const plan::HostView view = runner.contents(slot.gradient);
            const auto* values = reinterpret_cast<const float*>(view.bytes().data());
            copies[rank].assign(values, values + slot.elements);
            EXPECT_EQ(slot.is_copy, rank == 3) << "counted in the norm on one place alone";
        }
    };
    run_training(program, *data.train, options);
    ASSERT_EQ(copies.size(), 2U);
    ASSERT_TRUE(copies.contains(0) && copies.contains(3));
    EXPECT_EQ(copies[0], copies[3]);
}

TEST(TiedEmbeddings, AreRefusedWhereTheEndsCannotExchangeThem) {
    const SampleText text;
    job::Job job = piped(tied_job(Kind::gpt, text), {2, "1f1b"});
    job.run.ranks = 4;
    job.parallel.mode = job::ParallelMode::ddp;
    job.ddp.shard_optimizer = true;
    EXPECT_EQ(
        refusal(job),
        "model.tied_embeddings: the ends of the pipeline exchange the gradient of their copies, which a "
        "sharded optimizer keeps in one buffer with the others; set ddp.shard_optimizer to false");
    job.parallel.mode = job::ParallelMode::fsdp;
    job.ddp.shard_optimizer = false;
    job.fsdp.cpu_offload = true;
    EXPECT_EQ(
        refusal(job),
        "model.tied_embeddings: the ends of the pipeline exchange the gradient of their copies, which is "
        "on the host then; set fsdp.cpu_offload to false");
    job.fsdp.cpu_offload = false;
    job.memory.offload.optimizer = true;
    EXPECT_EQ(
        refusal(job),
        "model.tied_embeddings: the ends of the pipeline exchange the gradient of their copies, which is "
        "on the host then; set memory.offload to \"none\" or \"activations\"");
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer
