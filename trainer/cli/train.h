// What shardscope-train does with a checked job: print its Plan, or train and report.
#pragma once

#include "trainer/job/job.h"

namespace shardscope::trainer {

struct TrainOptions {
    bool json = false;
    bool dry_run = false;
};

// Returns the exit status: 0, or 1 where the trace could not be written to its end. Throws JobError,
// DataError, traces::StoreError (before the first step) and kernels::BlasError.
int train(const Job& job, const TrainOptions& options);

}  // namespace shardscope::trainer
