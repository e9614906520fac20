// The gradient norm as a metric: over every way to divide the work it is the norm of the whole gradients, as
// torch.nn.utils.get_total_norm computes it, at each step, before they are clipped.
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "mesh_testing.h"
#include "profiler/recorder/recorder.h"
#include "traces/store/columns/column_sink.h"
#include "traces/store/columns/trace.h"

namespace shardscope::trainer::executor {
namespace TEST_FILE {

// By step.
std::vector<double> recorded_norms(const job::Job& job) {
    std::unique_ptr<traces::store::Trace> trace;
    auto owned = std::make_unique<traces::store::ColumnSink>();
    traces::store::ColumnSink* sink = owned.get();
    profiler::Recorder recorder(std::move(owned), [&](traces::store::EventSink&, std::int64_t, std::int64_t) {
        trace = sink->take();
    });
    testing::run(job, {.recorder = &recorder});
    recorder.finish();
    std::vector<double> norms;
    for (const traces::schema::MetricRow& row : trace->metrics) {
        if (trace->strings[row.name] != "gradient_norm") continue;
        EXPECT_EQ(row.step, std::ssize(norms));
        EXPECT_EQ(row.rank, -1) << "it is the whole job's";
        norms.push_back(row.value);
    }
    return norms;
}

double whole_norm(const job::Job& job) {
    double sum = 0;
    for (const auto& [path, gradient] : testing::gradients_of(job))
        sum += testing::norm_of(gradient) * testing::norm_of(gradient);
    return std::sqrt(sum);
}

class GradientNorm : public ::testing::Test {
  protected:
    job::Job fsdp(int ranks, int batch) const {
        job::Job job = testing::with_wrap(testing::gpt_job(text_, batch, ranks), "module:Block");
        job.run.steps = 3;
        job.train.gradient_norm = true;
        return job;
    }
    // The first step's is that of the gradients themselves; all steps agree with one rank's.
    void expect_norms(const job::Job& job, const char* what) {
        const std::vector<double> norms = recorded_norms(job);
        ASSERT_EQ(norms.size(), 3U) << what;
        EXPECT_NEAR(norms[0] / whole_norm(job), 1, 1e-9) << what;
        if (alone_.empty()) alone_ = recorded_norms(fsdp(1, 4));
        for (std::size_t step = 0; step < 3; ++step)
            EXPECT_NEAR(norms[step] / alone_[step], 1, 1e-5) << what << ", step " << step;
    }

    testing::SampleText text_;
    std::vector<double> alone_;  // one rank's, of the same samples
};

TEST_F(GradientNorm, IsThatOfTheWholeGradientsOnOneRank) {
    expect_norms(fsdp(1, 4), "one rank");
    job::Job accumulated = fsdp(1, 2);
    accumulated.train.accumulation = 2;
    expect_norms(accumulated, "two micro-batches");
}

TEST_F(GradientNorm, IsReducedOverTheShards) {
    expect_norms(fsdp(4, 1), "FULL_SHARD");
    expect_norms(testing::with_strategy(fsdp(4, 1), job::ShardingStrategy::hybrid_shard, 2), "HYBRID_SHARD");
    expect_norms(testing::with_mode(fsdp(2, 2), job::ParallelMode::ddp), "DDP");
    job::Job zero = testing::with_mode(fsdp(2, 2), job::ParallelMode::ddp);
    zero.ddp.shard_optimizer = true;
    expect_norms(zero, "ZeRO 1");
    job::Job offloaded = fsdp(2, 2);
    offloaded.fsdp.cpu_offload = true;
    expect_norms(offloaded, "on the host");
}

TEST_F(GradientNorm, CountsEachParameterOnceInAMesh) {
    job::Job tensor = fsdp(4, 2);
    tensor.parallel.tensor = 2;
    expect_norms(tensor, "two tensor groups");
    job::Job pipeline = fsdp(2, 2);
    pipeline.parallel.pipeline = 2;
    pipeline.train.accumulation = 2;
    expect_norms(pipeline, "two stages");
}

TEST_F(GradientNorm, IsWhatClippingStartsFrom) {
    job::Job clipped = fsdp(2, 2);
    clipped.run.steps = 1;
    const std::vector<double> plain = recorded_norms(clipped);
    ASSERT_EQ(plain.size(), 1U);
    clipped.train.gradient_norm = false;
    clipped.train.clip_norm = plain[0] / 10;
    EXPECT_EQ(recorded_norms(clipped), plain);
    clipped.train.clip_norm = 0;
    EXPECT_TRUE(recorded_norms(clipped).empty());
}

TEST_F(GradientNorm, ChangesNoBitOfTheTraining) {
    job::Job job = fsdp(2, 2);
    const auto with = testing::run(job).losses;
    job.train.gradient_norm = false;
    EXPECT_EQ(testing::run(job).losses, with);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::executor
