// A generated run for the panels' tests and pictures: an MLP of Linear and ReLU under FULL_SHARD, wrapped at
// the root or per Linear, with ranges, launches, collectives, allocations and a prediction as the trainer
// writes them. Deterministic; no clock, no file. Times in nanoseconds, sizes in bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "traces/store/columns/trace.h"
#include "traces/store/sink.h"

namespace shardscope::viewer {

struct MlpSample {
    bool per_linear = false;
    int ranks = 2;
    int steps = 3;
    int layers = 4;
    std::int64_t width = 512;
    std::int64_t batch = 64;

    std::int64_t layer_bytes() const { return (width * width + width) * 4; }
    std::int64_t activation_bytes() const { return batch * width * 4; }
};

// Feeds every row of the run to a sink (a database writer or columns).
void write_mlp_sample(const MlpSample& sample, traces::store::EventSink& sink);

// A run in progress, without a step yet: each call of the result adds a step of every rank and commits it.
std::function<void()> mlp_in_progress(const MlpSample& sample, traces::store::EventSink& sink);

// The first row of a trace's column that has a value; its size if none has.
inline std::size_t first_with_value(const traces::store::IndexColumn& column) {
    std::size_t row = 0;
    while (row < column.size() && column[row] == traces::store::IndexColumn::kNone) ++row;
    return row;
}

// The same run as columns in memory, named `path`.
std::shared_ptr<const traces::store::Trace> mlp_sample(const MlpSample& sample, const char* path);

}  // namespace shardscope::viewer
