// Epochs as a length and as a cadence.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/data/epochs.h"
#include "trainer/job/job.h"

namespace shardscope::trainer::data {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// So many samples, which nobody looks at.
class Counted final : public Dataset {
  public:
    explicit Counted(std::int64_t samples) : samples_(samples) {}
    std::int64_t input_bytes() const override { return 0; }
    std::int64_t target_bytes() const override { return 0; }
    std::int64_t samples() const override { return samples_; }
    void fill(std::int64_t, int, void*, void*) const override {}

  private:
    std::int64_t samples_;
};

// 2 ranks, 3 micro-batches, 4 samples in each: 24 in a step.
job::Job job_of(std::int64_t epochs) {
    job::Job job;
    job.run.ranks = 2;
    job.train.accumulation = 3;
    job.data.batch = 4;
    job.train.epochs = epochs;
    job.origins["train.epochs"] = "job.toml:9";
    return job;
}

std::int64_t steps_of(std::int64_t epochs, std::int64_t samples, const Position& start = {}) {
    return with_steps(job_of(epochs), Counted(samples), start).run.steps;
}

std::string error_of(const job::Job& job, std::int64_t samples, const Position& start = {}) {
    try {
        with_steps(job, Counted(samples), start);
    } catch (const DataError& error) {
        return error.what();
    }
    return "";
}

TEST(Epochs, AreSoManyStepsThatEverySampleWasUsed) {
    EXPECT_EQ(steps_of(1, 24), 1);
    EXPECT_EQ(steps_of(1, 25), 2);
    EXPECT_EQ(steps_of(3, 25), 4) << "75 samples in steps of 24";
    EXPECT_EQ(steps_of(1, 5), 1) << "an epoch may be shorter than a step";
    EXPECT_EQ(steps_of(0, 25), job::Job().run.steps) << "the steps that the job says";
}

TEST(Epochs, GoOnFromTheSamplesThatWereUsed) {
    EXPECT_EQ(steps_of(3, 25, {4 - 1, 72}), 4);
    // Another run's steps may have been shorter: 10 of 4.
    EXPECT_EQ(steps_of(3, 25, {10, 40}), 10 + 2);
}

TEST(Epochs, SayWhyTheyCannotBeCounted) {
    EXPECT_EQ(error_of(job_of(2), 0),
              "job.toml:9: train.epochs: samples that are made do not repeat, so there are no epochs; count "
              "steps, with run.steps, or set data.path to files");
    EXPECT_EQ(error_of(job_of(2), 25, {3, 50}),
              "job.toml:9: train.epochs: the checkpoint that training continues from is after 2 epochs "
              "already; set train.epochs above that to continue");
    EXPECT_THAT(error_of(job_of(1'000'000'000), 1'000'000'000),
                AllOf(HasSubstr("1000000000 epochs of 1000000000 samples are 41666666666666664 steps of 24"),
                      HasSubstr("lower it")));
    job::Job every;
    every.checkpoint.every = {1, true};
    EXPECT_THAT(error_of(every, 0), StartsWith("checkpoint.every: samples that are made"));
    EXPECT_EQ(error_of(every, 25), "");
}

// Samples of 10 in steps of 4: epochs end in the steps 3, 5, 8 and 10.
TEST(Epochs, EndInTheStepWhichUsesTheirLastSample) {
    const auto steps = [](const job::Every& every) {
        std::vector<int> at;
        for (int step = 1; step <= 10; ++step) {
            if (is_time(every, {step - 1, (step - 1) * 4}, {step, step * 4}, 10)) at.push_back(step);
        }
        return at;
    };
    EXPECT_THAT(steps({1, true}), ElementsAre(3, 5, 8, 10));
    EXPECT_THAT(steps({2, true}), ElementsAre(5, 10));
    EXPECT_THAT(steps(4), ElementsAre(4, 8));
    EXPECT_THAT(steps(0), ElementsAre());
    EXPECT_FALSE(is_time({1, true}, {0, 0}, {1, 4}, 0)) << "there are none";
}

TEST(Epochs, AreReadAndWrittenAsText) {
    const std::string text =
        "[model]\ntype = 'gpt'\n[data]\ntype = 'text'\npath = 'a'\nvalidation = 0.1\n[train]\nepochs = 3\n"
        "validate_every = '2 epochs'\n[checkpoint]\nsave = 's'\nevery = 100\n";
    const job::Job job = job::parse_job(text, "job.toml");
    EXPECT_EQ(job.train.epochs, 3);
    EXPECT_EQ(job.train.validate_every, job::Every(2, true));
    EXPECT_EQ(job.checkpoint.every, job::Every(100));
    EXPECT_EQ(to_text(job.train.validate_every), "2 epochs");
    EXPECT_EQ(to_text(job.checkpoint.every), "100");
    // The command line outweighs the file.
    EXPECT_EQ(job::parse_job(text, "job.toml", {{"run.steps", "5"}}).train.epochs, 0);
    const job::Job longer =
        job::parse_job("[run]\nsteps = 7\n[data]\npath = 'a'\n", "job.toml",
                       {{"train.epochs", "2"}, {"checkpoint.every", "1 epoch"}, {"checkpoint.save", "s"}});
    EXPECT_EQ(longer.train.epochs, 2);
    EXPECT_EQ(longer.checkpoint.every, job::Every(1, true));
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::data
