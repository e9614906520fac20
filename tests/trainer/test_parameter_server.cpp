// A parameter server: in step it is DDP, out of step its gradients are stale, within a bound.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "jobs.h"

namespace shardscope::trainer {
namespace TEST_FILE {

using testing::served;

TEST(ParameterServer, InStepIsDdp) {
    const testing::SampleText text;
    for (job::Job job : {testing::mlp_job(3, 24, 2, 3), testing::gpt_job(text, 2, 3)}) {
        for (const auto type : {job::OptimizerType::sgd, job::OptimizerType::adamw}) {
            job.run.steps = 8;
            // With its usual eps Adam makes steps of what is only rounding (the bias of keys).
            job.optimizer = {.type = type, .lr = 0.01, .eps = 1e-3};
            if (type == job::OptimizerType::sgd) job.optimizer.momentum = 0.9;
            for (const int micro_batches : {1, 3}) {
                job.train.accumulation = micro_batches;
                const auto ddp = testing::run(testing::with_mode(job, job::ParallelMode::ddp)).losses;
                for (const int servers : {1, 2}) {
                    const auto losses = testing::run(served(job, 3, servers, 0)).losses;
                    ASSERT_EQ(losses.size(), ddp.size());
                    for (std::size_t i = 0; i < ddp.size(); ++i)
                        EXPECT_NEAR(losses[i] / ddp[i], 1, 1e-6) << servers << " servers, step " << i;
                }
            }
        }
    }
}

TEST(ParameterServer, OfOneWorkerIsPlainTraining) {
    job::Job job = testing::mlp_job(3, 24, 2, 1);
    job.run.steps = 8;
    const auto plain = testing::run(testing::with_mode(job, job::ParallelMode::none)).losses;
    for (const std::int64_t staleness : {0, 2, -1})
        for (const int servers : {1, 3})
            EXPECT_EQ(testing::run(served(job, 1, servers, staleness)).losses, plain) << staleness;
}

// Each gradient is a step of its own: n times as many as in step.
TEST(ParameterServer, OutOfStepGoesFurther) {
    job::Job job = testing::mlp_job(3, 24, 4, 4);
    job.run.steps = 40;
    job.optimizer = {.lr = 0.05};
    const auto in_step = testing::run(served(job, 4, 1, 0)).losses;
    for (const std::int64_t staleness : {1, -1})
        EXPECT_LT(testing::run(served(job, 4, 1, staleness)).losses.back(), in_step.back()) << staleness;
}

// More workers than a server has streams.
TEST(ParameterServer, ServesManyWorkers) {
    job::Job job = testing::mlp_job(3, 16, 1, 1);
    job.run.steps = 5;
    const int workers = plan::kServeStreams + 3;
    for (const std::int64_t staleness : {0, 1, -1})
        EXPECT_EQ(testing::run(served(job, workers, 1, staleness)).losses.size(), 5U);
}

// An mlp of 4 layers of 64 features has 16640 parameters.
TEST(ParameterServer, SendsParametersAndReceivesGradients) {
    for (const std::int64_t staleness : {0, 3, -1}) {
        for (const int servers : {1, 2}) {
            const sharding::Program program(served(testing::mlp_job(4, 64, 2, 1), 3, servers, staleness));
            ASSERT_EQ(program.roles(), 1 + servers);
            for (int role = 0; role < program.roles(); ++role) {
                std::int64_t sent = 0, received = 0;
                for (const plan::Op& op : program.role(role).step(5).ops) {
                    if (op.kind != plan::OpKind::collective) continue;
                    (op.collective().operation == plan::Operation::send ? sent : received) += op.bytes;
                }
                const std::int64_t each = role == 0 ? 4 * 16640 : 3 * 4 * 16640 / servers;
                EXPECT_EQ(sent, each) << "role " << role;
                EXPECT_EQ(received, each) << "role " << role;
            }
        }
    }
}

TEST(ParameterServer, HasTheMemoryThatIsPredicted) {
    const testing::SampleText text;
    job::Job job = testing::gpt_job(text, 2, 1);
    job.optimizer.type = job::OptimizerType::adam;
    for (const std::int64_t staleness : {0, 2}) {
        const job::Job all = served(job, 2, 2, staleness);
        const sharding::Program program(all);
        const auto peaks = testing::run(all).peaks;
        ASSERT_EQ(peaks.size(), 4U);
        for (int rank = 0; rank < 4; ++rank) {
            const plan::MemoryPeak predicted = program.of(rank).predict().peak;
            const plan::MemoryPeak& real = peaks[static_cast<std::size_t>(rank)];
            EXPECT_EQ(real.bytes, predicted.bytes) << "rank " << rank;
            EXPECT_EQ(real.at_peak, predicted.at_peak) << "rank " << rank;
            EXPECT_GT(real.bytes, 0) << "rank " << rank;
        }
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer
