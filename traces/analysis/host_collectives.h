// Collectives that host threads carry out: Gloo's and MPI's, which PyTorch records as ranges
// ("gloo:all_reduce") on their own threads. Nothing of them runs on a device. Times in nanoseconds.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/schema/enums.h"

namespace shardscope::traces {

struct Trace;

struct HostCollective {
    std::int32_t range = -1;  // index into HostRanges
    std::uint16_t rank = 0;   // index into Trace::ranks
    Operation operation = Operation::other;
    std::int64_t start = 0, end = 0;
    std::int64_t bytes = 0;        // of the full buffer; 0 not known
    std::int64_t transfer_ns = 0;  // the shortest among the ranks; its own where it has no counterparts
    bool unmatched = false;        // the ranks' counts of the operation do not agree
};

// In order of start. The k-th of an operation on one rank is the k-th on the others. A gather's range took
// the rank's own part: the full buffer is that of "c10d::_allgather_base_", in order, where there are as
// many.
std::vector<HostCollective> host_collectives(const Trace& trace);

}  // namespace shardscope::traces
