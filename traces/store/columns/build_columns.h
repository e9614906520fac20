// The parts of build_columns(), each of which fills some columns of a trace from rows in order of arrival.
// Internal to the store.
#pragma once

#include <cstddef>
#include <vector>

#include "traces/store/columns/correlation_index.h"
#include "traces/store/columns/owners.h"
#include "traces/store/columns/pending_rows.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::store {

// Runtime calls in order, without their threads and ranges. `rows` keeps what is needed later: the slots of
// their threads, in the same order.
void build_calls(PendingCalls& rows, Trace& trace);
// Device events in order and the streams that they ran on, each with its launch. `rows` keeps the lanes and
// external ids in the same order. Adds nothing about collectives.
void build_device(PendingDevice& rows, const std::vector<schema::StreamRow>& stream_rows,
                  const RankLookup& ranks, const CorrelationIndex& calls, Trace& trace);
void build_collectives(const std::vector<schema::CollectiveRow>& rows, const RankLookup& ranks, Trace& trace);
// Synchronizations of devices on which nothing ran belong to no rank and are omitted.
void build_synchronizations(std::vector<schema::SynchronizationRow>& rows, const RankLookup& ranks,
                            const CorrelationIndex& calls, Trace& trace);

// Ranges and how they nest, and the range of each call; `trace` already has the calls' threads.
// `rows.ranges` keeps threads and external ids in the order of the ranges.
void build_ranges(PendingRows& rows, const ThreadLookup& threads, Trace& trace);
void build_marks(PendingMarks& rows, const ThreadLookup& threads, Trace& trace);
void build_samples(std::vector<schema::SampleRow>& rows, const ThreadLookup& threads, Trace& trace);
// Steps as recorded; if none are recorded, the ranges "ProfilerStep#N" are the steps.
void build_steps(const PendingRows& rows, const RankLookup& ranks, Trace& trace);

// The range that launched each device event: that of its launch, else the operator recorded by the source.
// Source: a Kineto trace's "External id" is the operator's; PyTorch 1.12 to 2.2 wrote the event's own
// correlation id in its place, which is useless.
void build_launch_ranges(const PendingRows& rows, Trace& trace);
// Links each backward operator to its forward operator.
void build_links(const std::vector<schema::LinkRow>& rows, const ThreadLookup& threads, Trace& trace);

// Needs the ranges: the purpose of an allocation may follow from the enclosing ranges (memory_origin.h). Adds
// to `rows.counters`, which are built afterwards.
void build_memory(PendingRows& rows, const RankLookup& ranks, const ThreadLookup& threads, Trace& trace);
void build_segments(std::vector<schema::SegmentRow>& rows, const RankLookup& ranks, Trace& trace);
void build_counters(std::vector<schema::CounterRow>& rows, const RankLookup& ranks, Trace& trace);

}  // namespace shardscope::traces::store
