// What sharding costs, by FSDP unit: gathers, reductions, waits and what hid them. Definition:
// docs/definitions.md, "Units (FSDP)". Times in nanoseconds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/analysis/base/selection.h"
#include "traces/schema/enums.h"

namespace shardscope::traces {

struct Trace;

// Sums over collectives. A gather is an all-gather; a reduction a reduce-scatter, all-reduce or reduce.
struct UnitCosts {
    std::int64_t gathers = 0, gather_bytes = 0, gather_padding = 0;
    std::int64_t gather_ns = 0;          // device durations
    std::int64_t issue_to_ready_ns = 0;  // from the host's launch of a gather to its end on the device
    std::int64_t wait_ns = 0;            // the unit's compute was next on its stream, and the gather not done
    std::int64_t gather_exposed_ns = 0;  // outside the union of compute kernels
    std::int64_t reductions = 0, reduce_bytes = 0, reduce_padding = 0;
    std::int64_t reduce_ns = 0, reduce_exposed_ns = 0;
    std::int64_t limiter_ns = 0;  // the host was held before these gathers
    std::int64_t regathers = 0;   // gathers of the unit that was gathered, used and freed just before
    std::int64_t held_ns = 0;     // from the start of a gather to the end of the last compute that used it
    std::int64_t freed_ns =
        0;  // from that end to the unit's next gather in the step, counted with the latter

    std::int64_t exposed_ns() const { return gather_exposed_ns + reduce_exposed_ns; }
    void add(const UnitCosts& other);
};

struct UnitStep {
    std::int64_t number = 0;
    UnitCosts costs;
};

struct UnitPhase {
    std::string name;  // of the unit; "(no unit)" for collectives that belong to none
    Phase phase = Phase::none;
    UnitCosts sum;                // over the kept steps
    std::vector<UnitStep> steps;  // the kept steps in which there was anything
    std::string hidden_by;       // the unit whose compute overlapped most with these collectives; empty: none
    std::int64_t hidden_ns = 0;  // how much of them that unit overlapped
};

struct RankUnits {
    int rank = 0;
    std::int64_t steps = 0;         // kept and selected
    std::vector<UnitPhase> rows;    // by unit in the order of first use, then phase
    UnitCosts sum;                  // of all rows
    std::int64_t shard_bytes = -1;  // parameters that live on the rank; -1 not known
    std::int64_t peak_bytes = -1;   // allocated device memory; -1 not known
    std::int64_t busy_ns = 0;       // any device event, within the kept steps' windows
};

// The largest rank's value over the mean: 1 is even; 0 where it is not known.
struct Unevenness {
    double shard_bytes = 0, peak_bytes = 0, busy = 0;
};

struct UnitsReport {
    bool any_unit = false;  // false: nothing in the trace tells of FSDP units
    bool stepped = true;    // false: the trace names no steps, and a rank's one "step" is all of it
    std::vector<RankUnits> ranks;
    // The same rows summed over the ranks (`steps` stay empty; hidden_by: the unit that most ranks' time went
    // to), and how many steps of ranks they are sums of.
    std::vector<UnitPhase> all_ranks;
    std::int64_t rank_steps = 0;
    Unevenness uneven;
};

// Collectives of our traces carry their unit and phase; those of others belong to the unit of the range that
// launched them. Compute belongs to the unit of its launching range (unit_ranges.h).
//
// held: up to the last compute kernel that was launched before the unit's next gather, of whatever step; not
// what copies into that gather or into a reduction (unit_collectives.h).
//
// wait: the first compute kernel of the unit after a gather could run from r = the later of the end of
// earlier work on its stream and its launch (or, where a blocking call other than the limiter's held the
// launching thread when the gather ended, the start of that call); the wait is [r, end of the gather), never
// negative.
UnitsReport units_report(const Trace& trace, const Selection& selection = {});

}  // namespace shardscope::traces
