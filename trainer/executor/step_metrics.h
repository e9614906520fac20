// The metrics of a training step beside its loss, and their rows in a trace (SHARD_METRICS).
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

#include "traces/store/sink.h"
#include "trainer/executor/loss_scaler.h"
#include "trainer/job/job.h"
#include "trainer/job/learning_rate.h"
#include "trainer/model/models.h"

namespace shardscope::trainer::executor {

// What one step trains on, over all ranks and micro-batches.
struct StepItems {
    explicit StepItems(const job::Job& job) {
        const model::BatchShape shape = model::batch_shape(job);
        const std::int64_t batches = std::int64_t{job.data_ranks()} * job.train.accumulation;
        samples = shape.samples * batches;
        count = shape.tokens > 0 ? shape.tokens * batches : samples;
        if (shape.tokens == 0) {
            name = job.reads_images() ? "images" : "samples";
            rate_name = job.reads_images() ? "images_per_second" : "samples_per_second";
        }
    }
    std::int64_t samples = 0;
    std::int64_t count = 0;  // tokens or, where the model has none, images or other samples
    std::string_view name = "tokens", rate_name = "tokens_per_second";
};

// When a metric of the whole job was known: after which step and sample, at which time of the trace.
struct MetricPlace {
    std::int64_t step = 0, sample = 0, time = 0;
};

inline void add_metric(traces::store::EventSink& sink, const MetricPlace& place, std::string_view name,
                       double value) {
    sink.add(traces::schema::MetricRow{.step = place.step,
                                       .sample = place.sample,
                                       .time = place.time,
                                       .name = sink.intern(name),
                                       .value = value});
}

// The factor of the step's loss, and the steps that overflows have skipped so far.
inline void add_loss_scale(traces::store::EventSink& sink, const MetricPlace& place,
                           const LossScaleStep& step) {
    add_metric(sink, place, "loss_scale", step.before.scale);
    add_metric(sink, place, "skipped_steps", static_cast<double>(step.after.skipped));
}

// Device memory of the rank that has most.
struct StepMemory {
    std::int64_t allocated = 0, peak = 0;  // now; most since the set-up
};

// The values of a step; nothing of the job is needed when they are written.
struct StepMetrics {
    StepMetrics(const job::Job& job, std::int64_t step, double seconds, const StepMemory& of,
                std::optional<double> gradient_norm = {}, std::optional<double> of_epoch = {})
        : items(job),
          rate(learning_rate(job.optimizer, batch_factor(job), job.run.steps, step)),
          per_second(seconds > 0 ? static_cast<double>(items.count) / seconds : 0),
          memory(of),
          norm(gradient_norm),
          epoch(of_epoch) {}
    void add_to(traces::store::EventSink& sink, const MetricPlace& place) const {
        add_metric(sink, place, "learning_rate", rate);
        if (epoch) add_metric(sink, place, "epoch", *epoch);
        // That of a step which a loss scale skips is infinite or not a number.
        if (norm && std::isfinite(*norm)) add_metric(sink, place, "gradient_norm", *norm);
        if (per_second > 0) add_metric(sink, place, items.rate_name, per_second);
        add_metric(sink, place, "allocated_bytes", static_cast<double>(memory.allocated));
        add_metric(sink, place, "peak_bytes", static_cast<double>(memory.peak));
    }

    StepItems items;
    double rate = 0, per_second = 0;  // the learning rate; items, 0: unknown
    StepMemory memory;
    std::optional<double> norm;   // of the gradients before they are clipped; none: not reported
    std::optional<double> epoch;  // StepReport
};

}  // namespace shardscope::trainer::executor
