// The Plan: what one rank does in one step, as plain data.
//
// A list of operations in program order. Host operations (allocate, free, ranges, waits, calls) happen when
// the host thread reaches them; stream operations are enqueued there and happen later, in the order of their
// stream. All semantics of FSDP, DDP and their options are decided when this list is made; its
// interpreters (the executor, the memory account, the printer) know nothing of them. One Plan serves every
// rank: what depends on the rank (which shard) is computed from the rank's number inside the operation.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "traces/schema/enums.h"
#include "trainer/plan/dtype.h"
#include "trainer/plan/mesh.h"

namespace shardscope::trainer::plan {

using traces::schema::MemoryCategory;
using traces::schema::MemorySpace;
using traces::schema::Operation;
using traces::schema::Phase;

using BufferId = std::int32_t;  // index into Plan::buffers; ids below Program::persistent live across Plans
using EventId = std::int32_t;   // a slot that holds the latest (stream, sequence) recorded into it

// The streams of a rank. The first four are FSDP1's: pre_unshard does what a shard needs before its gather
// (copy from the host, conversion). A kernel, memcpy or memset on `host` is done by the host thread itself,
// synchronously. Messages between pipeline stages: `send` to the next place, `receive` from the previous one,
// `send_back` to the previous one, `receive_back` from the next; in a pipeline of two, whose other place is
// both, only the first two are used. A message that waits for its other end so holds up neither what is
// received nor the other neighbour. Messages of a ring have streams of their own, which wait for no stage.
//
// Files have a stream on which the host reads, and one on which it writes: copies alone, between pinned
// memory and a disk. They wait for nothing but each other, and no other stream waits for them: hosts do.
//
// A server has streams on which it serves the workers, each worker on one of them.
enum class Stream : std::int8_t {
    host = -1,
    compute = 0,
    unshard = 1,
    post_backward = 2,
    pre_unshard = 3,
    send = 4,
    receive = 5,
    send_back = 6,
    receive_back = 7,
    ring_send = 8,
    ring_receive = 9,
    disk_read = 10,
    disk_write = 11,
    serve = 12  // and the next ones
};
inline constexpr int kServeStreams = 6;
inline constexpr int kStreams = static_cast<int>(Stream::serve) + kServeStreams;
// That of a worker, and of those whose numbers differ by kServeStreams.
constexpr Stream serve_stream(int worker) {
    return static_cast<Stream>(static_cast<int>(Stream::serve) + worker % kServeStreams);
}
constexpr bool is_serve_stream(Stream stream) {
    return stream >= Stream::serve;
}
inline constexpr std::array<std::string_view, kStreams> kStreamNames = {
    "compute",   "unshard",      "post_backward", "pre_unshard",  "send",      "receive",
    "send_back", "receive_back", "ring_send",     "ring_receive", "disk_read", "disk_write",
    "serve 0",   "serve 1",      "serve 2",       "serve 3",      "serve 4",   "serve 5"};
constexpr bool is_disk_stream(Stream stream) {
    return stream == Stream::disk_read || stream == Stream::disk_write;
}
// Whether the rank of the mesh uses the stream.
inline bool has_stream(const Mesh& mesh, int rank, Stream stream) {
    if (is_serve_stream(stream))
        return mesh.servers > 0 && mesh.serves(rank) &&
               static_cast<int>(stream) < static_cast<int>(Stream::serve) + mesh.workers();
    if (is_disk_stream(stream)) return mesh.disk;
    if (mesh.servers > 0 && (stream == Stream::send || stream == Stream::receive)) return !mesh.serves(rank);
    if (stream >= Stream::ring_send) return mesh.ring;
    if (stream >= Stream::send_back) return mesh.pipeline > 2;
    return stream < Stream::send || mesh.pipeline > 1;
}

enum class OpKind : std::uint8_t {
    // on the host, synchronously
    allocate,    // args[0]; stream: the one that uses it first
    free,        // args[0]
    push_range,  // RangeOp, named
    pop_range,
    host_wait,  // EventOp: the host waits until it has happened (cudaEventSynchronize)
    host_call,  // HostCallOp: a named function of the run, args as the call documents
    // enqueued on `stream`
    record_event,  // EventOp
    wait_event,    // EventOp: later work of the stream waits for it
    kernel,        // KernelOp, args as kernels.def says
    memcpy,        // MemcpyOp: args[0] <- args[1]
    memset,        // MemsetOp: args[0] <- bytes of a value
    collective,    // CollectiveOp: args[0] output, args[1] input; send, recv: args[0] alone; with rows also
                   // args[2] and args[3]
};

// The kernels, by their names in kernels.def, which describes the operands of each.
enum class Kernel : std::uint8_t {
#define KERNEL(name, kernel_class, operands, meaning) name,
#include "trainer/plan/kernels.def"
#undef KERNEL
};

// Named functions of the run that host_call reaches.
enum class HostCall : std::uint8_t {
    none,        // of a lifted run: the host's own time, recorded_ns
    next_batch,  // args: input, target (host buffers) receive the samples of the micro-batch of this rank
    read_loss,  // args: the pinned losses (one fp64 per micro-batch), the pinned non-finite flag (int32) and,
                // if it is reported, the pinned gradient norm (fp64) of the previous step
    read_validation_loss,  // args: the pinned loss (fp64) of the batch that the Plan evaluated and, if the
                           // model classifies, the share of its samples whose class was found (fp64)
    read_overflow,         // args: pinned fp32, not 0 if a gradient of the step overflowed on some rank
    read_logits,           // args: the pinned logits [tokens, vocabulary] (fp32)
};

// A view: bytes [offset, offset + bytes) of a buffer, shifted by `stride` times the rank's place in the group
// `along`. With it one Plan lets every rank address its own part of a buffer that all ranks hold whole.
struct Arg {
    BufferId buffer = -1;
    std::int64_t offset = 0;
    std::int64_t bytes = 0;
    std::int64_t stride = 0;
    Group along = Group::shard;
};

// A parameter inside a slot's sequence of elements (see sharding/optimizer.h).
struct Segment {
    std::int32_t parameter = -1;
    std::int64_t first = 0, elements = 0;
    bool trained = true;  // false: frozen, never updated
    bool adapted = true;  // LARS and LAMB scale its step by its norms; false for biases and norm layers
    bool cut = false;     // the other ranks of a tensor group hold other elements, not the same ones
};

// The fields of each kind of operation, in addition to those that all operations have.
struct RangeOp {
    std::int32_t module = -1;  // whose work the range represents
};
struct EventOp {
    EventId event = -1;
};
struct HostCallOp {
    HostCall call = HostCall::none;
};
struct KernelOp {
    Kernel kernel = Kernel::none;
    DType dtype = DType::fp32;  // of the kernel's T
    // The last arg is an int32 flag: if it is -1 and args[0] holds a value that is not finite, it is set to
    // the operation's module.
    bool checks_output = false;
    // Of kernels on a rank's part of a sequence: whose ranks have the other parts. With expert_shard, a
    // parameter that is cut is cut among the ranks of an expert group.
    Group along = Group::shard;
    std::int32_t segments = -1;  // optimizers, and copies in pieces: index into Plan::segments
    std::array<std::int64_t, 6> dims{};
    std::array<double, 5> scalars{};
};
struct MemcpyOp {
    std::uint8_t copy_kind = 0;  // ENUM_CUDA_MEMCPY_OPER
};
struct MemsetOp {
    int value = 0;  // of each byte
};
// How a collective joins the members' elements.
enum class Reduction : std::uint8_t { sum, max };

struct CollectiveOp {
    Operation operation = Operation::other;
    DType dtype = DType::fp32;  // of the elements
    Group group = Group::world;
    std::int32_t divisor = 1;  // sums are divided by this, once
    std::int64_t padding = 0;  // bytes of the full buffer that are padding
    Reduction reduction = Reduction::sum;
    // Of a send or recv in the pipeline group: the place there of the other rank, a neighbour
    // (Mesh::channel). In the context group, whose ranks have one Plan, what is sent goes to the next rank
    // and what is received comes from the previous one, in a ring. In the world: the other rank, which is one
    // of Mesh::talkers as this one is. Messages from one rank to another have no tag: the n-th that is sent
    // is the n-th that is received.
    std::int32_t peer = -1;
    // Of an all_to_all with counts: the elements of a row. args[2] and args[3], which the host reads when it
    // enqueues the operation, are int32 numbers of rows: those that go to the members, and those that come
    // from them, as many numbers for each member as for every other. Op::bytes is what they are expected to
    // be.
    std::int64_t row = 0;
};

struct Op {
    OpKind kind = OpKind::allocate;
    Phase phase = Phase::none;
    Stream stream = Stream::host;
    bool exclusive = false;        // does not run while another exclusive one of the rank does
    std::int32_t micro = 0;        // micro-batch of the step that the work belongs to
    std::int32_t unit = -1;        // FSDP unit (or DDP bucket) that the work belongs to
    std::int32_t module = -1;      // module that the work belongs to
    std::int32_t name = 0;         // index into Plan::names: of the range, kernel, call or host's own work
    std::int64_t flops = 0;        // of a kernel
    std::int64_t bytes = 0;        // moved by the work; collective: of the full buffer
    std::int64_t recorded_ns = 0;  // of a lifted run: its duration; 0 otherwise
    std::vector<Arg> args;         // see OpKind
    std::variant<std::monostate, RangeOp, EventOp, HostCallOp, KernelOp, MemcpyOp, MemsetOp, CollectiveOp>
        own;

