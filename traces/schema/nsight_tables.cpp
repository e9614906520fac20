// The tables that we share with Nsight Systems' SQLite export (schema 3.25.0): its names, types and units, so
// that SQL written for an export runs on our files. What we do not know stays NULL, or 0 where it must not
// be.
#include <array>

#include "traces/schema/schema.h"

namespace shardscope::traces {

namespace {

constexpr std::string_view kInt = "INTEGER";
constexpr std::string_view kIntNN = "INTEGER NOT NULL";
constexpr std::string_view kText = "TEXT";
constexpr std::string_view kTextNN = "TEXT NOT NULL";
constexpr std::string_view kReal = "REAL";

constexpr Column kStart = {"start", kIntNN, "ns", "When it began, since the start of the capture."};
constexpr Column kEnd = {"end", kIntNN, "ns", "When it was over."};
constexpr Column kDevice = {"deviceId", kIntNN, "id",
                            "The device; each rank has its own. TARGET_INFO_GPU.id"};
constexpr Column kContext = {"contextId", kIntNN, "id", "The CUDA context; 1 on other devices."};
constexpr Column kGreenContext = {"greenContextId", kInt, "id", "The green context, if one was used."};
constexpr Column kStream = {"streamId", kIntNN, "id", "The stream, a number within the rank. SHARD_STREAMS"};
constexpr Column kCorrelation = {"correlationId", kInt, "id",
                                 "Ties the work to the call that launched it; unique in the file."};
constexpr Column kPid = {"globalPid", kInt, "id", "The process, serialized as (1 << 48) + (pid << 24)."};
constexpr Column kTid = {"globalTid", kInt, "id", "The thread, serialized as (1 << 48) + (pid << 24) + tid."};
constexpr Column kGraphNode = {"graphNodeId", kInt, "id", "The CUDA graph node that it came from."};

constexpr std::array kStringIds = {
    Column{"id", "INTEGER NOT NULL PRIMARY KEY", "id", "What other tables refer to."},
    Column{"value", kTextNN, "", "The text."},
};

constexpr std::array kKernel = {
    kStart,
    kEnd,
    kDevice,
    kContext,
    kGreenContext,
    kStream,
    kCorrelation,
    kPid,
    Column{"demangledName", kIntNN, "id", "Full name with its signature. StringIds.id"},
    Column{"shortName", kIntNN, "id", "Name without template and arguments. StringIds.id"},
    Column{"mangledName", kInt, "id", "The symbol. StringIds.id"},
    Column{"launchType", kInt, "enum", "How it was launched. ENUM_CUDA_KERNEL_LAUNCH_TYPE"},
    Column{"cacheConfig", kInt, "enum", "The cache preference. ENUM_CUDA_FUNC_CACHE_CONFIG"},
    Column{"registersPerThread", kIntNN, "count", "Registers that a thread used; 0 unknown."},
    Column{"gridX", kIntNN, "blocks", "Grid size in x."},
    Column{"gridY", kIntNN, "blocks", "Grid size in y."},
    Column{"gridZ", kIntNN, "blocks", "Grid size in z."},
    Column{"blockX", kIntNN, "threads", "Block size in x."},
    Column{"blockY", kIntNN, "threads", "Block size in y."},
    Column{"blockZ", kIntNN, "threads", "Block size in z."},
    Column{"staticSharedMemory", kIntNN, "bytes", "Shared memory fixed at compile time; 0 unknown."},
    Column{"dynamicSharedMemory", kIntNN, "bytes", "Shared memory asked for at launch; 0 unknown."},
    Column{"localMemoryPerThread", kIntNN, "bytes", "Local memory of a thread; 0 unknown."},
    Column{"localMemoryTotal", kIntNN, "bytes", "Local memory of the launch; 0 unknown."},
    Column{"gridId", kIntNN, "id", "The launch's number at run time; 0 unknown."},
    Column{"sharedMemoryExecuted", kInt, "bytes", "Shared memory that the driver set."},
    kGraphNode,
    Column{"sharedMemoryLimitConfig", kInt, "enum", "ENUM_CUDA_SHARED_MEM_LIMIT_CONFIG"},
    Column{"qmdBulkReleaseDone", kInt, "ns", "When the hardware queue released the launch in bulk."},
    Column{"qmdPreexitDone", kInt, "ns", "When the hardware queue saw the early exit."},
    Column{"qmdLastCtaDone", kInt, "ns", "When the last block was done."},
    Column{"graphId", kInt, "id", "The CUDA graph that it came from."},
    Column{"clusterX", kInt, "blocks", "Cluster size in x."},
    Column{"clusterY", kInt, "blocks", "Cluster size in y."},
    Column{"clusterZ", kInt, "blocks", "Cluster size in z."},
    Column{"clusterSchedulingPolicy", kInt, "", "CUDA's policy for clusters."},
    Column{"maxPotentialClusterSize", kInt, "blocks", "The largest cluster that the launch could have had."},
    Column{"maxActiveClusters", kInt, "count", "Clusters that fit on the device at once."},
    Column{"sharedMemoryRequestedPercentage", kInt, "percent",
           "Share of the cache asked for as shared memory."},
    Column{"tensorSizeMinusOneElements", kTextNN, "",
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
    Column{"bytes", kIntNN, "bytes", "Copied."},
    Column{"copyKind", kIntNN, "enum", "From where to where. ENUM_CUDA_MEMCPY_OPER"},
    Column{"deprecatedSrcId", kInt, "id", "Not used."},
    Column{"srcKind", kInt, "enum", "Memory that was read. ENUM_CUDA_MEM_KIND"},
    Column{"dstKind", kInt, "enum", "Memory that was written. ENUM_CUDA_MEM_KIND"},
    Column{"srcDeviceId", kInt, "id", "Device that was read, in a copy between devices."},
    Column{"srcContextId", kInt, "id", "Context that was read."},
    Column{"dstDeviceId", kInt, "id", "Device that was written, in a copy between devices."},
    Column{"dstContextId", kInt, "id", "Context that was written."},
    Column{"migrationCause", kInt, "enum", "Why unified memory moved. ENUM_CUDA_UNIF_MEM_MIGRATION"},
    kGraphNode,
    Column{"virtualAddress", kInt, "address", "First page that unified memory moved."},
    Column{"copyCount", kInt, "count", "Copies in the record, if it stands for a batch."},
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
    Column{"value", kIntNN, "", "What the memory was set to."},
    Column{"bytes", kIntNN, "bytes", "Set."},
    kGraphNode,
    Column{"memKind", kInt, "enum", "Which memory. ENUM_CUDA_MEM_KIND"},
};

constexpr std::array kRuntime = {
    kStart,
    kEnd,
    Column{"eventClass", kIntNN, "enum", "0 the runtime's call, 1 the driver's. ENUM_NSYS_EVENT_CLASS"},
    kTid,
    Column{"correlationId", kInt, "id", "Ties the call to the work that it launched; unique in the file."},
    Column{"nameId", kIntNN, "id", "The call's name with its version, cudaLaunchKernel_v7000. StringIds.id"},
    Column{"returnValue", kIntNN, "", "What the call returned; 0 is success."},
    Column{"callchainId", kInt, "id", "Not used."},
};

constexpr std::array kSynchronization = {
    kStart,
    kEnd,
    kDevice,
    kContext,
    kGreenContext,
    Column{"streamId", kIntNN, "id", "The stream; 4294967295 where none is concerned."},
    kCorrelation,
    kPid,
    Column{"deprecatedSyncType", kInt, "enum", "Not used."},
    Column{"syncType", kIntNN, "enum", "What was waited for. ENUM_CUPTI_SYNC_TYPE"},
    Column{"eventId", kIntNN, "id", "The event; 4294967295 where none is concerned."},
    Column{"eventSyncId", kInt, "id", "Not used."},
};

constexpr std::array kNvtx = {
    kStart,
    Column{"end", kInt, "ns", "When the range was closed; NULL for a mark."},
    Column{"eventType", kIntNN, "enum",
           "59 push/pop, 60 start/end, 34 mark, 75 domain. ENUM_NSYS_EVENT_TYPE"},
    Column{"rangeId", kInt, "id", "Number of a start/end range; else NULL."},
    Column{"category", kInt, "id", "The program's own category."},
    Column{"color", kInt, "ARGB", "Colour that the program asked for."},
    Column{"text", kText, "", "The range's name; the same text as textId's."},
    kTid,
    Column{"endGlobalTid", kInt, "id", "The closing thread where that is another one."},
    Column{"textId", kInt, "id", "The range's name. StringIds.id"},
    Column{"domainId", kInt, "id", "0 the default domain, 1 NCCL, then others; named by rows of type 75."},
    Column{"uint64Value", kInt, "", "Payload of that type."},
    Column{"int64Value", kInt, "id", "Payload; in our own ranges the module. SHARD_MODULES.id"},
    Column{"doubleValue", kReal, "", "Payload of that type."},
    Column{"uint32Value", kInt, "", "Payload of that type."},
    Column{"int32Value", kInt, "", "Payload of that type."},
    Column{"floatValue", kReal, "", "Payload of that type."},
    Column{"jsonTextId", kInt, "id", "Payload as JSON. StringIds.id"},
    Column{"jsonText", kText, "", "Payload as JSON."},
    Column{"binaryData", kText, "", "Payload of a schema."},
};

constexpr std::array kMemoryUsage = {
    Column{"start", kIntNN, "ns", "When it happened, since the start of the capture."},
    kPid,
    kDevice,
    kContext,
    Column{"address", kInt, "address", "Of the block."},
    Column{"pc", kInt, "address", "Of the calling code."},
    Column{"bytes", kIntNN, "bytes", "Size of the block, also when it is freed."},
    Column{"memKind", kInt, "enum", "Which memory. ENUM_CUDA_MEM_KIND"},
    Column{"memoryOperationType", kInt, "enum", "0 allocation, 1 free. ENUM_CUDA_DEV_MEM_EVENT_OPER"},
    Column{"name", kText, "", "The buffer's name."},
    Column{"correlationId", kInt, "id", "The call that did it."},
    Column{"streamId", kInt, "id", "The stream that it is ordered by."},
    Column{"localMemoryPoolAddress", kInt, "address", "Pool that it came from."},
    Column{"localMemoryPoolReleaseThreshold", kInt, "bytes", "What that pool keeps."},
    Column{"localMemoryPoolSize", kInt, "bytes", "What that pool holds."},
    Column{"localMemoryPoolUtilizedSize", kInt, "bytes", "What that pool has given out."},
    Column{"importedMemoryPoolAddress", kInt, "address", "Pool of another process."},
    Column{"importedMemoryPoolProcessId", kInt, "id", "That process."},
};

constexpr std::array kGpu = {
    Column{"vmId", kIntNN, "id", "The machine, serialized."},
    Column{"id", kIntNN, "id", "The device, as in deviceId columns."},
    Column{"name", kText, "", "The GPU's or, on the CPU device, the processor's name."},
    Column{"busLocation", kText, "", "On the PCI bus."},
    Column{"isDiscrete", kInt, "0/1", "1: with memory of its own."},
    Column{"l2CacheSize", kInt, "bytes", "Level 2 cache."},
    Column{"totalMemory", kInt, "bytes", "The device's memory."},
    Column{"memoryBandwidth", kInt, "bytes/s", "Of that memory."},
    Column{"clockRate", kInt, "Hz", "Clock."},
    Column{"smCount", kInt, "count", "Multiprocessors."},
    Column{"pwGpuId", kInt, "id", "Not used."},
    Column{"uuid", kText, "", "The device's own id."},
    Column{"luid", kInt, "id", "Not used."},
    Column{"chipName", kText, "", "The chip."},
    Column{"cuDevice", kInt, "id", "CUDA's number of the device."},
    Column{"ctxswDevPath", kText, "", "Not used."},
    Column{"ctrlDevPath", kText, "", "Not used."},
    Column{"revision", kInt, "", "Not used."},
    Column{"nodeMask", kInt, "", "Not used."},
    Column{"constantMemory", kInt, "bytes", "For constants."},
    Column{"maxIPC", kInt, "count", "Instructions per clock at most."},
    Column{"maxRegistersPerBlock", kInt, "count", "Registers of a block at most."},
    Column{"maxShmemPerBlock", kInt, "bytes", "Shared memory of a block at most."},
    Column{"maxShmemPerBlockOptin", kInt, "bytes", "The same, if asked for."},
    Column{"maxShmemPerSm", kInt, "bytes", "Shared memory of a multiprocessor."},
    Column{"maxRegistersPerSm", kInt, "count", "Registers of a multiprocessor."},
    Column{"threadsPerWarp", kInt, "threads", "Warp size."},
    Column{"asyncEngines", kInt, "count", "Copy engines."},
    Column{"maxWarpsPerSm", kInt, "count", "Warps of a multiprocessor at most."},
    Column{"maxBlocksPerSm", kInt, "count", "Blocks of a multiprocessor at most."},
    Column{"maxThreadsPerBlock", kInt, "threads", "Threads of a block at most."},
    Column{"maxBlockDimX", kInt, "threads", "Block size in x at most."},
    Column{"maxBlockDimY", kInt, "threads", "Block size in y at most."},
    Column{"maxBlockDimZ", kInt, "threads", "Block size in z at most."},
    Column{"maxGridDimX", kInt, "blocks", "Grid size in x at most."},
    Column{"maxGridDimY", kInt, "blocks", "Grid size in y at most."},
    Column{"maxGridDimZ", kInt, "blocks", "Grid size in z at most."},
    Column{"computeMajor", kInt, "", "Compute capability, before the dot."},
    Column{"computeMinor", kInt, "", "Compute capability, after the dot."},
    Column{"smMajor", kInt, "", "Multiprocessor version, before the dot."},
    Column{"smMinor", kInt, "", "Multiprocessor version, after the dot."},
    Column{"numaNodeId", kInt, "id", "The NUMA node nearest to the device."},
};

constexpr std::array kCudaDevice = {
    Column{"gpuId", kInt, "id", "TARGET_INFO_GPU.id"},
    Column{"cudaId", kIntNN, "id", "The device's number in the process."},
    Column{"pid", kIntNN, "id", "The process."},
    Column{"uuid", kText, "", "The device's own id."},
    Column{"numMultiprocessors", kInt, "count", "Multiprocessors."},
};

constexpr std::array kSessionStart = {
    Column{"utcEpochNs", kInt, "ns", "Wall clock at time 0, since 1970 in UTC."},
    Column{"utcTime", kText, "ISO 8601", "The same, readable."},
    Column{"localTime", kText, "ISO 8601", "The same in the zone of the machine."},
    Column{"systemClockNs", kInt, "ns", "CLOCK_MONOTONIC at time 0."},
};

constexpr std::array kAnalysisDetails = {
    Column{"globalVid", kIntNN, "id", "The machine, serialized."},
    Column{"duration", kIntNN, "ns", "Length of the capture."},
    Column{"startTime", kIntNN, "ns", "Its start: 0."},
    Column{"stopTime", kIntNN, "ns", "Its end."},
};

constexpr std::array kProcesses = {
    kPid,
    Column{"pid", kInt, "id", "The system's number of the process."},
    Column{"name", kText, "", "Its name."},
};

constexpr std::array kThreadNames = {
    Column{"nameId", kIntNN, "id", "StringIds.id"},
    Column{"priority", kInt, "", "The thread's priority."},
    kTid,
};

constexpr std::array kNameValue = {
    Column{"name", kTextNN, "", "Of the fact."},
    Column{"value", kText, "", "The fact."},
};

constexpr std::array kDiagnostic = {
    Column{"timestamp", kIntNN, "ns", "When, since the start of the capture."},
    Column{"timestampType", kIntNN, "enum", "ENUM_DIAGNOSTIC_TIMESTAMP_SOURCE"},
    Column{"source", kIntNN, "enum", "ENUM_DIAGNOSTIC_SOURCE_TYPE"},
    Column{"severity", kIntNN, "enum", "ENUM_DIAGNOSTIC_SEVERITY_LEVEL"},
    Column{"text", kTextNN, "", "What happened, for example how many events were dropped."},
    kPid,
};

constexpr std::array kGraphNodes = {
    kStart,
    kEnd,
    Column{"eventClass", kIntNN, "enum", "ENUM_NSYS_EVENT_CLASS"},
    kTid,
    Column{"nameId", kIntNN, "id", "StringIds.id"},
    Column{"graphNodeId", kIntNN, "id", "The node."},
    Column{"originalGraphNodeId", kInt, "id", "The node that it was cloned from."},
};

constexpr std::array<Table, 18> kTables = {{
    {"StringIds", "Every text that other tables refer to by id.", kStringIds},
    {"CUPTI_ACTIVITY_KIND_KERNEL", "Kernels on devices, those of collectives included.", kKernel},
    {"CUPTI_ACTIVITY_KIND_MEMCPY", "Copies between memories.", kMemcpy},
    {"CUPTI_ACTIVITY_KIND_MEMSET", "Memory that was set to a value.", kMemset},
    {"CUPTI_ACTIVITY_KIND_RUNTIME", "Calls of the runtime and driver API on host threads.", kRuntime},
    {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "Waiting for events, streams and devices.", kSynchronization},
    {"NVTX_EVENTS", "Ranges and marks on host threads, and the names of their domains.", kNvtx},
    {"CUDA_GPU_MEMORY_USAGE_EVENTS",
     "Allocations and frees of device and pinned memory; SHARD_MEMORY tells more about each.", kMemoryUsage},
    {"TARGET_INFO_GPU", "The devices. A rank on the CPU is a device, too.", kGpu},
    {"TARGET_INFO_CUDA_DEVICE", "Which process used which device.", kCudaDevice},
    {"TARGET_INFO_SESSION_START_TIME", "The wall clock at time 0; one row.", kSessionStart},
    {"ANALYSIS_DETAILS", "Length of the capture; one row, written when the run ends.", kAnalysisDetails},
    {"PROCESSES", "The processes that took part.", kProcesses},
    {"ThreadNames", "Names of host threads.", kThreadNames},
    {"META_DATA_EXPORT", "Which version of Nsight's schema the file follows, and who wrote it.", kNameValue},
    {"META_DATA_CAPTURE", "How the capture was made.", kNameValue},
    {"DIAGNOSTIC_EVENT", "What the recorder has to say about the capture.", kDiagnostic},
    {"CUDA_GRAPH_NODE_EVENTS", "Nodes of CUDA graphs. Empty; queries that join it find it.", kGraphNodes},
}};

}  // namespace

std::span<const Table> nsight_tables() {
    return kTables;
}

}  // namespace shardscope::traces
