// Training that stops and continues elsewhere has the losses of a run that never stopped.
#include <cmath>
#include <functional>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/checkpoint_testing.h"
#include "trainer/checkpoint/error.h"
#include "trainer/data/source.h"
#include "trainer/executor/rank_runner.h"
#include "trainer/executor/training_run.h"

namespace shardscope::trainer {
namespace TEST_FILE {

using namespace testing;

constexpr std::int64_t kSaved = 3, kEnd = 6;

RankMemory memory_of(RankRunner& runner) {
    return [&runner](const Arg& arg) { return runner.contents(arg); };
}

std::vector<double> train(const Job& job) {
    const Program program(job);
    const DataSource data = open_data(job);
    RunOptions options;
    std::unique_ptr<StoredCheckpoint> stored;
    std::unique_ptr<CheckpointLoader> loader;
    std::unique_ptr<CheckpointSaver> saver;
    SaveSettings settings;
    if (!job.checkpoint.load.empty()) {
        stored = std::make_unique<StoredCheckpoint>(job.checkpoint.load);
        loader = std::make_unique<CheckpointLoader>(*stored, job, layout_of(program), LoadUse::training);
        settings.sample_offset = loader->sample_offset();
        options.first_step = loader->step();
        options.first_sample = loader->step() * samples_per_step(job) + loader->sample_offset();
        options.hooks.after_setup = [&](int rank, RankRunner& runner) {
            loader->fill(rank, memory_of(runner));
        };
    }
    if (!job.checkpoint.save.empty()) {
        saver = std::make_unique<CheckpointSaver>(
            job, layout_of(program), settings, [](const SaveReport& report) { EXPECT_EQ(report.error, ""); });
        options.hooks.at_step_end = [&](int rank, std::int64_t steps_done, RankRunner& runner) {
            saver->save(rank, steps_done, memory_of(runner));
        };
    }
    return run_training(program, *data.train, options).losses;
}

Job small_gpt(int ranks) {
    Job job;
    job.run.steps = kEnd;
    job.run.ranks = ranks;
    job.run.workers = 2;
    job.model.type = ModelType::gpt;
    job.model.layers = 2;
    job.model.heads = 2;
    job.model.width = 12;  // uneven over 8 ranks
    job.model.context = 8;
    job.data.batch = 8 / ranks;
    job.fsdp.wrap = parse_wrap("module:Block");
    job.optimizer.type = OptimizerType::adamw;
    job.optimizer.lr = 0.01;
    return job;
}

void stop_after_save(Job& job, const std::filesystem::path& folder) {
    job.run.steps = kSaved;
    job.checkpoint.save = folder;
}

class GoingOn : public ::testing::Test {
  protected:
    GoingOn() {
        std::ofstream text(folder_ / "text");
        for (int i = 0; i < 100; ++i) text << "line " << i << " resembles the last one\n";
    }

    Job on_text(Job job) const {
        job.data.type = DataType::text;
        job.data.path = folder_ / "text";
        return job;
    }
    // Trains `first` for three steps and `then` for three more.
    std::vector<double> train_in_two(Job first, Job then) const {
        stop_after_save(first, folder_ / "save");
        std::vector<double> losses = train(first);
        then.checkpoint.load = folder_ / "save";
        for (const double loss : train(then)) losses.push_back(loss);
        std::filesystem::remove_all(folder_ / "save");
        return losses;
    }

