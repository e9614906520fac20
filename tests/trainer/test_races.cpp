// Sleeps in every stream, collective, wait and free, and memory that turns into NaNs when it is freed, change
// no bit of any loss: nothing is read before it is written, or after it is freed.
#include <gtest/gtest.h>

#include "jobs.h"
#include "parity_grid.h"

namespace shardscope::trainer::executor {
namespace TEST_FILE {

using testing::Point;

RunOptions delayed(std::uint64_t seed) {
    RunOptions options;
    options.test.delay_seed = seed;
    options.test.poison = true;
    return options;
}

TEST(Races, DelaysAndPoisonChangeNoBit) {
    const testing::SampleText text;
    std::uint64_t seed = 1;
    const std::vector<Point> points = testing::every_pair();
    for (std::size_t i = 0; i < points.size(); i += 3) {
        job::Job job = testing::job_at(points[i], text);
        job.run.steps = 3;
        const std::vector<double> calm = testing::run(job).losses;
        EXPECT_EQ(testing::run(job, delayed(seed++)).losses, calm) << testing::describe(points[i]);
    }
}

TEST(Races, OffloadAndHybridUnderManySeeds) {
    const testing::SampleText text;
    Point p{};
    p[testing::ranks] = 2;
    p[testing::wrap] = 1;
    for (const int layout : {0, 1, 2}) {
        for (const int strategy : {0, 3}) {
            p[testing::layout] = layout;
            p[testing::strategy] = strategy;
            p[testing::offload] = 1;
            p[testing::accumulation] = 1;
            job::Job job = testing::job_at(p, text);
            job.run.steps = 3;
            const std::vector<double> calm = testing::run(job).losses;
            for (std::uint64_t seed = 1; seed <= 4; ++seed)
                EXPECT_EQ(testing::run(job, delayed(seed)).losses, calm) << testing::describe(p);
        }
    }
}

// A slow network: the transfers take longer than the computation.
TEST(Races, SlowTransfersChangeNoBit) {
    const job::Job job = testing::with_wrap(testing::mlp_job(4, 24, 4, 4), "module:Linear");
    RunOptions slow;
    slow.test.transfer_delay_us = 300;
    EXPECT_EQ(testing::run(job, slow).losses, testing::run(job).losses);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::executor
