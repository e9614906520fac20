#include "trainer/executor/loss_scaler.h"

#include <algorithm>
#include <limits>

#include <fmt/core.h>

#include "trainer/executor/run.h"

namespace shardscope::trainer::executor {

LossScaler::LossScaler(const job::PrecisionSection& options) : options_(options) {
    state_.scale = options.loss_scale > 0 ? options.loss_scale : options.initial_scale;
    state_.hysteresis = options.scale_rule == job::ScaleRule::deepspeed ? options.hysteresis : 1;
}

void LossScaler::go_on_from(const LossScale& state) {
    const double own = state_.scale;
    state_ = state;
    if (options_.loss_scale > 0) state_.scale = own;
    const bool deepspeed = options_.scale_rule == job::ScaleRule::deepspeed;
    state_.hysteresis = deepspeed ? std::min(state.hysteresis, options_.hysteresis) : 1;
}

// torch: without a limit until the scale, a float there, would underflow.
void LossScaler::lower(std::int64_t step) {
    const bool torch = options_.scale_rule == job::ScaleRule::torch;
    const double least = torch ? std::numeric_limits<float>::min() : options_.min_scale;
    if (state_.scale <= least) {
        throw RunError(fmt::format(
            "step {}: the gradients overflow, and the loss scale is {} already, below which {}; lower "
            "optimizer.lr or train in fp32 (precision.param)",
            step, state_.scale, torch ? "it would underflow" : "precision.min_scale does not let it go"));
    }
    state_.scale = std::max(state_.scale / 2, least);
}

// torch: GradScaler.update. deepspeed: DynamicLossScaler.update_scale, which grows at each multiple of the
// interval after the first clean step, and then also restores the hysteresis.
LossScaleStep LossScaler::update(std::int64_t step, bool overflow) {
    LossScaleStep made{step, overflow, state_, {}};
    if (overflow) ++state_.skipped;
    const bool torch = options_.scale_rule == job::ScaleRule::torch;
    if (options_.loss_scale > 0) {
        // It is constant.
    } else if (overflow) {
        state_.clean = 0;
        if (state_.hysteresis > 1)
            --state_.hysteresis;
        else
            lower(step);
    } else {
        ++state_.clean;
        const std::int64_t interval = options_.growth_interval, past = state_.clean - (torch ? 0 : 1);
        if (past > 0 && past % interval == 0) {
            const double grown = 2 * state_.scale;
            if (grown <= std::numeric_limits<float>::max()) state_.scale = grown;
            if (torch)
                state_.clean = 0;
            else
                state_.hysteresis = options_.hysteresis;
        }
    }
    made.after = state_;
    return made;
}

std::string overflow_line(int rank, const LossScaleStep& step) {
    const std::string start = fmt::format("OVERFLOW! Rank {} Skipping step. Attempted loss scale: {:.1f}, ",
                                          rank, step.before.scale);
    if (step.after.scale < step.before.scale)
        return start + fmt::format("reducing to {:.1f}", step.after.scale);
    if (step.after.hysteresis < step.before.hysteresis)
        return start + fmt::format("reducing hysteresis to {}", step.after.hysteresis);
    return start + "which precision.loss_scale keeps";
}

}  // namespace shardscope::trainer::executor
