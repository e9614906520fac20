// The communication hooks that a planner tries with DDP: where the wire is the limit, the job's own and one
// for each way of compression that costs little to try.
#pragma once

#include <string>
#include <vector>

#include "trainer/planner/row.h"
#include "trainer/planner/space.h"

namespace shardscope::trainer::planner {

// The wire is the limit where communication outside kernels takes more than this share of a step of DDP.
inline constexpr double kExposedShare = 0.1;

// What gives the job another hook; keys of its own hook that the other lacks get their defaults.
std::vector<job::Override> with_hook(const job::Job& job, const std::string& hook);
// What a job that leaves DDP changes: nothing if it has no hook.
std::vector<job::Override> without_hook(const job::Job& job);

// The job's own hook, and others if `plain`, the settings of a DDP job without one, waits for the wire. Those
// that the job cannot have are left out.
std::vector<std::string> hooks_for(const job::Job& job, const std::vector<job::Override>& plain,
                                   const JobMaker& make_job, const ClusterMaker& cluster_of);

}  // namespace shardscope::trainer::planner
