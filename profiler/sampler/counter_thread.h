// The thread that samples: it neither slows nor stops the program, whatever the kernel or a driver does.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "profiler/sampler/counter_sampler.h"
#include "profiler/sampler/patient_thread.h"

namespace shardscope::profiler {

class CounterThread {
  public:
    // Called on the sampler's thread with each sample, until the destructor has returned.
    using Deliver = std::function<void(Samples)>;

    // Starts the thread, which takes a sample at once and then each kSamplePeriodNs. Throws
    // std::system_error.
    CounterThread(SamplerOptions options, std::vector<WatchedProcess> processes, Deliver deliver);
    // Takes a last sample. Waits briefly for it; what comes later is not delivered.
    ~CounterThread();
    CounterThread(const CounterThread&) = delete;
    CounterThread& operator=(const CounterThread&) = delete;

    // From now on samples these processes.
    void watch(std::vector<WatchedProcess> processes);
    // Takes a sample now and waits briefly for it: for a process that is about to be gone.
    void sample_now();

  private:
    class Work;
    std::shared_ptr<Work> work_;
    std::optional<PatientThread> thread_;
};

}  // namespace shardscope::profiler
