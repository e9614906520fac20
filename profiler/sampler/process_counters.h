// What processes use, as counters of their ranks: the processor by their CPU clocks (clock_getcpuclockid),
// memory, swap and disk by /proc/PID/statm, status and io. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include <sys/types.h>

#include "profiler/sampler/samples.h"
#include "profiler/sampler/system_files.h"

namespace shardscope::profiler {

struct WatchedProcess {
    pid_t pid = 0;
    int rank = -1;  // -1: none

    bool operator==(const WatchedProcess&) const = default;
};

class ProcessCounters {
  public:
    // `began`: all that a process uses counts if it has started since then; none: only what it uses from the
    // first sample on.
    ProcessCounters(const SystemFiles& files, std::optional<MonotonicTime> began)
        : files_(files), last_tick_(began) {}

    // Adds, for each rank (and once for all processes without one, as rank -1), the sums over its processes:
    //   process_cpu_cores                 processor seconds per second since the last sample
    //   process_resident_bytes            memory that is in use now; what processes share counts for each
    //   process_swap_bytes                memory that is swapped out now
    //   process_read_bytes_per_second     from disks, since the last sample; not from the page cache
    //   process_written_bytes_per_second  to disks; counted when the page cache has it
    // The first three of a process that has just ended, and not been waited for, are its last ones. A process
    // that was there before the first sample counts for rates from its second sample on. Each rate, times the
    // time since the sample before, is what was used in that time, so that they sum to what a process has
    // used.
    void sample(std::span<const WatchedProcess> processes, Samples& samples);

  private:
    struct Usage {
        MonotonicTime time{0};
        std::int64_t cpu_ns = 0;
        std::optional<std::uint64_t> read_bytes, written_bytes;
    };
    struct Sum;

    std::optional<Usage> read_usage(pid_t pid, MonotonicTime tick, Samples& samples);
    void add_disk(pid_t pid, Usage& usage, Samples& samples);
    std::optional<Usage> usage_before(pid_t pid, const Usage& now) const;
    void told(pid_t pid, const char* file, const char* what, int error, MonotonicTime time, Samples& samples);

    const SystemFiles& files_;
    std::optional<MonotonicTime> last_tick_;
    std::map<pid_t, Usage> last_;
    bool told_memory_ = false, told_disk_ = false;
};

}  // namespace shardscope::profiler
