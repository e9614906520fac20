// Sums of blocks of bytes whose elements have a type that is known at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "trainer/plan/plan.h"

namespace shardscope::trainer::comm {

bool can_sum(plan::DType type);

// (inputs[0] + inputs[1] + ...) / divisor, element by element, as kernels::sum_ranks computes it: the same
// bits as those of the local process group. `output` may be one of the inputs. `past_caches`: the output is
// part of a buffer that is larger than the caches (kernels/streaming.h).
// Reduction::max takes the largest of fp32 elements instead.
void sum_blocks(plan::DType type, std::span<const std::byte* const> inputs, std::byte* output,
                std::int64_t bytes, std::int32_t divisor, plan::Reduction reduction = plan::Reduction::sum,
                bool past_caches = false);

}  // namespace shardscope::trainer::comm
