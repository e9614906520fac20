// The part of CUPTI that we use, declared here so that a build needs no CUDA Toolkit: the library is found at
// run time (library.h). Names, numbers and layouts are those of CUPTI's activity and callback interfaces
// (NVIDIA's CUPTI documentation; CUDA 11.2 to 13.0); a test compares them with the Toolkit's headers if they
// are found. Later versions only append fields, so that each struct is valid for every version, up to the
// size that bytes_known() returns.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shardscope::profiler::cupti {

using Result = int;
inline constexpr Result kSuccess = 0;
inline constexpr Result kMultipleSubscribers = 39;

// cuptiGetVersion(): 15 is CUDA 11.2, the oldest that is supported; from 13.0 on the number is xxyyzz.
inline constexpr std::uint32_t kVersion11_2 = 15, kVersion11_6 = 17, kVersion11_8 = 18, kVersion12_0 = 19,
                               kVersion12_8 = 26, kVersion12_9 = 27, kVersion13_0 = 130000;

enum Kind : std::uint32_t {
    kKindMemcpy = 1,
    kKindMemset = 2,
    kKindDriver = 4,
    kKindRuntime = 5,
    kKindDevice = 8,
    kKindContext = 9,
    kKindConcurrentKernel = 10,
    kKindOverhead = 17,
    kKindMemcpy2 = 22,
    kKindCudaEvent = 36,
    kKindStream = 37,
    kKindSynchronization = 38,
    kKindExternalCorrelation = 39,
    kKindMemory2 = 49,
    kKindMemoryPool = 50,
    kKindGraphTrace = 51,
};

inline constexpr std::uint32_t kNotApplicable = 0xFFFFFFFF;  // a stream or event of a synchronization
inline constexpr std::uint32_t kFlushForced = 1;
inline constexpr int kAttributeZeroedBuffers = 5;  // uint8_t: we hand out zeroed buffers
inline constexpr int kThreadIdSystem = 1;

// --- records -----------------------------------------------------------------------------------------------
// Times are nanoseconds of CLOCK_REALTIME; 0: could not be measured.

struct Kernel {
    std::uint32_t kind;
    std::uint8_t cache_config, shared_memory_config;
    std::uint16_t registers;
    std::uint32_t cache_requested, cache_executed;
    std::uint64_t start, end, completed;
    std::uint32_t device, context, stream;
    std::int32_t grid[3], block[3];
    std::int32_t static_shared, dynamic_shared;
    std::uint32_t local_per_thread, local_total;
    std::uint32_t correlation;
    std::int64_t grid_id;
    const char* name;
    void* reserved;
    std::uint64_t queued, submitted;
    std::uint8_t launch_type, carveout_requested, carveout, padding;
    std::uint32_t shared_executed;
    std::uint64_t graph_node;
    std::uint32_t shared_limit_config;
    std::uint32_t graph;
    void* access_policy;
    std::uint32_t channel, channel_type;
    std::uint32_t cluster[3], cluster_policy;  // since CUDA 11.8
    std::uint64_t local_total_64;
    std::uint32_t max_potential_cluster, max_active_clusters;  // since CUDA 12.0
};

struct Memcpy {
    std::uint32_t kind;
    std::uint8_t copy_kind, src_kind, dst_kind, flags;
    std::uint64_t bytes, start, end;
    std::uint32_t device, context, stream, correlation, runtime_correlation, padding;
    void* reserved;
    std::uint64_t graph_node;
    std::uint32_t graph, channel, channel_type, more_padding;
    std::uint64_t copies;  // since CUDA 12.8
};

struct MemcpyPeer {  // between devices
    std::uint32_t kind;
    std::uint8_t copy_kind, src_kind, dst_kind, flags;
    std::uint64_t bytes, start, end;
    std::uint32_t device, context, stream;
    std::uint32_t src_device, src_context, dst_device, dst_context, correlation;
    void* reserved;
    std::uint64_t graph_node;
};

struct Memset {
    std::uint32_t kind, value;
    std::uint64_t bytes, start, end;
    std::uint32_t device, context, stream, correlation;
    std::uint16_t flags, mem_kind;
    std::uint32_t padding;
    void* reserved;
    std::uint64_t graph_node;
};

struct Api {
    std::uint32_t kind, callback;
    std::uint64_t start, end;
    std::uint32_t pid, tid, correlation, result;
};

struct Synchronization {
    std::uint32_t kind, type;
    std::uint64_t start, end;
    std::uint32_t correlation, context, stream, event;
    std::uint64_t event_sync;  // since CUDA 12.8
};

struct CudaEvent {
    std::uint32_t kind, correlation, context, stream, event, padding;
    std::uint32_t device, more_padding;  // all since CUDA 12.8
    void* reserved;
    std::uint64_t device_time, event_sync;
};

