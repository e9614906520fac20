// The cost of sharding by FSDP unit: gathers, reductions, waits and what hid them. Definition:
// docs/definitions.md, "Units (FSDP)". Times in nanoseconds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/analysis/base/result_table.h"
#include "traces/analysis/base/selection.h"
#include "traces/schema/enums.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

// Sums over collectives. A gather is an all-gather; a reduction a reduce-scatter, all-reduce or reduce.
struct UnitCosts {
    std::int64_t gathers = 0, gather_bytes = 0, gather_padding = 0;
    std::int64_t gather_ns = 0;          // device durations
    std::int64_t issue_to_ready_ns = 0;  // from the host's launch of a gather to its end on the device
    std::int64_t wait_ns = 0;  // the unit's compute was next on its stream, but the gather had not finished
    std::int64_t gather_exposed_ns = 0;  // outside the union of compute kernels
    std::int64_t reductions = 0, reduce_bytes = 0, reduce_padding = 0;
    std::int64_t reduce_ns = 0, reduce_exposed_ns = 0;
    std::int64_t limiter_ns = 0;  // the limiter blocked the host before these gathers
    std::int64_t regathers = 0;   // gathers of a unit that was gathered, used and freed immediately before
    std::int64_t held_ns = 0;     // from the start of a gather to the end of the last compute that used it
    std::int64_t freed_ns = 0;  // from that end to the unit's next gather in the step; belongs to that gather

    std::int64_t exposed_ns() const { return gather_exposed_ns + reduce_exposed_ns; }
    void add(const UnitCosts& other);
};

struct UnitStep {
    std::int64_t number = 0;
    UnitCosts costs;
};

struct UnitPhase {
    std::string name;  // of the unit; "(no unit)" for collectives without one
    schema::Phase phase = schema::Phase::none;
    UnitCosts sum;                // over the kept steps
    std::vector<UnitStep> steps;  // the kept steps with any event
    std::string hidden_by;        // the unit whose compute overlapped these collectives most; empty: none
    std::int64_t hidden_ns = 0;   // how long that unit overlapped them
};

struct RankUnits {
    int rank = 0;
    std::int64_t steps = 0;         // kept and selected
    std::vector<UnitPhase> rows;    // by unit in the order of first use, then phase
    UnitCosts sum;                  // of all rows
    std::int64_t shard_bytes = -1;  // parameters that live on the rank; -1 unknown
    std::int64_t peak_bytes = -1;   // allocated device memory; -1 unknown
    std::int64_t busy_ns = 0;       // time of any device event within the kept steps' windows
};

// The largest rank's value over the mean: 1 is even; 0 is unknown.
struct Unevenness {
    double shard_bytes = 0, peak_bytes = 0, busy = 0;
};

struct UnitsReport {
    bool any_unit = false;  // false: the trace contains no FSDP units
    bool stepped = true;    // false: the trace has no steps, and all of it is one "step"
    std::vector<RankUnits> ranks;
    // The same rows summed over the ranks (`steps` stay empty; hidden_by: the unit with the most time over
    // the ranks), and the sum of the ranks' numbers of steps.
    std::vector<UnitPhase> all_ranks;
    std::int64_t rank_steps = 0;
    Unevenness uneven;
};

// A row of a report with the number of steps in its sums.
struct UnitMeans {
    const UnitPhase& row;
    std::int64_t steps = 0;

    // The time of regathers, mean per step, estimated as their share of the gathers.
    double regather_us() const;
};
// Sums over the kept steps under the plain names ("gather_us"), means per step as "gather_per_step_us".
Fields<UnitMeans> unit_fields();
Fields<UnitMeans> unit_sum_fields();   // only the sums
Fields<UnitMeans> unit_mean_fields();  // only the means
Fields<RankUnits> unit_rank_fields();
std::vector<UnitMeans> unit_means(const std::vector<UnitPhase>& rows, std::int64_t steps);

// Collectives of our own traces carry their unit and phase; others belong to the unit of the range that
// launched them. Compute belongs to the unit of its launching range (unit_ranges.h).
//
// held: ends with the last compute kernel that was launched before the unit's next gather, in whatever step,
// excluding copies into that gather or into a reduction (unit_collectives.h).
//
// wait: the first compute kernel of the unit after a gather could have run from r on, the later of its launch
// and the end of earlier work on its stream (or, if a blocking call other than the limiter's held the
// launching thread when the gather ended, the start of that call). The wait is [r, end of the gather), never
// negative.
UnitsReport units_report(const store::Trace& trace, const Selection& selection = {});

}  // namespace shardscope::traces::analysis
