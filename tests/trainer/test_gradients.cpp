// The backward of whole models against finite differences: along a random direction of every parameter, the
// change of the loss equals gradient times direction.
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "jobs.h"
#include "trainer/executor/rank_runner.h"
#include "trainer/kernels/random.h"
#include "trainer/sharding/program.h"

namespace shardscope::trainer {
namespace {

// One rank that can be stepped by hand. The learning rate is 0, so parameters stay where they are put.
class OneRank {
  public:
    explicit OneRank(Job job)
        : program_(freeze(std::move(job))),
          dataset_(testing::dataset_of(program_.job())),
          scheduler_(1, nullptr),
          group_(1),
          shared_{scheduler_,
                  group_,
                  *dataset_,
                  program_.job().run.seed,
                  program_.job().data.batch,
                  [this](int, std::int64_t, double loss) { loss_ = loss; },
                  nullptr,
                  {}} {
        std::array<StreamIndex, kStreams> streams{};
        for (StreamIndex& stream : streams) stream = scheduler_.add_stream();
        runner_ = std::make_unique<RankRunner>(0, shared_, streams);
        runner_->run(program_.setup(), 0);
    }

    // The loss of the first batch; its gradients stay until the next call.
    double loss() {
        runner_->run(program_.step(steps_++), 0);
        runner_->run(program_.finish(), 0);
        runner_->drain();
        return loss_;
    }
    std::span<float> parameter(std::size_t i) { return contents(program_.optimizer().slot(i).parameter); }
    std::span<float> gradient(std::size_t i) { return contents(program_.optimizer().slot(i).gradient); }
    const Program& program() const { return program_; }

  private:
    static Job freeze(Job job) {
        job.parallel.mode = ParallelMode::none;
        job.optimizer = {};
        job.optimizer.lr = 0;
        return job;
    }
    std::span<float> contents(BufferId buffer) { return runner_->contents(program_.setup(), buffer); }

    Program program_;
    std::unique_ptr<Dataset> dataset_;
    Scheduler scheduler_;
    LocalGroup group_;
    Shared shared_;
    std::unique_ptr<RankRunner> runner_;
    std::size_t steps_ = 0;
    double loss_ = 0;
};

void check_gradients(const Job& job, double h) {
    OneRank rank(job);
    rank.loss();
    const std::size_t count = rank.program().modules().parameters.size();
    std::vector<std::vector<float>> gradients;
    for (std::size_t i = 0; i < count; ++i)
        gradients.emplace_back(rank.gradient(i).begin(), rank.gradient(i).end());
    for (std::size_t i = 0; i < count; ++i) {
        const std::span<float> parameter = rank.parameter(i);
        const std::vector<float> saved(parameter.begin(), parameter.end());
        double expected = 0, size = 0;
        std::vector<double> direction(saved.size());
        for (std::size_t e = 0; e < saved.size(); ++e) {
            direction[e] = kernels::normal(99, i, e);
            expected += direction[e] * gradients[i][e];
            size += static_cast<double>(gradients[i][e]) * gradients[i][e];
        }
        double loss[2];
        for (const int side : {0, 1}) {
            for (std::size_t e = 0; e < saved.size(); ++e) {
                parameter[e] = static_cast<float>(saved[e] + (side == 0 ? h : -h) * direction[e]);
            }
            loss[side] = rank.loss();
        }
        std::copy(saved.begin(), saved.end(), parameter.begin());
        const double measured = (loss[0] - loss[1]) / (2 * h);
        // fp32 forward passes: the difference of two losses near 1 carries about 1e-7 / h.
        EXPECT_NEAR(measured, expected, 0.02 * std::sqrt(size) + 1e-6 / h)
            << rank.program().modules().parameters[i]->path;
        EXPECT_GT(size, 0) << rank.program().modules().parameters[i]->path << " gets no gradient";
    }
}

// Many rows, because a ReLU that a step of h switches adds an error of its own.
TEST(Gradients, Mlp) {
    check_gradients(testing::mlp_job(4, 16, 2048, 1), 2e-3);
}

TEST(Gradients, MlpWithoutBias) {
    Job job = testing::mlp_job(3, 16, 2048, 1);
    job.model.bias = false;
    check_gradients(job, 2e-3);
}

TEST(Gradients, Gpt) {
    const testing::SampleText text;
    check_gradients(testing::gpt_job(text, 4, 1), 2e-3);
}

}  // namespace
}  // namespace shardscope::trainer
