// One step of one rank as a LiftedStep, and the costs of FSDP, DDP and the optimizer around it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "traces/analysis/base/intervals.h"
#include "trainer/lift/host_points.h"
#include "trainer/lift/lifted.h"
#include "trainer/lift/shared_cores.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::trainer::lift {

// The costs of a step that are not the model's, in nanoseconds.
struct EngineFigures {
    // The host's own time, without waits and launches: of FSDP or DDP, and of the optimizer.
    std::int64_t host_ns = 0, optimizer_host_ns = 0;
    std::int64_t optimizer_launches = 0, optimizer_calls_ns = 0;  // and the durations of these calls
    std::int64_t optimizer_ns = 0, kernels_ns = 0;                // device work except communication
};

// The source of the modules' parameters.
enum class ParametersFrom : std::uint8_t {
    nothing,
    gradients,  // each parameter's gradient is named
    shapes,     // the operators' "Input Dims"
    gathers,    // a unit's bytes: one parameter per unit
    buckets,    // DDP's all-reduces: one parameter per bucket, all in the root
};

struct LiftedRecording {
    LiftedStep step;
    EngineFigures engine;
    int micro_batches = 1;
    bool has_modules = false;   // the tree is from module ranges
    bool has_backward = false;  // autograd's nodes show where the backward begins
    ParametersFrom parameters = ParametersFrom::nothing;
    std::int64_t element_bytes = 4;     // bytes per element in gathers or buckets, as inferred from shapes
    bool more_than_buckets = false;     // the shapes contain more elements than DDP's buckets
    std::vector<std::int64_t> buckets;  // bytes of DDP's all-reduces in the backward, in their order
    std::int64_t batch = 0;             // first dimension of the first layer's input; 0: unknown
    std::int64_t gathers = 0;           // unit gathers in the forward of the last micro-batch
    std::vector<std::int64_t> launch_ns, event_ns;  // durations of single calls
    std::int64_t optimizer_rise =
        0;  // bytes that the optimizer's step allocates and frees again, at most at a time
    std::vector<std::int64_t> freed_ns;  // by buffer of the step: when; the maximum: later than it
    std::int64_t carried_bytes = 0;      // buffers of the previous micro-batch that this one frees
};

struct StepLifterOptions {
    bool ours = false;               // the trace is from our trainer: buffers have categories
    std::int64_t gradient_size = 4;  // bytes per element
    std::int64_t launch_ns = 0;      // duration of a typical launching call
    bool whole_gradients =
        false;                 // nothing is sharded: each buffer of category `gradients` is one parameter's
    bool fully_shard = false;  // recorded under fully_shard, which shards each parameter separately
    int shard_ranks = 1;       // ranks among which a unit is sharded
    bool hosts = false;        // the ranks' threads carried out the work themselves (host_trace.h)
    const SharedCores* cores = nullptr;  // not null; outlives the lifting
};

// `previous`: when the previous step began, whose allocations may live on; `host.start` if there is none.
LiftedRecording lift_step(const traces::store::Trace& trace, const HostRangeRoles& roles,
                          const HostPoints& points, std::int64_t previous, traces::analysis::Interval host,
                          const StepLifterOptions& options);

}  // namespace shardscope::trainer::lift
