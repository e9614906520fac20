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

constexpr SchemaColumn kStart = {"start", kIntNN, "ns", "When it began, since the start of the capture."};
constexpr SchemaColumn kEnd = {"end", kIntNN, "ns", "When it was over."};
constexpr SchemaColumn kDevice = {"deviceId", kIntNN, "id",
                                  "The device; each rank has its own. TARGET_INFO_GPU.id"};
constexpr SchemaColumn kContext = {"contextId", kIntNN, "id", "The CUDA context; 1 on other devices."};
constexpr SchemaColumn kGreenContext = {"greenContextId", kInt, "id", "The green context, if one was used."};
constexpr SchemaColumn kStream = {"streamId", kIntNN, "id",
                                  "The stream, a number within the rank. SHARD_STREAMS"};
constexpr SchemaColumn kCorrelation = {"correlationId", kInt, "id",
                                       "Ties the work to the call that launched it; unique in the file."};
constexpr SchemaColumn kPid = {"globalPid", kInt, "id",
                               "The process, serialized as (1 << 48) + (pid << 24)."};
constexpr SchemaColumn kTid = {"globalTid", kInt, "id",
                               "The thread, serialized as (1 << 48) + (pid << 24) + tid."};
constexpr SchemaColumn kGraphNode = {"graphNodeId", kInt, "id", "The CUDA graph node that it came from."};

