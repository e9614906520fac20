// Values that are stored in the database and shared by all libraries: what an event is, where memory lives,
// which part of a step the work belongs to. The numbers are part of the file format: never renumber, only
// append.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace shardscope::traces::schema {

// What an allocation holds. The names are PyTorch's for FSDP; see docs/schema.md.
enum class MemoryCategory : std::uint8_t {
    parameters = 0,            // shards of the parameters (all of them if nothing is sharded)
    unsharded_parameters = 1,  // gathered flat parameters
    gradients = 2,             // shards of the gradients
    unsharded_gradients = 3,   // weight gradients and the flat gradient before its reduction
    optimizer_state = 4,
    activations = 5,  // with input, target and activation gradients
    communication = 6,
    other = 7,
};
inline constexpr int kMemoryCategories = 8;
inline constexpr std::array<std::string_view, kMemoryCategories> kMemoryCategoryNames = {
    "parameters",      "unsharded_parameters", "gradients",     "unsharded_gradients",
    "optimizer_state", "activations",          "communication", "other"};

// Memory on a disk is bytes of a file.
enum class MemorySpace : std::uint8_t { device = 0, pinned = 1, host = 2, disk = 3 };
inline constexpr int kMemorySpaces = 4;
inline constexpr std::array<std::string_view, kMemorySpaces> kMemorySpaceNames = {"device", "pinned", "host",
                                                                                  "disk"};

// The part of a step that an operation belongs to.
enum class Phase : std::uint8_t {
    none = 0,
    setup = 1,
    data = 2,
    forward = 3,
    backward = 4,
    recompute = 5,
    optimizer = 6,
    validation = 7,
    save = 8,
    prefill = 9,  // the forward of what a generated text follows
    decode = 10,  // that of its next token
};
inline constexpr int kPhases = 11;
inline constexpr std::array<std::string_view, kPhases> kPhaseNames = {
    "none",      "setup",      "data", "forward", "backward", "recompute",
    "optimizer", "validation", "save", "prefill", "decode"};

// Collective operations under NCCL's names; the text is what tables and JSON print.
enum class Operation : std::uint8_t {
    all_gather = 0,
    reduce_scatter = 1,
    all_reduce = 2,
    broadcast = 3,
    barrier = 4,
    reduce = 5,
    all_to_all = 6,
    gather = 7,
    scatter = 8,
    send = 9,
    recv = 10,
    other = 11,
};
inline constexpr int kOperations = 12;
inline constexpr std::array<std::string_view, kOperations> kOperationNames = {
    "all_gather", "reduce_scatter", "all_reduce", "broadcast", "barrier", "reduce",
    "all_to_all", "gather",         "scatter",    "send",      "recv",    "other"};
// As NCCL spells them: "ncclDevKernel_<this>_<engine>", "nccl<this>".
inline constexpr std::array<std::string_view, kOperations> kOperationNcclNames = {
    "AllGather", "ReduceScatter", "AllReduce", "Broadcast", "Barrier", "Reduce",
    "AlltoAll",  "Gather",        "Scatter",   "Send",      "Recv",    "Generic"};

// Whether no rank leaves before all have arrived, so that a rank's duration shows when it arrived.
constexpr bool ends_together(Operation operation) {
    return operation == Operation::all_gather || operation == Operation::reduce_scatter ||
           operation == Operation::all_reduce || operation == Operation::barrier ||
           operation == Operation::all_to_all;
}
constexpr bool is_point_to_point(Operation operation) {
    return operation == Operation::send || operation == Operation::recv;
}

// What a part of the memory account's prediction describes (SHARD_PREDICTION_PARTS).
enum class PredictionPart : std::uint8_t {
    unit = 0,    // bytes of an FSDP unit at the predicted peak
    module = 1,  // bytes that a module allocated, at the predicted peak
    buffer = 2,  // bytes of the buffers of one name, at the predicted peak
    step = 3,    // predicted peak of a step
};
inline constexpr int kPredictionParts = 4;
inline constexpr std::array<std::string_view, kPredictionParts> kPredictionPartNames = {"unit", "module",
                                                                                        "buffer", "step"};

// How one host range is linked to another (SHARD_LINKS).
enum class LinkKind : std::uint8_t {
    backward = 0,  // from an operator to the operator that is its backward
};
inline constexpr int kLinkKinds = 1;

