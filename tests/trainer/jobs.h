// Small jobs, executed.
#pragma once

#include <memory>

#include "plan_jobs.h"
#include "trainer/data/source.h"
#include "trainer/executor/training_run.h"

namespace shardscope::trainer::testing {

inline executor::RunResult run(const job::Job& job, executor::RunOptions options = {}) {
    const sharding::Program program(job);
    const data::DataSource data = data::open_data(job);
    options.validation = data.validation.get();
    options.test_data = data.test.get();
    return run_training(program, *data.train, options);
}

}  // namespace shardscope::trainer::testing
