// Trains this process's ranks of a job on the device that the job asks for.
#pragma once

#include "trainer/executor/run.h"
#include "trainer/sharding/program.h"

namespace shardscope::trainer::executor {

// Trains from options.first_step to run.steps. Throws what a rank threw first: RunError (a loss that is not
// finite, no memory), DataError; then the recorder holds all that was recorded, with the reason as a
// diagnostic, and can be finished as after a good run. DeviceError: the device cannot be used.
RunResult run_training(const sharding::Program& program, const data::Dataset& dataset,
                       const RunOptions& options = {});

}  // namespace shardscope::trainer::executor
