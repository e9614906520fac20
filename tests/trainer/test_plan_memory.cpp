// The memory account compared with closed forms of FSDP1's allocated peak.
//
// W: bytes of a Linear of width d, (d*d + d)*4. A: bytes of an activation, b*d*4. U units of one Linear each,
// Psi = U*W, N ranks, k copies per parameter that are always allocated (1 SGD, 2 momentum, 3 Adam), p = 4
// tensors that a step's variables hold: input, target, output, and the storage of the loss.
#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "plan_jobs.h"
#include "trainer/sharding/program.h"

namespace shardscope::trainer::sharding {
namespace TEST_FILE {

constexpr std::int64_t kP = 4;

struct Shape {
    int layers, width, batch, ranks;
    std::int64_t w() const { return (std::int64_t{width} * width + width) * 4; }
    std::int64_t a() const { return std::int64_t{batch} * width * 4; }
    std::int64_t psi() const { return layers * w(); }
    job::Job job() const { return testing::mlp_job(layers, width, batch, ranks); }
};

std::int64_t peak(const job::Job& job) {
    const plan::MemoryPeak result = Program(job).predict().peak;
    EXPECT_EQ(std::accumulate(result.at_peak.begin(), result.at_peak.end(), std::int64_t{0}), result.bytes);
    return result.bytes;
}

// If an activation is smaller than a weight, the peak is at the concatenation of a unit's gradients. For unit
// i, where i = U is the first in the backward, these are allocated: shards, gradients' shards of the later
// units, its flat parameter and the prefetched one, its gradients twice, and the activations of i-1 layers.
std::int64_t per_linear(const Shape& s, std::int64_t k, bool prefetch) {
    std::int64_t largest = 0;
    for (std::int64_t i = 1; i <= s.layers; ++i) {
        const std::int64_t earlier = i > 1 ? 1 : 0;
        largest = std::max(largest, k * s.psi() / s.ranks + (s.layers - i) * s.w() / s.ranks +
                                        (1 + (prefetch ? earlier : 0)) * s.w() + 2 * s.w() +
                                        (kP + (i - 1) + earlier) * s.a());
    }
    return largest;
}

TEST(MemoryAccount, RootWrapHoldsThreeModels) {
    for (const Shape s : {Shape{8, 64, 4, 4}, Shape{8, 64, 32, 8}, Shape{3, 32, 8, 2}}) {
        EXPECT_EQ(peak(testing::with_wrap(s.job(), "root")), s.psi() / s.ranks + 3 * s.psi() + kP * s.a());
    }
}

TEST(MemoryAccount, PerLinearWrapHoldsFourUnits) {
    for (const Shape s : {Shape{8, 64, 1, 4}, Shape{8, 64, 32, 8}, Shape{4, 32, 16, 2}}) {
        job::Job job = testing::with_wrap(s.job(), "module:Linear");
        EXPECT_EQ(peak(job), per_linear(s, 1, true));
        job.fsdp.backward_prefetch = job::BackwardPrefetch::none;
        EXPECT_EQ(peak(job), per_linear(s, 1, false));
        job.fsdp.backward_prefetch = job::BackwardPrefetch::post;
        EXPECT_EQ(peak(job), per_linear(s, 1, false)) << "the next unit is gathered after this one is freed";
        job.fsdp.backward_prefetch = job::BackwardPrefetch::pre;
        job.fsdp.limit_all_gathers = false;
        EXPECT_EQ(peak(job), per_linear(s, 1, true)) << "the limiter changes time, not allocated memory";
    }
}

TEST(MemoryAccount, OptimizerStateCountsFromTheSecondStep) {
    const Shape s{8, 64, 4, 4};
    job::Job job = testing::with_wrap(s.job(), "module:Linear");
    job.optimizer.momentum = 0.9;
    EXPECT_EQ(peak(job), per_linear(s, 2, true));
    job.optimizer = {};
    job.optimizer.type = job::OptimizerType::adamw;
    EXPECT_EQ(peak(job), per_linear(s, 3, true));
}

// Parameters, gradients and buckets are whole; the backward's peak is at its end, where x, target, output,
// the loss's storage, the first ReLU's result and its gradient are allocated, or at its start with all
// activations.
TEST(MemoryAccount, DdpHoldsParametersGradientsAndBuckets) {
    const Shape s{4, 64, 2, 2};
    const plan::MemoryPeak result =
        Program(testing::with_mode(s.job(), job::ParallelMode::ddp)).predict().peak;
    const auto at = [&](plan::MemoryCategory c) { return result.at_peak[static_cast<std::size_t>(c)]; };
    EXPECT_EQ(at(plan::MemoryCategory::parameters), s.psi());
    EXPECT_EQ(at(plan::MemoryCategory::gradients), s.psi());
    EXPECT_EQ(at(plan::MemoryCategory::communication), s.psi());
    EXPECT_EQ(at(plan::MemoryCategory::unsharded_parameters), 0);
}

TEST(MemoryAccount, AStepLeaksNothing) {
    const testing::SampleText text;
    for (const job::Job& job : {testing::with_wrap(testing::mlp_job(4, 24, 3, 4), "module:Linear"),
                                testing::with_mode(testing::mlp_job(4, 24, 3, 2), job::ParallelMode::ddp),
                                testing::with_wrap(testing::gpt_job(text, 2, 2), "root")}) {
        const Program program(job);
        plan::MemoryAccount account;
        account.walk(program.setup());
        for (std::size_t i = 0; i <= program.warm_up_steps(); ++i) account.walk(program.step(i));
        const std::int64_t live = account.counter().live_bytes();
        for (int i = 0; i < 3; ++i) account.walk(program.step(program.warm_up_steps()));
        EXPECT_EQ(account.counter().live_bytes(), live);
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::sharding
