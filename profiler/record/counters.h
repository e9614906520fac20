// The counters of the command, its host and its devices, between the thread that samples them and the trace.
// One thread, besides the sampler's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "profiler/sampler/counter_thread.h"
#include "traces/store/sink.h"

namespace shardscope::profiler {

class Counters {
  public:
    // Throws std::system_error if the sampler's thread cannot be started.
    Counters(SamplerOptions options, std::vector<WatchedProcess> processes);
    ~Counters();

    void watch(std::vector<WatchedProcess> processes);
    // Waits briefly for a sample of what the processes have used by now.
    void sample_now() { thread_->sample_now(); }
    // Adds what was sampled since the last call, of that at `since` and later, and returns it.
    Samples write(traces::store::EventSink& sink, MonotonicTime since);
    // Drops what was sampled since the last call, but keeps what is only said once for the next write().
    void discard();

  private:
    struct Queue;
    const MonotonicTime origin_;
    const std::string host_;
    std::vector<WatchedProcess> processes_;
    std::shared_ptr<Queue> queue_;
    std::unique_ptr<CounterThread> thread_;
};

// The rank that a process's launcher has given it in its environment; -1: none, or it is another user's.
int rank_of_process(pid_t pid);

}  // namespace shardscope::profiler
