// What the GPUs do while the command runs: use, memory, power, clocks, throttling and link traffic, read
// through NVIDIA's management library, which is opened at run time. Without it or without a GPU, there are no
// samples.
//
// A thread of its own samples, since some of these calls take tens of milliseconds, and starting the library
// may take seconds; take() returns the samples since the last call.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "profiler/base/clock.h"

namespace shardscope::profiler {

struct GpuSample {
    MonotonicTime time{0};
    int gpu = 0;  // NVML's number
    // The processes that use the GPU now (as far as the system reports them).
    std::vector<pid_t> pids;
    struct Value {
        const char* name;  // "utilization_percent", "memory_used_bytes", "power_watts", "sm_clock_mhz" …
        double value;
    };
    std::vector<Value> values;
};

class GpuCounters {
  public:
    // Starts the thread.
    GpuCounters();
    // Waits briefly for the thread; one that hangs in the driver is left behind, and stuck() is true from
    // then on.
    ~GpuCounters();
    GpuCounters(const GpuCounters&) = delete;
    GpuCounters& operator=(const GpuCounters&) = delete;

    std::vector<GpuSample> take();
    // Whether a thread was left behind: if so, this process must end by _Exit.
    static bool stuck();

  private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace shardscope::profiler
