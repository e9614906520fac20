// The parts of build_columns(), each of which fills some columns of a trace from rows as they came. Internal
// to the store.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include "traces/store/correlation_index.h"
#include "traces/store/owners.h"
#include "traces/store/pending_rows.h"
#include "traces/store/trace.h"

namespace shardscope::traces {

// Numbers of rows in the order of `less`, ties in the order in which they came.
template <typename Less>
std::vector<std::size_t> sorted_order(std::size_t size, Less less) {
    std::vector<std::size_t> order(size);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), less);
    return order;
}

// Device events and the streams that they ran on, without their launches and collectives.
void build_device(const std::vector<PendingDeviceEvent>& rows, const std::vector<std::size_t>& order,
                  const std::vector<StreamRow>& stream_rows, const RankIndex& ranks, Trace& trace);
void build_collectives(const std::vector<CollectiveRow>& rows, const RankIndex& ranks, Trace& trace);
// Those of devices on which nothing ran belong to no rank and are left out.
void build_synchronizations(std::vector<SynchronizationRow>& rows, const RankIndex& ranks,
                            const CorrelationIndex& calls, Trace& trace);

void build_runtime(const std::vector<RuntimeRow>& rows, const ThreadIndex& threads, Trace& trace);
// Sorts `rows`, so that row i is that of range i afterwards. Needs the runtime calls.
void build_ranges(std::vector<RangeRow>& rows, const ThreadIndex& threads, Trace& trace);
void build_marks(std::vector<RangeRow>& rows, const ThreadIndex& threads, Trace& trace);
// Steps as recorded; where nobody recorded any, the ranges "ProfilerStep#N" are the steps.
void build_steps(const PendingRows& rows, const RankIndex& ranks, Trace& trace);

// The range that launched each device event: that of its launch, else the operator that the source names.
// `order`: as that of build_device(). Source: a Kineto trace's "External id" is the operator's; PyTorch 1.12
// to 2.2 wrote the event's own correlation id in its place, which says nothing.
void build_launch_ranges(const PendingRows& rows, const std::vector<std::size_t>& order, Trace& trace);
// The forward operator of each backward one.
void build_links(const std::vector<LinkRow>& rows, const ThreadIndex& threads, Trace& trace);

// Needs the ranges: what an allocation is for may be told by the ranges around it (memory_origin.h). Adds to
// `counters`, which are built afterwards.
void build_memory(std::vector<MemoryRow>& rows, const RankIndex& ranks, const ThreadIndex& threads,
                  std::vector<CounterRow>& counters, Trace& trace);
void build_segments(std::vector<SegmentRow>& rows, const RankIndex& ranks, Trace& trace);
void build_counters(std::vector<CounterRow>& rows, const RankIndex& ranks, Trace& trace);

}  // namespace shardscope::traces
