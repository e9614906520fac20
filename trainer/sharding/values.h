// The types of the values that a Plan keeps: what a precision stores, and the bytes of what does not depend
// on it (shards, gradients and optimizer state, losses).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "trainer/job/job.h"
#include "trainer/plan/plan.h"

namespace shardscope::trainer::sharding {

inline constexpr std::int64_t kFloat = sizeof(float);
inline constexpr std::int64_t kDouble = sizeof(double);

constexpr plan::DType dtype_of(job::Precision precision) {
    constexpr std::array kTypes = {plan::DType::fp32, plan::DType::bf16, plan::DType::fp16};
    return kTypes[static_cast<std::size_t>(precision)];
}

}  // namespace shardscope::trainer::sharding
