// The state of every FSDP unit's parameters on every rank over time: as shards, being gathered, whole, in
// use, freed, or their gradient being reduced. Times in nanoseconds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/base/intervals.h"
#include "traces/store/columns/index.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

// The state of one unit on a rank, as its device sees it:
//   sharded    the rank has only its shard
//   gathering  an all-gather of the unit runs, from its start on this rank (includes waiting for others)
//   full       the whole parameters are present and nothing computes with them
//   computing  compute kernels of the unit run: from the first to the last of a sequence with pauses of
//              at most kComputePause and no kernels of other units in between
//   freed      the whole parameters are gone, and the unit's whole gradient waits for its reduction
//   reducing   a reduce-scatter, all-reduce or reduce of the unit runs
// If several apply at the same time, the first of gathering, reducing, computing, full counts.
enum class ShardState : std::uint8_t { sharded, gathering, full, computing, freed, reducing };
inline constexpr int kShardStates = 6;
inline constexpr std::array<std::string_view, kShardStates> kShardStateNames = {
    "sharded", "gathering", "full", "computing", "freed", "reducing"};
inline std::string_view name(ShardState state) {
    return kShardStateNames[static_cast<std::size_t>(state)];
}

inline constexpr std::int64_t kComputePause = 30000;

struct ShardChange {
    std::int64_t time = 0;  // the state lasts from here to the next change
    ShardState state = ShardState::sharded;
    bool whole = false;       // the memory of the whole parameters is in use: from the gather to the release
    std::int32_t event = -1;  // DeviceEvents row of the gather or reduction of the state; -1 none
    bool operator==(const ShardChange&) const = default;
};

struct UnitHistory {  // one unit on one rank
    // Sorted by time; neighbours differ. Before the first change the state is `at_first`.
    std::vector<ShardChange> changes;
    ShardChange at_first;
    // When the host program held the memory of the whole parameters, from its allocation to its free, in host
    // order, which runs ahead of the device. Empty if not recorded.
    IntervalSet allocated;

    // The state at `time`; `at_first` before the first change. O(log n).
    const ShardChange& at(std::int64_t time) const;
    // When that state begins and ends: the last change at or before `time` and the first one after it, or the
    // limits of the integer type if there is none.
    Interval span(std::int64_t time) const;
};

struct ShardStates {
    std::vector<std::string> units;   // as in UnitRanges: in the order of UnitRows if the trace has them
    std::vector<std::int64_t> bytes;  // of the whole unit, from the run's record or its gathers; -1 unknown
    std::size_t ranks = 0;            // of the trace
    std::vector<UnitHistory> histories;  // by rank index, then unit
    bool allocations = false;            // the trace contains the host's allocations of whole parameters

    const UnitHistory& of(store::RankIndex rank, store::UnitIndex unit) const {
        return histories[rank.at() * units.size() + unit.at()];
    }
    bool any_collective = false;  // false: units are known, but none is ever gathered or reduced
};

// Taken from the trace: gathers and reductions with their units (Collectives::unit, else the unit of the
// range that launched them), compute kernels by the unit of the launching range (unit_ranges.h; without
// kernels that work for a collective, such as copies in "FSDP::all_gather_copy_in"), allocations and frees of
// unsharded_parameters. Inferred: the whole parameters live from the start of a gather to the end of the
// unit's last compute kernel that was launched after it and before the unit's next gather or, if recorded and
// later, to the free of the allocation that the gather was launched into. If that extends beyond the start of
// the next gather there are two copies for a while, and the state is that of the later one. A unit that is
// reduced and never gathered is always whole (NO_SHARD). A gather that no compute uses and no allocation
// covers counts as freed at its end, unless the unit's next gather was launched before that end (a unit made
// of several collectives).
ShardStates shard_states(const store::Trace& trace);

}  // namespace shardscope::traces::analysis
