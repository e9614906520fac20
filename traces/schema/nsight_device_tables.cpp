// Nsight Systems' tables of what devices did and of the calls that asked for it (schema 3.25.0).
#include <array>

#include "traces/schema/nsight_columns.h"
#include "traces/schema/schema.h"

namespace shardscope::traces {

namespace {

constexpr std::array kKernel = {
    kStart,
    kEnd,
    kDevice,
    kContext,
    kGreenContext,
    kStream,
    kCorrelation,
    kPid,
    SchemaColumn{"demangledName", kIntNN, "id", "Full name with its signature. StringIds.id"},
    SchemaColumn{"shortName", kIntNN, "id", "Name without template and arguments. StringIds.id"},
    SchemaColumn{"mangledName", kInt, "id", "The symbol. StringIds.id"},
    SchemaColumn{"launchType", kInt, "enum", "How it was launched. ENUM_CUDA_KERNEL_LAUNCH_TYPE"},
    SchemaColumn{"cacheConfig", kInt, "enum", "The cache preference. ENUM_CUDA_FUNC_CACHE_CONFIG"},
    SchemaColumn{"registersPerThread", kIntNN, "count", "Registers that a thread used; 0 unknown."},
    SchemaColumn{"gridX", kIntNN, "blocks", "Grid size in x."},
    SchemaColumn{"gridY", kIntNN, "blocks", "Grid size in y."},
    SchemaColumn{"gridZ", kIntNN, "blocks", "Grid size in z."},
    SchemaColumn{"blockX", kIntNN, "threads", "Block size in x."},
    SchemaColumn{"blockY", kIntNN, "threads", "Block size in y."},
    SchemaColumn{"blockZ", kIntNN, "threads", "Block size in z."},
    SchemaColumn{"staticSharedMemory", kIntNN, "bytes", "Shared memory fixed at compile time; 0 unknown."},
    SchemaColumn{"dynamicSharedMemory", kIntNN, "bytes", "Shared memory asked for at launch; 0 unknown."},
    SchemaColumn{"localMemoryPerThread", kIntNN, "bytes", "Local memory of a thread; 0 unknown."},
    SchemaColumn{"localMemoryTotal", kIntNN, "bytes", "Local memory of the launch; 0 unknown."},
    SchemaColumn{"gridId", kIntNN, "id", "The launch's number at run time; 0 unknown."},
    SchemaColumn{"sharedMemoryExecuted", kInt, "bytes", "Shared memory that the driver set."},
    kGraphNode,
    SchemaColumn{"sharedMemoryLimitConfig", kInt, "enum", "ENUM_CUDA_SHARED_MEM_LIMIT_CONFIG"},
    SchemaColumn{"qmdBulkReleaseDone", kInt, "ns", "When the hardware queue released the launch in bulk."},
    SchemaColumn{"qmdPreexitDone", kInt, "ns", "When the hardware queue saw the early exit."},
    SchemaColumn{"qmdLastCtaDone", kInt, "ns", "When the last block was done."},
    SchemaColumn{"graphId", kInt, "id", "The CUDA graph that it came from."},
    SchemaColumn{"clusterX", kInt, "blocks", "Cluster size in x."},
    SchemaColumn{"clusterY", kInt, "blocks", "Cluster size in y."},
    SchemaColumn{"clusterZ", kInt, "blocks", "Cluster size in z."},
    SchemaColumn{"clusterSchedulingPolicy", kInt, "", "CUDA's policy for clusters."},
    SchemaColumn{"maxPotentialClusterSize", kInt, "blocks",
                 "The largest cluster that the launch could have had."},
    SchemaColumn{"maxActiveClusters", kInt, "count", "Clusters that fit on the device at once."},
    SchemaColumn{"sharedMemoryRequestedPercentage", kInt, "percent",
                 "Share of the cache asked for as shared memory."},
    SchemaColumn{"tensorSizeMinusOneElements", kTextNN, "",
                 "Sizes in the tensor map, as a JSON array; [] for none."},
};

constexpr std::array kMemcpy = {
    kStart,
    kEnd,
    kDevice,
    kContext,
    kGreenContext,
    kStream,
    kCorrelation,
    kPid,
    SchemaColumn{"bytes", kIntNN, "bytes", "Copied."},
    SchemaColumn{"copyKind", kIntNN, "enum", "From where to where. ENUM_CUDA_MEMCPY_OPER"},
    SchemaColumn{"deprecatedSrcId", kInt, "id", "Not used."},
    SchemaColumn{"srcKind", kInt, "enum", "Memory that was read. ENUM_CUDA_MEM_KIND"},
    SchemaColumn{"dstKind", kInt, "enum", "Memory that was written. ENUM_CUDA_MEM_KIND"},
    SchemaColumn{"srcDeviceId", kInt, "id", "Device that was read, in a copy between devices."},
    SchemaColumn{"srcContextId", kInt, "id", "Context that was read."},
    SchemaColumn{"dstDeviceId", kInt, "id", "Device that was written, in a copy between devices."},
    SchemaColumn{"dstContextId", kInt, "id", "Context that was written."},
    SchemaColumn{"migrationCause", kInt, "enum", "Why unified memory moved. ENUM_CUDA_UNIF_MEM_MIGRATION"},
    kGraphNode,
    SchemaColumn{"virtualAddress", kInt, "address", "First page that unified memory moved."},
    SchemaColumn{"copyCount", kInt, "count", "Copies in the record, if it stands for a batch."},
};

constexpr std::array kMemset = {
    kStart,
    kEnd,
    kDevice,
    kContext,
    kGreenContext,
    kStream,
    kCorrelation,
    kPid,
    SchemaColumn{"value", kIntNN, "", "What the memory was set to."},
    SchemaColumn{"bytes", kIntNN, "bytes", "Set."},
    kGraphNode,
    SchemaColumn{"memKind", kInt, "enum", "Which memory. ENUM_CUDA_MEM_KIND"},
};

constexpr std::array kRuntime = {
    kStart,
    kEnd,
    SchemaColumn{"eventClass", kIntNN, "enum", "0 the runtime's call, 1 the driver's. ENUM_NSYS_EVENT_CLASS"},
    kTid,
    SchemaColumn{"correlationId", kInt, "id",
                 "Ties the call to the work that it launched; unique in the file."},
    SchemaColumn{"nameId", kIntNN, "id",
                 "The call's name with its version, cudaLaunchKernel_v7000. StringIds.id"},
    SchemaColumn{"returnValue", kIntNN, "", "What the call returned; 0 is success."},
    SchemaColumn{"callchainId", kInt, "id", "Not used."},
};

constexpr std::array kSynchronization = {
    kStart,
    kEnd,
    kDevice,
    kContext,
    kGreenContext,
    SchemaColumn{"streamId", kIntNN, "id", "The stream; 4294967295 where none is concerned."},
    kCorrelation,
    kPid,
    SchemaColumn{"deprecatedSyncType", kInt, "enum", "Not used."},
    SchemaColumn{"syncType", kIntNN, "enum", "What was waited for. ENUM_CUPTI_SYNC_TYPE"},
    SchemaColumn{"eventId", kIntNN, "id", "The event; 4294967295 where none is concerned."},
    SchemaColumn{"eventSyncId", kInt, "id", "Not used."},
};

constexpr std::array kCudaEvent = {
    SchemaColumn{"timestamp", kInt, "ns", "When the device passed the event; 0 where it was not measured."},
    kDevice,
    kContext,
    kGreenContext,
    kStream,
    kCorrelation,
    kPid,
    SchemaColumn{"eventId", kIntNN, "id", "The event."},
    SchemaColumn{"eventSyncId", kInt, "id", "Number of this recording of the event."},
};

constexpr std::array kOverhead = {
    kStart,
    kEnd,
    SchemaColumn{"eventClass", kIntNN, "enum", "ENUM_NSYS_EVENT_CLASS"},
    kTid,
    kCorrelation,
    SchemaColumn{"nameId", kInt, "id", "What was delayed. StringIds.id"},
    SchemaColumn{"overheadType", kIntNN, "enum", "Whose time it was. ENUM_CUPTI_OVERHEAD_TYPE"},
};

constexpr std::array kGraphTrace = {
    kStart,
    kEnd,
    kDevice,
    SchemaColumn{"graphId", kIntNN, "id", "The CUDA graph."},
    SchemaColumn{"graphExecId", kInt, "id", "Its executable form."},
    kContext,
    kGreenContext,
    kStream,
    kCorrelation,
    kPid,
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
    SchemaColumn{"start", kIntNN, "ns", "When it happened, since the start of the capture."},
    kPid,
    kDevice,
    kContext,
    SchemaColumn{"address", kInt, "address", "Of the block."},
    SchemaColumn{"pc", kInt, "address", "Of the calling code."},
    SchemaColumn{"bytes", kIntNN, "bytes", "Size of the block, also when it is freed."},
    SchemaColumn{"memKind", kInt, "enum", "Which memory. ENUM_CUDA_MEM_KIND"},
    SchemaColumn{"memoryOperationType", kInt, "enum", "0 allocation, 1 free. ENUM_CUDA_DEV_MEM_EVENT_OPER"},
    SchemaColumn{"name", kText, "", "The buffer's name."},
    SchemaColumn{"correlationId", kInt, "id", "The call that did it."},
    SchemaColumn{"streamId", kInt, "id", "The stream that it is ordered by."},
    SchemaColumn{"localMemoryPoolAddress", kInt, "address", "Pool that it came from."},
    SchemaColumn{"localMemoryPoolReleaseThreshold", kInt, "bytes", "What that pool keeps."},
    SchemaColumn{"localMemoryPoolSize", kInt, "bytes", "What that pool holds."},
    SchemaColumn{"localMemoryPoolUtilizedSize", kInt, "bytes", "What that pool has given out."},
    SchemaColumn{"importedMemoryPoolAddress", kInt, "address", "Pool of another process."},
    SchemaColumn{"importedMemoryPoolProcessId", kInt, "id", "That process."},
};

constexpr std::array kMemoryPool = {
    SchemaColumn{"start", kIntNN, "ns", "When it happened, since the start of the capture."},
    kPid,
    kDevice,
    SchemaColumn{"address", kInt, "address", "Of the pool."},
    SchemaColumn{"operationType", kInt, "enum", "What happened. ENUM_CUDA_MEMPOOL_OPER"},
    SchemaColumn{"poolType", kInt, "enum", "Whose pool. ENUM_CUDA_MEMPOOL_TYPE"},
    SchemaColumn{"correlationId", kInt, "id", "The call that did it."},
    SchemaColumn{"minBytesToKeep", kInt, "bytes", "What a trim left at least."},
    SchemaColumn{"localMemoryPoolReleaseThreshold", kInt, "bytes", "What the pool keeps."},
    SchemaColumn{"localMemoryPoolSize", kInt, "bytes", "What the pool holds."},
    SchemaColumn{"localMemoryPoolUtilizedSize", kInt, "bytes", "What the pool has given out."},
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
     "CUDA graphs. Empty; queries that join it find it. Since schema version 3.",
     kGraphs,
     {},
     3},
    {"CUDA_GPU_MEMORY_USAGE_EVENTS",
     "Allocations and frees of device and pinned memory; SHARD_MEMORY tells more about each, and what stands "
     "there "
     "is added here when the run ends.",
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

}  // namespace shardscope::traces
