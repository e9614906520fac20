// One plain struct per kind of row that a source (the recorder, an importer) hands to an EventSink.
// Times are integer nanoseconds since the start of the capture; sizes are bytes; names are ids from
// EventSink::intern; a rank is its number. "None" is -1 for ids and std::nullopt for values.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

#include "traces/schema/enums.h"

namespace shardscope::traces::schema {

// Index into the sink's string table; 0 is the empty string.
enum class StringId : std::uint32_t { empty = 0 };

// A struct's kTable is the table that its rows become, whose columns say which member each holds (schema.h,
// row_access.h). kVerb says how a row is stored whose key already exists; without it, that is an error.
//
// A trace in memory stores most events in columns (trace.h). A kind with few rows is stored as structs: its
// `Kept` holds the trace's vector of them, order() is their sort key, and each_time() visits their times
// from the first to the last, as each_name() visits their names.
inline constexpr std::string_view kReplace = "INSERT OR REPLACE", kKeepFirst = "INSERT OR IGNORE";

// --- what happened -------------------------------------------------------------------------------

struct KernelRow {
    static constexpr std::string_view kTable = "CUPTI_ACTIVITY_KIND_KERNEL";
    std::int64_t start = 0, end = 0;
    int device = 0;  // TARGET_INFO_GPU.id; one device per rank
    int stream = 0;
    std::int64_t correlation = 0;  // unique in the file; ties the kernel to its launching RuntimeRow
    std::int64_t global_pid = 0;
    StringId short_name = StringId::empty;
    StringId demangled_name = StringId::empty;  // with its signature; empty: same as short_name
    StringId mangled_name = StringId::empty;    // the symbol; empty: unknown
    int grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
    int context = 1;
    int launch_type = 1;  // ENUM_CUDA_KERNEL_LAUNCH_TYPE
    int cache_config = -1;
    int registers = 0;  // per thread
    int static_shared_memory = 0, dynamic_shared_memory = 0;
    int local_memory_per_thread = 0;
    std::int64_t local_memory_total = 0;
    std::int64_t grid_id = 0;
    int shared_memory_executed = -1, shared_memory_limit_config = -1;
    std::int64_t graph_node = -1, graph = -1;  // if a CUDA graph launched it
    int cluster[3] = {-1, -1, -1};
    int cluster_policy = -1, max_potential_cluster = -1, max_active_clusters = -1;
    std::int64_t external_id = 0;  // id of the operator that launched it, as recorded; 0 none
    float blocks_per_sm = -1;      // blocks of the grid per multiprocessor; negative: unknown
    float occupancy = -1;          // achieved, 0..100, as the source estimates it; negative: unknown

    template <typename Row, typename Visit>
    static void each_name(Row& row, Visit visit) {
        visit(row.short_name);
        visit(row.demangled_name);
        visit(row.mangled_name);
    }
};

struct MemcpyRow {
    static constexpr std::string_view kTable = "CUPTI_ACTIVITY_KIND_MEMCPY";
    std::int64_t start = 0, end = 0;
    int device = 0, stream = 0;
    std::int64_t correlation = 0, global_pid = 0;
    std::int64_t bytes = 0;
    int copy_kind = kCopyHostToDevice;
    int src_kind = kMemKindPageable, dst_kind = kMemKindDevice;
    int context = 1;
    int src_device = -1, src_context = -1, dst_device = -1, dst_context = -1;  // for copies between devices
    std::int64_t graph_node = -1;
    int copies = -1;               // number of copies that the row represents
    std::int64_t external_id = 0;  // as KernelRow's
};

struct MemsetRow {
    static constexpr std::string_view kTable = "CUPTI_ACTIVITY_KIND_MEMSET";
    std::int64_t start = 0, end = 0;
    int device = 0, stream = 0;
    std::int64_t correlation = 0, global_pid = 0;
    std::int64_t bytes = 0;
    int value = 0;
    int mem_kind = kMemKindDevice;
    int context = 1;
    std::int64_t graph_node = -1;
    std::int64_t external_id = 0;  // as KernelRow's
};

// A runtime (or driver) API call on a host thread; the name carries CUDA's suffix ("cudaLaunchKernel_v7000").
struct RuntimeRow {
    static constexpr std::string_view kTable = "CUPTI_ACTIVITY_KIND_RUNTIME";
    std::int64_t start = 0, end = 0;
    std::int64_t global_tid = 0;
    std::int64_t correlation = 0;
    StringId name = StringId::empty;
    int return_value = 0;
    bool driver = false;