    TemporaryFolder folder_;
};

using Change = std::function<void(Job&)>;

// 4 ranks in FULL_SHARD per block save; a run that continues with the same number of ranks sums in the same
// order.
TEST_F(GoingOn, IsTheSameBitForBitAtTheSameNumberOfRanks) {
    const Job job = on_text(small_gpt(4));
    const std::vector<double> uninterrupted = train(job);
    ASSERT_EQ(uninterrupted.size(), 6U);
    const std::vector<std::pair<const char*, Change>> changes = {
        {"nothing", [](Job&) {}},
        {"root wrap", [](Job& then) { then.fsdp.wrap = {}; }},
        {"fsdp2", [](Job& then) { then.fsdp.layout = FsdpLayout::fsdp2; }},
        {"lean", [](Job& then) { then.fsdp.layout = FsdpLayout::lean; }},
        {"offload", [](Job& then) { then.fsdp.cpu_offload = true; }},
        {"SHARD_GRAD_OP", [](Job& then) { then.fsdp.sharding_strategy = ShardingStrategy::shard_grad_op; }},
        {"NO_SHARD", [](Job& then) { then.fsdp.sharding_strategy = ShardingStrategy::no_shard; }},
        {"ddp", [](Job& then) { then.parallel.mode = ParallelMode::ddp; }},
        {"ZeRO 1",
         [](Job& then) {
             then.parallel.mode = ParallelMode::ddp;
             then.ddp.shard_optimizer = true;
         }},
        {"full file", [](Job& then) { then.checkpoint.format = CheckpointFormat::full; }},
    };
    for (const auto& [name, change] : changes) {
        Job then = job;
        change(then);
        Job first = job;
        first.checkpoint.format = then.checkpoint.format;
        EXPECT_EQ(train_in_two(first, then), uninterrupted) << "4 ranks FULL_SHARD -> " << name;
        first = then;
        EXPECT_EQ(train_in_two(first, job), uninterrupted) << name << " -> 4 ranks FULL_SHARD";
    }
}

// Saved by 4 ranks in FULL_SHARD, continued by 2 in DDP.
TEST_F(GoingOn, IsTheSameWithinAMillionthAtAnotherNumberOfRanks) {
    const Job job = on_text(small_gpt(4));
    const std::vector<double> uninterrupted = train(job);
    for (const int ranks : {1, 2, 8}) {
        for (const ParallelMode mode : {ParallelMode::ddp, ParallelMode::fsdp}) {
            Job then = on_text(small_gpt(ranks));
            then.parallel.mode = mode;
            const std::vector<double> losses = train_in_two(job, then);
            ASSERT_EQ(losses.size(), uninterrupted.size());
            for (std::size_t step = 0; step < losses.size(); ++step) {
                EXPECT_NEAR(losses[step] / uninterrupted[step], 1, 1e-6) << ranks << " ranks, step " << step;
            }
        }
    }
}

// 2 ranks per replica: ranks 2 and 3 load what ranks 0 and 1 wrote.
TEST_F(GoingOn, HybridShardIsTheSameBitForBit) {
    Job job = on_text(small_gpt(4));
    job.fsdp.sharding_strategy = ShardingStrategy::hybrid_shard;
    job.fsdp.shard_group = 2;
    EXPECT_EQ(train_in_two(job, job), train(job));
}

TEST_F(GoingOn, EveryOptimizerFindsItsState) {
    for (const OptimizerType type : {OptimizerType::sgd, OptimizerType::adam, OptimizerType::adamw,
                                     OptimizerType::lars, OptimizerType::lamb}) {
        Job job = on_text(small_gpt(2));
        job.optimizer.type = type;
        job.optimizer.momentum = 0.9;
        job.optimizer.warmup_steps = 4;
        job.optimizer.schedule = LrSchedule::cosine;
        // The schedule depends on the run's length, so the first run has the full length and is cut off.
        Job first = job;
        first.checkpoint.every = kSaved;
        first.checkpoint.save = folder_ / "all";
        first.optimizer = job.optimizer;
        const std::vector<double> uninterrupted = train(first);
        Job then = job;
        then.checkpoint.load = folder_ / "all/step-3";
        EXPECT_EQ(train(then), (std::vector<double>(uninterrupted.begin() + kSaved, uninterrupted.end())))
            << static_cast<int>(type);
        std::filesystem::remove_all(folder_ / "all");
    }
}

// Samples 0 … 23 in three steps of 8, then 24 … 35 in three steps of 4: the stream continues.
TEST_F(GoingOn, ASmallerBatchSeesTheSamplesThatFollow) {
    const Job job = on_text(small_gpt(2));
    Job smaller = job;
    smaller.data.batch = 2;
    const std::vector<double> losses = train_in_two(job, smaller);
    Job accumulating = job;  // the samples are the same in micro-batches, and have the same mean
    accumulating.data.batch = 1;
    accumulating.train.accumulation = 2;
    const std::vector<double> other = train_in_two(job, accumulating);
    for (std::size_t step = kSaved; step < losses.size(); ++step) {
        EXPECT_NEAR(losses[step] / other[step], 1, 1e-6) << step;
    }
}

TEST_F(GoingOn, DropoutContinuesToo) {
    Job job = on_text(small_gpt(2));
    job.model.dropout = 0.2;
    EXPECT_EQ(train_in_two(job, job), train(job));
}

// Frozen parameters have no state, and none is expected.
TEST_F(GoingOn, FrozenParametersStayAsTheyWere) {
    Job job = on_text(small_gpt(2));
    job.train.freeze = parse_modules("module:Embedding");
    EXPECT_EQ(train_in_two(job, job), train(job));
}

TEST_F(GoingOn, AnotherModelIsRefusedBeforeTheFirstStep) {
    Job job = small_gpt(2);
    Job wider = job;
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
}  // namespace shardscope::trainer