    // Throw std::bad_variant_access if the operation is of another kind.
    const KernelOp& kernel() const { return std::get<KernelOp>(own); }
    KernelOp& kernel() { return std::get<KernelOp>(own); }
    const CollectiveOp& collective() const { return std::get<CollectiveOp>(own); }
    CollectiveOp& collective() { return std::get<CollectiveOp>(own); }
    EventId event() const { return std::get<EventOp>(own).event; }
    HostCall call() const { return std::get<HostCallOp>(own).call; }
    int copy_kind() const { return std::get<MemcpyOp>(own).copy_kind; }
    int value() const { return std::get<MemsetOp>(own).value; }
    // -1 if it is not a range, or not a module's.
    std::int32_t range_module() const {
        const auto* range = std::get_if<RangeOp>(&own);
        return range ? range->module : -1;
    }
};

static_assert(sizeof(Op) <= 176, "a step of a large model has a million of them");

// A kernel, memcpy or memset on Stream::host is done by the host thread itself; on another stream it is
// device work, as every collective is.
inline bool is_work(const Op& op) {
    return op.kind == OpKind::kernel || op.kind == OpKind::memcpy || op.kind == OpKind::memset;
}
inline bool is_host_work(const Op& op) {
    return is_work(op) && op.stream == Stream::host;
}
inline bool is_message(const Op& op) {
    return op.kind == OpKind::collective &&
           traces::schema::is_point_to_point(std::get<CollectiveOp>(op.own).operation);
}
// Mesh::channel or Mesh::talk of a message of a rank.
inline CommunicatorId channel_of(const Mesh& mesh, int rank, const CollectiveOp& message) {
    if (message.group == Group::world) {
        return message.operation == Operation::send ? mesh.talk(rank, message.peer)
                                                    : mesh.talk(message.peer, rank);
    }
    const int peer = message.group == Group::context
                         ? mesh.neighbour(Group::context, rank, message.operation == Operation::send ? 1 : -1)
                         : mesh.member(Group::pipeline, rank, message.peer);
    return message.operation == Operation::send ? mesh.channel(rank, peer) : mesh.channel(peer, rank);
}
inline bool is_device_work(const Op& op) {
    return (is_work(op) && op.stream != Stream::host) || op.kind == OpKind::collective;
}

// The dims "dtype of x" and "dtype of table": 1 + the type, or 0 if it is the operation's.
inline std::int64_t input_dim(DType type) {
    return 1 + static_cast<std::int64_t>(type);
}
inline DType input_type(const KernelOp& op, std::size_t dim) {
    return op.dims[dim] > 0 ? static_cast<DType>(op.dims[dim] - 1) : op.dtype;
}

struct Buffer {
    std::string name;
    MemoryCategory category = MemoryCategory::other;
    MemorySpace space = MemorySpace::device;
    std::int64_t bytes = 0;
    std::int32_t unit = -1, module = -1;
};

enum class PlanKind : std::uint8_t { setup, first, steady, finish, validation, generation };
inline constexpr std::array<std::string_view, 6> kPlanKindNames = {"setup",  "first",      "steady",
                                                                   "finish", "validation", "generation"};

struct Plan {
    PlanKind kind = PlanKind::steady;
    std::vector<Buffer> buffers;  // the Program's persistent ones first, then the Plan's own
    std::vector<std::string> names;
    std::vector<std::vector<Segment>> segments;
    std::vector<Op> ops;
    // After the last operation, event slot `second` takes over the content of slot `first`. The next Plan can
    // then start from the same slots whatever happened in this one (the all-gather limiter's queue).
    std::vector<std::pair<EventId, EventId>> carry;
    EventId events = 0;  // number of event slots
};

// The range that the host thread opens for an operation; empty if it opens none.
inline std::string_view range_of(const Plan& plan, const Op& op) {
    return is_host_work(op) || op.kind == OpKind::push_range ? plan.names[static_cast<std::size_t>(op.name)]
                                                             : std::string_view();
}

}  // namespace shardscope::trainer::plan
