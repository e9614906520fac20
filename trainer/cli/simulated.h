// Runs a job on the simulated device: its time and memory on a cluster, printed as for a training run.
#pragma once

#include "trainer/cli/train.h"
#include "trainer/job/job.h"

namespace shardscope::trainer::cli {

// Like train(). Throws JobError for a cost model that cannot be used or that the job does not fit.
int train_simulated(const job::Job& job, const TrainOptions& options);

}  // namespace shardscope::trainer::cli