    template <typename Row, typename Visit>
    static void each_name(Row& row, Visit visit) {
        visit(row.name);
    }
};

struct SynchronizationRow {
    static constexpr std::string_view kTable = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION";
    std::int64_t start = 0, end = 0;
    int device = 0, stream = -1;  // -1: not applicable
    std::int64_t correlation = 0, global_pid = 0;
    int sync_type = kSyncEvent;
    std::int64_t event_id = -1;
    int context = 1;
    std::int64_t event_sync_id = -1;
};

// The value that a program gave to an NVTX event in addition to its text.
struct RangePayload {
    enum class Type : std::uint8_t { none, uint64, int64, real64, uint32, int32, real32 };
    Type type = Type::none;
    std::uint64_t bits = 0;  // the value, in the low bytes
};

// An NVTX range (push/pop or start/end) or mark. `module` ties our own ranges to ModuleRow::id (stored in
// int64Value), so that the backward of a module is found without parsing names.
struct RangeRow {
    std::int64_t start = 0;
    std::optional<std::int64_t> end;  // none for a mark
    int event_type = kNvtxPushPop;
    StringId text = StringId::empty;
    StringId domain = StringId::empty;  // empty: the default domain
    std::int64_t global_tid = 0;
    std::optional<std::uint32_t> color;  // ARGB
    int module = -1;
    std::optional<std::uint32_t> category;       // NVTX category; a kNvtxCategory row carries its name
    std::optional<std::int64_t> end_global_tid;  // of a start/end range that another thread ended
    RangePayload payload;
    std::string binary;  // payload with a schema, as stored in NVTX_EVENTS.binaryData (binary_payload())
    StringId detail = StringId::empty;  // further facts, as one JSON object ({"Input Dims":[[2,3]]})
    std::int64_t external_id = 0;       // the operator's id, to which device events may refer; 0 none

    template <typename Row, typename Visit>
    static void each_name(Row& row, Visit visit) {
        visit(row.text);
        visit(row.domain);
        visit(row.detail);
    }
};

// Ties one host range to another; each is identified by its thread and start time.
struct LinkRow {
    static constexpr std::string_view kTable = "SHARD_LINKS";
    LinkKind kind = LinkKind::backward;
    std::int64_t from_tid = 0, from_time = 0;  // the forward operator
    std::int64_t to_tid = 0, to_time = 0;      // its backward
};

// The content of NVTX_EVENTS.binaryData for one payload with a schema: 1, the schema's id, the size and 32 +
// size as four integers of 8 bytes, then the bytes. Source: exports of Nsight Systems 2026.
std::string binary_payload(std::uint64_t schema, std::string_view bytes);

// The layout of binary payloads of a domain, with its entries; the same one may be reported several times.
struct PayloadSchemaRow {
    struct Entry {
        std::string name, description;
        std::uint64_t type = 0, flags = 0, detail = 0, offset = 0;
    };
    StringId domain = StringId::empty;
    std::uint64_t id = 0;
    std::string name;
    std::uint64_t type = 0, flags = 0, size = 0, align = 0;
    std::vector<Entry> entries;

    template <typename Row, typename Visit>
    static void each_name(Row& row, Visit visit) {
        visit(row.domain);
    }
};

struct PayloadEnumRow {
    struct Entry {
        std::string name;
        std::uint64_t value = 0;
        bool is_flag = false;
    };
    StringId domain = StringId::empty;
    std::uint64_t id = 0, size = 0;
    std::string name;
    std::vector<Entry> entries;

    template <typename Row, typename Visit>
    static void each_name(Row& row, Visit visit) {
        visit(row.domain);
    }
};

struct ScopeRow {
    StringId domain = StringId::empty;
    std::uint64_t id = 0, parent = 0;
    std::string path;

    template <typename Row, typename Visit>
    static void each_name(Row& row, Visit visit) {
        visit(row.domain);
    }
};

// --- CUDA's own records (CUPTI), which only a database keeps ---------------------------------------------

struct CudaEventRow {
    static constexpr std::string_view kTable = "CUPTI_ACTIVITY_KIND_CUDA_EVENT";
    std::int64_t time = 0;  // 0: not measured
    int device = 0, context = 1, stream = 0;
    std::int64_t correlation = 0, global_pid = 0;
    std::int64_t event_id = 0, event_sync_id = -1;
};

struct OverheadRow {
    static constexpr std::string_view kTable = "CUPTI_ACTIVITY_KIND_OVERHEAD";
    std::int64_t start = 0, end = 0;
    int overhead_type = 1;  // ENUM_CUPTI_OVERHEAD_TYPE
    std::int64_t global_tid = 0, correlation = 0;
    StringId name = StringId::empty;

