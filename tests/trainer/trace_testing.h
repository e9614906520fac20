// Runs a job and keeps its trace in memory.
#pragma once

#include <ctime>
#include <memory>

#include "jobs.h"
#include "profiler/recorder/recorder.h"
#include "traces/store/columns/column_sink.h"
#include "traces/store/columns/trace.h"

namespace shardscope::trainer::testing {

inline std::unique_ptr<traces::store::Trace> record(const job::Job& job, executor::RunOptions options = {}) {
    std::unique_ptr<traces::store::Trace> trace;
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    profiler::RecorderOptions recorder_options;
    recorder_options.start_system_ns = now.tv_sec * 1'000'000'000LL + now.tv_nsec;
    profiler::Recorder recorder(
        std::make_unique<traces::store::ColumnSink>(),
        [&](traces::store::EventSink& sink, std::int64_t, std::int64_t) {
            trace = static_cast<traces::store::ColumnSink&>(sink).take();
        },
        recorder_options);
    options.recorder = &recorder;
    run(job, options);
    recorder.finish();
    return trace;
}

}  // namespace shardscope::trainer::testing
