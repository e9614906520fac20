#include "trainer/job/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace shardscope::trainer {

double scaled_learning_rate(const OptimizerSection& optimizer, int ranks) {
    switch (optimizer.lr_scaling) {
        case LrScaling::none:
            break;
        case LrScaling::linear:
            return optimizer.lr * ranks;
        case LrScaling::sqrt:
            return optimizer.lr * std::sqrt(static_cast<double>(ranks));
    }
    return optimizer.lr;
}

double learning_rate(const OptimizerSection& optimizer, int ranks, std::int64_t steps, std::int64_t step) {
    const double full = scaled_learning_rate(optimizer, ranks);
    const std::int64_t warmup = optimizer.warmup_steps;
    if (step < warmup) {
        if (optimizer.warmup == Warmup::constant) return optimizer.lr;
        if (optimizer.lr_scaling == LrScaling::none)
            return full * static_cast<double>(step + 1) / static_cast<double>(warmup + 1);
        const double part = static_cast<double>(step) / static_cast<double>(warmup);
        return optimizer.lr + (full - optimizer.lr) * part;
    }
    switch (optimizer.schedule) {
        case LrSchedule::constant:
            break;
        case LrSchedule::step: {
            const auto passed = std::count_if(optimizer.milestones.begin(), optimizer.milestones.end(),
                                              [&](std::int64_t milestone) { return milestone <= step; });
            return full * std::pow(optimizer.gamma, static_cast<double>(passed));
        }
        case LrSchedule::cosine: {
            const double part = static_cast<double>(step - warmup) / static_cast<double>(steps - warmup);
            return full * (1 + std::cos(std::numbers::pi * part)) / 2;
        }
    }
    return full;
}

}  // namespace shardscope::trainer
