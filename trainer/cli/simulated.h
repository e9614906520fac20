// Runs a job on the simulated device: its time and memory on a cluster, printed as for a training run.
#pragma once

#include "trainer/cli/train.h"
#include "trainer/job/job.h"
#include "trainer/sim/cluster.h"

namespace shardscope::trainer::cli {

// Like train(). Throws JobError for a cost model that cannot be used or that the job does not fit.
int train_simulated(const job::Job& job, const TrainOptions& options);

// Throws JobError for a cost model that cannot be used. Its message begins with the file, or with the job's
// key that is wrong.
[[noreturn]] void refuse(const job::Job& job, const sim::ClusterError& error);

}  // namespace shardscope::trainer::cli
