// Gathers the memory peaks of a run's processes in the process of rank 0.
#pragma once

#include "trainer/executor/run.h"
#include "trainer/world/world.h"

namespace shardscope::trainer::executor {

// Collective among the world's processes, which have one rank each: afterwards `result` on rank 0 holds the
// peaks of all, by rank.
void bring_together(world::World& world, RunResult& result);

}  // namespace shardscope::trainer::executor
