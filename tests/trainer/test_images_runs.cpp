// Runs that train a small ResNet on the processor: it learns, under each parallel mode, and its ranks share
// the running statistics as DistributedDataParallel's do.
#include <cstdio>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "jobs.h"
#include "tests/traces/temporary_folder.h"
#include "tests/trainer/image_data.h"

namespace shardscope::trainer::executor {
namespace TEST_FILE {

job::Job small_resnet(int ranks, const std::string& mode) {
    return job::parse_job("[run]\nsteps = 40\nworkers = 2\nranks = " + std::to_string(ranks) +
                              "\n[model]\nname = 'resnet18'\nwidth = 8\n[data]\ntype = 'images'\nimage = 32\n"
                              "classes = 10\nbatch = " +
                              std::to_string(16 / ranks) + "\n[parallel]\nmode = '" + mode +
                              "'\n[optimizer]\nlr = 0.05\nmomentum = 0.9\n",
                          "job.toml");
}

TEST(ImagesRuns, AResNetLearns) {
    job::Job job = small_resnet(1, "none");
    job.run.steps = 60;
    const std::vector<double> losses = testing::run(job).losses;
    EXPECT_GT(losses.front(), 2.2);  // log 10, and what the first weights add
    EXPECT_LT(std::accumulate(losses.end() - 5, losses.end(), 0.0) / 5, 0.7);
}

// Each rank normalizes its own images, so that two ranks are not one with all images, but they are the same
// in both modes.
TEST(ImagesRuns, DdpAndFsdpHaveTheSameLosses) {
    job::Job ddp = small_resnet(2, "ddp");
    job::Job fsdp = testing::with_wrap(small_resnet(2, "fsdp"), "module:BasicBlock");
    ddp.run.steps = fsdp.run.steps = 6;
    const std::vector<double> expected = testing::run(ddp).losses, losses = testing::run(fsdp).losses;
    ASSERT_EQ(losses.size(), expected.size());
    for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], expected[i], 1e-6) << i;
}

// Without batch norms one rank with all images is the same, too.
TEST(ImagesRuns, AVggAndAVitAreTheSameInEveryMode) {
    for (const char* model :
         {"name = 'vgg11'\nwidth = 2\ndropout = 0", "name = 'vit_b_16'\nlayers = 2\nheads = 2\nwidth = 16"}) {
        const auto job_of = [&](int ranks, const std::string& mode) {
            return job::parse_job("[run]\nsteps = 6\nworkers = 2\nranks = " + std::to_string(ranks) +
                                      "\n[model]\n" + model +
                                      "\n[data]\ntype = 'images'\nimage = 32\nclasses = 10\nbatch = " +
                                      std::to_string(8 / ranks) + "\n[parallel]\nmode = '" + mode +
                                      "'\n[optimizer]\ntype = 'adamw'\nlr = 0.002\n",
                                  "job.toml");
        };
        const std::vector<double> expected = testing::run(job_of(1, "none")).losses;
        for (const job::Job& job :
             {job_of(2, "ddp"), testing::with_wrap(job_of(2, "fsdp"), "size:1000"),
              testing::with_strategy(job_of(2, "fsdp"), job::ShardingStrategy::shard_grad_op)}) {
            const std::vector<double> losses = testing::run(job).losses;
            ASSERT_EQ(losses.size(), expected.size());
            for (std::size_t i = 0; i < losses.size(); ++i)
                EXPECT_NEAR(losses[i], expected[i], 1e-5) << model << i;
        }
    }
}

TEST(ImagesRuns, AVggAndAVitLearn) {
    for (const char* model :
         {"name = 'vgg11'\nwidth = 4\ndropout = 0", "name = 'vit_b_16'\nlayers = 1\nheads = 2\nwidth = 16"}) {
        const std::vector<double> losses =
            testing::run(
                job::parse_job("[run]\nsteps = 60\nworkers = 2\nranks = 1\n[model]\n" + std::string(model) +
                                   "\n[data]\ntype = 'images'\nimage = 32\nclasses = 3\nbatch = 16\n"
                                   "[parallel]\nmode = 'none'\n[optimizer]\ntype = 'adamw'\nlr = 0.003\n",
                               "job.toml"))
                .losses;
        EXPECT_GT(losses.front(), 1.0) << model;  // log 3
        EXPECT_LT(std::accumulate(losses.end() - 5, losses.end(), 0.0) / 5, 0.7) << model;
    }
}

TEST(ImagesRuns, LabelSmoothingRaisesTheLeastLoss) {
    job::Job job = small_resnet(1, "none");
    job.train.label_smoothing = 0.1;
    const std::vector<double> losses = testing::run(job).losses;
    const double last = std::accumulate(losses.end() - 5, losses.end(), 0.0) / 5;
    EXPECT_GT(last, 0.5);  // the entropy of 0.91 and nine times 0.01 is 0.50
    EXPECT_LT(last, 1.1);
}

