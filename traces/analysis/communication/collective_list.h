// Every collective of the trace: when it ran, how long its transfer took, which rank was last, how much of it
// compute hid. Definitions: docs/definitions.md, "Distributed". Times in nanoseconds.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/analysis/base/selection.h"
#include "traces/schema/enums.h"

namespace shardscope::traces {

struct Trace;

// One collective of all its ranks; each send or receive is a collective of its own.
struct CollectiveTimes {
    Operation operation = Operation::other;
    Phase phase = Phase::none;
    std::int32_t unit = -1;   // index into Trace::units, -1 none
    std::int64_t group = -1;  // -1 unknown, as below
    std::int64_t sequence = -1, bytes = -1;
    int group_size = 0;            // 0 unknown
    int ranks = 0;                 // number of ranks with a device event for it
    std::int32_t event = -1;       // DeviceEvents row of the rank that spent the longest time in it
    std::int64_t start_ns = 0;     // start of that row
    std::int64_t transfer_ns = 0;  // the shortest duration
    std::int64_t longest_ns = 0;
    std::int64_t waiting_ns = 0;     // sum over ranks of duration - transfer
    std::int64_t exposed_ns = 0;     // sum over ranks of the time outside compute kernels
    std::int64_t overlapped_ns = 0;  // sum over ranks of the rest
    int last_rank = -1;  // number of the rank with the shortest duration of several; -1 for one rank
    double algbw_gbps = 0, busbw_gbps = 0;  // 0 without bytes or time
};

// In order of start: every collective with at least one selected event (by step and time), with all its
// parts. With a rank selected, only the collectives that it takes part in. Collectives without a device event
// are omitted.
std::vector<CollectiveTimes> collective_list(const Trace& trace, const Selection& selection = {});

}  // namespace shardscope::traces
