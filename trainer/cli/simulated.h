// Runs a job on the simulated device: what it would take on a cluster, printed as for a training run.
#pragma once

#include "trainer/cli/train.h"
#include "trainer/job/job.h"

namespace shardscope::trainer {

// As train(). Throws JobError for a cost model that cannot be used or that the job does not fit.
int train_simulated(const Job& job, const TrainOptions& options);

}  // namespace shardscope::trainer
