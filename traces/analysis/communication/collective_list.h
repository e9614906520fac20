// Every collective by itself: when it ran, how long its transfer took, who waited, how much of it compute
// hid. Definitions: docs/definitions.md, "Distributed". Times in nanoseconds.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/analysis/base/selection.h"
#include "traces/schema/enums.h"

namespace shardscope::traces {

struct Trace;

// Of all the ranks that took part; a send or receive stands alone.
struct CollectiveTimes {
    Operation operation = Operation::other;
    Phase phase = Phase::none;
    std::int32_t unit = -1;   // index into Trace::units, -1 none
    std::int64_t group = -1;  // -1 unknown, as below
    std::int64_t sequence = -1, bytes = -1;
    int group_size = 0;            // 0 unknown
    int ranks = 0;                 // whose device events are there
    std::int32_t event = -1;       // DeviceEvents row of the rank that was in it for the longest time
    std::int64_t start_ns = 0;     // of that row
    std::int64_t transfer_ns = 0;  // the shortest duration
    std::int64_t longest_ns = 0;
    std::int64_t waiting_ns = 0;            // sum over ranks of duration - transfer
    std::int64_t exposed_ns = 0;            // sum over ranks of the time outside compute kernels
    std::int64_t overlapped_ns = 0;         // sum over ranks of the rest
    int last_rank = -1;                     // its number: whose duration is the shortest of several; -1 alone
    double algbw_gbps = 0, busbw_gbps = 0;  // 0 without bytes or time
};

// In order of start. Those of which a selected event is a part (by step and time), with all their parts; a
// rank selected leaves those that it takes part in. Collectives without a device event are left out.
std::vector<CollectiveTimes> collective_list(const Trace& trace, const Selection& selection = {});

}  // namespace shardscope::traces
