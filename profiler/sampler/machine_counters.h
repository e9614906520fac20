// What a whole host does, and the limits that the job has there: the processor, memory and swap by /proc,
// limits and throttling by the control groups (versions 1 and 2) of this process, which the command inherits.
// One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profiler/sampler/growing_counter.h"
#include "profiler/sampler/samples.h"
#include "profiler/sampler/system_files.h"

namespace shardscope::profiler {

// Limits of a control group; what is not limited is not set.
struct ControlGroup {
    std::optional<double> cpu_cores;
    std::optional<std::int64_t> memory_bytes;
    // The file that counts the periods of the group whose processor time is limited; empty: none is. A job's
    // limit may be that of a group above its own: the lowest counts.
    std::string cpu_statistics;
};
ControlGroup control_group(const SystemFiles& files);

// What the trace says of this host: "host.NAME.cpus", "host.NAME.memory_bytes" and, if they are limited,
// "host.NAME.cpu_limit_cores" and "host.NAME.memory_limit_bytes".
std::vector<traces::schema::RunInfoRow> host_facts(const SystemFiles& files, const std::string& host);

class MachineCounters {
  public:
    explicit MachineCounters(const SystemFiles& files) : files_(files), group_(control_group(files)) {}

    //   host_cpu_cores                 processors that computed since the last sample, for anyone
    //   host_memory_available_bytes    that programs can still get without swapping (MemAvailable)
    //   host_swap_in_bytes_per_second  and host_swap_out_...: since the last sample
    //   cgroup_throttled_percent       of the limit's periods since the last sample, those in which the job
    //                                  had to stop; only if its processor time is limited
    void sample(Samples& samples);

  private:
    void add_cpu(Samples& samples);
    void add_memory(Samples& samples);
    void add_swap(Samples& samples);
    void add_throttling(Samples& samples);
    // The file's text; a file that cannot be read any more is said once, and not read again.
    std::optional<std::string> read(const char* path, const char* what, bool& unreadable, Samples& samples);

    const SystemFiles& files_;
    const ControlGroup group_;
    GrowingCounter busy_, swap_in_, swap_out_;
    struct Periods {
        std::uint64_t all = 0, throttled = 0;
    };
    std::optional<Periods> periods_;
    bool no_cpu_ = false, no_memory_ = false, no_swap_ = false, no_group_ = false;
};

}  // namespace shardscope::profiler
