// Collectives by operation: counts, bytes, time, bandwidth. Definitions: docs/definitions.md, "Distributed"
// (bandwidths as nccl-tests defines them).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/analysis/selection.h"
#include "traces/schema/enums.h"

namespace shardscope::traces {

struct Trace;

struct OperationStats {
    Operation operation = Operation::other;
    std::int64_t count = 0;
    std::int64_t bytes = 0;  // sum of full-buffer bytes
    double us = 0;           // sum of device durations
    double transfer_us = 0;  // sum of transfers: the shortest duration among the ranks of each
    double waiting_us = 0;   // us - transfer_us
    double exposed_us = 0;   // part of the union outside compute kernels
    double algbw_gbps = 0, busbw_gbps = 0;
    double count_per_step = 0, bytes_per_step = 0;  // over the kept steps; work outside steps not counted
};

struct RankCollectives {
    int rank = 0;
    std::vector<OperationStats> operations;
    std::int64_t unmatched = 0;  // collectives without their counterpart on another rank
};

struct CollectivesReport {
    std::vector<RankCollectives> ranks;
};

CollectivesReport collectives_report(const Trace& trace, const Selection& selection = {});

}  // namespace shardscope::traces
