// What the replay of a job whose ranks compute on processors costs beside its model: hooks, waiting for other
// ranks, transfers that take the cores from operators, and the ranks that share a machine.
#pragma once

#include "trainer/lift/lift.h"

namespace shardscope::trainer::lift {

// The cluster on which a job is replayed; of other traces `cluster` as it is.
sim::Cluster cluster_for(const Lifted& lifted, sim::Cluster cluster, const job::Job& job);

// `costs`, and what else the replay's host does. `program`: the job's with `costs`.
LiftedCosts host_costs(const Lifted& lifted, LiftedCosts costs, const sharding::Program& program);

// The seconds per step for which cores carry out transfers beside operators (DDP's reductions but the last of
// the backward, without their latency, in which nothing runs).
double host_overlap_seconds(const Lifted& lifted, const sharding::Program& program);

}  // namespace shardscope::trainer::lift
