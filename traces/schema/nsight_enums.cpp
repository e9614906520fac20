// Nsight Systems' enum tables (schema 3.25.0): the ids, names and labels that queries join and look up.
#include <array>

#include "traces/schema/memory_kinds.h"
#include "traces/schema/schema.h"

namespace shardscope::traces::schema {

namespace {

constexpr std::array kColumns = {
    SchemaColumn{"id", "INTEGER NOT NULL PRIMARY KEY", "enum", "The value that other tables hold."},
    SchemaColumn{"name", "TEXT", "", "Its symbol."},
    SchemaColumn{"label", "TEXT", "", "Its name for people."},
};

constexpr std::array kNsysEventType = {
    EnumRow{33, "NvtxCategory", "NvtxCategory"},
    EnumRow{34, "NvtxMark", "NvtxMark"},
    EnumRow{39, "NvtxThread", "NvtxThread"},
    EnumRow{45, "Cuda", "Cuda"},
    EnumRow{49, "Diagnostic", "Diagnostic"},
    EnumRow{59, "NvtxPushPopRange", "NvtxPushPopRange"},
    EnumRow{60, "NvtxStartEndRange", "NvtxStartEndRange"},
    EnumRow{75, "NvtxDomainCreate", "NvtxDomainCreate"},
    EnumRow{76, "NvtxDomainDestroy", "NvtxDomainDestroy"},
    EnumRow{79, "CudaDeviceKernel", "CudaDeviceKernel"},
    EnumRow{80, "CudaDeviceMemory", "CudaDeviceMemory"},
    EnumRow{90, "Correlation", "Correlation"},
    EnumRow{106, "CudaSyncEvent", "CudaSyncEvent"},
    EnumRow{113, "CudaGraphNodeCreation", "CudaGraphNodeCreation"},
    EnumRow{117, "CudaDeviceMemoryUsage", "CudaDeviceMemoryUsage"},
    EnumRow{142, "CudaDeviceMemcpy", "CudaDeviceMemcpy"},
    EnumRow{152, "CudaApi", "CudaApi"},
};

constexpr std::array kNsysEventClass = {
    EnumRow{0, "TRACE_PROCESS_EVENT_CUDA_RUNTIME", "CUDA runtime"},
    EnumRow{1, "TRACE_PROCESS_EVENT_CUDA_DRIVER", "CUDA driver"},
    EnumRow{6, "TRACE_PROCESS_EVENT_NVTX_START", "NVTX start"},
    EnumRow{7, "TRACE_PROCESS_EVENT_NVTX_FINISH", "NVTX finish"},
    EnumRow{26, "TRACE_PROCESS_EVENT_CUDA_API", "CUDA API"},
    EnumRow{77, "TRACE_PROCESS_EVENT_CUDA_GRAPH_NODE_CREATION", "CUDA graph node creation"},
    EnumRow{103, "TRACE_PROCESS_EVENT_CUDA_OVERHEAD", "CUDA overhead"},
};

constexpr std::array kCudaMemcpyOper = {
    EnumRow{0, "CUDA_MEMCPY_KIND_UNKNOWN", "Unknown"},
    EnumRow{1, "CUDA_MEMCPY_KIND_HTOD", "Host-to-Device"},
    EnumRow{2, "CUDA_MEMCPY_KIND_DTOH", "Device-to-Host"},
    EnumRow{3, "CUDA_MEMCPY_KIND_HTOA", "Host-to-Array"},
    EnumRow{4, "CUDA_MEMCPY_KIND_ATOH", "Array-to-Host"},
    EnumRow{5, "CUDA_MEMCPY_KIND_ATOA", "Array-to-Array"},
    EnumRow{6, "CUDA_MEMCPY_KIND_ATOD", "Array-to-Device"},
    EnumRow{7, "CUDA_MEMCPY_KIND_DTOA", "Device-to-Array"},
    EnumRow{8, "CUDA_MEMCPY_KIND_DTOD", "Device-to-Device"},
    EnumRow{9, "CUDA_MEMCPY_KIND_HTOH", "Host-to-Host"},
    EnumRow{10, "CUDA_MEMCPY_KIND_PTOP", "Peer-to-Peer"},
    EnumRow{11, "CUDA_MEMCPY_KIND_UVM_HTOD", "Unified Host-to-Device"},
    EnumRow{12, "CUDA_MEMCPY_KIND_UVM_DTOH", "Unified Device-to-Host"},
    EnumRow{13, "CUDA_MEMCPY_KIND_UVM_DTOD", "Unified Device-to-Device"},
    EnumRow{101, "DISK_TO_HOST", "Disk-to-Host"},  // not Nsight's
    EnumRow{102, "HOST_TO_DISK", "Host-to-Disk"},
};

constexpr std::array kCudaMemKind = {
    EnumRow{0, "CUDA_MEMOPR_MEMORY_KIND_PAGEABLE", "Pageable"},
    EnumRow{1, "CUDA_MEMOPR_MEMORY_KIND_PINNED", "Pinned"},
    EnumRow{2, "CUDA_MEMOPR_MEMORY_KIND_DEVICE", "Device"},
    EnumRow{3, "CUDA_MEMOPR_MEMORY_KIND_ARRAY", "Array"},
    EnumRow{4, "CUDA_MEMOPR_MEMORY_KIND_MANAGED", "Managed"},
    EnumRow{5, "CUDA_MEMOPR_MEMORY_KIND_DEVICE_STATIC", "Device Static"},
    EnumRow{6, "CUDA_MEMOPR_MEMORY_KIND_MANAGED_STATIC", "Managed Static"},
    EnumRow{7, "CUDA_MEMOPR_MEMORY_KIND_UNKNOWN", "Unknown"},
    EnumRow{kMemKindDisk, "DISK", "Disk"},  // not Nsight's
};

constexpr std::array kCudaMempoolType = {
    EnumRow{0, "CUPTI_ACTIVITY_MEMORY_POOL_TYPE_INVALID", "Invalid"},
    EnumRow{1, "CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL", "Local"},
    EnumRow{2, "CUPTI_ACTIVITY_MEMORY_POOL_TYPE_IMPORTED", "Imported"},
};

constexpr std::array kCudaMempoolOper = {
    EnumRow{0, "CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_INVALID", "Invalid"},
    EnumRow{1, "CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_CREATED", "Created"},
    EnumRow{2, "CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_DESTROYED", "Destroyed"},
    EnumRow{3, "CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_TRIMMED", "Trimmed"},
};

constexpr std::array kCudaDevMemEventOper = {
    EnumRow{0, "CUDA_DEV_MEM_EVENT_OPR_ALLOCATION", "Allocation"},
    EnumRow{1, "CUDA_DEV_MEM_EVENT_OPR_DEALLOCATION", "Deallocation"},
};

constexpr std::array kCudaKernelLaunchType = {
    EnumRow{0, "CUDA_KERNEL_LAUNCH_TYPE_UNKNOWN", "Unknown"},
    EnumRow{1, "CUDA_KERNEL_LAUNCH_TYPE_REGULAR", "Regular"},
    EnumRow{2, "CUDA_KERNEL_LAUNCH_TYPE_COOPERATIVE_SINGLE_DEVICE", "Coop Single Device"},
    EnumRow{3, "CUDA_KERNEL_LAUNCH_TYPE_COOPERATIVE_MULTI_DEVICE", "Coop Multi Device"},
};

constexpr std::array kCudaSharedMemLimitConfig = {
    EnumRow{0, "CUDA_SHARED_MEM_LIMIT_DEFAULT", "Default"},
    EnumRow{1, "CUDA_SHARED_MEM_LIMIT_OPTIN", "Opt in"},
};

constexpr std::array kCudaUnifMemMigration = {
    EnumRow{0, "CUDA_UNIFIED_MEMORY_MIGRATION_CAUSE_UNKNOWN", "Unknown"},
    EnumRow{1, "CUDA_UNIFIED_MEMORY_MIGRATION_CAUSE_USER", "User prefetch"},
    EnumRow{2, "CUDA_UNIFIED_MEMORY_MIGRATION_CAUSE_COHERENCE", "Page fault"},
    EnumRow{3, "CUDA_UNIFIED_MEMORY_MIGRATION_CAUSE_PREFETCH", "Speculative prefetch"},
    EnumRow{4, "CUDA_UNIFIED_MEMORY_MIGRATION_CAUSE_EVICTION", "Eviction"},
    EnumRow{5, "CUDA_UNIFIED_MEMORY_MIGRATION_CAUSE_ACCESS_COUNTERS", "Access counters"},
};

constexpr std::array kCudaFuncCacheConfig = {
    EnumRow{0, "CU_FUNC_CACHE_PREFER_NONE", "None"},
    EnumRow{1, "CU_FUNC_CACHE_PREFER_SHARED", "Shared"},
    EnumRow{2, "CU_FUNC_CACHE_PREFER_L1", "L1"},
    EnumRow{3, "CU_FUNC_CACHE_PREFER_EQUAL", "Equal"},
};

constexpr std::array kCuptiStreamType = {
    EnumRow{0, "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_UNKNOWN", "Unknown stream type"},
    EnumRow{1, "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_DEFAULT", "Default stream"},
    EnumRow{2, "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING", "Non-blocking stream"},
    EnumRow{3, "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NULL", "Null stream"},
};

constexpr std::array kCuptiSyncType = {
    EnumRow{0, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_UNKNOWN", "Unknown"},
    EnumRow{1, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE", "Event sync"},
    EnumRow{2, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT", "Stream wait sync"},
    EnumRow{3, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE", "Stream sync"},
    EnumRow{4, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE", "Context sync"},
};

constexpr std::array kCuptiOverheadType = {
    EnumRow{0, "OVERHEAD_UNDEFINED", "Undefined"},
    EnumRow{1, "OVERHEAD_UNKNOWN", "Unknown"},
    EnumRow{2, "OVERHEAD_DRIVER_COMPILER", "Driver JIT compiler (CUDA)"},
    EnumRow{3, "OVERHEAD_CUPTI_BUFFER_FLUSH", "Buffer flush (Profiler)"},
    EnumRow{4, "OVERHEAD_CUPTI_INSTRUMENTATION", "Instrumentation (Profiler)"},
    EnumRow{5, "OVERHEAD_CUPTI_RESOURCE", "Resource creation/destruction (Profiler)"},
    EnumRow{6, "OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING", "Runtime module loading (CUDA)"},
    EnumRow{7, "OVERHEAD_LAZY_FUNCTION_LOADING", "Lazy function loading (CUDA)"},
    EnumRow{8, "OVERHEAD_COMMAND_BUFFER_FULL", "Command buffer full (CUDA)"},
};

constexpr std::array kDiagnosticSeverityLevel = {
    EnumRow{0, "UnknownLevel", "Unknown"}, EnumRow{1, "Info", "Info"},       EnumRow{2, "Warning", "Warning"},
    EnumRow{3, "Error", "Error"},          EnumRow{4, "Verbose", "Verbose"},
};

constexpr std::array kDiagnosticSourceType = {
    EnumRow{0, "UnknownSource", "Unknown source"},
    EnumRow{1, "Injection", "Injection"},
    EnumRow{2, "Daemon", "Daemon"},
    EnumRow{3, "Analysis", "Analysis"},
};

constexpr std::array kDiagnosticTimestampSource = {
    EnumRow{0, "UnknownTimestamp", "Unknown timestamp"},
    EnumRow{1, "TargetTimestamp", "Target timestamp"},
    EnumRow{2, "HostTimestamp", "Host timestamp"},
};

constexpr std::array<SchemaTable, 17> kEnums = {{
    {"ENUM_NSYS_EVENT_TYPE", "What a row of NVTX_EVENTS or of a device is: the kinds that we write or read.",
     kColumns, kNsysEventType},
    {"ENUM_NSYS_EVENT_CLASS", "Which API a call belongs to: the classes that we write or read.", kColumns,
     kNsysEventClass},
    {"ENUM_CUDA_MEMCPY_OPER", "From where to where a copy goes.", kColumns, kCudaMemcpyOper},
    {"ENUM_CUDA_MEM_KIND", "Kinds of memory.", kColumns, kCudaMemKind},
    {"ENUM_CUDA_MEMPOOL_TYPE", "Kinds of memory pool.", kColumns, kCudaMempoolType},
    {"ENUM_CUDA_MEMPOOL_OPER", "What happened to a memory pool.", kColumns, kCudaMempoolOper},
    {"ENUM_CUDA_DEV_MEM_EVENT_OPER", "Allocation or free.", kColumns, kCudaDevMemEventOper},
    {"ENUM_CUDA_KERNEL_LAUNCH_TYPE", "How a kernel was launched.", kColumns, kCudaKernelLaunchType},
    {"ENUM_CUDA_SHARED_MEM_LIMIT_CONFIG", "Whether a kernel requested more shared memory.", kColumns,
     kCudaSharedMemLimitConfig},
    {"ENUM_CUDA_UNIF_MEM_MIGRATION", "Why unified memory moved.", kColumns, kCudaUnifMemMigration},
    {"ENUM_CUDA_FUNC_CACHE_CONFIG", "Cache preferences.", kColumns, kCudaFuncCacheConfig},
    {"ENUM_CUPTI_STREAM_TYPE", "Kinds of stream.", kColumns, kCuptiStreamType},
    {"ENUM_CUPTI_SYNC_TYPE", "What a synchronization waits for.", kColumns, kCuptiSyncType},
    {"ENUM_CUPTI_OVERHEAD_TYPE", "The cause of an overhead. Since schema version 3.", kColumns,
     kCuptiOverheadType, 3},
    {"ENUM_DIAGNOSTIC_SEVERITY_LEVEL", "The severity of a diagnostic.", kColumns, kDiagnosticSeverityLevel},
    {"ENUM_DIAGNOSTIC_SOURCE_TYPE", "The source of a diagnostic.", kColumns, kDiagnosticSourceType},
    {"ENUM_DIAGNOSTIC_TIMESTAMP_SOURCE", "The clock of a diagnostic's time.", kColumns,
     kDiagnosticTimestampSource},
}};

}  // namespace

std::span<const SchemaTable> nsight_enums() {
    return kEnums;
}

}  // namespace shardscope::traces::schema
