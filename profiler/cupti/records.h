// The records of what CUDA did (kinds 64..95 of record.h), as the injected library writes them. One thread
// of ours writes all of them, so the record of a call contains the call's thread.
//
// A clock record before the others ties CUPTI's clock to ticks. Ids of contexts, streams, events and calls
// are CUPTI's, unique in the process; enum values are CUPTI's too.
#pragma once

#include <cstdint>

#include "profiler/base/clock.h"
#include "profiler/base/record.h"

namespace shardscope::profiler {

enum class CudaKind : std::uint8_t {
    clock = static_cast<std::uint8_t>(RecordKind::cuda_first),
    notice,
    loss,
    device,
    context,
    stream,
    api,
    kernel,
    memcpy,
    memset,
    synchronization,
    event,
    memory,
    pool,
    overhead,
    graph,
};

// The value of RecordHeader::kind.
constexpr RecordKind record_kind(CudaKind kind) {
    return static_cast<RecordKind>(kind);
}

// Both clocks, read together. Every record that follows describes something that had happened by then.
struct CudaClockRecord {
    static constexpr CudaKind kKind = CudaKind::clock;
    RecordHeader header;
    Ticks ticks;
    RealTime time;
};

// A notice is a TextRecord: `owner` is a traces::schema::Severity, the text a sentence for the user.

// Counts, so far, of what has not become a record.
struct CudaLossRecord {
    static constexpr CudaKind kKind = CudaKind::loss;
    RecordHeader header;
    std::uint64_t dropped;    // CUPTI had no room for these
    std::uint64_t untimed;    // without a start or an end, or with the end before the start
    std::uint64_t misplaced;  // kept or omitted by their own time, since their launch was never seen
};

struct CudaDeviceRecord {  // header.name: the device's name
    static constexpr CudaKind kKind = CudaKind::device;
    RecordHeader header;
    std::int64_t memory, memory_bandwidth, clock_hz;  // bytes, bytes/s
    std::int32_t device;
    std::uint32_t l2_bytes, constant_bytes, multiprocessors, compute_major, compute_minor, warp_threads,
        copy_engines;
    std::uint32_t max_threads_per_block, max_warps_per_multiprocessor, max_blocks_per_multiprocessor;
    std::uint32_t max_registers_per_block, max_registers_per_multiprocessor;
    std::uint32_t max_shared_per_block, max_shared_per_multiprocessor;
    std::uint32_t reserved;
    std::uint8_t uuid[16];
};

struct CudaContextRecord {
    static constexpr CudaKind kKind = CudaKind::context;
    RecordHeader header;
    std::int32_t context, device, null_stream, reserved;
};

struct CudaStreamRecord {
    static constexpr CudaKind kKind = CudaKind::stream;
    RecordHeader header;
    std::int32_t context, stream, priority, flag;
};

struct CudaApiRecord {  // header.name: the call; header.flags 1: the driver's
    static constexpr CudaKind kKind = CudaKind::api;
    RecordHeader header;
    RealTime start, end;
    std::uint32_t tid, correlation, result, reserved;
};

struct CudaKernelRecord {  // header.name: the symbol
    static constexpr CudaKind kKind = CudaKind::kernel;
    RecordHeader header;
    RealTime start, end;
    std::uint32_t correlation;
    std::int32_t device, context, stream;
    std::int32_t grid[3], block[3];
    std::int32_t registers, static_shared, dynamic_shared;
    std::int32_t local_per_thread;
    std::int64_t local_total, grid_id;
    std::int32_t shared_executed;
    std::uint8_t launch_type, cache_config, shared_limit_config, reserved;
    std::int64_t graph_node;  // 0: none
    std::int64_t graph;
    std::int32_t cluster[3], cluster_policy, max_potential_cluster, max_active_clusters;  // -1: unknown
};

struct CudaMemcpyRecord {
    static constexpr CudaKind kKind = CudaKind::memcpy;
    RecordHeader header;
    RealTime start, end;
    std::int64_t bytes;
    std::uint32_t correlation;
    std::int32_t device, context, stream;
    std::uint8_t copy_kind, src_kind, dst_kind, reserved;
    std::int32_t src_device, src_context, dst_device, dst_context;  // -1: not between devices
    std::int32_t copies;                                            // 0: unknown
    std::int64_t graph_node;
};

struct CudaMemsetRecord {
    static constexpr CudaKind kKind = CudaKind::memset;
    RecordHeader header;
    RealTime start, end;
    std::int64_t bytes;
    std::uint32_t correlation;
    std::int32_t device, context, stream;
    std::uint32_t value;
    std::int32_t mem_kind;
    std::int64_t graph_node;
};

struct CudaSynchronizationRecord {
    static constexpr CudaKind kKind = CudaKind::synchronization;
    RecordHeader header;
    RealTime start, end;
    std::uint32_t correlation;
    std::uint32_t context, stream, event;  // cupti::kNotApplicable: none
    std::int32_t type, reserved;
    std::int64_t event_sync;  // 0: unknown
};

struct CudaEventRecord {
    static constexpr CudaKind kKind = CudaKind::event;
    RecordHeader header;
    RealTime time;  // 0: not measured
    std::uint32_t correlation;
    std::int32_t device;  // -1: that of the context
    std::int32_t context, stream, event, reserved;
    std::int64_t event_sync;
};

struct CudaMemoryRecord {  // header.name: of the variable, if it has one
    static constexpr CudaKind kKind = CudaKind::memory;
    RecordHeader header;
    RealTime time;
    std::uint64_t address, pc;
    std::int64_t bytes;
    std::uint32_t correlation;
    std::int32_t device, context;
    std::uint32_t stream;
    std::uint8_t mem_kind, is_free, reserved[6];
    std::uint64_t pool_address;  // 0: from no pool
    std::int64_t pool_threshold, pool_size, pool_used;
};

struct CudaPoolRecord {
    static constexpr CudaKind kKind = CudaKind::pool;
    RecordHeader header;
    RealTime time;
    std::uint64_t address;
    std::uint32_t correlation;
    std::int32_t device, operation, type;
    std::int64_t min_bytes_to_keep, threshold, size, used;
};

struct CudaOverheadRecord {
    static constexpr CudaKind kKind = CudaKind::overhead;
    RecordHeader header;
    RealTime start, end;
    std::uint32_t correlation, tid;  // tid 0: of the whole process
    std::uint32_t type, reserved;
};

struct CudaGraphRecord {
    static constexpr CudaKind kKind = CudaKind::graph;
    RecordHeader header;
    RealTime start, end;
    std::uint32_t correlation;
    std::int32_t device, context, stream;
    std::int64_t graph;
};

}  // namespace shardscope::profiler
