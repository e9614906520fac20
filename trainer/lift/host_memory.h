// The memory of a rank that computes on the processor, as that of a device.
#pragma once

#include <vector>

#include "traces/analysis/base/intervals.h"
#include "traces/store/columns/trace.h"

namespace shardscope::trainer::lift {

// Without the copies of buffers that the library of collectives makes (Gloo's reduce_scatter adds up a whole
// one), of which PyTorch does not record all frees. `library_copies`: when it makes them, by rank index. An
// address that is allocated again although its free was not recorded was such a copy, too, and the events
// that stand for the rest of PyTorch's totals stand for these frees. So was what is allocated in
// `fsdp_collectives` and never freed: a buffer of fully_shard that a thread of the library held last.
traces::store::MemoryEvents host_memory(const traces::store::Trace& from,
                                        const std::vector<traces::analysis::IntervalSet>& library_copies,
                                        const std::vector<traces::analysis::IntervalSet>& fsdp_collectives);

}  // namespace shardscope::trainer::lift
