// Carries out a checked job: prints its Plan, or trains and reports.
#pragma once

#include <optional>
#include <string>

#include "trainer/cli/join.h"
#include "trainer/executor/devices.h"
#include "trainer/executor/run.h"
#include "trainer/job/job.h"

namespace shardscope::trainer::cli {

// A run could not continue; its message has been printed.
class FailureReported : public executor::RunError {
  public:
    using executor::RunError::RunError;
};

struct StatusRequest {
    std::string address;  // empty: a socket beside the trace or, without one, called like the job file
    std::string job_file;
};

struct TrainOptions {
    bool json = false;
    bool dry_run = false;
    Joined* joined = nullptr;          // the job's processes, one rank each; null: this is the only process
    executor::MakeDevice make_device;  // for tests; empty: the device that the job names
    std::optional<StatusRequest> status;  // none: nobody can watch the run
};

// Returns the exit status: 0; 1 if the trace or a checkpoint could not be written completely; 128 + n if
// signal n stopped the run before its last step. Throws JobError, DataError, CheckpointError,
// traces::store::StoreError (before the first step) and kernels::BlasError, and FailureReported for a run
// that could not continue (its trace is readable). If ranks are processes, those of other ranks than 0 print
// nothing but their own failure.
int train(const job::Job& job, const TrainOptions& options);

}  // namespace shardscope::trainer::cli
