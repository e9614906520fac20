// What shardscope-train does with a checked job: print its Plan, or train and report.
#pragma once

#include "trainer/cli/join.h"
#include "trainer/executor/devices.h"
#include "trainer/executor/run.h"
#include "trainer/job/job.h"

namespace shardscope::trainer {

// A run that could not go on; its message has been printed.
class FailureReported : public RunError {
  public:
    using RunError::RunError;
};

struct TrainOptions {
    bool json = false;
    bool dry_run = false;
    Joined* joined = nullptr;  // the job's processes, one rank each; null: this is the only one
    MakeDevice make_device;    // for tests; empty: the device that the job names
};

// Returns the exit status: 0; 1 where the trace or a checkpoint could not be written to its end; 128 + n
// where signal n stopped the run before its last step. Throws JobError, DataError, CheckpointError,
// traces::StoreError (before the first step) and kernels::BlasError, and FailureReported for a run that could
// not go on: its trace is complete. Where ranks are processes, only rank 0's prints anything but its own
// failure.
int train(const Job& job, const TrainOptions& options);

}  // namespace shardscope::trainer
