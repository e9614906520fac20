// Training that stops and continues elsewhere has the losses of a run that never stopped.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mesh_testing.h"
#include "tests/trainer/checkpoint_testing.h"
#include "trainer/checkpoint/error.h"
#include "trainer/data/source.h"
#include "trainer/executor/rank_runner.h"
#include "trainer/executor/training_run.h"

namespace shardscope::trainer::checkpoint {
namespace TEST_FILE {

using namespace testing;

constexpr std::int64_t kSaved = 3, kEnd = 6;

RankMemory memory_of(executor::RankRunner& runner) {
    return [&runner](const plan::Arg& arg) { return runner.contents(arg); };
}

std::vector<double> train(const job::Job& job) {
    const sharding::Program program(job);
    const data::DataSource data = data::open_data(job);
    executor::RunOptions options;
    std::unique_ptr<StoredCheckpoint> stored;
    std::unique_ptr<CheckpointLoader> loader;
    std::unique_ptr<CheckpointSaver> saver;
    SaveSettings settings;
    if (!job.checkpoint.load.empty()) {
        stored = std::make_unique<StoredCheckpoint>(job.checkpoint.load);
        loader = std::make_unique<CheckpointLoader>(*stored, job, layout_of(program), LoadUse::training);
        settings.sample_offset = loader->sample_offset();
        options.first_step = loader->step();
        options.first_sample = loader->step() * job.samples_per_step() + loader->sample_offset();
        options.hooks.after_setup = [&](int rank, executor::RankRunner& runner) {
            loader->fill(rank, memory_of(runner));
        };
    }
    if (!job.checkpoint.save.empty()) {
        saver = std::make_unique<CheckpointSaver>(
            job, layout_of(program), settings, [](const SaveReport& report) { EXPECT_EQ(report.error, ""); });
        options.hooks.at_step_end = [&](int rank, std::int64_t steps_done, executor::RankRunner& runner) {
            saver->save(rank, steps_done, memory_of(runner));
        };
    }
    return run_training(program, *data.train, options).losses;
}

job::Job small_gpt(int ranks) {
    job::Job job;
    job.run.steps = kEnd;
    job.run.ranks = ranks;
    job.run.workers = 2;
    job.model.type = job::ModelType::gpt;
    job.model.layers = 2;
    job.model.heads = 2;
    job.model.width = 12;  // uneven over 8 ranks
    job.model.context = 8;
    job.data.batch = 8 / ranks;
    job.fsdp.wrap = job::parse_wrap("module:Block");
    job.optimizer.type = job::OptimizerType::adamw;
    job.optimizer.lr = 0.01;
    return job;
}

void stop_after_save(job::Job& job, const std::filesystem::path& folder) {
    job.run.steps = kSaved;
    job.checkpoint.save = folder;
}

class GoingOn : public ::testing::Test {
  protected:
    GoingOn() {
        std::ofstream text(folder_ / "text");
        for (int i = 0; i < 100; ++i) text << "line " << i << " resembles the last one\n";
    }

    job::Job on_text(job::Job job) const {
        job.data.type = job::DataType::text;
        job.data.path = folder_ / "text";
        return job;
    }
    // Trains `first` for three steps and `then` for three more.
    std::vector<double> train_in_two(job::Job first, job::Job then) const {
        stop_after_save(first, folder_ / "save");
        std::vector<double> losses = train(first);
        then.checkpoint.load = folder_ / "save";
        for (const double loss : train(then)) losses.push_back(loss);
        std::filesystem::remove_all(folder_ / "save");
        return losses;
    }

