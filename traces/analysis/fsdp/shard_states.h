// Where the parameters of every FSDP unit are at every moment, on every rank: as shards, being gathered,
// whole, in use, freed, or their gradient being reduced. Times in nanoseconds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/base/intervals.h"

namespace shardscope::traces {

struct Trace;

// What a rank does with one unit, as its device sees it:
//   sharded    the rank has only its shard
//   gathering  an all-gather of the unit runs, from its start on this rank (waiting for others included)
//   full       the whole parameters are there and nothing computes with them
//   computing  compute kernels of the unit run: from the first to the last of those that follow one another
//              with pauses of at most kComputePause and no kernel of another unit between
//   freed      the whole parameters are gone, and the unit's whole gradient waits for its reduction
//   reducing   a reduce-scatter, all-reduce or reduce of the unit runs
// Where two hold at once the first of gathering, reducing, computing, full counts.
enum class ShardState : std::uint8_t { sharded, gathering, full, computing, freed, reducing };
inline constexpr int kShardStates = 6;
inline constexpr std::array<std::string_view, kShardStates> kShardStateNames = {
    "sharded", "gathering", "full", "computing", "freed", "reducing"};
inline std::string_view name(ShardState state) {
    return kShardStateNames[static_cast<std::size_t>(state)];
}

inline constexpr std::int64_t kComputePause = 30000;

struct ShardChange {
    std::int64_t time = 0;  // the state holds from here to the next change
    ShardState state = ShardState::sharded;
    bool whole = false;       // the memory of the whole parameters is in use: from gathering to the release
    std::int32_t event = -1;  // DeviceEvents row of the gather or reduction behind the state; -1 none
    bool operator==(const ShardChange&) const = default;
};

struct UnitHistory {  // of one unit on one rank
    // Sorted by time; neighbours differ. Before the first the unit is `at_first`.
    std::vector<ShardChange> changes;
    ShardChange at_first;
    // When the host program held the memory of the whole parameters: from its allocation to its free, in the
    // order of the host, which runs ahead of the device. Empty where the trace does not tell.
    IntervalSet allocated;

    // The state at `time`; `at_first` before the first change. O(log n).
    const ShardChange& at(std::int64_t time) const;
    // When it began, and when it ends: the nearest change at or before `time`, and the first one after it;
    // the numbers' limits where there is none.
    Interval span(std::int64_t time) const;
};

struct ShardStates {
    std::vector<std::string> units;      // as in UnitRanges: where the trace has UnitRows, in their order
    std::vector<std::int64_t> bytes;     // of the whole unit: as the run says or its gathers tell; -1 unknown
    std::size_t ranks = 0;               // of the trace
    std::vector<UnitHistory> histories;  // by rank index, then unit
    bool allocations = false;            // the trace tells of the host's allocations of whole parameters

    const UnitHistory& of(std::size_t rank_index, std::size_t unit) const {
        return histories[rank_index * units.size() + unit];
    }
    bool any_collective = false;  // false: units are known, but none is ever gathered or reduced
};

// Taken from the trace: gathers and reductions with their units (Collectives::unit, else the unit of the
// range that launched them), compute kernels by the unit of the launching range (unit_ranges.h; not what
// works for a collective: copies in "FSDP::all_gather_copy_in" and its kin), allocations and frees of
// unsharded_parameters. Inferred: the whole parameters live from the start of a gather to the later of the
// end of the last compute kernel of the unit that was launched after it and before the unit's next gather
// and, where the trace tells, the free of the allocation that the gather was launched into; where that
// reaches beyond the start of the next gather there are two copies for a while, and the state is of the later
// one. A unit that is reduced and never gathered is whole all the time (NO_SHARD). A gather that nothing
// computes with and no allocation covers is taken for freed at its end, unless the next gather of the unit
// was launched before that end (a unit made of several collectives).
ShardStates shard_states(const Trace& trace);

// The most sets that hold one instant.
int most_at_once(std::span<const IntervalSet> sets);

}  // namespace shardscope::traces
