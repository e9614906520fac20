// The Plan: what one rank does in one step, as plain data.
//
// A list of operations in program order. Host operations (allocate, free, ranges, waits, calls) happen when
// the host thread reaches them; stream operations are enqueued there and happen later, in the order of their
// stream. All semantics of FSDP, DDP and their options are decisions that made this list; whoever carries it
// out (the cpu executor, the memory account, the printer) knows nothing of them. One Plan serves every rank:
// what depends on the rank (which shard) follows from the rank's number inside the operation.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "traces/schema/enums.h"

namespace shardscope::trainer {

using traces::MemoryCategory;
using traces::MemorySpace;
using traces::Operation;
using traces::Phase;

using BufferId = std::int32_t;  // index into Plan::buffers; ids below Program::persistent live across Plans
using EventId = std::int32_t;   // a slot that holds the latest (stream, sequence) recorded into it

// The streams of a rank, as FSDP1 has them.
enum class Stream : std::int8_t { host = -1, compute = 0, unshard = 1, post_backward = 2 };
inline constexpr int kStreams = 3;
inline constexpr std::array<std::string_view, kStreams> kStreamNames = {"compute", "unshard",
                                                                        "post_backward"};

enum class OpKind : std::uint8_t {
    // on the host, at once
    allocate,    // args[0]; stream: the one that uses it first
    free,        // args[0]
    push_range,  // name, range_module
    pop_range,
    host_wait,  // event: the host waits until it has happened (cudaEventSynchronize)
    host_call,  // call: a named function of the run, args as the call documents
    // enqueued on `stream`
    record_event,  // event
    wait_event,    // event: later work of the stream waits for it
    kernel,        // kernel, args, dims, scalars
    memcpy,        // args[0] <- args[1]
    memset,        // args[0] <- 0
    collective,    // collective, args[0] output, args[1] input
};

// Kernels, with the order of their args (outputs first) and dims.
enum class Kernel : std::uint8_t {
    none,
    init_normal,  // param | dims: key, first element of the param in the buffer, elements, elements per rank;
                  // scalars: mean, std
    init_uniform,            // the same; scalars: low, high
    init_constant,           // the same; scalars: value
    linear_forward,          // y, x, weight[, bias] | rows, in, out
    linear_backward_input,   // dx, dy, weight | rows, in, out
    linear_backward_weight,  // dw, dy, x | rows, in, out
    linear_backward_bias,    // db, dy | rows, out
    relu_forward,            // y, x | n
    relu_backward,           // dx, dy, y | n
    gelu_forward,            // y, x | n
    gelu_backward,           // dx, dy, x | n
    add,                     // y, a, b | n
    accumulate,              // y, x | n            (y += x)
    layer_norm_forward,      // y, mean, rstd, x, gamma, beta | rows, cols
    layer_norm_backward,     // dx, dgamma, dbeta, dy, x, gamma, mean, rstd | rows, cols
    attention_forward,       // y, probabilities, qkv | batch, context, heads, width
    attention_backward,      // dqkv, scratch, dy, qkv, probabilities | batch, context, heads, width
    embedding_forward,       // y, tokens, table | rows, width
    embedding_backward,      // dtable, dy, tokens | rows, width, table rows
    position_forward,        // y, table | batch, context, width
    position_backward,       // dtable, dy | batch, context, width, table rows
    mse_forward,             // loss, out, target | n
    mse_backward,            // dout, out, target | n
    cross_entropy_forward,   // loss, probabilities, logits, targets | rows, classes
    cross_entropy_backward,  // dlogits, probabilities, targets | rows, classes
    cat,                     // out, in... : contiguous copies, one after the other
    split,                   // in is args[0]; args[1...] receive it piece by piece
    sgd,                     // param, grad[, momentum] | n; scalars: lr, momentum, weight_decay
    adamw,                   // param, grad, m, v | n; scalars: lr, beta1, beta2, eps, weight_decay
};

// Named functions of the run that host_call reaches.
enum class HostCall : std::uint8_t {
    none,
    next_batch,  // args: input, target (host buffers) receive the step's samples of this rank
    read_loss,   // args: the pinned scalar of the step before
};

// A view: bytes [offset, offset + bytes) of a buffer.
struct Arg {
    BufferId buffer = -1;
    std::int64_t offset = 0;
    std::int64_t bytes = 0;
};

struct Op {
    OpKind kind = OpKind::allocate;
    Phase phase = Phase::none;
    Stream stream = Stream::host;
    Kernel kernel = Kernel::none;
    Operation collective = Operation::other;
    HostCall call = HostCall::none;
    std::uint8_t copy_kind = 0;      // memcpy: ENUM_CUDA_MEMCPY_OPER
    bool average = false;            // collective: divide by the number of ranks after the sum
    std::int32_t unit = -1;          // FSDP unit (or DDP bucket) that the work belongs to
    std::int32_t module = -1;        // module that the work belongs to
    std::int32_t range_module = -1;  // push_range: the module that the range stands for
    std::int32_t name = 0;           // index into Plan::names: of the range, kernel or call
    EventId event = -1;
    std::int64_t padding = 0;  // collective: bytes of the full buffer that are padding
    std::int64_t flops = 0;
    std::int64_t bytes = 0;  // moved by the work; collective: of the full buffer
    std::array<std::int64_t, 4> dims{};
    std::array<double, 5> scalars{};
    std::vector<Arg> args;
};

struct Buffer {
    std::string name;
    MemoryCategory category = MemoryCategory::other;
    MemorySpace space = MemorySpace::device;
    std::int64_t bytes = 0;
    std::int32_t unit = -1, module = -1;
};

enum class PlanKind : std::uint8_t { setup, first, steady, finish };
inline constexpr std::array<std::string_view, 4> kPlanKindNames = {"setup", "first", "steady", "finish"};

struct Plan {
    PlanKind kind = PlanKind::steady;
    std::vector<Buffer> buffers;  // the Program's persistent ones first, then the Plan's own
    std::vector<std::string> names;
    std::vector<Op> ops;
    // After the last operation: event slot `second` takes over what slot `first` holds. It lets the next Plan
    // start from the same slots whatever happened in this one (the all-gather limiter's queue).
    std::vector<std::pair<EventId, EventId>> carry;
    EventId events = 0;  // number of event slots
};

}  // namespace shardscope::trainer
