// Nsight Systems' tables of what devices did and of the calls that asked for it (schema 3.25.0).
#include <array>

#include "traces/schema/nsight_columns.h"
#include "traces/schema/row_access.h"
#include "traces/schema/schema.h"

namespace shardscope::traces::schema {

namespace {

struct FullName {
    StringId operator()(const KernelRow& row) const {
        return row.demangled_name != StringId::empty ? row.demangled_name : row.short_name;
    }
};
template <std::size_t I>
struct Cluster {
    int operator()(const KernelRow& row) const { return row.cluster[I]; }
};
// Nsight's "no stream" and "no event" is not NULL.
template <auto Member>
struct OrNotApplicable {
    std::int64_t operator()(const SynchronizationRow& row) const {
        const std::int64_t value = row.*Member;
        return value < 0 ? kNotApplicable : value;
    }
};
template <auto Member>
struct OfMemory {
    auto operator()(const MemoryUsageRow& row) const { return row.memory.*Member; }
};
// Of the pool that the memory came from; NULL where it came from none.
template <auto Member>
struct OfPool {
    auto operator()(const MemoryUsageRow& row) const {
        return row.memory.pool_address != 0 ? std::optional(row.memory.*Member) : std::nullopt;
    }
};

constexpr std::array kKernel = {
    with(kStart, from<&KernelRow::start>),
    with(kEnd, from<&KernelRow::end>),
    with(kDevice, from<&KernelRow::device>),
    with(kContext, from<&KernelRow::context>),
    kGreenContext,
    with(kStream, from<&KernelRow::stream>),
    with(kCorrelation, from<&KernelRow::correlation>),
    with(kPid, from<&KernelRow::global_pid>),
    SchemaColumn{"demangledName", kIntNN, "id", "Full name with its signature. StringIds.id",
                 from<FullName{}>},
    SchemaColumn{"shortName", kIntNN, "id", "Name without template and arguments. StringIds.id",
                 from<&KernelRow::short_name>},
    SchemaColumn{"mangledName", kInt, "id", "The symbol. StringIds.id",
                 unless_zero<&KernelRow::mangled_name>},
    SchemaColumn{"launchType", kInt, "enum", "How it was launched. ENUM_CUDA_KERNEL_LAUNCH_TYPE",
                 from<&KernelRow::launch_type>},
    SchemaColumn{"cacheConfig", kInt, "enum", "The cache preference. ENUM_CUDA_FUNC_CACHE_CONFIG",
                 unless_negative<&KernelRow::cache_config>},
    SchemaColumn{"registersPerThread", kIntNN, "count", "Registers that a thread used; 0 unknown.",
                 from<&KernelRow::registers>},
    SchemaColumn{"gridX", kIntNN, "blocks", "Grid size in x.", element<&KernelRow::grid, 0>},
    SchemaColumn{"gridY", kIntNN, "blocks", "Grid size in y.", element<&KernelRow::grid, 1>},
    SchemaColumn{"gridZ", kIntNN, "blocks", "Grid size in z.", element<&KernelRow::grid, 2>},
    SchemaColumn{"blockX", kIntNN, "threads", "Block size in x.", element<&KernelRow::block, 0>},
    SchemaColumn{"blockY", kIntNN, "threads", "Block size in y.", element<&KernelRow::block, 1>},
    SchemaColumn{"blockZ", kIntNN, "threads", "Block size in z.", element<&KernelRow::block, 2>},
    SchemaColumn{"staticSharedMemory", kIntNN, "bytes", "Shared memory fixed at compile time; 0 unknown.",
                 from<&KernelRow::static_shared_memory>},
    SchemaColumn{"dynamicSharedMemory", kIntNN, "bytes", "Shared memory requested at launch; 0 unknown.",
                 from<&KernelRow::dynamic_shared_memory>},
    SchemaColumn{"localMemoryPerThread", kIntNN, "bytes", "Local memory of a thread; 0 unknown.",
                 from<&KernelRow::local_memory_per_thread>},
    SchemaColumn{"localMemoryTotal", kIntNN, "bytes", "Local memory of the launch; 0 unknown.",
                 from<&KernelRow::local_memory_total>},
    SchemaColumn{"gridId", kIntNN, "id", "The launch's number at run time; 0 unknown.",
                 from<&KernelRow::grid_id>},
    SchemaColumn{"sharedMemoryExecuted", kInt, "bytes", "Shared memory that the driver set.",
                 unless_negative<&KernelRow::shared_memory_executed>},
    with(kGraphNode, rarely(unless_negative<&KernelRow::graph_node>)),
    SchemaColumn{"sharedMemoryLimitConfig", kInt, "enum", "ENUM_CUDA_SHARED_MEM_LIMIT_CONFIG",
                 unless_negative<&KernelRow::shared_memory_limit_config>},
    SchemaColumn{"qmdBulkReleaseDone", kInt, "ns", "When the hardware queue released the launch in bulk."},
    SchemaColumn{"qmdPreexitDone", kInt, "ns", "When the hardware queue saw the early exit."},
    SchemaColumn{"qmdLastCtaDone", kInt, "ns", "When the last block was done."},
    SchemaColumn{"graphId", kInt, "id", "The CUDA graph that it came from.",
                 rarely(unless_negative<&KernelRow::graph>)},
    SchemaColumn{"clusterX", kInt, "blocks", "Cluster size in x.", rarely(unless_negative<Cluster<0>{}>)},
    SchemaColumn{"clusterY", kInt, "blocks", "Cluster size in y.", rarely(unless_negative<Cluster<1>{}>)},
    SchemaColumn{"clusterZ", kInt, "blocks", "Cluster size in z.", rarely(unless_negative<Cluster<2>{}>)},
    SchemaColumn{"clusterSchedulingPolicy", kInt, "", "CUDA's policy for clusters.",
                 rarely(unless_negative<&KernelRow::cluster_policy>)},
    SchemaColumn{"maxPotentialClusterSize", kInt, "blocks",
                 "The largest cluster that the launch could have had.",
                 rarely(unless_negative<&KernelRow::max_potential_cluster>)},
    SchemaColumn{"maxActiveClusters", kInt, "count", "Clusters that fit on the device at the same time.",
                 rarely(unless_negative<&KernelRow::max_active_clusters>)},
    SchemaColumn{"sharedMemoryRequestedPercentage", kInt, "percent",
                 "Share of the cache requested as shared memory."},
    SchemaColumn{"tensorSizeMinusOneElements", kTextNN, "",
                 "Sizes in the tensor map, as a JSON array; [] for none.", always("'[]'")},
};

constexpr std::array kMemcpy = {
    with(kStart, from<&MemcpyRow::start>),
    with(kEnd, from<&MemcpyRow::end>),
    with(kDevice, from<&MemcpyRow::device>),
    with(kContext, from<&MemcpyRow::context>),
    kGreenContext,
    with(kStream, from<&MemcpyRow::stream>),
    with(kCorrelation, from<&MemcpyRow::correlation>),
    with(kPid, from<&MemcpyRow::global_pid>),
    SchemaColumn{"bytes", kIntNN, "bytes", "Bytes copied.", from<&MemcpyRow::bytes>},
    SchemaColumn{"copyKind", kIntNN, "enum", "From where to where. ENUM_CUDA_MEMCPY_OPER",
                 from<&MemcpyRow::copy_kind>},
    SchemaColumn{"deprecatedSrcId", kInt, "id", "Not used."},
    SchemaColumn{"srcKind", kInt, "enum", "Memory that was read. ENUM_CUDA_MEM_KIND",
                 from<&MemcpyRow::src_kind>},
    SchemaColumn{"dstKind", kInt, "enum", "Memory that was written. ENUM_CUDA_MEM_KIND",
                 from<&MemcpyRow::dst_kind>},
    SchemaColumn{"srcDeviceId", kInt, "id", "Device that was read, in a copy between devices.",
                 unless_negative<&MemcpyRow::src_device>},
    SchemaColumn{"srcContextId", kInt, "id", "Context that was read.",
                 unless_negative<&MemcpyRow::src_context>},
    SchemaColumn{"dstDeviceId", kInt, "id", "Device that was written, in a copy between devices.",
                 unless_negative<&MemcpyRow::dst_device>},
    SchemaColumn{"dstContextId", kInt, "id", "Context that was written.",
                 unless_negative<&MemcpyRow::dst_context>},
    SchemaColumn{"migrationCause", kInt, "enum", "Why unified memory moved. ENUM_CUDA_UNIF_MEM_MIGRATION"},
    with(kGraphNode, unless_negative<&MemcpyRow::graph_node>),
    SchemaColumn{"virtualAddress", kInt, "address", "First page that unified memory moved."},
    SchemaColumn{"copyCount", kInt, "count", "Copies in the record, if it stands for a batch.",
                 unless_negative<&MemcpyRow::copies>},
};

constexpr std::array kMemset = {
    with(kStart, from<&MemsetRow::start>),
    with(kEnd, from<&MemsetRow::end>),
    with(kDevice, from<&MemsetRow::device>),
    with(kContext, from<&MemsetRow::context>),
    kGreenContext,
    with(kStream, from<&MemsetRow::stream>),
    with(kCorrelation, from<&MemsetRow::correlation>),
    with(kPid, from<&MemsetRow::global_pid>),
    SchemaColumn{"value", kIntNN, "", "What the memory was set to.", from<&MemsetRow::value>},
    SchemaColumn{"bytes", kIntNN, "bytes", "Bytes set.", from<&MemsetRow::bytes>},
    with(kGraphNode, unless_negative<&MemsetRow::graph_node>),
    SchemaColumn{"memKind", kInt, "enum", "Which memory. ENUM_CUDA_MEM_KIND", from<&MemsetRow::mem_kind>},
};

constexpr std::array kRuntime = {
    with(kStart, from<&RuntimeRow::start>),
    with(kEnd, from<&RuntimeRow::end>),
    SchemaColumn{"eventClass", kIntNN, "enum", "0 the runtime's call, 1 the driver's. ENUM_NSYS_EVENT_CLASS",
                 from<&RuntimeRow::driver>},
    with(kTid, from<&RuntimeRow::global_tid>),
    SchemaColumn{"correlationId", kInt, "id",
                 "Ties the call to the work that it launched; unique in the file.",
                 from<&RuntimeRow::correlation>},
    SchemaColumn{"nameId", kIntNN, "id",
                 "The call's name with its version, cudaLaunchKernel_v7000. StringIds.id",
                 from<&RuntimeRow::name>},
    SchemaColumn{"returnValue", kIntNN, "", "What the call returned; 0 is success.",
                 from<&RuntimeRow::return_value>},
    SchemaColumn{"callchainId", kInt, "id", "Not used."},
};

constexpr std::array kSynchronization = {
    with(kStart, from<&SynchronizationRow::start>),
    with(kEnd, from<&SynchronizationRow::end>),
    with(kDevice, from<&SynchronizationRow::device>),
    with(kContext, from<&SynchronizationRow::context>),
    kGreenContext,
    SchemaColumn{"streamId", kIntNN, "id", "The stream; 4294967295 where none is concerned.",
                 from<OrNotApplicable<&SynchronizationRow::stream>{}>},
    with(kCorrelation, from<&SynchronizationRow::correlation>),
    with(kPid, from<&SynchronizationRow::global_pid>),
    SchemaColumn{"deprecatedSyncType", kInt, "enum", "Not used."},
    SchemaColumn{"syncType", kIntNN, "enum", "What was waited for. ENUM_CUPTI_SYNC_TYPE",
                 from<&SynchronizationRow::sync_type>},
    SchemaColumn{"eventId", kIntNN, "id", "The event; 4294967295 where none is concerned.",
                 from<OrNotApplicable<&SynchronizationRow::event_id>{}>},
    SchemaColumn{"eventSyncId", kInt, "id", "Not used.", unless_negative<&SynchronizationRow::event_sync_id>},
};

constexpr std::array kCudaEvent = {
    SchemaColumn{"timestamp", kInt, "ns", "When the device passed the event; 0 where it was not measured.",
                 from<&CudaEventRow::time>},
    with(kDevice, from<&CudaEventRow::device>),
    with(kContext, from<&CudaEventRow::context>),
    kGreenContext,
    with(kStream, from<&CudaEventRow::stream>),
    with(kCorrelation, from<&CudaEventRow::correlation>),
    with(kPid, from<&CudaEventRow::global_pid>),
    SchemaColumn{"eventId", kIntNN, "id", "The event.", from<&CudaEventRow::event_id>},
    SchemaColumn{"eventSyncId", kInt, "id", "Number of this recording of the event.",
                 unless_negative<&CudaEventRow::event_sync_id>},
};

constexpr std::array kOverhead = {
    with(kStart, from<&OverheadRow::start>),
    with(kEnd, from<&OverheadRow::end>),
    SchemaColumn{"eventClass", kIntNN, "enum", "ENUM_NSYS_EVENT_CLASS", always("0")},
    with(kTid, from<&OverheadRow::global_tid>),
    with(kCorrelation, from<&OverheadRow::correlation>),
    SchemaColumn{"nameId", kInt, "id", "What was delayed. StringIds.id", unless_zero<&OverheadRow::name>},
    SchemaColumn{"overheadType", kIntNN, "enum", "The cause. ENUM_CUPTI_OVERHEAD_TYPE",
                 from<&OverheadRow::overhead_type>},
};

constexpr std::array kGraphTrace = {
    with(kStart, from<&GraphTraceRow::start>),
    with(kEnd, from<&GraphTraceRow::end>),
    with(kDevice, from<&GraphTraceRow::device>),
    SchemaColumn{"graphId", kIntNN, "id", "The CUDA graph.", from<&GraphTraceRow::graph>},
    SchemaColumn{"graphExecId", kInt, "id", "Its executable form.",
                 unless_negative<&GraphTraceRow::graph_exec>},
    with(kContext, from<&GraphTraceRow::context>),
    kGreenContext,
    with(kStream, from<&GraphTraceRow::stream>),
    with(kCorrelation, from<&GraphTraceRow::correlation>),
    with(kPid, from<&GraphTraceRow::global_pid>),
};

constexpr std::array kGraphNodes = {
    kStart,
    kEnd,
    SchemaColumn{"eventClass", kIntNN, "enum", "ENUM_NSYS_EVENT_CLASS"},
    kTid,
    SchemaColumn{"nameId", kIntNN, "id", "StringIds.id"},
    SchemaColumn{"graphNodeId", kIntNN, "id", "The node."},
    SchemaColumn{"originalGraphNodeId", kInt, "id", "The node that it was cloned from."},
};

constexpr std::array kGraphs = {
    kStart,
    kEnd,
    SchemaColumn{"eventClass", kIntNN, "enum", "ENUM_NSYS_EVENT_CLASS"},
    kTid,
    SchemaColumn{"nameId", kIntNN, "id", "StringIds.id"},
    SchemaColumn{"graphId", kInt, "id", "The graph."},
    SchemaColumn{"originalGraphId", kInt, "id", "The graph that it was cloned from."},
    SchemaColumn{"graphExecId", kInt, "id", "Its executable form."},
};

constexpr std::array kMemoryUsage = {
    SchemaColumn{"start", kIntNN, "ns", "When it happened, since the start of the capture.",
                 from<OfMemory<&CudaMemoryRow::time>{}>},
    with(kPid, from<OfMemory<&CudaMemoryRow::global_pid>{}>),
    with(kDevice, from<OfMemory<&CudaMemoryRow::device>{}>),
    with(kContext, from<OfMemory<&CudaMemoryRow::context>{}>),
    SchemaColumn{"address", kInt, "address", "Address of the block.",
                 from<OfMemory<&CudaMemoryRow::address>{}>},
    SchemaColumn{"pc", kInt, "address", "Address of the calling code.",
                 unless_zero<OfMemory<&CudaMemoryRow::pc>{}>},
    SchemaColumn{"bytes", kIntNN, "bytes", "Size of the block, also when it is freed.",
                 from<OfMemory<&CudaMemoryRow::bytes>{}>},
    SchemaColumn{"memKind", kInt, "enum", "Which memory. ENUM_CUDA_MEM_KIND",
                 from<OfMemory<&CudaMemoryRow::mem_kind>{}>},
    SchemaColumn{"memoryOperationType", kInt, "enum", "0 allocation, 1 free. ENUM_CUDA_DEV_MEM_EVENT_OPER",
                 from<OfMemory<&CudaMemoryRow::is_free>{}>},
    SchemaColumn{"name", kText, "", "The buffer's name.", unless_zero<&MemoryUsageRow::name>},
    SchemaColumn{"correlationId", kInt, "id", "The call that did it.",
                 unless_zero<OfMemory<&CudaMemoryRow::correlation>{}>},
    SchemaColumn{"streamId", kInt, "id", "The stream that it is ordered by.",
                 unless_negative<OfMemory<&CudaMemoryRow::stream>{}>},
    SchemaColumn{"localMemoryPoolAddress", kInt, "address", "Pool that it came from.",
                 from<OfPool<&CudaMemoryRow::pool_address>{}>},
    SchemaColumn{"localMemoryPoolReleaseThreshold", kInt, "bytes",
                 "Bytes that the pool keeps when it is trimmed.",
                 from<OfPool<&CudaMemoryRow::pool_threshold>{}>},
    SchemaColumn{"localMemoryPoolSize", kInt, "bytes", "Size of the pool.",
                 from<OfPool<&CudaMemoryRow::pool_size>{}>},
    SchemaColumn{"localMemoryPoolUtilizedSize", kInt, "bytes", "Bytes of the pool that are in use.",
                 from<OfPool<&CudaMemoryRow::pool_used>{}>},
    SchemaColumn{"importedMemoryPoolAddress", kInt, "address", "Pool of another process."},
    SchemaColumn{"importedMemoryPoolProcessId", kInt, "id", "That process."},
};

constexpr std::array kMemoryPool = {
    SchemaColumn{"start", kIntNN, "ns", "When it happened, since the start of the capture.",
                 from<&CudaPoolRow::time>},
    with(kPid, from<&CudaPoolRow::global_pid>),
    with(kDevice, from<&CudaPoolRow::device>),
    SchemaColumn{"address", kInt, "address", "Address of the pool.", from<&CudaPoolRow::address>},
    SchemaColumn{"operationType", kInt, "enum", "What happened. ENUM_CUDA_MEMPOOL_OPER",
                 from<&CudaPoolRow::operation>},
    SchemaColumn{"poolType", kInt, "enum", "The kind of pool. ENUM_CUDA_MEMPOOL_TYPE",
                 from<&CudaPoolRow::type>},
    SchemaColumn{"correlationId", kInt, "id", "The call that did it.", from<&CudaPoolRow::correlation>},
    SchemaColumn{"minBytesToKeep", kInt, "bytes", "What a trim left at least.",
                 from<&CudaPoolRow::min_bytes_to_keep>},
    SchemaColumn{"localMemoryPoolReleaseThreshold", kInt, "bytes",
                 "Bytes that the pool keeps when it is trimmed.", from<&CudaPoolRow::threshold>},
    SchemaColumn{"localMemoryPoolSize", kInt, "bytes", "Size of the pool.", from<&CudaPoolRow::size>},
    SchemaColumn{"localMemoryPoolUtilizedSize", kInt, "bytes", "Bytes of the pool that are in use.",
                 from<&CudaPoolRow::used>},
};

constexpr std::array<SchemaTable, 12> kTables = {{
    {"CUPTI_ACTIVITY_KIND_KERNEL", "Kernels on devices, those of collectives included.", kKernel},
    {"CUPTI_ACTIVITY_KIND_MEMCPY", "Copies between memories.", kMemcpy},
    {"CUPTI_ACTIVITY_KIND_MEMSET", "Memory that was set to a value.", kMemset},
    {"CUPTI_ACTIVITY_KIND_RUNTIME", "Calls of the runtime and driver API on host threads.", kRuntime},
    {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "Waiting for events, streams and devices.", kSynchronization},
    {"CUPTI_ACTIVITY_KIND_CUDA_EVENT",
     "Events that streams passed. Since schema version 3.",
     kCudaEvent,
     {},
     3},
    {"CUPTI_ACTIVITY_KIND_OVERHEAD",
     "Time that CUDA and the recorder itself took from host threads. Since schema version 3.",
     kOverhead,
     {},
     3},
    {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
     "CUDA graphs that ran as a whole. Since schema version 3.",
     kGraphTrace,
     {},
     3},
    {"CUDA_GRAPH_NODE_EVENTS", "Nodes of CUDA graphs. Empty; queries that join it find it.", kGraphNodes},
    {"CUDA_GRAPH_EVENTS",
     "CUDA graphs. Always empty: it is there for queries that join it. Since schema version 3.",
     kGraphs,
     {},
     3},
    {"CUDA_GPU_MEMORY_USAGE_EVENTS",
     "Allocations and frees of device and pinned memory; SHARD_MEMORY has more about each, and its rows are "
     "added here when the run ends.",
     kMemoryUsage},
    {"CUDA_GPU_MEMORY_POOL_EVENTS",
     "What happened to CUDA's memory pools. Since schema version 3.",
     kMemoryPool,
     {},
     3},
}};

}  // namespace

std::span<const SchemaTable> nsight_device_tables() {
    return kTables;
}

}  // namespace shardscope::traces::schema
