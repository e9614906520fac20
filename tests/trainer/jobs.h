// Small jobs, executed.
#pragma once

#include <memory>

#include "plan_jobs.h"
#include "trainer/data/source.h"
#include "trainer/executor/training_run.h"

namespace shardscope::trainer::testing {

inline RunResult run(const Job& job, RunOptions options = {}) {
    const Program program(job);
    const DataSource data = open_data(job);
    options.validation = data.validation.get();
    return run_training(program, *data.train, options);
}

}  // namespace shardscope::trainer::testing
