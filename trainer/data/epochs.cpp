#include "trainer/data/epochs.h"

#include <string>
#include <utility>

#include <fmt/core.h>

namespace shardscope::trainer::data {

namespace {

[[noreturn]] void refuse(const job::Job& job, const char* key, const std::string& why) {
    throw DataError(where(job, key) + key + ": " + why);
}

}  // namespace

job::Job with_steps(job::Job job, const Dataset& train, const Position& start) {
    if (!job.counts_epochs()) return job;
    const std::int64_t samples = train.samples(), epochs = job.train.epochs, a_step = job.samples_per_step();
    const char* key = epochs > 0                        ? "train.epochs"
                      : job.train.validate_every.epochs ? "train.validate_every"
                                                        : "checkpoint.every";
    if (samples == 0) {
        refuse(job, key,
               "samples that are made do not repeat, so there are no epochs; count steps, with run.steps, or "
               "set data.path to files");
    }
    if (epochs == 0) return job;
    if (start.samples / samples >= epochs) {
        const double done = static_cast<double>(start.samples) / static_cast<double>(samples);
        refuse(job, key,
               fmt::format("the checkpoint that training continues from is after {:.4g} epoch{} already; set "
                           "train.epochs above that to continue",
                           done, done == 1 ? "" : "s"));
    }
    // As numbers that cannot overflow: a text may have billions of samples.
    const double all = static_cast<double>(epochs) * static_cast<double>(samples);
    const double steps = static_cast<double>(start.steps) +
                         (all - static_cast<double>(start.samples)) / static_cast<double>(a_step);
    if (steps > static_cast<double>(job::kMostSteps) || all > 1e18) {
        refuse(job, key,
               fmt::format("{} epochs of {} samples are {:.0f} steps of {}, and a job may have {}; lower it",
                           epochs, samples, steps, a_step, job::kMostSteps));
    }
    job.run.steps = start.steps + (epochs * samples - start.samples + a_step - 1) / a_step;
    if (traits(job.ddp.comm_hook.kind).keeps_error && job.run.steps <= job.ddp.comm_hook_start) {
        refuse(job, "ddp.comm_hook_start",
               fmt::format("the first {} steps are reduced whole, and {} of {} are {} steps; raise {}",
                           job.ddp.comm_hook_start, key, epochs, job.run.steps, key));
    }
    return job;
}

bool is_time(const job::Every& every, const Position& before, const Position& after, std::int64_t samples) {
    if (!every) return false;
    if (!every.epochs) return after.steps % every.count == 0;
    if (samples == 0) return false;
    // Counts of epochs, so that the product with their samples is not needed.
    return after.samples / samples / every.count > before.samples / samples / every.count;
}

}  // namespace shardscope::trainer::data
