// What the processes of a run know of their own ranks, brought to that of rank 0.
#pragma once

#include "trainer/executor/run.h"
#include "trainer/world/world.h"

namespace shardscope::trainer {

// Collective among the world's processes, of one rank each: on rank 0 `result` then holds the peaks of all,
// by rank.
void bring_together(World& world, RunResult& result);

}  // namespace shardscope::trainer
