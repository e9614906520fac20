// The inserts of the tables that hold events, which may have many millions of rows, and which column each of
// a row's members becomes. The other tables: table_inserts.h. Internal to the store.
#pragma once

#include "traces/store/rows.h"
#include "traces/store/sqlite/row_insert.h"

namespace shardscope::traces {

// A row of NVTX_EVENTS: with its text and its domain's number.
struct NvtxRow {
    RangeRow range;
    std::string_view text;
    std::int64_t domain = 0;
    std::int64_t range_id = -1;
};

// A row of CUDA_GPU_MEMORY_USAGE_EVENTS, with its name's text.
struct MemoryUsageRow {
    CudaMemoryRow row;
    std::string_view name;
};

// A row of SHARD_DEVICE_DETAILS: what Nsight's tables of device work have no column for.
struct DeviceDetailRow {
    std::int64_t start = 0;
    int device = 0, stream = 0;
    std::int64_t correlation = 0, external_id = 0;
    float blocks_per_sm = -1, occupancy = -1;
};

struct EventInserts {
    explicit EventInserts(Database& db);
    void flush();

    RowInsert<KernelRow> kernels;
    RowInsert<MemcpyRow> memcpys;
    RowInsert<MemsetRow> memsets;
    RowInsert<RuntimeRow> runtime;
    RowInsert<SynchronizationRow> synchronizations;
    RowInsert<CudaEventRow> cuda_events;
    RowInsert<OverheadRow> overheads;
    RowInsert<GraphTraceRow> graph_traces;
    RowInsert<MemoryUsageRow> memory_usage;
    RowInsert<CudaPoolRow> memory_pools;
    RowInsert<NvtxRow> nvtx;
    RowInsert<CollectiveRow> collectives;
    RowInsert<MemoryRow> memory;
    RowInsert<CounterRow> counters;
    RowInsert<SegmentRow> segments;
    RowInsert<LinkRow> links;
    RowInsert<DeviceDetailRow> device_details;
    RowInsert<FlightRow> flight_records;
};

}  // namespace shardscope::traces