    template <typename Row, typename Visit>
    static void each_name(Row& row, Visit visit) {
        visit(row.name);
    }
};

// Time that Nsight Systems and the CUPTI in it took from a thread of the program. (OverheadRow is what CUPTI
// reports: in an export only CUDA's own work.)
struct ProfilerOverheadRow {
    static constexpr std::string_view kTable = "PROFILER_OVERHEAD";
    std::int64_t start = 0, end = 0;
    std::int64_t global_tid = 0;
    StringId name = StringId::empty;  // "CUPTI Buffer flush"
    int overhead_type = 0;            // ENUM_CUPTI_OVERHEAD_TYPE; 0: not CUPTI's, or unknown

    template <typename Row, typename Visit>
    static void each_name(Row& row, Visit visit) {
        visit(row.name);
    }
    template <typename Row, typename Visit>
    static void each_time(Row& row, Visit visit) {
        visit(row.start);
        visit(row.end);
    }
    auto order() const { return std::tie(start, end); }
    struct Kept {
        std::vector<ProfilerOverheadRow> profiler_overheads;
    };
};

struct GraphTraceRow {
    static constexpr std::string_view kTable = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";
    std::int64_t start = 0, end = 0;
    int device = 0, context = 1, stream = 0;
    std::int64_t graph = 0, graph_exec = -1;
    std::int64_t correlation = 0, global_pid = 0;
};

// An allocation or free made by CUDA (MemoryRow is for those whose category is known).
struct CudaMemoryRow {
    std::int64_t time = 0, global_pid = 0;
    int device = 0, context = 1;
    std::uint64_t address = 0, pc = 0;
    std::int64_t bytes = 0;
    int mem_kind = kMemKindDevice;
    bool is_free = false;
    std::int64_t correlation = 0;
    int stream = -1;
    StringId name = StringId::empty;
    std::uint64_t pool_address = 0;  // 0: not from a pool
    std::int64_t pool_threshold = 0, pool_size = 0, pool_used = 0;

    template <typename Row, typename Visit>
    static void each_name(Row& row, Visit visit) {
        visit(row.name);
    }
};

struct CudaPoolRow {
    static constexpr std::string_view kTable = "CUDA_GPU_MEMORY_POOL_EVENTS";
    std::int64_t time = 0, global_pid = 0;
    int device = 0;
    std::uint64_t address = 0;
    int operation = 0, type = 0;  // ENUM_CUDA_MEMPOOL_OPER, ENUM_CUDA_MEMPOOL_TYPE
    std::int64_t correlation = 0, min_bytes_to_keep = 0, threshold = 0, size = 0, used = 0;
};

// A device with all known facts; added before the RankRow that uses it, or without one.
struct GpuRow {
    static constexpr std::string_view kTable = "TARGET_INFO_GPU";
    int device = 0;       // the id in this file
    int cuda_device = 0;  // CUDA's number in the process
    std::int64_t pid = 0;
    std::string name, bus_location, uuid, chip;
    std::int64_t memory = 0, memory_bandwidth = 0, clock_hz = 0, l2_bytes = 0, constant_bytes = 0;
    int multiprocessors = 0, compute_major = 0, compute_minor = 0, warp_threads = 0, copy_engines = 0;
    int max_threads_per_block = 0, max_warps_per_multiprocessor = 0, max_blocks_per_multiprocessor = 0;
    int max_registers_per_block = 0, max_registers_per_multiprocessor = 0;
    std::int64_t max_shared_per_block = 0, max_shared_per_multiprocessor = 0;
};

struct CudaContextRow {
    static constexpr std::string_view kTable = "TARGET_INFO_CUDA_CONTEXT_INFO";
    std::int64_t pid = 0;
    int device = 0, context = 1, null_stream = 0;
};

struct CudaStreamRow {
    static constexpr std::string_view kTable = "TARGET_INFO_CUDA_STREAM";
    std::int64_t pid = 0;
    int context = 1, stream = 0;
    std::int64_t priority = 0;
    int flag = 0;  // ENUM_CUPTI_STREAM_TYPE
};

// --- NCCL's own records (its profiler plugin) ------------------------------------------------------------

struct NcclCommunicatorRow {
    static constexpr std::string_view kTable = "SHARD_NCCL_COMMUNICATORS";
    std::uint64_t communicator = 0;
    std::int64_t global_pid = 0;
    int rank = 0, ranks = 0, nodes = 0;
    std::string name;
};

struct NcclOperationRow {
    static constexpr std::string_view kTable = "SHARD_NCCL_OPERATIONS";
    std::uint64_t communicator = 0;
    std::int64_t global_pid = 0, global_tid = 0;
    int rank = 0;
    Operation operation = Operation::other;
    std::int64_t sequence = -1;
    std::int64_t start = 0;
    std::optional<std::int64_t> end;
    std::int64_t count = -1;
    std::string data_type, algorithm, protocol;
    int root = -1, channels = -1, warps = -1;
};

struct CollectiveRow {
    static constexpr std::string_view kTable = "SHARD_COLLECTIVES";
    int rank = 0;
    std::int64_t correlation = 0;  // equals that of its KernelRow
    Operation operation = Operation::other;
    std::int64_t bytes = 0;    // of the full buffer (nccl-tests' S: the gathered size)
    std::int64_t padding = 0;  // the part of `bytes` that is padding
    std::int64_t group = 0;    // id of the communicator
    int group_size = 0;
    std::int64_t sequence = 0;  // per communicator, in issue order, equal on all ranks
    int unit = -1;              // UnitRow::id
    Phase phase = Phase::none;
};

// One allocation (bytes > 0) or free (bytes < 0) in host program order.
struct MemoryRow {
    static constexpr std::string_view kTable = "SHARD_MEMORY";
    std::int64_t time = 0;
    int rank = 0;
    std::uint64_t address = 0;
    std::int64_t bytes = 0;
    MemoryCategory category = MemoryCategory::other;
    MemorySpace space = MemorySpace::device;
    Phase phase = Phase::none;
    int unit = -1, module = -1, stream = -1;
    StringId name = StringId::empty;  // the buffer's name, for example "net.0 flat_param"
    // Facts that only sources other than our trainer record.
    std::int64_t global_tid = 0;  // the allocating thread; 0 unknown
    std::int64_t total = -1,
                 reserved = -1;  // the device's, right after it, as the allocator reports; -1 unknown
    StringId annotation = StringId::empty;  // the enclosing range, as the source reports it
    StringId stack = StringId::empty;       // frames, innermost first, one per line: "file.py:12 function"