    TemporaryFolder folder_;
};

using Change = std::function<void(job::Job&)>;

std::string bytes_of(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

// The running statistics are saved and loaded with the parameters: all that is saved at the end has the same
// bits.
TEST_F(GoingOn, KeepsTheRunningStatisticsOfBatchNorms) {
    for (const char* mode : {"ddp", "fsdp"}) {
        job::Job whole =
            job::parse_job(fmt::format("[run]\nsteps = 6\nranks = 2\n[model]\nname = 'resnet18'\nwidth = "
                                       "4\n[data]\ntype = 'images'\nimage = 16\nbatch = 4\nclasses = "
                                       "4\n[parallel]\nmode = '{}'\n[checkpoint]\nformat = 'full'",
                                       mode),
                           "job.toml");
        job::Job then = whole;
        whole.checkpoint.save = folder_ / "whole";
        then.checkpoint.save = folder_ / "then";
        train(whole);
        train_in_two(whole, then);
        const StoredCheckpoint stored(folder_ / "whole"), continued(folder_ / "then");
        const std::string expected = bytes_of(stored.folder() / "full.bin");
        EXPECT_FALSE(expected.empty());
        EXPECT_TRUE(bytes_of(continued.folder() / "full.bin") == expected) << mode;
        const auto& parameters = stored.manifest().parameters;
        EXPECT_EQ(std::count_if(parameters.begin(), parameters.end(),
                                [](const ManifestParameter& p) { return p.path.ends_with(".running_var"); }),
                  20);
        std::filesystem::remove_all(folder_ / "whole");
        std::filesystem::remove_all(folder_ / "then");
    }
}

// 4 ranks in FULL_SHARD per block save; a run that continues with the same number of ranks sums in the same
// order.
TEST_F(GoingOn, IsTheSameBitForBitAtTheSameNumberOfRanks) {
    const job::Job job = on_text(small_gpt(4));
    const std::vector<double> uninterrupted = train(job);
    ASSERT_EQ(uninterrupted.size(), 6U);
    const std::vector<std::pair<const char*, Change>> changes = {
        {"nothing", [](job::Job&) {}},
        {"root wrap", [](job::Job& then) { then.fsdp.wrap = {}; }},
        {"fsdp2", [](job::Job& then) { then.fsdp.layout = job::FsdpLayout::fsdp2; }},
        {"lean", [](job::Job& then) { then.fsdp.layout = job::FsdpLayout::lean; }},
        {"offload", [](job::Job& then) { then.fsdp.cpu_offload = true; }},
        {"optimizer on the host", [](job::Job& then) { then.memory.offload.optimizer = true; }},
        {"the same with ddp",
         [](job::Job& then) {
             then.parallel.mode = job::ParallelMode::ddp;
             then.memory.offload.optimizer = true;
         }},
        {"files",
         [&](job::Job& then) {
             then.fsdp.cpu_offload = true;
             then.memory.nvme = folder_.string();
         }},
        {"the optimizer's files",
         [&](job::Job& then) {
             then.memory.offload.optimizer = true;
             then.memory.nvme = folder_.string();
         }},
        {"SHARD_GRAD_OP",
         [](job::Job& then) { then.fsdp.sharding_strategy = job::ShardingStrategy::shard_grad_op; }},
        {"NO_SHARD", [](job::Job& then) { then.fsdp.sharding_strategy = job::ShardingStrategy::no_shard; }},
        {"ddp", [](job::Job& then) { then.parallel.mode = job::ParallelMode::ddp; }},
        {"ZeRO 1",
         [](job::Job& then) {
             then.parallel.mode = job::ParallelMode::ddp;
             then.ddp.shard_optimizer = true;
         }},
        {"full file", [](job::Job& then) { then.checkpoint.format = job::CheckpointFormat::full; }},
        {"safetensors", [](job::Job& then) { then.checkpoint.format = job::CheckpointFormat::safetensors; }},
        {"transformers' names",
         [](job::Job& then) {
             then.checkpoint.format = job::CheckpointFormat::safetensors;
             then.checkpoint.names = job::CheckpointNames::huggingface;
         }},
        {"dcp", [](job::Job& then) { then.checkpoint.format = job::CheckpointFormat::dcp; }},
    };
    for (const auto& [name, change] : changes) {
        job::Job then = job;
        change(then);
        job::Job first = job;
        first.checkpoint.format = then.checkpoint.format;
        first.checkpoint.names = then.checkpoint.names;
        EXPECT_EQ(train_in_two(first, then), uninterrupted) << "4 ranks FULL_SHARD -> " << name;
        first = then;
        EXPECT_EQ(train_in_two(first, job), uninterrupted) << name << " -> 4 ranks FULL_SHARD";
    }
}

// Saved by 4 ranks in FULL_SHARD, continued by 2 in DDP.
TEST_F(GoingOn, IsTheSameWithinAMillionthAtAnotherNumberOfRanks) {
    const job::Job job = on_text(small_gpt(4));
    const std::vector<double> uninterrupted = train(job);
    for (const int ranks : {1, 2, 8}) {
        for (const job::ParallelMode mode : {job::ParallelMode::ddp, job::ParallelMode::fsdp}) {
            job::Job then = on_text(small_gpt(ranks));
            then.parallel.mode = mode;
            expect_close(train_in_two(job, then), uninterrupted, fmt::format("{} ranks", ranks));
        }
    }
}

// Saved on one mesh, continued on another. The vocabulary of 257 has padding on two ranks.
TEST_F(GoingOn, AMeshLoadsWhatAnotherHasSaved) {
    const auto on = [&](int tensor, int data, bool sequence, job::FsdpLayout layout) {
        job::Job job = on_text(small_gpt(tensor * data));
        job.model.width = 16;
        job.model.vocabulary = 257;
        job.data.batch = 4 / data;
        job.parallel.tensor = tensor;
        job.parallel.sequence = sequence;
        job.fsdp.layout = layout;
        return job;
    };
    const auto in_pipeline = [](job::Job job) {
        job.run.ranks *= 2;
        job.parallel.pipeline = 2;
        job.parallel.schedule = "gpipe";
        job.train.accumulation_sync = false;
        return job;
    };
    const std::vector<job::Job> meshes = {on(1, 1, false, job::FsdpLayout::fsdp1),
                                          on(2, 1, false, job::FsdpLayout::fsdp1),
                                          on(2, 2, true, job::FsdpLayout::fsdp2),
                                          on(2, 4, false, job::FsdpLayout::lean),
                                          on(1, 4, false, job::FsdpLayout::fsdp2),
                                          in_pipeline(on(1, 2, false, job::FsdpLayout::fsdp1)),
                                          in_pipeline(on(2, 2, true, job::FsdpLayout::fsdp2))};
    const std::vector<double> uninterrupted = train(meshes[0]);
    for (std::size_t from = 0; from < meshes.size(); ++from) {
        for (std::size_t to = 0; to < meshes.size(); ++to) {
            expect_close(train_in_two(meshes[from], meshes[to]), uninterrupted,
                         fmt::format("from {} to {}", from, to));
        }
    }
}

// Four ranks share two heads of keys and values, and each has its own rows of their weights.
TEST_F(GoingOn, RanksThatShareAHeadLoadWhatOthersHaveSaved) {
    const auto on = [&](int tensor, int data, bool sequence, job::FsdpLayout layout) {
        job::Job job = on_text(small_gpt(tensor * data));
        job.model.type = job::ModelType::llama;
        job.model.width = 32;
        job.model.heads = 4;
        job.model.kv_heads = 2;
        job.fsdp.wrap = job::parse_wrap("module:LlamaBlock");
        job.data.batch = 4 / data;
        job.parallel.tensor = tensor;
        job.parallel.sequence = sequence;
        job.fsdp.layout = layout;
        return job;
    };
    const std::vector<job::Job> meshes = {
        on(1, 1, false, job::FsdpLayout::fsdp1), on(2, 1, false, job::FsdpLayout::fsdp1),
        on(4, 1, false, job::FsdpLayout::lean), on(4, 2, true, job::FsdpLayout::fsdp2)};
    const std::vector<double> uninterrupted = train(meshes[0]);
    for (const job::Job& from : meshes) {
        for (const job::Job& to : meshes) {
            const std::vector<double> losses = train_in_two(from, to);
            ASSERT_EQ(losses.size(), uninterrupted.size());
            for (std::size_t step = 0; step < losses.size(); ++step)
                EXPECT_NEAR(losses[step] / uninterrupted[step], 1, 1e-6)
                    << from.run.ranks << " ranks to " << to.run.ranks << ", step " << step;
        }
    }
}

// Both ends of a pipeline have the table; the checkpoint has it once.
TEST_F(GoingOn, TiedEmbeddingsOfAPipelineAreSavedOnce) {
    const auto on = [&](int places, int tensor, int data) {
        job::Job job = on_text(small_gpt(places * tensor * data));
        job.model.tied_embeddings = true;
        job.model.layers = 4;
        job.data.batch = 4 / data;
        job.train.accumulation = 4;
        job.train.accumulation_sync = false;
        job.parallel.tensor = tensor;
        job.parallel.pipeline = places;
        job.fsdp.layout = job::FsdpLayout::fsdp2;
        return job;
    };
    const std::vector<job::Job> meshes = {on(1, 1, 1), on(2, 1, 2), on(4, 1, 1), on(2, 2, 1)};
    const std::vector<double> uninterrupted = train(meshes[0]);
    for (const job::Job& from : meshes) {
        const RunLayout layout = layout_of(sharding::Program(from));
        std::int64_t saved = 0;
        for (const OwnedPiece& piece : owned_pieces(layout, 1 << 20))
            if (layout.parameters[static_cast<std::size_t>(piece.piece.parameter)].path ==
                    "token_embedding.weight" &&
                piece.piece.state.empty())
                saved += piece.piece.elements;
        EXPECT_EQ(saved, 256 * from.model.width);
        for (const job::Job& to : meshes) {
            expect_close(train_in_two(from, to), uninterrupted,
                         fmt::format("{} places to {}", from.parallel.pipeline, to.parallel.pipeline));
        }
    }
}

// Every rank of a context group has the same parameters, or its part of what FSDP and ZeRO shard over the
// group.
TEST_F(GoingOn, AnotherContextGroupLoadsWhatOneHasSaved) {
    const auto on = [&](int context, int other_ranks, job::ParallelMode mode) {
        job::Job job = on_text(small_gpt(context * other_ranks));
        job.model.width = 16;
        job.data.batch = 4;
        job.parallel.context = context;
        job.parallel.mode = mode;
        return job;
    };
    std::vector<job::Job> meshes = {on(1, 1, job::ParallelMode::none), on(2, 1, job::ParallelMode::ddp),
                                    on(4, 1, job::ParallelMode::fsdp), on(2, 2, job::ParallelMode::fsdp),
                                    on(2, 2, job::ParallelMode::ddp),  on(2, 2, job::ParallelMode::ddp)};
    meshes[3].parallel.tensor = 2;
    meshes[3].parallel.sequence = true;
    meshes[3].fsdp.layout = job::FsdpLayout::fsdp2;
    meshes[4].parallel.pipeline = 2;
    meshes[4].parallel.schedule = "gpipe";
    meshes[4].parallel.context_exchange = job::ContextExchange::ring;
    meshes[4].train.accumulation_sync = false;
    meshes[5].data.batch = 2;
    meshes[5].ddp.shard_optimizer = true;
    const std::vector<double> uninterrupted = train(meshes[0]);
    for (std::size_t from = 0; from < meshes.size(); ++from) {
        for (std::size_t to = 0; to < meshes.size(); ++to) {
            expect_close(train_in_two(meshes[from], meshes[to]), uninterrupted,
                         fmt::format("from {} to {}", from, to));
        }
    }
}

// NovoGrad's second moment is one number of a parameter, whoever has a part of that.
TEST_F(GoingOn, AnyMeshLoadsTheMomentsOfNovoGrad) {
    const auto on = [&](int ranks, job::ParallelMode mode, const Change& change = {}) {
        job::Job job = on_text(small_gpt(ranks));
        job.optimizer.type = job::OptimizerType::novograd;
        job.model.tied_embeddings = true;
        job.parallel.mode = mode;
        if (change) change(job);
        job.data.batch = 8 / job.data_ranks() / job.train.accumulation;
        return job;
    };
    const std::vector<job::Job> meshes = {
        on(1, job::ParallelMode::none),
        on(4, job::ParallelMode::fsdp),
        on(4, job::ParallelMode::fsdp,
           [](job::Job& job) {
               job.parallel.tensor = 2;
               job.fsdp.layout = job::FsdpLayout::fsdp2;
           }),
        on(2, job::ParallelMode::ddp, [](job::Job& job) { job.ddp.shard_optimizer = true; }),
        on(4, job::ParallelMode::ddp,
           [](job::Job& job) {
               job.parallel.pipeline = 2;
               job.parallel.schedule = "gpipe";
               job.train.accumulation = 2;
               job.train.accumulation_sync = false;
           }),
    };
    const std::vector<double> expected = train(meshes[0]);
    for (std::size_t from = 0; from < meshes.size(); ++from) {
        for (const std::size_t further : {1, 2}) {
            const std::size_t to = (from + further) % meshes.size();
            expect_close(train_in_two(meshes[from], meshes[to]), expected,
                         fmt::format("from {} to {}", from, to));
        }
    }
}

// Ranks have all experts, half of them or one; the optimizer's state goes with them.
TEST_F(GoingOn, AnotherExpertGroupLoadsWhatOneHasSaved) {
    const auto on = [&](int expert, int data, job::ParallelMode mode, job::FsdpLayout layout) {
        job::Job job = on_text(small_gpt(data));
        job.model.experts = 4;
        job.model.experts_per_token = 2;
        job.parallel.mode = mode;
        job.parallel.expert = expert;
        job.fsdp.layout = layout;
        return job;
    };
    const std::vector<job::Job> meshes = {
        on(1, 1, job::ParallelMode::none, job::FsdpLayout::fsdp1),
        on(2, 4, job::ParallelMode::fsdp, job::FsdpLayout::fsdp1),
        on(2, 2, job::ParallelMode::ddp, job::FsdpLayout::fsdp1),
        on(4, 4, job::ParallelMode::fsdp, job::FsdpLayout::fsdp2),
        on(2, 4, job::ParallelMode::ddp, job::FsdpLayout::fsdp1),
    };
    const std::vector<double> expected = train(meshes[0]);
    for (std::size_t i = 0; i < meshes.size(); ++i) {
        expect_close(train_in_two(meshes[i], meshes[(i + 1) % meshes.size()]), expected,
                     fmt::format("mesh {}", i));
    }
}

// 2 ranks per replica: ranks 2 and 3 load what ranks 0 and 1 wrote.
TEST_F(GoingOn, HybridShardIsTheSameBitForBit) {
    job::Job job = on_text(small_gpt(4));
    job.fsdp.sharding_strategy = job::ShardingStrategy::hybrid_shard;
    job.fsdp.shard_group = 2;
    EXPECT_EQ(train_in_two(job, job), train(job));
}

TEST_F(GoingOn, EveryOptimizerFindsItsState) {
    for (const job::OptimizerType type :
         {job::OptimizerType::sgd, job::OptimizerType::adam, job::OptimizerType::adamw,
          job::OptimizerType::lars, job::OptimizerType::lamb, job::OptimizerType::novograd}) {
        job::Job job = on_text(small_gpt(2));
        job.optimizer.type = type;
        job.optimizer.momentum = 0.9;
        job.optimizer.warmup_steps = 4;
        job.optimizer.schedule = job::LrSchedule::cosine;
        // The schedule depends on the run's length, so the first run has the full length and is cut off.
        job::Job first = job;
        first.checkpoint.every = kSaved;
        first.checkpoint.save = folder_ / "all";
        first.optimizer = job.optimizer;
        const std::vector<double> uninterrupted = train(first);
        job::Job then = job;
        then.checkpoint.load = folder_ / "all/step-3";
        EXPECT_EQ(train(then), (std::vector<double>(uninterrupted.begin() + kSaved, uninterrupted.end())))
            << static_cast<int>(type);
        std::filesystem::remove_all(folder_ / "all");
    }
}

// Samples 0 … 23 in three steps of 8, then 24 … 35 in three steps of 4: the stream continues.
TEST_F(GoingOn, ASmallerBatchSeesTheSamplesThatFollow) {
    const job::Job job = on_text(small_gpt(2));
    job::Job smaller = job;
    smaller.data.batch = 2;
    const std::vector<double> losses = train_in_two(job, smaller);
    job::Job accumulating = job;  // the samples are the same in micro-batches, and have the same mean
    accumulating.data.batch = 1;
    accumulating.train.accumulation = 2;
    const std::vector<double> other = train_in_two(job, accumulating);
    for (std::size_t step = kSaved; step < losses.size(); ++step) {
        EXPECT_NEAR(losses[step] / other[step], 1, 1e-6) << step;
    }
}

TEST_F(GoingOn, DropoutContinuesToo) {
    job::Job job = on_text(small_gpt(2));
    job.model.dropout = 0.2;
    EXPECT_EQ(train_in_two(job, job), train(job));
}

// Frozen parameters have no state, and none is expected.
TEST_F(GoingOn, FrozenParametersStayAsTheyWere) {
    job::Job job = on_text(small_gpt(2));
    job.train.freeze = job::parse_modules("module:Embedding");
    EXPECT_EQ(train_in_two(job, job), train(job));
}

TEST_F(GoingOn, AnotherModelIsRefusedBeforeTheFirstStep) {
    job::Job job = small_gpt(2);
    job::Job wider = job;
    wider.model.width = 16;
    job = on_text(job);
    wider = on_text(wider);
    try {
        train_in_two(job, wider);
        FAIL() << "it was loaded";
    } catch (const CheckpointError& error) {
        EXPECT_THAT(error.what(), ::testing::HasSubstr("it was saved with model.width = 12, the job has 16"));
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::checkpoint