struct Memory {
    std::uint32_t kind, operation, mem_kind, correlation;
    std::uint64_t address, bytes, time, pc;
    std::uint32_t pid, device, context, stream;
    const char* name;
    std::uint32_t is_async, padding;
    std::uint32_t pool_type, more_padding;
    std::uint64_t pool_address, pool_threshold, pool_size;
    std::uint64_t pool_used;  // since CUDA 11.6
};
inline constexpr std::uint32_t kMemoryRelease = 2;
inline constexpr std::uint32_t kPoolLocal = 1;

struct MemoryPool {
    std::uint32_t kind, operation, type, correlation, pid, device;
    std::uint64_t min_bytes_to_keep, address, size, threshold, time;
    std::uint64_t used;  // since CUDA 11.6
};

struct Overhead {
    std::uint32_t kind, overhead, object;
    std::uint32_t object_id[3];  // of a thread or process: pid, tid
    std::uint64_t start, end;
    std::uint32_t correlation, reserved;  // since CUDA 12.8, or some versions before
};
inline constexpr std::uint32_t kObjectThread = 2;

// Accompanies the record of each call that was made while that id was pushed on its thread.
struct ExternalCorrelation {
    std::uint32_t kind, external_kind;
    std::uint64_t external_id;
    std::uint32_t correlation, reserved;
};
inline constexpr std::uint32_t kExternalCustom0 = 3;

struct GraphTrace {
    std::uint32_t kind, correlation;
    std::uint64_t start, end;
    std::uint32_t device, graph, context, stream;
};

struct Device {
    std::uint32_t kind, flags;
    std::uint64_t memory_bandwidth;  // kB/s
    std::uint64_t memory;            // bytes
    std::uint32_t constant_bytes, l2_bytes, warp_threads;
    std::uint32_t clock;  // kHz
    std::uint32_t copy_engines, multiprocessors, max_ipc;
    std::uint32_t max_warps_per_multiprocessor, max_blocks_per_multiprocessor;
    std::uint32_t max_shared_per_multiprocessor, max_registers_per_multiprocessor;
    std::uint32_t max_registers_per_block, max_shared_per_block, max_threads_per_block;
    std::uint32_t max_block[3], max_grid[3];
    std::uint32_t compute_major, compute_minor, id, ecc;
    std::uint8_t uuid[16];
    const char* name;
};

struct Context {
    std::uint32_t kind, context, device;
    std::uint16_t api, null_stream;
};

struct Stream {
    std::uint32_t kind, context, stream, priority, flag, correlation;
};

// The number of bytes of a record that a library of that version fills.
template <typename Record>
constexpr std::size_t bytes_known(std::uint32_t) {
    return sizeof(Record);
}
template <>
constexpr std::size_t bytes_known<Kernel>(std::uint32_t version) {
    return version < kVersion11_8   ? offsetof(Kernel, access_policy)
           : version < kVersion12_0 ? offsetof(Kernel, max_potential_cluster)
                                    : sizeof(Kernel);
}
template <>
constexpr std::size_t bytes_known<Memcpy>(std::uint32_t version) {
    return version < kVersion12_8 ? offsetof(Memcpy, graph) : sizeof(Memcpy);
}
template <>
constexpr std::size_t bytes_known<Synchronization>(std::uint32_t version) {
    return version < kVersion12_8 ? offsetof(Synchronization, event_sync) : sizeof(Synchronization);
}
template <>
constexpr std::size_t bytes_known<CudaEvent>(std::uint32_t version) {
    return version < kVersion12_8 ? offsetof(CudaEvent, device) : sizeof(CudaEvent);
}
template <>
constexpr std::size_t bytes_known<Memory>(std::uint32_t version) {
    return version < kVersion11_6 ? offsetof(Memory, pool_used) : sizeof(Memory);
}
template <>
constexpr std::size_t bytes_known<MemoryPool>(std::uint32_t version) {
    return version < kVersion11_6 ? offsetof(MemoryPool, used) : sizeof(MemoryPool);
}
template <>
constexpr std::size_t bytes_known<Overhead>(std::uint32_t version) {
    return version < kVersion12_8 ? offsetof(Overhead, correlation) : sizeof(Overhead);
}

// --- callbacks and subscription ----------------------------------------------------------------------------

inline constexpr int kDomainDriver = 1, kDomainRuntime = 2, kDomainResource = 3;
inline constexpr std::uint32_t kContextDestroyStarting = 2;  // in kDomainResource
inline constexpr int kApiEnter = 0, kApiExit = 1;

// The first part of what an API callback receives.
struct CallbackData {
    int site;
};

using Callback = void (*)(void* user, int domain, std::uint32_t callback, const void* data);
using BufferRequested = void (*)(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records);
using BufferCompleted = void (*)(void* context, std::uint32_t stream, std::uint8_t* buffer, std::size_t size,
                                 std::size_t valid);

struct SubscriberParams {
    std::size_t size;
    const char* name;
    char* other_name;  // filled when another tool holds CUPTI
    std::size_t other_size;
};
inline constexpr std::size_t kSubscriberNameBytes = 64;

}  // namespace shardscope::profiler::cupti