    template <typename Row, typename Visit>
    static void each_name(Row& row, Visit visit) {
        visit(row.name);
        visit(row.annotation);
        visit(row.stack);
    }
};

// Memory that the caching allocator took from the device (bytes > 0) or returned to it (bytes < 0).
struct SegmentRow {
    static constexpr std::string_view kTable = "SHARD_SEGMENTS";
    std::int64_t time = 0;
    int rank = 0;
    std::uint64_t address = 0;
    std::int64_t bytes = 0;
    int stream = -1;
};

// What PyTorch's caching allocator recorded beyond its allocations and segments.
struct AllocatorEventRow {
    static constexpr std::string_view kTable = "SHARD_ALLOCATOR_EVENTS";
    std::int64_t time = 0;
    int rank = 0;
    AllocatorEventKind kind = AllocatorEventKind::free_requested;
    std::uint64_t address = 0;  // 0 for a failed request
    std::int64_t bytes = 0;
    int stream = 0;
    int pool = 0;                   // of a segment: the number of its private pool; 0: the common pool
    bool small = false;             // of a segment: it serves requests up to 1 MiB
    std::int64_t device_free = -1;  // of a failed request: what the device had left; -1 unknown

    template <typename Row, typename Visit>
    static void each_time(Row& row, Visit visit) {
        visit(row.time);
    }
    auto order() const { return std::tie(rank, time); }
    struct Kept {
        std::vector<AllocatorEventRow> allocator_events;
    };
};

// The entry of PyTorch's NCCL flight recorder for one collective of one rank.
struct FlightRow {
    static constexpr std::string_view kTable = "SHARD_FLIGHT_RECORDS";
    int rank = 0;
    std::int64_t id = 0;  // in the order of issue, within the rank
    StringId group = StringId::empty, group_description = StringId::empty;
    std::int64_t group_size = 0;
    std::int64_t sequence = -1;  // counted over the group's collectives, or its sends and receives
    bool point_to_point = false;
    Operation operation = Operation::other;
    StringId name = StringId::empty;  // "nccl:_all_gather_base"
    std::int64_t input_bytes = -1, output_bytes = -1;
    StringId data_type = StringId::empty;
    StringId sizes = StringId::empty;  // "[[128, 64]] -> [[1024, 64]]"
    FlightState state = FlightState::scheduled;
    std::int64_t created = 0;
    std::optional<std::int64_t> started = {}, completed = {};
    std::int64_t timeout_ms = -1;
    StringId stack = StringId::empty;  // in the format of MemoryRow::stack

