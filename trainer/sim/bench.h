// A benchmark of collectives (executor/collective_bench.h) as a cost model predicts it.
#pragma once

#include "trainer/executor/collective_bench.h"
#include "trainer/sim/simulator.h"

namespace shardscope::trainer::sim {

// Simulates the benchmark's Plans of collectives. A message takes what the model gives it, without the host.
// Of the result, figures on the wire and of copies are 0. Throws ClusterError, OutOfMemory.
executor::CollectiveBench simulate_bench(const sharding::Program& program, const Cluster& cluster,
                                         const executor::CollectiveBenchOptions& options);

}  // namespace shardscope::trainer::sim
