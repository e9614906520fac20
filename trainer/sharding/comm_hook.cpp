#include "trainer/sharding/comm_hook.h"

#include <array>
#include <utility>

#include "trainer/sharding/values.h"

namespace shardscope::trainer::sharding {

std::unique_ptr<CommHook> make_none_hook(const job::Job& /*job*/) {
    return nullptr;
}

std::unique_ptr<CommHook> make_comm_hook(const job::Job& job) {
    static constexpr std::array kMakers = {
#define COMM_HOOK(name, ...) &make_##name##_hook,
#include "trainer/job/comm_hooks.def"
#undef COMM_HOOK
    };
    return kMakers[static_cast<std::size_t>(job.ddp.comm_hook.kind)](job);
}

plan::Tensor hook_tensor(plan::PlanBuilder& builder, const char* name, std::int64_t elements,
                         plan::DType type) {
    return builder.new_tensor(name, plan::MemoryCategory::communication, elements, type, kHookStream);
}

void hook_all_reduce(plan::PlanBuilder& builder, const HookBucket& bucket, const plan::Arg& elements,
                     int divisor, plan::DType type) {
    builder.collective(
        {.operation = plan::Operation::all_reduce, .dtype = type, .group = bucket.group, .divisor = divisor},
        elements, elements, elements.bytes, kHookStream);
}

ErrorFeedback::ErrorFeedback(Parallelism& owner, const HookBucket& bucket, std::int64_t elements)
    : error_{owner.declare({"error of a hook", plan::MemoryCategory::communication, plan::MemorySpace::device,
                            elements * kFloat, bucket.unit, 0}),
             0, elements * kFloat} {}

bool ErrorFeedback::begin(plan::PlanBuilder& builder) {
    if (std::exchange(lives_, true)) return false;
    builder.allocate(error_.buffer, kHookStream);
    return true;
}

}  // namespace shardscope::trainer::sharding
