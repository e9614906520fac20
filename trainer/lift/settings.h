// Under which settings a trace was recorded: as it says itself, else as its collectives tell.
#pragma once

#include <string>
#include <vector>

#include "trainer/job/job.h"
#include "trainer/lift/lifted.h"

namespace shardscope::traces {
struct Trace;
}

namespace shardscope::trainer::lift {

// Whether the trainer wrote it, so that its settings and the purpose of each buffer are known.
bool is_ours(const traces::Trace& trace);

// Whether fully_shard was what sharded: its ranges are named FSDP::.
bool is_fully_shard(const traces::Trace& trace);

// Ranks among which a unit is sharded: the smallest group that gathers; 1 where nothing is gathered.
int shard_ranks_of(const traces::Trace& trace);

struct Settings {
    std::vector<Override> keys;
    std::vector<std::string> notes;  // what was concluded
};

// What the lifted step says beside the trace.
struct StepFacts {
    int micro_batches = 1;
    bool one_unit = false;  // the root is the only one
};
Settings settings_of(const traces::Trace& trace, int rank_index, const StepFacts& step);

// A policy that makes the recorded units, "" where none does.
std::string wrap_of(const LiftedStep& step);

// Ranks of the run: as it says, or the largest group.
int ranks_of(const traces::Trace& trace);

}  // namespace shardscope::trainer::lift
