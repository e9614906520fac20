// The metrics of a training step beside its loss, and their rows in a trace (SHARD_METRICS).
#pragma once

#include <cstdint>
#include <string_view>

#include "traces/store/sink.h"
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

// Device memory of the rank that has most.
struct StepMemory {
    std::int64_t allocated = 0, peak = 0;  // now; most since the set-up
};

inline void add_step_metrics(traces::store::EventSink& sink, const job::Job& job, const MetricPlace& place,
                             double seconds, const StepMemory& memory) {
    const StepItems items(job);
    add_metric(sink, place, "learning_rate",
               learning_rate(job.optimizer, batch_factor(job), job.run.steps, place.step));
    if (seconds > 0) add_metric(sink, place, items.rate_name, static_cast<double>(items.count) / seconds);
    add_metric(sink, place, "allocated_bytes", static_cast<double>(memory.allocated));
    add_metric(sink, place, "peak_bytes", static_cast<double>(memory.peak));
}

}  // namespace shardscope::trainer::executor
