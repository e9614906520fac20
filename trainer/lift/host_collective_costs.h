// The times of collectives that the hosts' threads carry out, from a trace that as_device_trace() has made.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "traces/analysis/base/intervals.h"
#include "traces/schema/enums.h"
#include "traces/store/columns/index.h"
#include "trainer/sim/cluster.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::trainer::lift {

// One line through all operations, by the bytes on the wire: means, as the threads' delays are part of a
// step's time, and only of collectives that the ranks waited for, if there are any, as those beside operators
// lack cores; without the first of DDP's buckets, which gets a core late. Gloo has no reduce_scatter: it sums
// the whole buffer on every rank. `windows` (sorted, disjoint): those of the steps to look at.
void know_host_collectives(const traces::store::Trace& converted,
                           const std::vector<traces::analysis::Interval>& windows,
                           sim::CollectiveModel& model, std::vector<std::string>& notes);

// Nanoseconds of transfers within these windows (sorted, disjoint) while none of the rank's operators ran.
std::int64_t transfer_inside(const traces::store::Trace& converted, traces::store::RankIndex rank,
                             const std::vector<traces::analysis::Interval>& windows);

}  // namespace shardscope::trainer::lift
