// Runs that train a small ResNet on the processor: it learns, under each parallel mode, and its ranks share
// the running statistics as DistributedDataParallel's do.
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "jobs.h"

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

TEST(ImagesRuns, LabelSmoothingRaisesTheLeastLoss) {
    job::Job job = small_resnet(1, "none");
    job.train.label_smoothing = 0.1;
    const std::vector<double> losses = testing::run(job).losses;
    const double last = std::accumulate(losses.end() - 5, losses.end(), 0.0) / 5;
    EXPECT_GT(last, 0.5);  // the entropy of 0.91 and nine times 0.01 is 0.50
    EXPECT_LT(last, 1.1);
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
