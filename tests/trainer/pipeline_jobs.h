// Jobs with a pipeline, and the runs that their tests compare.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "mesh_testing.h"
#include "trainer/job/job.h"
#include "trainer/sharding/program.h"

namespace shardscope::trainer::testing {

enum class Kind : std::uint8_t { mlp, gpt, llama, bert };
inline constexpr std::array kKinds = {Kind::mlp, Kind::gpt, Kind::llama, Kind::bert};

// A step of four micro-batches through a model of eight layers.
inline job::Job pipeline_job(Kind kind, const SampleText& text) {
    job::Job job = kind == Kind::mlp ? mlp_job(8, 16, 2, 1) : gpt_job(text, 2, 1);
    job.parallel.mode = job::ParallelMode::none;
    job.train.accumulation = 4;
    job.train.accumulation_sync = false;
    job.optimizer.type = job::OptimizerType::sgd;
    job.optimizer.lr = 0.5;
    if (kind == Kind::mlp) return job;
    job.model.layers = 8;
    job.model.dropout = 0.1;
    if (kind == Kind::llama) job.model.type = job::ModelType::llama;
    if (kind == Kind::bert) job.model.type = job::ModelType::bert;
    return job;
}

struct Pipe {
    int places = 2;
    const char* schedule = "1f1b";
    int stages = 1;
};

inline job::Job piped(job::Job job, const Pipe& pipe) {
    job.parallel.pipeline = pipe.places;
    job.parallel.schedule = pipe.schedule;
    job.parallel.virtual_stages = pipe.stages;
    job.run.ranks *= pipe.places;
    return job;
}

inline std::string mesh_of(const job::Job& job) {
    return fmt::format("model {}, {} places, {}, {} stages each, {} ranks, mode {}, tensor {}",
                       static_cast<int>(job.model.type), job.parallel.pipeline, job.parallel.schedule,
                       job.parallel.virtual_stages, job.run.ranks, static_cast<int>(job.parallel.mode),
                       job.parallel.tensor);
}

// Runs it, and checks that every rank's memory is what its role's account says.
inline std::vector<double> losses_of(const job::Job& job) {
    const executor::RunResult result = testing::run(job);
    const sharding::Program program(job);
    for (int rank = 0; rank < job.run.ranks; ++rank) {
        EXPECT_EQ(result.peaks[static_cast<std::size_t>(rank)].bytes, program.of(rank).predict().peak.bytes)
            << mesh_of(job) << ", rank " << rank;
    }
    return result.losses;
}

inline constexpr std::array kPipes = {
    Pipe{2, "1f1b"},    Pipe{4, "1f1b"},           Pipe{2, "gpipe"},
    Pipe{4, "gpipe"},   Pipe{2, "interleaved", 2}, Pipe{4, "interleaved", 2},
    Pipe{2, "zb_h1"},   Pipe{4, "zb_h1"},          Pipe{2, "interleaved_zb", 2},
    Pipe{2, "zb_v", 2}, Pipe{4, "zb_v", 2},        Pipe{2, "dualpipe_v", 2}};

inline std::string refusal(const job::Job& job) {
    try {
        const sharding::Program program(job);
    } catch (const job::JobError& error) {
        return error.what();
    }
    return "";
}

}  // namespace shardscope::trainer::testing