// How far a collective in a flight recorder's dump had progressed (SHARD_FLIGHT_RECORDS).
enum class FlightState : std::uint8_t { scheduled = 0, started = 1, completed = 2 };
inline constexpr int kFlightStates = 3;
inline constexpr std::array<std::string_view, kFlightStates> kFlightStateNames = {"scheduled", "started",
                                                                                  "completed"};

// What the caching allocator recorded beyond its allocations and segments (SHARD_ALLOCATOR_EVENTS).
enum class AllocatorEventKind : std::uint8_t {
    free_requested = 0,  // the program freed a block that a stream still used
    failed = 1,          // a request for which the device did not have enough left
    last_segment = 2     // a segment at the end of the recording
};
inline constexpr int kAllocatorEventKinds = 3;

inline std::string_view name(MemoryCategory v) {
    return kMemoryCategoryNames[static_cast<std::size_t>(v)];
}
inline std::string_view name(MemorySpace v) {
    return kMemorySpaceNames[static_cast<std::size_t>(v)];
}
inline std::string_view name(Phase v) {
    return kPhaseNames[static_cast<std::size_t>(v)];
}
inline std::string_view name(Operation v) {
    return kOperationNames[static_cast<std::size_t>(v)];
}
inline std::string_view name(PredictionPart v) {
    return kPredictionPartNames[static_cast<std::size_t>(v)];
}
inline std::string_view name(FlightState v) {
    return kFlightStateNames[static_cast<std::size_t>(v)];
}

// The number of values of each enum.
constexpr int size_of(MemoryCategory) {
    return kMemoryCategories;
}
constexpr int size_of(MemorySpace) {
    return kMemorySpaces;
}
constexpr int size_of(Phase) {
    return kPhases;
}
constexpr int size_of(Operation) {
    return kOperations;
}
constexpr int size_of(PredictionPart) {
    return kPredictionParts;
}
constexpr int size_of(LinkKind) {
    return kLinkKinds;
}
constexpr int size_of(FlightState) {
    return kFlightStates;
}

constexpr int size_of(AllocatorEventKind) {
    return kAllocatorEventKinds;
}

// NVTX_EVENTS.eventType, as Nsight Systems numbers them.
inline constexpr int kNvtxCategory = 33;
inline constexpr int kNvtxMark = 34;
inline constexpr int kNvtxThreadName = 39;
inline constexpr int kNvtxPushPop = 59;
inline constexpr int kNvtxStartEnd = 60;
inline constexpr int kNvtxDomainCreate = 75;

// ENUM_CUDA_MEMCPY_OPER and ENUM_CUDA_MEM_KIND, as Nsight Systems numbers them.
inline constexpr int kCopyHostToDevice = 1;
inline constexpr int kCopyDeviceToHost = 2;
inline constexpr int kCopyDeviceToDevice = 8;
inline constexpr int kCopyHostToHost = 9;
inline constexpr int kCopyDiskToHost = 101;  // Nsight Systems has no number for these two
inline constexpr int kCopyHostToDisk = 102;
inline constexpr int kMemKindPageable = 0;
inline constexpr int kMemKindPinned = 1;
inline constexpr int kMemKindDevice = 2;

inline constexpr std::int64_t kVmId = std::int64_t{1} << 48;  // Nsight's "this machine"
inline constexpr std::int64_t kNotApplicable = 4294967295;    // Nsight's "no stream", "no event"

// ENUM_CUPTI_SYNC_TYPE.
inline constexpr int kSyncEvent = 1;
inline constexpr int kSyncStreamWait = 2;
inline constexpr int kSyncStream = 3;
inline constexpr int kSyncContext = 4;

// Nsight's serialized ids: hardware id 0, virtual machine id 1, then 24 bits of pid and 24 bits of tid.
constexpr std::int64_t global_pid(std::int64_t pid) {
    return (std::int64_t{1} << 48) | (pid & 0xFFFFFF) << 24;
}
constexpr std::int64_t global_tid(std::int64_t pid, std::int64_t tid) {
    return global_pid(pid) | (tid & 0xFFFFFF);
}
// The bits of a thread's id that identify its process: global_tid & kPidMask == global_pid.
inline constexpr std::int64_t kPidMask = ~std::int64_t{0xFFFFFF};

}  // namespace shardscope::traces::schema