class CifarRuns : public ::testing::Test {
  protected:
    CifarRuns() {
        testing::write_cifar(train_, 400, 1);
        testing::write_cifar(test_, 80, 2);
    }
    job::Job job(int ranks, const std::string& mode, int batch = 16) const {
        job::Job job = small_resnet(ranks, mode);
        job.data.batch = batch / ranks;
        job.data.path = train_;
        job.data.validation_path = test_;
        job.data.crop = job::ImageCrop::random;
        job.data.padding = 4;
        job.data.flip = true;
        job.parallel.sync_batch_norm = ranks > 1;
        return job;
    }
    traces::TemporaryFolder folder_;
    const std::string train_ = folder_ / "data_batch_1.bin", test_ = folder_ / "test_batch.bin";
};

TEST_F(CifarRuns, FindTheClassesOfImagesThatTheyWereNotTrainedOn) {
    job::Job job = this->job(1, "none");
    job.run.steps = 60;
    job.optimizer.schedule = job::LrSchedule::cosine;
    job.optimizer.lr = 0.02;
    const RunResult result = testing::run(job);
    ASSERT_EQ(result.validation.size(), 1U);
    ASSERT_TRUE(result.validation.front().accuracy);
    std::printf("accuracy %.1f %%, validation loss %.3f\n", 100 * *result.validation.front().accuracy,
                result.validation.front().loss);
    EXPECT_GT(*result.validation.front().accuracy, 0.5);  // 0.1 by chance
    EXPECT_EQ(result.validation.front().batches, 5);
}

// Everything but the last bits: a batch norm over all ranks' images sees what that of one rank sees.
TEST_F(CifarRuns, AreTheSameOnOneAndFourRanksWithSyncedBatchNorms) {
    job::Job one = job(1, "none");
    one.run.steps = 4;
    one.train.validate_every = 2;
    one.optimizer.lr = 0.01;
    const RunResult expected = testing::run(one);
    for (const char* mode : {"ddp", "fsdp"}) {
        job::Job four = job(4, mode);
        four.run.steps = one.run.steps;
        four.train.validate_every = one.train.validate_every;
        four.optimizer.lr = one.optimizer.lr;
        four.data.workers = 2;  // which prepare validation images, too
        if (four.parallel.mode == job::ParallelMode::fsdp)
            four = testing::with_wrap(four, "module:BasicBlock");
        const RunResult result = testing::run(four);
        for (std::size_t i = 0; i < expected.losses.size(); ++i)
            EXPECT_NEAR(result.losses[i] / expected.losses[i], 1, 1e-6) << mode << i;
        ASSERT_EQ(result.validation.size(), expected.validation.size());
        for (std::size_t i = 0; i < expected.validation.size(); ++i) {
            EXPECT_NEAR(result.validation[i].loss / expected.validation[i].loss, 1, 1e-6) << mode << i;
            EXPECT_EQ(result.validation[i].accuracy, expected.validation[i].accuracy) << mode << i;
        }
    }
}

// Without synced batch norms, with as many images in each: four ranks and four micro-batches of one.
TEST_F(CifarRuns, AreTheSameWhereBatchNormsHaveTheSameImages) {
    job::Job one = job(1, "none", 4), four = job(4, "ddp");
    one.train.accumulation = 4;
    one.run.steps = four.run.steps = 4;
    one.optimizer.lr = four.optimizer.lr = 0.01;
    four.parallel.sync_batch_norm = false;
    const std::vector<double> expected = testing::run(one).losses, losses = testing::run(four).losses;
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(losses[i], expected[i], 1e-6) << i;
}

// Of a resnet18 with 20 batch norms; each gathers its mean, squares and count, and sums two numbers for each
// channel.
TEST(ImagesPlans, SyncedBatchNormsGatherAndSumTheirStatistics) {
    job::Job job = small_resnet(2, "ddp");
    job.parallel.sync_batch_norm = true;
    const sharding::Program program(job);
    const std::int64_t channels = 8 + 4 * 8 + 5 * (16 + 32 + 64);
    auto counts = testing::collectives(program);
    const plan::Group group = program.mesh().all_data();
    EXPECT_EQ((counts[{plan::Operation::all_gather, group}]),
              (testing::Count{20, 2 * 4 * (2 * channels + 20)}));
    job.parallel.sync_batch_norm = false;
    auto without = testing::collectives(sharding::Program(job));
    EXPECT_EQ((counts[{plan::Operation::all_reduce, group}].count -
               without[{plan::Operation::all_reduce, group}].count),
              20);
    EXPECT_EQ((without[{plan::Operation::all_gather, group}].count), 0);
}

testing::Count broadcasts(const job::Job& job) {
    const sharding::Program program(job);
    return testing::collectives(program)[{plan::Operation::broadcast, program.mesh().all_data()}];
}

TEST(ImagesPlans, DdpBroadcastsTheBuffersBeforeTheForward) {
    job::Job job = small_resnet(2, "ddp");
    std::int64_t elements = 0;
    const sharding::Program program(job);
    for (const model::ModuleBuffer* buffer : program.modules().buffers) elements += buffer->elements;
    EXPECT_EQ(elements, 2 * (8 + 4 * 8 + 5 * (16 + 32 + 64)));
    EXPECT_EQ(broadcasts(job), (testing::Count{1, elements * 4}));
    job.train.accumulation = 3;
    EXPECT_EQ(broadcasts(job).count, 3);
    job.train.accumulation_sync = false;
    EXPECT_EQ(broadcasts(job).count, 1);
    job.ddp.broadcast_buffers = false;
    EXPECT_EQ(broadcasts(job).count, 0);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::executor