constexpr std::array kStringIds = {
    SchemaColumn{"id", "INTEGER NOT NULL PRIMARY KEY", "id", "What other tables refer to."},
    SchemaColumn{"value", kTextNN, "", "The text."},
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

constexpr std::array kNvtx = {
    kStart,
    SchemaColumn{"end", kInt, "ns", "When the range was closed; NULL for a mark."},
    SchemaColumn{"eventType", kIntNN, "enum",
                 "59 push/pop, 60 start/end, 34 mark, 75 domain. ENUM_NSYS_EVENT_TYPE"},
    SchemaColumn{"rangeId", kInt, "id", "Number of a start/end range; else NULL."},
    SchemaColumn{"category", kInt, "id", "The program's own category."},
    SchemaColumn{"color", kInt, "ARGB", "Colour that the program asked for."},
    SchemaColumn{"text", kText, "", "The range's name; the same text as textId's."},
    kTid,
    SchemaColumn{"endGlobalTid", kInt, "id", "The closing thread where that is another one."},
    SchemaColumn{"textId", kInt, "id", "The range's name. StringIds.id"},
    SchemaColumn{"domainId", kInt, "id",
                 "0 the default domain, 1 NCCL, then others; named by rows of type 75."},
    SchemaColumn{"uint64Value", kInt, "", "Payload of that type."},
    SchemaColumn{"int64Value", kInt, "id", "Payload; in our own ranges the module. SHARD_MODULES.id"},
    SchemaColumn{"doubleValue", kReal, "", "Payload of that type."},
    SchemaColumn{"uint32Value", kInt, "", "Payload of that type."},
    SchemaColumn{"int32Value", kInt, "", "Payload of that type."},
    SchemaColumn{"floatValue", kReal, "", "Payload of that type."},
    SchemaColumn{"jsonTextId", kInt, "id", "Payload as JSON. StringIds.id"},
    SchemaColumn{"jsonText", kText, "", "Payload as JSON."},
    SchemaColumn{"binaryData", kText, "", "Payload of a schema."},
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

constexpr std::array kGpu = {
    SchemaColumn{"vmId", kIntNN, "id", "The machine, serialized."},
    SchemaColumn{"id", kIntNN, "id", "The device, as in deviceId columns."},
    SchemaColumn{"name", kText, "", "The GPU's or, on the CPU device, the processor's name."},
    SchemaColumn{"busLocation", kText, "", "On the PCI bus."},
    SchemaColumn{"isDiscrete", kInt, "0/1", "1: with memory of its own."},
    SchemaColumn{"l2CacheSize", kInt, "bytes", "Level 2 cache."},
    SchemaColumn{"totalMemory", kInt, "bytes", "The device's memory."},
    SchemaColumn{"memoryBandwidth", kInt, "bytes/s", "Of that memory."},
    SchemaColumn{"clockRate", kInt, "Hz", "Clock."},
    SchemaColumn{"smCount", kInt, "count", "Multiprocessors."},
    SchemaColumn{"pwGpuId", kInt, "id", "Not used."},
    SchemaColumn{"uuid", kText, "", "The device's own id."},
    SchemaColumn{"luid", kInt, "id", "Not used."},
    SchemaColumn{"chipName", kText, "", "The chip."},
    SchemaColumn{"cuDevice", kInt, "id", "CUDA's number of the device."},
    SchemaColumn{"ctxswDevPath", kText, "", "Not used."},
    SchemaColumn{"ctrlDevPath", kText, "", "Not used."},
    SchemaColumn{"revision", kInt, "", "Not used."},
    SchemaColumn{"nodeMask", kInt, "", "Not used."},
    SchemaColumn{"constantMemory", kInt, "bytes", "For constants."},
    SchemaColumn{"maxIPC", kInt, "count", "Instructions per clock at most."},
    SchemaColumn{"maxRegistersPerBlock", kInt, "count", "Registers of a block at most."},
    SchemaColumn{"maxShmemPerBlock", kInt, "bytes", "Shared memory of a block at most."},
    SchemaColumn{"maxShmemPerBlockOptin", kInt, "bytes", "The same, if asked for."},
    SchemaColumn{"maxShmemPerSm", kInt, "bytes", "Shared memory of a multiprocessor."},
    SchemaColumn{"maxRegistersPerSm", kInt, "count", "Registers of a multiprocessor."},
    SchemaColumn{"threadsPerWarp", kInt, "threads", "Warp size."},
    SchemaColumn{"asyncEngines", kInt, "count", "Copy engines."},
    SchemaColumn{"maxWarpsPerSm", kInt, "count", "Warps of a multiprocessor at most."},
    SchemaColumn{"maxBlocksPerSm", kInt, "count", "Blocks of a multiprocessor at most."},
    SchemaColumn{"maxThreadsPerBlock", kInt, "threads", "Threads of a block at most."},
    SchemaColumn{"maxBlockDimX", kInt, "threads", "Block size in x at most."},
    SchemaColumn{"maxBlockDimY", kInt, "threads", "Block size in y at most."},
    SchemaColumn{"maxBlockDimZ", kInt, "threads", "Block size in z at most."},
    SchemaColumn{"maxGridDimX", kInt, "blocks", "Grid size in x at most."},
    SchemaColumn{"maxGridDimY", kInt, "blocks", "Grid size in y at most."},
    SchemaColumn{"maxGridDimZ", kInt, "blocks", "Grid size in z at most."},
    SchemaColumn{"computeMajor", kInt, "", "Compute capability, before the dot."},
    SchemaColumn{"computeMinor", kInt, "", "Compute capability, after the dot."},
    SchemaColumn{"smMajor", kInt, "", "Multiprocessor version, before the dot."},
    SchemaColumn{"smMinor", kInt, "", "Multiprocessor version, after the dot."},
    SchemaColumn{"numaNodeId", kInt, "id", "The NUMA node nearest to the device."},
};

constexpr std::array kCudaDevice = {
    SchemaColumn{"gpuId", kInt, "id", "TARGET_INFO_GPU.id"},
    SchemaColumn{"cudaId", kIntNN, "id", "The device's number in the process."},
    SchemaColumn{"pid", kIntNN, "id", "The process."},
    SchemaColumn{"uuid", kText, "", "The device's own id."},
    SchemaColumn{"numMultiprocessors", kInt, "count", "Multiprocessors."},
};

constexpr std::array kSessionStart = {
    SchemaColumn{"utcEpochNs", kInt, "ns", "Wall clock at time 0, since 1970 in UTC."},
    SchemaColumn{"utcTime", kText, "ISO 8601", "The same, readable."},
    SchemaColumn{"localTime", kText, "ISO 8601", "The same in the zone of the machine."},
    SchemaColumn{"systemClockNs", kInt, "ns", "CLOCK_MONOTONIC at time 0."},
};

constexpr std::array kAnalysisDetails = {
    SchemaColumn{"globalVid", kIntNN, "id", "The machine, serialized."},
    SchemaColumn{"duration", kIntNN, "ns", "Length of the capture."},
    SchemaColumn{"startTime", kIntNN, "ns", "Its start: 0."},
    SchemaColumn{"stopTime", kIntNN, "ns", "Its end."},
};

constexpr std::array kProcesses = {
    kPid,
    SchemaColumn{"pid", kInt, "id", "The system's number of the process."},
    SchemaColumn{"name", kText, "", "Its name."},
};

constexpr std::array kThreadNames = {
    SchemaColumn{"nameId", kIntNN, "id", "StringIds.id"},
    SchemaColumn{"priority", kInt, "", "The thread's priority."},
    kTid,
};

constexpr std::array kNameValue = {
    SchemaColumn{"name", kTextNN, "", "Of the fact."},
    SchemaColumn{"value", kText, "", "The fact."},
};

constexpr std::array kDiagnostic = {
    SchemaColumn{"timestamp", kIntNN, "ns", "When, since the start of the capture."},
    SchemaColumn{"timestampType", kIntNN, "enum", "ENUM_DIAGNOSTIC_TIMESTAMP_SOURCE"},
    SchemaColumn{"source", kIntNN, "enum", "ENUM_DIAGNOSTIC_SOURCE_TYPE"},
    SchemaColumn{"severity", kIntNN, "enum", "ENUM_DIAGNOSTIC_SEVERITY_LEVEL"},
    SchemaColumn{"text", kTextNN, "", "What happened, for example how many events were dropped."},
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

constexpr std::array<SchemaTable, 18> kTables = {{
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

std::span<const SchemaTable> nsight_tables() {
    return kTables;
}

}  // namespace shardscope::traces
