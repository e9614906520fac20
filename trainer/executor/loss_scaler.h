// The factor of the loss in fp16, and its rule: an overflow of the gradients lowers it, a number of steps
// without one raises it. The gradients' overflow is known to all ranks alike (found in any of them), so each
// rank keeps its own scaler, and all have the same. Not thread safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trainer/job/job.h"

namespace shardscope::trainer::executor {

// What a scaler keeps from step to step.
struct LossScale {
    double scale = 1;
    std::int64_t clean = 0;    // steps since the latest overflow; torch: or since the latest growth
    std::int64_t skipped = 0;  // steps whose gradients overflowed, of all
    int hysteresis = 1;        // deepspeed: at 1 an overflow lowers the scale, above it only this number

    bool operator==(const LossScale&) const = default;
};

// A step's end for the scale.
struct LossScaleStep {
    std::int64_t step = 0;
    bool skipped = false;
    LossScale before, after;
};

class LossScaler {
  public:
    explicit LossScaler(const job::PrecisionSection& options);

    const LossScale& state() const { return state_; }
    // Of a checkpoint. A constant scale stays as the job has it.
    void go_on_from(const LossScale& state);

    // Once a step. Throws RunError if the gradients overflow and the scale cannot be lowered.
    LossScaleStep update(std::int64_t step, bool overflow);

  private:
    void lower(std::int64_t step);

    job::PrecisionSection options_;
    LossScale state_;
};

// The line that DeepSpeed logs of a skipped step: "OVERFLOW! Rank 0 Skipping step. Attempted loss scale: A,
// reducing to B".
std::string overflow_line(int rank, const LossScaleStep& step);

}  // namespace shardscope::trainer::executor
