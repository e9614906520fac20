#include "trainer/job/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace shardscope::trainer::job {

double batch_factor(const Job& job) {
    const std::int64_t batch = job.optimizer.lr_batch > 0 ? job.optimizer.lr_batch : job.data.batch;
    return static_cast<double>(job.samples_per_step()) / static_cast<double>(batch);
}

double scaled_learning_rate(const OptimizerSection& optimizer, double factor) {
    switch (optimizer.lr_scaling) {
        case LrScaling::none:
            break;
        case LrScaling::linear:
            return optimizer.lr * factor;
        case LrScaling::sqrt:
            return optimizer.lr * std::sqrt(factor);
    }
    return optimizer.lr;
}

double learning_rate(const OptimizerSection& optimizer, double factor, std::int64_t steps,
                     std::int64_t step) {
    const double full = scaled_learning_rate(optimizer, factor);
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
        case LrSchedule::polynomial: {
            const double part = static_cast<double>(step - warmup) / static_cast<double>(steps - warmup);
            return full * std::pow(1 - part, optimizer.power);
        }
    }
    return full;
}

}  // namespace shardscope::trainer::job
