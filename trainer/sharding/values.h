// The types of the values that a Plan keeps: what a precision stores, and the bytes of what does not depend
// on it (shards, gradients and optimizer state, losses).
#pragma once

#include <cstdint>

#include "trainer/job/job.h"
#include "trainer/plan/plan.h"

namespace shardscope::trainer {

inline constexpr std::int64_t kFloat = sizeof(float);
inline constexpr std::int64_t kDouble = sizeof(double);

constexpr DType dtype_of(Precision precision) {
    return precision == Precision::bf16 ? DType::bf16 : DType::fp32;
}

}  // namespace shardscope::trainer
