// 1-bit Adam and 1-bit LAMB: a warm-up with the bits of Adam and LAMB, then what is sent and what it costs.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "jobs.h"

namespace shardscope::trainer {
namespace TEST_FILE {

using Losses = std::vector<double>;
using Type = job::OptimizerType;

job::Job job_of(job::Job job, Type type, std::int64_t freeze_step) {
    job = testing::with_mode(std::move(job), job::ParallelMode::ddp);
    job.optimizer.type = type;
    job.optimizer.lr = 1e-3;
    job.optimizer.weight_decay = 0.01;
    job.optimizer.freeze_step = freeze_step;
    return job;
}

constexpr std::int64_t kFreeze = 4, kSteps = 8;
const std::pair<Type, Type> kPairs[] = {{Type::onebit_adam, Type::adamw}, {Type::onebit_lamb, Type::lamb}};

TEST(Onebit, WithoutDecayTheWarmUpHasTheBitsOfAdam) {
    job::Job onebit = job_of(testing::mlp_job(3, 24, 2, 2), Type::onebit_adam, 100);
    job::Job adam = job_of(testing::mlp_job(3, 24, 2, 2), Type::adam, 0);
    onebit.optimizer.weight_decay = adam.optimizer.weight_decay = 0;
    EXPECT_EQ(testing::run(onebit).losses, testing::run(adam).losses);
}

TEST(Onebit, TheWarmUpHasTheBitsOfAdamWAndLamb) {
    const testing::SampleText text;
    for (job::Job job : {testing::mlp_job(3, 24, 2, 3), testing::gpt_job(text, 2, 2)}) {
        job.run.steps = kSteps;
        for (const auto& [type, plain] : kPairs) {
            const Losses compressed = testing::run(job_of(job, type, kFreeze)).losses;
            const Losses whole = testing::run(job_of(job, plain, 0)).losses;
            // The loss of a step is that of the updates before it.
            for (std::size_t step = 0; step <= kFreeze; ++step)
                EXPECT_EQ(compressed[step], whole[step]) << "step " << step;
            EXPECT_NE(compressed[kFreeze + 1], whole[kFreeze + 1]) << "compressed from step 4 on";
            EXPECT_EQ(testing::run(job_of(job, type, kSteps)).losses, whole);
        }
    }
}

struct Sent {
    plan::Operation operation;
    std::int64_t bytes;
    bool operator==(const Sent&) const = default;
};

std::vector<Sent> sent_in(const plan::Plan& plan) {
    std::vector<Sent> all;
    for (const plan::Op& op : plan.ops)
        if (op.kind == plan::OpKind::collective) all.push_back({op.collective().operation, op.bytes});
    return all;
}

// An mlp of 4 layers of 64 features has 16640 parameters in 8 tensors. On 4 ranks each serves 16640 / 4,
// rounded up to 4160, a multiple of 32: 4 x 4160 bits are 2080 bytes, 4 x 8 scales 128.
TEST(Onebit, ReplacesTheAllReduceByBitsAndScales) {
    using enum plan::Operation;
    const job::Job job = testing::mlp_job(4, 64, 2, 4);
    for (const auto& [type, plain] : kPairs) {
        const sharding::Program program(job_of(job, type, kFreeze));
        EXPECT_EQ(sent_in(program.step(kFreeze - 1)), (std::vector<Sent>{{all_reduce, 4 * 16640}}));
        const std::vector<Sent> bits = {
            {all_to_all, 2080}, {all_gather, 128}, {all_gather, 2080}, {all_gather, 128}};
        EXPECT_EQ(sent_in(program.step(kFreeze)), bits);
        EXPECT_EQ(sent_in(testing::steady(program)), bits);
        EXPECT_EQ(program.warm_up_steps(), static_cast<std::size_t>(kFreeze + 1));
    }
}

// An all-reduce sends 2 (n - 1) / n of its bytes, the others (n - 1) / n of theirs.
TEST(Onebit, SendsLessThanATwentyEighthOfWhatFp32Does) {
    const testing::SampleText text;
    for (const int ranks : {2, 4}) {
        const sharding::Program program(job_of(testing::gpt_job(text, 2, ranks), Type::onebit_adam, kFreeze));
        std::int64_t compressed = 0;
        for (const Sent& sent : sent_in(testing::steady(program))) compressed += sent.bytes;
        const std::int64_t whole = 2 * sent_in(program.step(kFreeze - 1)).back().bytes;
        EXPECT_GE(static_cast<double>(whole) / static_cast<double>(compressed), 28) << ranks << " ranks";
    }
}

// Micro-batches with a reduction after each or with one after the last mean the same when nothing is reduced.
TEST(Onebit, AccumulatesTheMicroBatchesOfARank) {
    job::Job job = job_of(testing::mlp_job(3, 24, 2, 2), Type::onebit_adam, 1);
    job.run.steps = kSteps;
    job.train.accumulation = 2;
    const auto losses_with = [&](bool synchronized) {
        job.train.accumulation_sync = synchronized;
        return testing::run(job).losses;
    };
    const Losses once = losses_with(false), always = losses_with(true);
    for (std::size_t i = 0; i < once.size(); ++i) EXPECT_NEAR(always[i] / once[i], 1, 1e-3) << "step " << i;
}

// A text whose words follow at random, so that its loss has a floor far above 0.
class RandomWords {
  public:
    RandomWords()
        : path_(std::filesystem::temp_directory_path() / ("shardscope-words-" + std::to_string(getpid()))) {
        std::ofstream out(path_);
        std::uint64_t state = 1;
        for (int i = 0; i < 20000; ++i) {
            state = state * 6364136223846793005ULL + 1442695040888963407ULL;
            static constexpr const char* kWords[] = {"gather", "reduce", "scatter", "rank", "of",  "the",
                                                     "shard",  "unit",   "stream",  "wait", "and", "in"};
            out << kWords[(state >> 33) % std::size(kWords)] << ' ';
        }
    }
    ~RandomWords() { std::filesystem::remove(path_); }
    RandomWords(const RandomWords&) = delete;
    RandomWords& operator=(const RandomWords&) = delete;
    std::string path() const { return path_.string(); }

  private:
    std::filesystem::path path_;
};

TEST(Onebit, ConvergesAsAdamDoes) {
    const testing::SampleText text;
    const RandomWords words;
    job::Job job = testing::gpt_job(text, 8, 2);
    job.data.path = words.path();
    job.run.steps = 400;
    const auto end_of = [&](Type type, std::int64_t freeze_step) {
        job::Job own = job_of(job, type, freeze_step);
        own.optimizer.lr = 2e-3;
        own.optimizer.weight_decay = 0;
        const Losses losses = testing::run(own).losses;
        double sum = 0;
        for (std::size_t i = losses.size() - 20; i < losses.size(); ++i) sum += losses[i];
        return sum / 20;
    };
    const double adam = end_of(Type::adam, 0), onebit = end_of(Type::onebit_adam, 100);
    EXPECT_LT(adam, 1) << "it has learned";
    EXPECT_LT(onebit, 1.02 * adam);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer
