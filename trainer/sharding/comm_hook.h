// Communication hooks of DDP: what a bucket of gradients passes between the backward and the optimizer, which
// receives from it the mean over the ranks of its group, or what is left of that after compression. A hook
// writes operations on the post_backward stream, whose first ones wait for the gradients; what it sends is
// plain in them. PyTorch: torch.distributed.algorithms.ddp_comm_hooks.
//
// A hook is a row of job/comm_hooks.def and a file, hook_*.cpp, with its make_NAME_hook.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "trainer/job/job.h"
#include "trainer/sharding/parallelism.h"

namespace shardscope::trainer::sharding {

// A bucket as a hook sees it.
struct HookBucket {
    int unit = -1;
    std::vector<const model::Parameter*> parameters;  // in their order in the buffer
    plan::Arg buffer;                                 // fp32: this rank's gradients become those of all
    plan::Group group = plan::Group::world;
    int ranks = 1;  // of the group
};

class CommHook {
  public:
    CommHook() = default;
    virtual ~CommHook() = default;
    CommHook(const CommHook&) = delete;
    CommHook& operator=(const CommHook&) = delete;

    // PyTorch's function, which is the name of the range.
    virtual std::string_view name() const = 0;
    // Declares what it keeps of a bucket from step to step. Called once for each bucket that may be reduced,
    // before any Plan is written.
    virtual void declare(Parallelism& /*owner*/, const HookBucket& /*bucket*/) {}
    virtual void reduce(plan::PlanBuilder& builder, const HookBucket& bucket) = 0;
};

// Null where nothing is compressed.
std::unique_ptr<CommHook> make_comm_hook(const job::Job& job);

#define COMM_HOOK(name, ...) std::unique_ptr<CommHook> make_##name##_hook(const job::Job& job);
#include "trainer/job/comm_hooks.def"
#undef COMM_HOOK

// --- parts of hooks ----------------------------------------------------------------------------------------

inline constexpr plan::Stream kHookStream = plan::Stream::post_backward;

// Memory for what a hook sends or receives, until the last reference to it ends.
plan::Tensor hook_tensor(plan::PlanBuilder& builder, const char* name, std::int64_t elements,
                         plan::DType type = plan::DType::fp32);
// Sums over the bucket's group, in place; `divisor` divides the sum, once.
void hook_all_reduce(plan::PlanBuilder& builder, const HookBucket& bucket, const plan::Arg& elements,
                     int divisor, plan::DType type = plan::DType::fp32);

// What the ranks have not sent of a bucket, fp32, from its first compression on: x - what was sent of x,
// which is added to the next gradients. So the sum of what is sent is the sum of the gradients less the last
// error.
class ErrorFeedback {
  public:
    ErrorFeedback() = default;
    ErrorFeedback(Parallelism& owner, const HookBucket& bucket, std::int64_t elements);
    // Whether this is the first time: then the error is allocated, and unwritten.
    bool begin(plan::PlanBuilder& builder);
    const plan::Arg& whole() const { return error_; }

  private:
    plan::Arg error_;
    bool lives_ = false;
};

}  // namespace shardscope::trainer::sharding
