// One plain struct per kind of row that a source (the recorder, an importer) hands to an EventSink.
// Times are integer nanoseconds since the start of the capture; sizes are bytes; names are ids from
// EventSink::intern. "None" is -1 for ids and std::nullopt for values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "traces/schema/enums.h"

namespace shardscope::traces {

// Index into the sink's string table; 0 is the empty string.
enum class StringId : std::uint32_t { empty = 0 };

// --- what happened -------------------------------------------------------------------------------

struct KernelRow {
    std::int64_t start = 0, end = 0;
    int device = 0;  // TARGET_INFO_GPU.id; one device per rank
    int stream = 0;
    std::int64_t correlation = 0;  // unique in the file; ties the kernel to its launching RuntimeRow
    std::int64_t global_pid = 0;
    StringId short_name = StringId::empty;
    StringId demangled_name = StringId::empty;
    int grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
};

struct MemcpyRow {
    std::int64_t start = 0, end = 0;
    int device = 0, stream = 0;
    std::int64_t correlation = 0, global_pid = 0;
    std::int64_t bytes = 0;
    int copy_kind = kCopyHostToDevice;
    int src_kind = kMemKindPageable, dst_kind = kMemKindDevice;
};

struct MemsetRow {
    std::int64_t start = 0, end = 0;
    int device = 0, stream = 0;
    std::int64_t correlation = 0, global_pid = 0;
    std::int64_t bytes = 0;
    int value = 0;
    int mem_kind = kMemKindDevice;
};

// A runtime (or driver) API call on a host thread; the name carries CUDA's suffix ("cudaLaunchKernel_v7000").
struct RuntimeRow {
    std::int64_t start = 0, end = 0;
    std::int64_t global_tid = 0;
    std::int64_t correlation = 0;
    StringId name = StringId::empty;
    int return_value = 0;
    bool driver = false;
};

struct SynchronizationRow {
    std::int64_t start = 0, end = 0;
    int device = 0, stream = -1;  // -1: not applicable
    std::int64_t correlation = 0, global_pid = 0;
    int sync_type = kSyncEvent;
    std::int64_t event_id = -1;
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
    std::optional<std::uint32_t> category;  // NVTX category; a kNvtxCategory row carries its name
};

struct CollectiveRow {
    int rank = 0;
    std::int64_t correlation = 0;  // that of its KernelRow
    Operation operation = Operation::other;
    std::int64_t bytes = 0;    // of the full buffer (nccl-tests' S: the gathered size)
    std::int64_t padding = 0;  // bytes of that which are padding
    std::int64_t group = 0;    // id of the communicator
    int group_size = 0;
    std::int64_t sequence = 0;  // per communicator, in issue order, equal on all ranks
    int unit = -1;              // UnitRow::id
    Phase phase = Phase::none;
};

// One allocation (bytes > 0) or free (bytes < 0) in host program order.
struct MemoryRow {
    std::int64_t time = 0;
    int rank = 0;
    std::uint64_t address = 0;
    std::int64_t bytes = 0;
    MemoryCategory category = MemoryCategory::other;
    MemorySpace space = MemorySpace::device;
    Phase phase = Phase::none;
    int unit = -1, module = -1, stream = -1;
    StringId name = StringId::empty;  // the buffer's name, for example "net.0 flat_param"
};

// A value that changes over time, for example "reserved_bytes" of a rank.
struct CounterRow {
    std::int64_t time = 0;
    int rank = 0;
    StringId name = StringId::empty;
    double value = 0;
};

struct StepRow {
    int rank = 0;
    std::int64_t step = 0;
    std::int64_t start = 0, end = 0;  // on the rank's host thread
    std::int64_t global_tid = 0;
};

struct LossRow {  // the global mean loss of a step, known one step late
    std::int64_t step = 0;
    double loss = 0;
};

// --- who and what took part ------------------------------------------------------------------------

struct RunInfoRow {  // configuration and facts of the run: "model.width" = "1024"
    std::string key, value;
};

struct RankRow {
    int rank = 0;
    int device = 0;
    std::int64_t global_pid = 0, global_tid = 0;  // of the rank's host thread
    std::string host;
    std::string device_name;  // the GPU's or, on the CPU device, the processor's name
    std::int64_t device_memory = 0;
    int data = 0, shard = 0, tensor = 0, pipeline = 0;  // place in the mesh
};

struct ProcessRow {
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
    int rank = 0;
    int stream = 0;
    std::string name;  // "compute", "unshard", "post_backward" ...
};

// A module of the model; the root has parent -1. `name` is what ranges show ("Linear_0").
struct ModuleRow {
    int id = 0, parent = -1;
    std::string name, class_name, path;  // path: PyTorch's fully qualified name, "net.0"
    int unit = -1;                       // the FSDP unit that holds its parameters
    std::int64_t parameters = 0;         // elements, children not included
};

struct UnitRow {
    int id = 0;
    int module = -1;  // the wrapped module (its FullyShardedDataParallel_n row)
    std::string name;
    std::int64_t elements = 0, padded_elements = 0, shard_bytes = 0, bytes = 0;
};

// The memory account's prediction, stored beside the run.
struct PredictionRow {
    int rank = 0;
    std::int64_t peak_bytes = 0;
    std::int64_t at_peak[kMemoryCategories] = {};
    std::string where;  // the moment of the peak, in words
};

// A part of that prediction. The units' bytes sum to PredictionRow::peak_bytes, and so do the modules' and
// the buffers'. `id` is UnitRow::id or ModuleRow::id (-1: what belongs to none), -1 for a buffer, and for a
// step its number: what is stored holds until the next number that is stored, the last for all later steps.
struct PredictionPartRow {
    int rank = 0;
    PredictionPart kind = PredictionPart::unit;
    std::int64_t id = -1;
    std::int64_t bytes = 0;
    std::string name;  // of the buffer, as in MemoryRow::name; empty for the other kinds
};

enum class Severity { information = 1, warning = 2, error = 3 };

struct DiagnosticRow {
    std::int64_t time = 0;
    Severity severity = Severity::warning;
    std::string text;
};

}  // namespace shardscope::traces
