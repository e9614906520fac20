// Samples processes, their host and its devices. One thread, besides GpuCounters' own.
//
// Of the processes of a job on one host, one samples the host and its devices ("whole_host"), so that a trace
// of all of them has each once; every process samples its own ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

#include "profiler/sampler/adapters.h"
#include "profiler/sampler/gpu_counters.h"
#include "profiler/sampler/machine_counters.h"
#include "profiler/sampler/process_counters.h"
#include "profiler/sampler/samples.h"
#include "profiler/sampler/system_files.h"

namespace shardscope::profiler {

inline constexpr std::int64_t kSamplePeriodNs = 100'000'000;

struct SamplerOptions {
    MonotonicTime origin{0};  // time 0 of the trace
    std::string host;
    // All that a watched process uses counts, if it has started since the origin.
    bool from_the_start = false;
    bool whole_host = true;
    bool alone = true;  // no other process of the job on this host samples
    // CUDA_VISIBLE_DEVICES; none: not set.
    std::optional<std::string> visible_gpus;
    // The rank of a process that uses a GPU and is not watched, -1: none. Any number of calls; may be empty.
    std::function<int(pid_t)> rank_of;
    std::string root;  // put before /proc and /sys
};

class CounterSampler {
  public:
    // Throws std::system_error if there is no thread for the GPUs.
    explicit CounterSampler(SamplerOptions options);

    // A sample of everything, now. The first has the facts of the host and the devices as well; the GPUs'
    // follow as soon as the driver has started.
    //
    // Counters of a GPU ("gpu_power_watts") are of the rank whose process uses it, of the lowest one if
    // several do. Where the system does not report that, and for further GPUs of a rank, the name has the
    // GPU's number
    // ("gpu1_power_watts").
    Samples sample(std::span<const WatchedProcess> processes);

  private:
    void describe(Samples& samples);
    void add_gpus(std::span<const WatchedProcess> processes, Samples& samples);
    void add_gpu(const GpuSample& sample, std::span<const WatchedProcess> processes, Samples& samples);
    void describe_gpus(const std::vector<nvml::GpuFacts>& gpus, Samples& samples) const;
    int rank_using(const GpuSample& sample, std::span<const WatchedProcess> processes);
    // Says once that there was no sample for longer than figures are continued.
    void note_gap(const std::string& what, MonotonicTime from, MonotonicTime to, bool& told,
                  Samples& samples) const;

    const SamplerOptions options_;
    const SystemFiles files_;
    ProcessCounters processes_;
    std::unique_ptr<MachineCounters> machine_;  // null: another process samples the host
    std::unique_ptr<AdapterCounters> adapters_;
    GpuCounters gpus_;
    bool described_ = false;
    std::optional<MonotonicTime> last_;
    bool told_gap_ = false, told_gpu_gap_ = false;
    std::map<int, MonotonicTime> last_of_gpu_;
    std::map<int, int> gpu_of_rank_;      // the rank's first GPU
    std::map<pid_t, int> ranks_of_pids_;  // what rank_of returned
};

}  // namespace shardscope::profiler
