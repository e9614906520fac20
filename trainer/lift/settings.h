// The settings under which a trace was recorded: as stated in it, else inferred from its collectives.
#pragma once

#include <string>
#include <vector>

#include "traces/store/columns/index.h"
#include "trainer/job/job.h"
#include "trainer/lift/lifted.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::trainer::lift {

// Whether our trainer wrote the trace, so that its settings and the category of each buffer are known.
bool is_ours(const traces::store::Trace& trace);

// Whether fully_shard did the sharding: its ranges are named FSDP::.
bool is_fully_shard(const traces::store::Trace& trace);

// Ranks among which a unit is sharded: the smallest group that gathers or scatters; 1 if none does.
int shard_ranks_of(const traces::store::Trace& trace);

struct Settings {
    std::vector<job::Override> keys;
    std::vector<std::string> notes;  // what was inferred
};

// Facts that only the lifted step shows.
struct StepFacts {
    int micro_batches = 1;
    bool one_unit = false;  // the root is the only unit
};
Settings settings_of(const traces::store::Trace& trace, traces::store::RankIndex rank, const StepFacts& step);

// Samples per rank and micro-batch, of a trace of ours; 0: not stated.
std::int64_t recorded_batch(const traces::store::Trace& trace);

// Whether gradients are reduced with more bytes per element than units are gathered with.
bool reduces_wider(const traces::store::Trace& trace);

// The wrap policy that reproduces the recorded units; "" if there is none.
std::string wrap_of(const LiftedStep& step);

// The run's number of ranks: the stated one, else the largest group or rank number.
int ranks_of(const traces::store::Trace& trace);

}  // namespace shardscope::trainer::lift
