// Which rank arrives last at collectives, how often, and how long the others wait for it. Durations are
// compared, not clocks: all ranks of a collective end together, so the one with the shortest duration arrived
// last. Definition: docs/definitions.md, "Distributed". Times in nanoseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/analysis/base/result_table.h"
#include "traces/analysis/base/selection.h"
#include "traces/analysis/base/warm_up.h"
#include "traces/analysis/communication/flight.h"
#include "traces/schema/enums.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

// How late one rank arrived at collectives.
struct Arrivals {
    int rank = 0;
    std::int64_t collectives = 0;  // those with at least two known durations
    std::int64_t last = 0;         // how often it alone arrived last
    std::int64_t late_ns = 0;      // sum over all: its delay after the first rank
    std::int64_t held_ns = 0;      // sum over those where it was last: its delay after the last but one
    std::int64_t waited_ns = 0;    // sum over all: its own wait for the last rank
};

Fields<Arrivals> arrival_fields();

// Whether several ranks, the latest first, arrived equally late, so that none is a straggler (are_alike,
// steps.h).
bool equally_late(const std::vector<Arrivals>& ranks);

struct KindStragglers {
    schema::Operation operation = schema::Operation::other;
    std::int64_t collectives = 0;
    std::vector<Arrivals> ranks;  // latest first
};

struct StragglersReport {
    std::optional<WarmUp> warm_up;  // the step whose collectives are excluded
    FlightReport flight;            // what the flight recorder's dumps contain about ranks that stopped
    int trace_ranks = 0;            // with one rank there is nothing to compare
    std::int64_t collectives = 0;   // compared
    std::int64_t unmatched = 0;     // parts without a counterpart on another rank, omitted
    std::vector<Arrivals> ranks;    // over all operations; latest first, by late_ns
    std::vector<KindStragglers> kinds;
};

// `selection` selects collectives by step and time; a selected rank only limits the rows shown.
StragglersReport straggler_report(const store::Trace& trace, const Selection& selection = {});

// The number of the rank that arrives last; none if fewer than two are compared, or all are equally late.
std::optional<int> latest_rank(const StragglersReport& report);

}  // namespace shardscope::traces::analysis
