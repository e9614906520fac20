// Processor and memory use of the command's processes, as counters of their ranks. Source: the processes' CPU
// clocks (clock_getcpuclockid) and the resident size in /proc/PID/statm. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include <sys/types.h>

#include "traces/store/sink.h"

namespace shardscope::profiler {

struct WatchedProcess {
    pid_t pid = 0;
    int rank = -1;  // -1: none
};

class HostCounters {
  public:
    // Adds, for each rank (and once for all processes without one, as rank -1), the sums over its processes:
    //   process_cpu_cores       processor seconds per second since the last sample
    //   process_resident_bytes  memory that is in use now; what processes share counts for each
    // A process counts for cpu from its second sample on; one that is gone no longer counts. Returns the
    // number of rows added.
    int sample(std::int64_t now_ns, std::span<const WatchedProcess> processes,
               traces::store::EventSink& sink);

  private:
    struct Usage {
        std::int64_t cpu_ns = 0;
        std::int64_t time_ns = 0;
    };
    std::map<pid_t, Usage> last_;
};

}  // namespace shardscope::profiler
