// What a kernel needs in addition to its operation of the Plan, on every device.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>

#include "trainer/plan/plan.h"

namespace shardscope::trainer {

// Values that are not in the Plan because they differ by rank or step.
struct KernelContext {
    int rank = 0;
    int ranks = 1;
    int place = 0;  // of the rank in its shard group
    std::int64_t seed = 0;
    std::int64_t step = 0;              // 0 the first
    std::int64_t micro_step = 0;        // step * micro-batches of a step + micro-batch
    double lr = 0;                      // of the step
    std::span<const Segment> segments;  // of the Op, from its Plan
};

// Kernels count rows and columns in 32 bits. Throws std::length_error for a number beyond that.
inline int kernel_dim(std::int64_t dim) {
    if (dim < 0 || dim > std::numeric_limits<int>::max()) {
        throw std::length_error("model.context x data.batch is too large: a kernel has " +
                                std::to_string(dim) + " rows or columns, of at most " +
                                std::to_string(std::numeric_limits<int>::max()) +
                                "; make data.batch smaller and train.accumulation larger");
    }
    return static_cast<int>(dim);
}

}  // namespace shardscope::trainer