    template <typename Row, typename Visit>
    static void each_name(Row& row, Visit visit) {
        visit(row.group);
        visit(row.group_description);
        visit(row.name);
        visit(row.data_type);
        visit(row.sizes);
        visit(row.stack);
    }
    template <typename Row, typename Visit>
    static void each_time(Row& row, Visit visit) {
        visit(row.created);
        if (row.started) visit(*row.started);
        if (row.completed) visit(*row.completed);
    }
    auto order() const { return std::tie(rank, id); }
    struct Kept {
        std::vector<FlightRow> flight;
    };
};

// A value that changes over time, for example "reserved_bytes" of a rank.
struct CounterRow {
    static constexpr std::string_view kTable = "SHARD_COUNTERS";
    std::int64_t time = 0;
    int rank = 0;
    StringId name = StringId::empty;
    double value = 0;
    StringId host = StringId::empty;  // of what no rank owns alone: a GPU, an adapter, a whole host
    int device = -1;                  // its DeviceRow::number on that host; -1: none

    template <typename Row, typename Visit>
    static void each_name(Row& row, Visit visit) {
        visit(row.name);
        visit(row.host);
    }
};

// Where a thread was when a profiler of the processor looked at it.
struct SampleRow {
    static constexpr std::string_view kTable = "SHARD_SAMPLES";
    std::int64_t time = 0;
    std::int64_t global_tid = 0;
    StringId event = StringId::empty;  // what the profiler counts: "cpu-clock", "cycles"
    std::int64_t weight = 0;           // of `event`, since the thread's last sample: ns of cpu-clock, cycles
    int cpu = -1;                      // the processor; -1: unknown
    StringId stack = StringId::empty;  // in the format of MemoryRow::stack: "function (module)"

    template <typename Row, typename Visit>
    static void each_name(Row& row, Visit visit) {
        visit(row.event);
        visit(row.stack);
    }
};

struct StepRow {
    static constexpr std::string_view kTable = "SHARD_STEPS";
    int rank = 0;
    std::int64_t step = 0;
    std::int64_t start = 0, end = 0;  // on the rank's host thread
    std::int64_t global_tid = 0;
};

struct LossRow {  // the global mean loss of a step, known one step late
    static constexpr std::string_view kTable = "SHARD_LOSSES";
    static constexpr std::string_view kVerb = kReplace;
    std::int64_t step = 0;
    double loss = std::numeric_limits<double>::quiet_NaN();
};

// The value of a metric, such as the learning rate, at a step. The training loss is a LossRow.
struct MetricRow {
    static constexpr std::string_view kTable = "SHARD_METRICS";
    static constexpr std::string_view kVerb = kKeepFirst;
    std::int64_t step = -1;    // -1: it belongs to no step
    std::int64_t sample = -1;  // samples that training has used by the end of the step; -1: unknown
    std::int64_t time = 0;     // when it was known
    int rank = -1;             // the rank that reports it; -1: it is the whole job's
    StringId name = StringId::empty;
    double value = std::numeric_limits<double>::quiet_NaN();

    template <typename Row, typename Visit>
    static void each_name(Row& row, Visit visit) {
        visit(row.name);
    }
    template <typename Row, typename Visit>
    static void each_time(Row& row, Visit visit) {
        visit(row.time);
    }
    auto order() const { return std::tie(step, rank, name, time); }
    // What a step has of the whole job it has once, whatever the clocks of several files say.
    auto identity() const { return std::tuple(step, rank, name, step >= 0 && rank < 0 ? 0 : time); }
    struct Kept {
        std::vector<MetricRow> metrics;
    };
};

// --- participants ----------------------------------------------------------------------------------

struct RunInfoRow {  // configuration and facts of the run: "model.width" = "1024"
    static constexpr std::string_view kTable = "SHARD_RUN";
    static constexpr std::string_view kVerb = kReplace;
    std::string key, value;
};

struct RankRow {
    static constexpr std::string_view kTable = "SHARD_RANKS";
    static constexpr std::string_view kVerb = kReplace;
    int rank = 0;
    int device = 0;
    std::int64_t global_pid = 0, global_tid = 0;  // of the rank's host thread
    std::string host;
    std::string device_name;  // the GPU's or, on the CPU device, the processor's name
    std::int64_t device_memory = 0;
    int data = 0, shard = 0, context = 0, tensor = 0, pipeline = 0;  // place in the mesh, by axis (kMeshAxes)
    int local_rank = -1;  // among the job's processes on its host, as the launcher set it; -1 unknown
    std::string cpus;     // the processors that its process may run on, "0-3,8"; empty: unknown
};

// The axes of a mesh of ranks: a column of SHARD_RANKS each, in this order in every text.
struct MeshAxis {
    std::string_view name;
    int RankRow::*place;
};
inline constexpr std::array kMeshAxes = {
    MeshAxis{"data", &RankRow::data},         MeshAxis{"shard", &RankRow::shard},
    MeshAxis{"context", &RankRow::context},   MeshAxis{"tensor", &RankRow::tensor},
    MeshAxis{"pipeline", &RankRow::pipeline},
};

// A communicator of the job: CollectiveRow::group.
struct GroupRow {
    static constexpr std::string_view kTable = "SHARD_GROUPS";
    static constexpr std::string_view kVerb = kKeepFirst;
    std::int64_t group = 0;
    std::string axis;   // of the mesh, along which its ranks lie: "tensor", "data+shard"; empty: unknown
    std::string ranks;  // as the source writes them: "0-3,8"; empty: unknown
    std::string name;   // as the program calls it; empty: it has no name
    std::string description;  // what the program says it is for: "mesh_tp"; empty: nothing

