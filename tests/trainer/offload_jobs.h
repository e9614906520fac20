// Jobs with something on the host, and what each of them must keep to.
#pragma once

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "jobs.h"

namespace shardscope::trainer::testing {

inline constexpr job::Offload kOptimizer{true, false}, kActivations{false, true}, kBoth{true, true};

// Under a sanitizer, which takes ten times as long, both together in two layouts; the optimized build has
// all.
#ifdef SHARDSCOPE_SANITIZED
inline const std::vector<job::Offload> kOffloads = {kBoth};
inline const std::vector<job::FsdpLayout> kLayouts = {job::FsdpLayout::fsdp1, job::FsdpLayout::fsdp2};
inline constexpr bool kShort = true;
#else
inline const std::vector<job::Offload> kOffloads = {kOptimizer, kActivations, kBoth};
inline const std::vector<job::FsdpLayout> kLayouts = {job::FsdpLayout::fsdp1, job::FsdpLayout::fsdp2,
                                                      job::FsdpLayout::lean};
inline constexpr bool kShort = false;
#endif
inline constexpr std::uint64_t kDelays = kShort ? 1 : 3;

// Of 4 layers, whose samples are so many that what a layer saves is offloaded.
inline job::Job gpt(const SampleText& text, job::ParallelMode mode, int ranks) {
    job::Job job = with_wrap(gpt_job(text, 40, ranks), "module:Block");
    job.parallel.mode = mode;
    job.model.layers = 4;
    job.run.steps = 3;
    return job;
}

inline job::Job offloaded(job::Job job, const job::Offload& offload) {
    job.memory.offload = offload;
    return job;
}

// The peak of each space on each rank is what its role's account says.
inline std::vector<double> losses_as_predicted(const job::Job& job) {
    const executor::RunResult result = run(job);
    const sharding::Program program(job);
    for (int rank = 0; rank < job.run.ranks; ++rank) {
        const plan::MemoryPeak predicted = program.of(rank).predict().peak;
        const plan::MemoryPeak& real = result.peaks[static_cast<std::size_t>(rank)];
        EXPECT_EQ(real.bytes, predicted.bytes);
        EXPECT_EQ(real.spaces, predicted.spaces);
        EXPECT_EQ(real.where, predicted.where);
    }
    return result.losses;
}

inline std::int64_t bytes_of(const job::Job& job, plan::MemorySpace space) {
    return sharding::Program(job).predict().peak.spaces[static_cast<std::size_t>(space)];
}

}  // namespace shardscope::trainer::testing
