// Samples what processes and GPUs do while a command runs, and adds it to the trace as counters. One thread,
// besides GpuCounters' own.
#pragma once

#include <cstdint>
#include <map>
#include <span>

#include "profiler/record/gpu_counters.h"
#include "profiler/record/host_counters.h"
#include "traces/store/sink.h"

namespace shardscope::profiler {

class CounterSampler {
  public:
    static constexpr std::int64_t kPeriodNs = 100'000'000;

    // Trace time begins at `origin`.
    explicit CounterSampler(MonotonicTime origin) : origin_(origin) {}

    // To be called regularly; samples when a sample is due.
    //
    // Counters of a GPU ("gpu_power_watts") go to the ranks whose processes use it. Where the system does
    // not report these, and for further GPUs of a rank, the name has the GPU's number ("gpu1_power_watts").
    void tick(std::int64_t now_ns, std::span<const WatchedProcess> processes, traces::store::EventSink& sink);

    // Discards the samples that were taken while recording was off.
    void discard();

  private:
    void add(const GpuSample& sample, std::span<const WatchedProcess> processes,
             traces::store::EventSink& sink);

    MonotonicTime origin_;
    std::int64_t next_ns_ = 0;
    HostCounters host_;
    GpuCounters gpus_;
    std::map<int, int> gpu_of_rank_;  // the rank's first GPU
};

}  // namespace shardscope::profiler