    auto order() const { return std::tie(group); }
    struct Kept {
        std::vector<GroupRow> groups;
    };
};

// An action of a pipeline schedule, as planned for every step: a rank does its own in the order of
// `position`.
struct ScheduleRow {
    static constexpr std::string_view kTable = "SHARD_SCHEDULE";
    int rank = 0, position = 0;
    int stage = 0;
    std::string kind;        // PyTorch's letters: "F", "B", "I", "W", "SEND_F", "UNSHARD"
    int micro_batch = -1;    // -1: it has none
    bool with_next = false;  // runs together with the next one (OVERLAP_F_B)

    auto order() const { return std::tie(rank, position); }
    struct Kept {
        std::vector<ScheduleRow> schedule;
    };
};

// A measurement of a clock: when this part's time was `at_ns`, rank 0's CLOCK_MONOTONIC was that of this
// part's host plus offset_ns, to within uncertainty_ns (half of the shortest round trip).
struct ClockRow {
    static constexpr std::string_view kTable = "SHARD_CLOCKS";
    int rank = 0;  // the rank that measured it
    std::int64_t at_ns = 0, offset_ns = 0, uncertainty_ns = 0;

    template <typename Row, typename Visit>
    static void each_time(Row& row, Visit visit) {
        visit(row.at_ns);
    }
    auto order() const { return std::tie(rank, at_ns); }
    struct Kept {
        std::vector<ClockRow> clocks;
    };
};

// A job's failure as seen by one of its ranks when it was notified; a killed rank leaves no row.
struct StopRow {
    static constexpr std::string_view kTable = "SHARD_STOPS";
    static constexpr std::string_view kVerb = kKeepFirst;
    int rank = 0;  // the rank that reports it
    std::int64_t at_ns = 0;
    int first_rank = -1;  // the rank whose failure ended the job; -1 unknown
    bool lost = false;    // that rank is gone or silent; false: it reported its failure itself
    std::string reason;   // a clause that can follow "rank 2 ": "has ended"
    std::string waiting;  // what this rank was waiting for at that time: "all_gather 12 of group 1, step 3";
                          // empty: nothing

    template <typename Row, typename Visit>
    static void each_time(Row& row, Visit visit) {
        visit(row.at_ns);
    }
    auto order() const { return std::tie(at_ns, rank); }
    struct Kept {
        std::vector<StopRow> stops;
    };
};

// One configuration of a job, as a planner rated it (the meaning of each value: SHARD_PLAN). Times in us.
struct PlanRow {
    static constexpr std::string_view kTable = "SHARD_PLAN";
    static constexpr std::string_view kVerb = kReplace;
    int number = 0;
    std::string outcome, reason, settings, job;
    int ranks = 0, nodes = 0;       // nodes 0: unknown
    std::int64_t limit_bytes = -1;  // -1, as for the sizes below: unknown
    std::int64_t peak_bytes = -1;
    std::string moment;
    std::array<std::int64_t, kMemoryCategories> at_peak{};
    std::string peak_unit, peak_module;
    std::int64_t peak_unit_bytes = -1, peak_module_bytes = -1;
    std::int64_t reserved_bytes = -1;  // -1: not simulated, so without times
    double step_us = 0, exposed_us = 0;
    double last_step_us = 0, last_kernel_us = 0, last_copy_us = 0, last_exposed_us = 0;
    double samples_per_second = 0, mfu = 0;
    double tokens_per_second = 0, cost_per_million = 0;          // 0: none
    std::string exposed_operation, exposed_phase, exposed_unit;  // empty: none
    double most_exposed_us = 0;
    bool front = false;
    int beaten_by = 0, same_as = 0;  // numbers; 0: none
    std::string why, trace;

