// What a ColumnSink has collected before take(): rows as they came, and the trace that they will become.
// Internal to the store. Ranks are still numbers, threads still serialized ids, correlations still
// unresolved.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "traces/store/trace.h"

namespace shardscope::traces {

// A kernel, memcpy or memset, reduced to what columns keep.
struct PendingDeviceEvent {
    std::int64_t start = 0, end = 0;
    std::int64_t correlation = 0, global_pid = 0, bytes = 0;
    StringId name = StringId::empty;
    int device = 0, stream = 0;
    DeviceKind kind = DeviceKind::kernel;
    std::uint8_t copy_kind = 0;
    std::int64_t external_id = 0;  // RangeRow::external_id of the operator that launched it; 0 none
    float blocks_per_sm = -1, occupancy = -1;
};

struct PendingRows {
    std::vector<PendingDeviceEvent> device;
    std::vector<RuntimeRow> runtime;  // names already without their suffix
    std::vector<RangeRow> ranges;     // with an end
    std::vector<RangeRow> marks;
    std::vector<SynchronizationRow> synchronizations;
    std::vector<CollectiveRow> collectives;
    std::vector<MemoryRow> memory;
    std::vector<CounterRow> counters;
    std::vector<StepRow> steps;
    std::vector<LossRow> losses;
    std::vector<RankRow> ranks;
    std::vector<ThreadRow> threads;
    std::vector<StreamRow> streams;
    std::vector<LinkRow> links;
    std::vector<SegmentRow> segments;
    std::vector<FlightRow> flight;
};

// Sorts `rows`, links them and fills the columns of `trace`, which holds the strings already.
void build_columns(PendingRows&& rows, Trace& trace);

}  // namespace shardscope::traces
