// What the GPUs do: use, memory, power, energy, temperature, clocks, throttling and link traffic, read
// through NVIDIA's management library. Without it or without a GPU, there are no samples.
//
// A thread of its own samples, since some of these calls take tens of milliseconds, and starting the library
// may take seconds; take() returns what it has found since the last call.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "profiler/base/clock.h"
#include "profiler/nvml/library.h"
#include "profiler/sampler/patient_thread.h"
#include "profiler/sampler/samples.h"

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

struct GpuFindings {
    std::vector<GpuSample> samples;
    std::vector<nvml::GpuFacts> gpus;  // once
    std::vector<traces::schema::TopologyRow>
        links;                       // of GPUs and adapters, once; their host is left to the caller
    std::vector<SamplerNote> notes;  // what cannot be read, each once
};

class GpuCounters {
  public:
    enum class What { samples, facts };  // facts: finds the GPUs, and nothing more

    // Starts the thread. `root`: put before /sys. Throws std::system_error.
    explicit GpuCounters(What what, std::string root = "");
    ~GpuCounters();

    GpuFindings take();

  private:
    class Work;
    std::shared_ptr<Work> work_;
    std::optional<PatientThread> thread_;
};

}  // namespace shardscope::profiler