    bool simulated() const { return reserved_bytes >= 0; }

    auto order() const { return std::tie(number); }
    struct Kept {
        std::vector<PlanRow> plan;  // empty in the trace of a run
    };
};

// A part of a host that the job may use or reach: what kDeviceKinds names.
struct DeviceRow {
    static constexpr std::string_view kTable = "SHARD_DEVICES";
    static constexpr std::string_view kVerb = kKeepFirst;
    std::string host;
    std::string kind;                // one of kDeviceKinds
    int number = 0;                  // on its host, among those of its kind
    std::string name;                // "NVIDIA H100 80GB HBM3", "mlx5_0", "eth0"; empty: unknown
    std::string bus;                 // PCI address, "0000:17:00.0"; empty: it has none
    int numa = -1;                   // the NUMA node that it is next to; -1: unknown
    std::int64_t memory_bytes = -1;  // -1, as for the next two: unknown
    double bytes_per_second = -1;    // of an adapter, in one direction
    double power_limit_watts = -1;
    std::string cpus;     // of a NUMA node, or nearest to the device: "0-3,8"; empty: unknown
    bool visible = true;  // the job may use it

    auto order() const { return std::tie(host, kind, number); }
    struct Kept {
        std::vector<DeviceRow> devices;
    };
};
inline constexpr std::array<std::string_view, 4> kDeviceKinds = {"gpu", "infiniband", "ethernet", "numa"};

// How one device reaches another. The words are those of `nvidia-smi topo`.
struct TopologyRow {
    static constexpr std::string_view kTable = "SHARD_TOPOLOGY";
    static constexpr std::string_view kVerb = kKeepFirst;
    std::string host, from;  // "GPU0", "NIC1": "GPU" and "NIC" with DeviceRow::number
    std::string to_host, to;
    std::string link;              // "NV12", "PIX", "PXB", "PHB", "NODE", "SYS"; empty: unknown
    int lanes = -1;                // NVLinks, or lanes of PCIe; -1: unknown
    double bytes_per_second = -1;  // of the link, in one direction; -1: unknown
    // Peer access, by what nvidia-smi prints for it: "OK", "CNS", "GNS", "TNS", "DR", "NS"; empty: unknown.
    std::string read, write, nvlink, atomics;
    std::string source;  // "nvml", "sys", "nccl", "nvidia-smi"

