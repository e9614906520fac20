// Small jobs for the trainer's tests.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <unistd.h>

#include "trainer/data/synthetic.h"
#include "trainer/data/text.h"
#include "trainer/executor/cpu_executor.h"
#include "trainer/job/job.h"

namespace shardscope::trainer::testing {

inline Job mlp_job(int layers, int width, int batch, int ranks) {
    Job job;
    job.run.steps = 5;
    job.run.ranks = ranks;
    job.run.workers = 2;
    job.model.layers = layers;
    job.model.width = width;
    job.data.batch = batch;
    return job;
}

// A text to learn, in a file that goes with the object.
class SampleText {
  public:
    SampleText()
        : path_(std::filesystem::temp_directory_path() / ("shardscope-text-" + std::to_string(getpid()))) {
        std::ofstream out(path_);
        for (int i = 0; i < 200; ++i)
            out << "line " << i << " of a text in which each line resembles the last\n";
    }
    ~SampleText() { std::filesystem::remove(path_); }
    SampleText(const SampleText&) = delete;
    SampleText& operator=(const SampleText&) = delete;
    std::string path() const { return path_.string(); }

  private:
    std::filesystem::path path_;
};

inline Job gpt_job(const SampleText& text, int batch, int ranks) {
    Job job = mlp_job(2, 32, batch, ranks);
    job.model.type = ModelType::gpt;
    job.model.heads = 2;
    job.model.context = 16;
    job.data.type = DataType::text;
    job.data.path = text.path();
    job.optimizer.type = OptimizerType::adamw;
    return job;
}

inline std::unique_ptr<Dataset> dataset_of(const Job& job) {
    if (job.data.type == DataType::text) {
        return std::make_unique<TextDataset>(job.data.path, job.run.seed, job.model.context);
    }
    return std::make_unique<SyntheticDataset>(job.run.seed, job.model.width);
}

inline RunResult run(const Job& job) {
    const Program program(job);
    return run_on_cpu(program, *dataset_of(job), nullptr, nullptr);
}

inline Job with_wrap(Job job, const std::string& wrap) {
    job.parallel.mode = ParallelMode::fsdp;
    job.fsdp.wrap = parse_wrap(wrap);
    return job;
}

inline Job with_mode(Job job, ParallelMode mode) {
    job.parallel.mode = mode;
    return job;
}

}  // namespace shardscope::trainer::testing
