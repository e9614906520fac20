// The tables that we share with Nsight Systems' SQLite export (schema 3.25.0): its names, types and units, so
// that SQL written for an export runs on our files. Unknown values are NULL, or 0 where NULL is not allowed.
// This file: processes, threads and machines; devices and NVTX have their own files.
#include <array>
#include <vector>

#include "traces/schema/nsight_columns.h"
#include "traces/schema/row_access.h"
#include "traces/schema/schema.h"
#include "traces/schema/stored_rows.h"

namespace shardscope::traces::schema {

namespace {

struct IsCuda {
    bool operator()(const GpuRow& row) const { return row.compute_major != 0; }
};
struct IsDiscrete {
    std::optional<int> operator()(const GpuRow& row) const {
        return IsCuda()(row) ? std::optional(1) : std::nullopt;
    }
};
struct SeverityOf {
    Severity operator()(const DiagnosticRow& row) const { return row.severity; }
};

constexpr std::array kStringIds = {
    SchemaColumn{"id", "INTEGER NOT NULL PRIMARY KEY", "id", "What other tables refer to.",
                 from<&StringRow::id>},
    SchemaColumn{"value", kTextNN, "", "The text.", from<&StringRow::value>},
};

constexpr std::array kGpu = {
    SchemaColumn{"vmId", kIntNN, "id", "The machine, serialized.", always("281474976710656")},
    SchemaColumn{"id", kIntNN, "id", "The device, as in deviceId columns.", from<&GpuRow::device>},
    SchemaColumn{"name", kText, "", "The GPU's or, on the CPU device, the processor's name.",
                 from<&GpuRow::name>},
    SchemaColumn{"busLocation", kText, "", "On the PCI bus.", unless_zero<&GpuRow::bus_location>},
    SchemaColumn{"isDiscrete", kInt, "0/1", "1: with memory of its own.", from<IsDiscrete{}>},
    SchemaColumn{"l2CacheSize", kInt, "bytes", "Level 2 cache.", unless_zero<&GpuRow::l2_bytes>},
    SchemaColumn{"totalMemory", kInt, "bytes", "The device's memory.", from<&GpuRow::memory>},
    SchemaColumn{"memoryBandwidth", kInt, "bytes/s", "Of that memory.",
                 unless_zero<&GpuRow::memory_bandwidth>},
    SchemaColumn{"clockRate", kInt, "Hz", "Clock.", unless_zero<&GpuRow::clock_hz>},
    SchemaColumn{"smCount", kInt, "count", "Multiprocessors.", unless_zero<&GpuRow::multiprocessors>},
    SchemaColumn{"pwGpuId", kInt, "id", "Not used."},
    SchemaColumn{"uuid", kText, "", "The device's own id.", unless_zero<&GpuRow::uuid>},
    SchemaColumn{"luid", kInt, "id", "Not used."},
    SchemaColumn{"chipName", kText, "", "The chip.", unless_zero<&GpuRow::chip>},
    SchemaColumn{"cuDevice", kInt, "id", "CUDA's number of the device.", from<&GpuRow::cuda_device>},
    SchemaColumn{"ctxswDevPath", kText, "", "Not used."},
    SchemaColumn{"ctrlDevPath", kText, "", "Not used."},
    SchemaColumn{"revision", kInt, "", "Not used."},
    SchemaColumn{"nodeMask", kInt, "", "Not used."},
    SchemaColumn{"constantMemory", kInt, "bytes", "For constants.", unless_zero<&GpuRow::constant_bytes>},
    SchemaColumn{"maxIPC", kInt, "count", "Maximum number of instructions per clock."},
    SchemaColumn{"maxRegistersPerBlock", kInt, "count", "Maximum number of registers per block.",
                 unless_zero<&GpuRow::max_registers_per_block>},
    SchemaColumn{"maxShmemPerBlock", kInt, "bytes", "Maximum shared memory per block.",
                 unless_zero<&GpuRow::max_shared_per_block>},
    SchemaColumn{"maxShmemPerBlockOptin", kInt, "bytes", "The same, if requested."},
    SchemaColumn{"maxShmemPerSm", kInt, "bytes", "Shared memory of a multiprocessor.",
                 unless_zero<&GpuRow::max_shared_per_multiprocessor>},
    SchemaColumn{"maxRegistersPerSm", kInt, "count", "Registers of a multiprocessor.",
                 unless_zero<&GpuRow::max_registers_per_multiprocessor>},
    SchemaColumn{"threadsPerWarp", kInt, "threads", "Warp size.", unless_zero<&GpuRow::warp_threads>},
    SchemaColumn{"asyncEngines", kInt, "count", "Copy engines.", unless_zero<&GpuRow::copy_engines>},
    SchemaColumn{"maxWarpsPerSm", kInt, "count", "Maximum number of warps per multiprocessor.",
                 unless_zero<&GpuRow::max_warps_per_multiprocessor>},
    SchemaColumn{"maxBlocksPerSm", kInt, "count", "Maximum number of blocks per multiprocessor.",
                 unless_zero<&GpuRow::max_blocks_per_multiprocessor>},
    SchemaColumn{"maxThreadsPerBlock", kInt, "threads", "Maximum number of threads per block.",
                 unless_zero<&GpuRow::max_threads_per_block>},
    SchemaColumn{"maxBlockDimX", kInt, "threads", "Largest block size in x."},
    SchemaColumn{"maxBlockDimY", kInt, "threads", "Largest block size in y."},
    SchemaColumn{"maxBlockDimZ", kInt, "threads", "Largest block size in z."},
    SchemaColumn{"maxGridDimX", kInt, "blocks", "Largest grid size in x."},
    SchemaColumn{"maxGridDimY", kInt, "blocks", "Largest grid size in y."},
    SchemaColumn{"maxGridDimZ", kInt, "blocks", "Largest grid size in z."},
    SchemaColumn{"computeMajor", kInt, "", "Compute capability, before the dot.",
                 from_if<IsCuda, &GpuRow::compute_major>},
    SchemaColumn{"computeMinor", kInt, "", "Compute capability, after the dot.",
                 from_if<IsCuda, &GpuRow::compute_minor>},
    SchemaColumn{"smMajor", kInt, "", "Multiprocessor version, before the dot.",
                 from_if<IsCuda, &GpuRow::compute_major>},
    SchemaColumn{"smMinor", kInt, "", "Multiprocessor version, after the dot.",
                 from_if<IsCuda, &GpuRow::compute_minor>},
    SchemaColumn{"numaNodeId", kInt, "id", "The NUMA node nearest to the device."},
};

constexpr std::array kCudaDevice = {
    SchemaColumn{"gpuId", kInt, "id", "TARGET_INFO_GPU.id", from<&CudaDeviceRow::device>},
    SchemaColumn{"cudaId", kIntNN, "id", "The device's number in the process.",
                 from<&CudaDeviceRow::cuda_device>},
    SchemaColumn{"pid", kIntNN, "id", "The process.", from<&CudaDeviceRow::pid>},
    SchemaColumn{"uuid", kText, "", "The device's own id.", unless_zero<&CudaDeviceRow::uuid>},
    SchemaColumn{"numMultiprocessors", kInt, "count", "Multiprocessors.",
                 unless_zero<&CudaDeviceRow::multiprocessors>},
};

constexpr std::array kCudaContext = {
    SchemaColumn{"nullStreamId", kIntNN, "id", "The context's default stream.",
                 from<&CudaContextRow::null_stream>},
    SchemaColumn{"hwId", kIntNN, "id", "The machine; 0.", always("0")},
    SchemaColumn{"vmId", kIntNN, "id", "The virtual machine; 1.", always("1")},
    SchemaColumn{"processId", kIntNN, "id", "The process.", from<&CudaContextRow::pid>},
    SchemaColumn{"deviceId", kIntNN, "id", "Its device. TARGET_INFO_GPU.id", from<&CudaContextRow::device>},
    SchemaColumn{"contextId", kIntNN, "id", "The context, a number within the process.",
                 from<&CudaContextRow::context>},
    SchemaColumn{"parentContextId", kInt, "id", "Of a green context: the one that it is part of."},
    SchemaColumn{"isGreenContext", kInt, "0/1", "1: a green context.", always("0")},
};

constexpr std::array kCudaStream = {
    SchemaColumn{"streamId", kIntNN, "id", "The stream, a number within the context.",
                 from<&CudaStreamRow::stream>},
    SchemaColumn{"hwId", kIntNN, "id", "The machine; 0.", always("0")},
    SchemaColumn{"vmId", kIntNN, "id", "The virtual machine; 1.", always("1")},
    SchemaColumn{"processId", kIntNN, "id", "The process.", from<&CudaStreamRow::pid>},
    SchemaColumn{"contextId", kIntNN, "id", "Its context.", from<&CudaStreamRow::context>},
    SchemaColumn{"priority", kIntNN, "", "Its priority; lower runs first.", from<&CudaStreamRow::priority>},
    SchemaColumn{"flag", kIntNN, "enum", "ENUM_CUPTI_STREAM_TYPE", from<&CudaStreamRow::flag>},
};

constexpr std::array kSystemEnv = {
    SchemaColumn{"globalVid", kInt, "id", "The machine, serialized."},
    SchemaColumn{"devStateName", kTextNN, "", "The machine's name."},
    SchemaColumn{"name", kTextNN, "", "Name of the fact: \"CpuCores\"."},
    SchemaColumn{"nameEnum", kIntNN, "", "Its number."},
    SchemaColumn{"value", kTextNN, "", "The fact. The environment's variables are never stored."},
};

constexpr std::array kProfilerOverhead = {
    with(kStart, from<&ProfilerOverheadRow::start>),
    with(kEnd, from<&ProfilerOverheadRow::end>),
    with(kTid, from<&ProfilerOverheadRow::global_tid>),
    SchemaColumn{"nameId", kIntNN, "id", "What the profiler did. StringIds.id",
                 from<&ProfilerOverheadRow::name>},
    SchemaColumn{"overheadType", kIntNN, "enum",
                 "Its kind; 0 where CUPTI did not cause it, and in older exports, which have the name alone. "
                 "ENUM_CUPTI_OVERHEAD_TYPE",
                 from<&ProfilerOverheadRow::overhead_type>},
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
    with(kPid, from<&ProcessRow::global_pid>),
    SchemaColumn{"pid", kInt, "id", "The system's number of the process.", from<&ProcessRow::pid>},
    SchemaColumn{"name", kText, "", "Its name.", from<&ProcessRow::name>},
};

constexpr std::array kThreadNames = {
    SchemaColumn{"nameId", kIntNN, "id", "StringIds.id", from<&ThreadNameRow::name>},
    SchemaColumn{"priority", kInt, "", "The thread's priority."},
    with(kTid, from<&ThreadNameRow::global_tid>),
};

constexpr std::array kNameValue = {
    SchemaColumn{"name", kTextNN, "", "Name of the fact."},
    SchemaColumn{"value", kText, "", "The fact."},
};

constexpr std::array kDiagnostic = {
    SchemaColumn{"timestamp", kIntNN, "ns", "When, since the start of the capture.",
                 from<&DiagnosticRow::time>},
    SchemaColumn{"timestampType", kIntNN, "enum", "ENUM_DIAGNOSTIC_TIMESTAMP_SOURCE", always("1")},
    SchemaColumn{"source", kIntNN, "enum", "ENUM_DIAGNOSTIC_SOURCE_TYPE", always("1")},
    SchemaColumn{"severity", kIntNN, "enum", "ENUM_DIAGNOSTIC_SEVERITY_LEVEL", from<SeverityOf{}>},
    SchemaColumn{"text", kTextNN, "", "What happened, for example how many events were lost.",
                 from<&DiagnosticRow::text>},
    kPid,
};

constexpr std::array<SchemaTable, 14> kTables = {{
    {"StringIds", "Every text that other tables refer to by id.", kStringIds},
    {"TARGET_INFO_GPU", "The devices. A rank on the CPU is a device, too.", kGpu},
    {"TARGET_INFO_CUDA_DEVICE", "Which process used which device.", kCudaDevice},
    {"TARGET_INFO_CUDA_CONTEXT_INFO", "CUDA contexts. Since schema version 3.", kCudaContext, {}, 3},
    {"TARGET_INFO_CUDA_STREAM", "CUDA streams. Since schema version 3.", kCudaStream, {}, 3},
    {"TARGET_INFO_SESSION_START_TIME", "The wall clock at time 0; one row.", kSessionStart},
    {"TARGET_INFO_SYSTEM_ENV", "Facts of the machine. Since schema version 3.", kSystemEnv, {}, 3},
    {"ANALYSIS_DETAILS", "Length of the capture; one row, written when the run ends.", kAnalysisDetails},
    {"PROCESSES", "The processes that took part.", kProcesses},
    {"ThreadNames", "Names of host threads.", kThreadNames},
    {"META_DATA_EXPORT",
     "The version of Nsight's schema that the file follows, and the program that wrote it.", kNameValue},
    {"META_DATA_CAPTURE", "How the capture was made.", kNameValue},
    {"DIAGNOSTIC_EVENT", "Messages of the recorder about the capture.", kDiagnostic},
    {"PROFILER_OVERHEAD",
     "Time that Nsight Systems took from the program's own threads: starting, instrumenting, flushing "
     "buffers. Our recorder's is in CUPTI_ACTIVITY_KIND_OVERHEAD. Since schema version 3.",
     kProfilerOverhead,
     {},
     3},
}};

std::vector<SchemaTable> all_tables() {
    std::vector<SchemaTable> all(kTables.begin(), kTables.end());
    for (const auto part : {nsight_device_tables(), nsight_nvtx_tables()}) {
        all.insert(all.end(), part.begin(), part.end());
    }
    return all;
}

}  // namespace

std::span<const SchemaTable> nsight_tables() {
    static const std::vector<SchemaTable> kAll = all_tables();
    return kAll;
}

}  // namespace shardscope::traces::schema