    auto order() const { return std::tie(host, from, to_host, to); }
    struct Kept {
        std::vector<TopologyRow> topology;
    };
};

struct ProcessRow {
    static constexpr std::string_view kTable = "PROCESSES";
    std::int64_t global_pid = 0;
    std::int64_t pid = 0;
    std::string name;
};

struct ThreadRow {
    std::int64_t global_tid = 0;
    std::string name;
    int rank = -1;
};

struct StreamRow {
    static constexpr std::string_view kTable = "SHARD_STREAMS";
    int rank = 0;
    int stream = 0;
    std::string name;  // "compute", "unshard", "post_backward" ...
};

// A module of the model; the root has parent -1. `name` is the name in ranges ("Linear_0").
struct ModuleRow {
    static constexpr std::string_view kTable = "SHARD_MODULES";
    static constexpr std::string_view kVerb = kReplace;
    int id = 0, parent = -1;
    std::string name, class_name, path;  // path: PyTorch's fully qualified name, "net.0"
    int unit = -1;                       // the FSDP unit that holds its parameters
    std::int64_t parameters = 0;         // elements, children not included
};

struct UnitRow {
    static constexpr std::string_view kTable = "SHARD_UNITS";
    static constexpr std::string_view kVerb = kReplace;
    int id = 0;
    int module = -1;  // the wrapped module (its FullyShardedDataParallel_n row)
    std::string name;
    std::int64_t elements = 0, padded_elements = 0, shard_bytes = 0, bytes = 0;
};

// The memory account's prediction, stored with the run.
struct PredictionRow {
    static constexpr std::string_view kTable = "SHARD_PREDICTION";
    static constexpr std::string_view kVerb = kReplace;
    int rank = 0;
    std::int64_t peak_bytes = 0;
    std::int64_t at_peak[kMemoryCategories] = {};
    std::string where;  // the moment of the peak, in words
};

// A part of that prediction. The units' bytes sum to PredictionRow::peak_bytes, and so do the modules' and
// the buffers'. `id` is UnitRow::id or ModuleRow::id (-1: belongs to none), -1 for a buffer, or a step's
// number: a step's value holds until the next stored step, the last one for all later steps.
struct PredictionPartRow {
    static constexpr std::string_view kTable = "SHARD_PREDICTION_PARTS";
    int rank = 0;
    PredictionPart kind = PredictionPart::unit;
    std::int64_t id = -1;
    std::int64_t bytes = 0;
    std::string name;  // the buffer's, as in MemoryRow::name; empty for the other kinds
};

enum class Severity { information = 1, warning = 2, error = 3 };

struct DiagnosticRow {
    static constexpr std::string_view kTable = "DIAGNOSTIC_EVENT";
    std::int64_t time = 0;
    Severity severity = Severity::warning;
    std::string text;
};

// Every kind of row that a source hands to a sink. A new kind is its struct, this line, and the columns of
// its table.
using AnyRow =
    std::variant<KernelRow, MemcpyRow, MemsetRow, RuntimeRow, SynchronizationRow, RangeRow, CollectiveRow,
                 MemoryRow, CounterRow, StepRow, LossRow, RunInfoRow, RankRow, ProcessRow, ThreadRow,
                 StreamRow, ModuleRow, UnitRow, PredictionRow, PredictionPartRow, DiagnosticRow,
                 PayloadSchemaRow, PayloadEnumRow, ScopeRow, CudaEventRow, OverheadRow, GraphTraceRow,
                 CudaMemoryRow, CudaPoolRow, GpuRow, CudaContextRow, CudaStreamRow, NcclCommunicatorRow,
                 NcclOperationRow, LinkRow, SegmentRow, AllocatorEventRow, FlightRow, ClockRow, StopRow,
                 PlanRow, ProfilerOverheadRow, GroupRow, ScheduleRow, MetricRow, DeviceRow, TopologyRow,
                 SampleRow>;

// Calls `visit` with each StringId of a row.
template <typename Row, typename Visit>
void visit_names(Row& row, Visit visit) {
    if constexpr (requires { std::remove_const_t<Row>::each_name(row, visit); })
        std::remove_const_t<Row>::each_name(row, visit);
}
// Calls `visit` with each time of a row that a trace stores as a struct.
template <typename Row, typename Visit>
void visit_times(Row& row, Visit visit) {
    if constexpr (requires { std::remove_const_t<Row>::each_time(row, visit); })
        std::remove_const_t<Row>::each_time(row, visit);
}

// Calls `visit` with each rank number of a row that a trace stores as a struct.
template <typename Row, typename Visit>
void visit_ranks(Row& row, Visit visit) {
    if constexpr (requires { row.rank; }) visit(row.rank);
    if constexpr (requires { row.first_rank; }) visit(row.first_rank);
}

// --- rows as a database stores them, where it needs more than a source provides ----------------------------

struct NvtxRow {
    static constexpr std::string_view kTable = "NVTX_EVENTS";
    RangeRow range;
    std::string_view text;
    std::int64_t domain = 0;  // the domain's number
    std::int64_t range_id = -1;
};

struct MemoryUsageRow {
    static constexpr std::string_view kTable = "CUDA_GPU_MEMORY_USAGE_EVENTS";
    CudaMemoryRow memory;
    std::string_view name;
};

// Facts about device work for which Nsight's tables have no column.
struct DeviceDetailRow {
    static constexpr std::string_view kTable = "SHARD_DEVICE_DETAILS";
    std::int64_t start = 0;
    int device = 0, stream = 0;
    std::int64_t correlation = 0, external_id = 0;
    float blocks_per_sm = -1, occupancy = -1;
};

struct ThreadNameRow {
    static constexpr std::string_view kTable = "ThreadNames";
    StringId name = StringId::empty;
    std::int64_t global_tid = 0;
};

struct RankThreadRow {
    static constexpr std::string_view kTable = "SHARD_THREADS";
    static constexpr std::string_view kVerb = kReplace;
    std::int64_t global_tid = 0;
    int rank = 0;
};

struct CudaDeviceRow {
    static constexpr std::string_view kTable = "TARGET_INFO_CUDA_DEVICE";
    int device = 0, cuda_device = 0;
    std::int64_t pid = 0;
    std::string uuid;
    int multiprocessors = 0;
};

}  // namespace shardscope::traces::schema
