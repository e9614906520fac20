// Whole runs of the cpu executor: the same bits whatever the timing, stops, hooks, validation, limits, losses
// that are not finite, and the trace of each.
#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "jobs.h"
#include "profiler/recorder/recorder.h"
#include "traces/store/columns/column_sink.h"
#include "trainer/executor/rank_runner.h"

namespace shardscope::trainer::executor {
namespace TEST_FILE {

using Losses = std::vector<double>;

job::Job small_job(int ranks = 2) {
    return testing::with_wrap(testing::mlp_job(4, 24, 3, ranks), "module:Linear");
}

// Combines many options: hybrid groups, accumulation, clipping, offload.
std::vector<job::Job> race_jobs(const testing::SampleText& text) {
    std::vector<job::Job> jobs = {
        small_job(3), testing::with_mode(small_job(3), job::ParallelMode::ddp),
        testing::with_strategy(testing::with_wrap(testing::gpt_job(text, 1, 4), "module:Block"),
                               job::ShardingStrategy::hybrid_shard, 2)};
    for (const job::FsdpLayout layout : {job::FsdpLayout::fsdp2, job::FsdpLayout::lean}) {
        job::Job job = small_job(2);
        job.fsdp.layout = layout;
        job.fsdp.cpu_offload = true;
        job.fsdp.limit_all_gathers = layout == job::FsdpLayout::fsdp2;
        job.train.accumulation = 2;
        job.train.clip_norm = 0.1;
        jobs.push_back(job);
    }
    jobs.push_back(jobs[2]);
    jobs.back().memory.activation_checkpointing.names = {"Block"};
    jobs.back().data.workers = 2;
    return jobs;
}

struct Traced {
    RunResult result;
    std::unique_ptr<traces::store::Trace> trace;
    std::string error;  // the message of the exception
};

// A run with its trace, whether it succeeds or not.
Traced traced(const job::Job& job, RunOptions options = {}) {
    Traced out;
    auto owned = std::make_unique<traces::store::ColumnSink>();
    traces::store::ColumnSink* sink = owned.get();
    profiler::Recorder recorder(std::move(owned), [&](traces::store::EventSink&, std::int64_t, std::int64_t) {
        out.trace = sink->take();
    });
    options.recorder = &recorder;
    try {
        out.result = testing::run(job, options);
    } catch (const RunError& error) {
        out.error = error.what();
    }
    recorder.finish();
    return out;
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

TEST(ExecutorRaces, NeitherDelaysNorPoisonChangeABit) {
    const testing::SampleText text;
    for (const job::Job& job : race_jobs(text)) {
        RunOptions plain;
        plain.test.poison = false;
        const Losses expected = testing::run(job, plain).losses;
        ASSERT_EQ(expected.size(), 5U);
        for (const std::uint64_t seed : {1, 2}) {
            RunOptions options;
            options.test.delay_seed = seed;
            options.test.poison = true;
            EXPECT_EQ(testing::run(job, options).losses, expected);
        }
        RunOptions slow;
        slow.test.transfer_delay_us = 300;
        slow.test.poison = true;
        EXPECT_EQ(testing::run(job, slow).losses, expected);
    }
}

TEST(ExecutorStop, EndsAllRanksAfterTheSameStep) {
    job::Job job = small_job(3);
    job.run.steps = 1000000;
    RunControl control;
    RunOptions options;
    options.control = &control;
    options.on_step = [&](const StepReport& step) { control.stop = step.step >= 4; };
    std::mutex mutex;
    std::vector<std::int64_t> saved;
    options.hooks.at_step_end = [&](int, std::int64_t steps_done, RankRunner&) {
        const std::lock_guard lock(mutex);
        saved.push_back(steps_done);
    };
    const Traced stopped = traced(job, options);
    const std::int64_t done = stopped.result.steps_done;
    EXPECT_GE(done, 5);
    EXPECT_EQ(stopped.result.stopped_at, done);
    EXPECT_EQ(stopped.result.losses.size(), static_cast<std::size_t>(done));
    EXPECT_EQ(saved, (std::vector<std::int64_t>(3, done))) << "a stop saves, on every rank, the same step";
    EXPECT_EQ(stopped.trace->steps.size(), static_cast<std::size_t>(3 * done));
}

TEST(ExecutorStop, BeforeTheFirstStepTrainsNothing) {
    RunControl control;
    control.stop = true;
    RunOptions options;
    options.control = &control;
    const RunResult result = testing::run(small_job(), options);
    EXPECT_TRUE(result.losses.empty());
    EXPECT_EQ(result.stopped_at, 0);
}

// The hook is called after steps 2, 4 and, as the last, 5; no rank continues before all calls have returned.
TEST(ExecutorHooks, AreCalledAtAgreedStepsWithAllRanksAtRest) {
    job::Job job = small_job(3);
    job.checkpoint.every = 2;
    std::mutex mutex;
    std::vector<std::int64_t> calls;
    RunOptions options;
    options.hooks.at_step_end = [&](int, std::int64_t steps_done, RankRunner&) {
        {
            const std::lock_guard lock(mutex);
            calls.push_back(steps_done);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        const std::lock_guard lock(mutex);
        EXPECT_EQ(calls.back(), steps_done);
    };
    testing::run(job, options);
    EXPECT_EQ(calls, (std::vector<std::int64_t>{2, 2, 2, 4, 4, 4, 5, 5, 5}));
}

// Parameters taken after 3 steps and put back into a new run that begins at step 3.
TEST(ExecutorHooks, ARunContinuesFromTheStateOfAnother) {
    const job::Job job = small_job(2);
    std::vector<std::vector<std::byte>> kept(2 * 8);
    const auto slots = [](const sharding::Program& program) { return program.optimizer().slots(); };
    const sharding::Program program(job);
    const auto copy_all = [&](int rank, RankRunner& runner, bool out) {
        const auto all = slots(program);
        ASSERT_LE(all.size(), 8U);
        for (std::size_t i = 0; i < all.size(); ++i) {
            auto& bytes = kept[static_cast<std::size_t>(rank) * 8 + i];
            const plan::HostView view = runner.contents(all[i].parameter);
            const std::span<std::byte> here = view.bytes();
            ASSERT_FALSE(here.empty());
            if (out) bytes.assign(here.begin(), here.end());
            if (!out) std::copy(bytes.begin(), bytes.end(), here.begin());
        }
    };
    job::Job first = job;
    first.run.steps = 3;
    RunOptions saving;
    saving.hooks.at_step_end = [&](int rank, std::int64_t, RankRunner& runner) {
        copy_all(rank, runner, true);
    };
    Losses losses = testing::run(first, saving).losses;

    RunOptions loading;
    loading.first_step = 3;
    loading.first_sample = 3 * 2 * 3;  // steps, ranks, batch
    loading.hooks.after_setup = [&](int rank, RankRunner& runner) { copy_all(rank, runner, false); };
    const RunResult rest = testing::run(job, loading);
    EXPECT_EQ(rest.steps_done, 5);
    losses.insert(losses.end(), rest.losses.begin(), rest.losses.end());
    EXPECT_EQ(losses, testing::run(job).losses);
}

TEST(ExecutorHooks, ARunThatIsDoneCannotBeContinued) {
    RunOptions options;
    options.first_step = 5;
    EXPECT_THROW(testing::run(small_job(), options), RunError);
}

// The mean of two micro-batches of 3 is that of one batch of 6: the same losses within fp32.
TEST(ExecutorLosses, AreMeansOverMicroBatchesAndRanks) {
    job::Job job = small_job(2);
    job.data.batch = 6;
    const Losses whole = testing::run(job).losses;
    job.data.batch = 3;
    job.train.accumulation = 2;
    const Losses parts = testing::run(job).losses;
    ASSERT_EQ(parts.size(), whole.size());
    for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(parts[i] / whole[i], 1, 1e-6);
}

TEST(ExecutorLosses, NonFiniteOnesEndTheRunAndNameTheModule) {
    job::Job job = small_job(3);
    job.run.steps = 100;
    job.optimizer.lr = 1e18;
    const Traced failed = traced(job);
    EXPECT_TRUE(contains(failed.error, "step ")) << failed.error;
    EXPECT_TRUE(contains(failed.error, "the first output that is not finite is that of ")) << failed.error;
    EXPECT_TRUE(contains(failed.error, "lower optimizer.lr, which is 1e+18")) << failed.error;
    ASSERT_EQ(failed.trace->diagnostics.size(), 1U);
    EXPECT_EQ(failed.trace->diagnostics[0].text, failed.error) << "the trace is whole and says why";
    EXPECT_GT(failed.trace->device.size(), 0U);
}

TEST(ExecutorMemory, RunsWithinALimitThatSuffices) {
    job::Job job = small_job(2);
    const Losses expected = testing::run(job).losses;
    job.run.memory_limit = testing::run(job).reserved[0];
    const RunResult result = testing::run(job);
    EXPECT_EQ(result.losses, expected);
    for (std::size_t rank = 0; rank < 2; ++rank) {
        EXPECT_LE(result.reserved[rank], job.run.memory_limit);
        EXPECT_LE(result.active[rank], result.reserved[rank]);
        EXPECT_GE(result.active[rank], result.peaks[rank].bytes);
    }
}

TEST(ExecutorMemory, RefusesWhatDoesNotFitAndReportsTheAllocatedMemory) {
    job::Job job = small_job(2);
    job.run.memory_limit = 8192;  // 4 shards of 1200 bytes are reserved as 1536 each; a gathered unit as 2560
    const Traced failed = traced(job);
    for (const char* part : {"step 0", "out of memory: ", "run.memory_limit", "8192 bytes", "parameters",
                             "gathering unit ", "(net."}) {
        EXPECT_TRUE(contains(failed.error, part)) << part << " is not in: " << failed.error;
    }
    ASSERT_EQ(failed.trace->diagnostics.size(), 1U);
    EXPECT_EQ(failed.trace->ranks.size(), 2U);
}

TEST(ExecutorValidation, IsTheMeanOverTheHeldOutBatchesAtIntervalsAndAtTheEnd) {
    const testing::SampleText text;
    job::Job job = testing::with_wrap(testing::gpt_job(text, 2, 2), "module:Block");
    job.data.validation = 0.1;
    job.train.validate_every = 2;
    std::vector<ValidationReport> told;
    RunOptions options;
    options.on_validation = [&](const ValidationReport& report) { told.push_back(report); };
    const Traced run = traced(job, options);
    ASSERT_EQ(run.error, "");
    std::vector<std::int64_t> steps;
    for (const ValidationReport& report : run.result.validation) steps.push_back(report.step);
    EXPECT_EQ(steps, (std::vector<std::int64_t>{1, 3, 4})) << "after 2, 4 and 5 steps";
    EXPECT_EQ(told.size(), 3U);
    EXPECT_GT(told[0].batches, 0);
    EXPECT_EQ(told[0].batches % 2, 0) << "whole batches of both ranks";
    EXPECT_LT(told[2].loss, told[0].loss) << "it learns";

    job.train.validate_every = 0;
    EXPECT_EQ(testing::run(job).losses, run.result.losses) << "validation leaves training as it was";
}

// 4 ranks in shard groups of 2.
TEST(ExecutorTrace, RecordsTheGroupsOfCollectives) {
    const job::Job job = testing::with_strategy(small_job(4), job::ShardingStrategy::hybrid_shard, 2);
    const plan::Mesh mesh{4, 2};
    const Traced run = traced(job);
    ASSERT_EQ(run.error, "");
    const traces::store::Collectives& collectives = run.trace->collectives;
    std::set<std::int64_t> groups;
    for (std::size_t i = 0; i < collectives.size(); ++i) {
        const std::int64_t group = collectives.group[i];
        groups.insert(group);
        EXPECT_EQ(collectives.group_size[i], group == 0 ? 4 : 2);
    }
    std::set<std::int64_t> expected = {0};  // the barrier of set-up
    for (int rank = 0; rank < 4; ++rank) {
        expected.insert(format_as(mesh.id(plan::Group::shard, rank)));
        expected.insert(format_as(mesh.id(plan::Group::replicate, rank)));
    }
    EXPECT_EQ(groups, expected);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::executor
