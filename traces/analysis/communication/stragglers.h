// Which rank comes last to collectives, how often, and how long the others wait for it. Durations are
// compared, not clocks: all ranks of a collective end together, so that the one that is in it for the
// shortest time came last. Definition: docs/definitions.md, "Distributed". Times in nanoseconds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/analysis/base/result_table.h"
#include "traces/analysis/base/selection.h"
#include "traces/analysis/communication/flight.h"
#include "traces/schema/enums.h"

namespace shardscope::traces {

struct Trace;

// How one rank came to collectives.
struct Arrivals {
    int rank = 0;
    std::int64_t collectives = 0;  // in which at least two ranks' durations are known
    std::int64_t last = 0;         // in which it came last, and was the only one
    std::int64_t late_ns = 0;      // sum over all: how long after the first rank it came
    std::int64_t held_ns = 0;      // sum over those where it was last: how long after the last but one
    std::int64_t waited_ns = 0;    // sum over all: its own wait for the last
};

Fields<Arrivals> arrival_fields();

// Whether several ranks, the latest first, came equally late: none of them is a straggler (are_alike,
// steps.h).
bool equally_late(const std::vector<Arrivals>& ranks);

struct KindStragglers {
    Operation operation = Operation::other;
    std::int64_t collectives = 0;
    std::vector<Arrivals> ranks;  // latest first
};

struct StragglersReport {
    FlightReport flight;           // what a flight recorder's dumps say of ranks that stopped
    int trace_ranks = 0;           // in the trace; with one there is nothing to compare
    std::int64_t collectives = 0;  // compared
    std::int64_t unmatched = 0;    // parts without a counterpart on another rank, left out
    std::vector<Arrivals> ranks;   // by late_ns, the latest first: over all operations
    std::vector<KindStragglers> kinds;
};

// `selection` chooses the collectives by step and time; a rank selected there shows only its own row.
StragglersReport straggler_report(const Trace& trace, const Selection& selection = {});

}  // namespace shardscope::traces
