// What the job's devices, hosts, ranks and adapters did, from what a sampler recorded (SHARD_COUNTERS), with
// the energy that it took and what that costs. Definition: docs/definitions.md, "Utilization, energy". A
// figure that the trace does not have is unknown, never 0. Times in nanoseconds where nothing else is said.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/base/intervals.h"
#include "traces/analysis/base/result_table.h"
#include "traces/analysis/base/selection.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

// One sampled figure over the selected time: "power_watts" of a GPU, "cpu_cores" of a process. Its name ends
// with its unit.
struct SampledFigure {
    std::string name;
    double mean = 0, p95 = 0, lowest = 0, highest = 0;
    double zero_percent = 0;  // of its time, at 0
    double seconds = 0;       // its time: without gaps
    std::int64_t samples = 0;
};
Fields<SampledFigure> sampled_fields();
const SampledFigure* find_figure(const std::vector<SampledFigure>& figures, std::string_view name);

// A part of a device's lane: what it did in one of many equal parts of the time.
struct LanePoint {
    float mean = 0, highest = 0;  // utilization in percent
    float throttled = 0;          // share of the time, 0 to 1
    bool known = false;
};

enum class UsedDevice : std::uint8_t {
    gpu,
    cores,  // all processors of a host, on which the CPU device of the trainer computes
};

struct DeviceUse {
    std::string host;  // empty: unknown
    UsedDevice kind = UsedDevice::gpu;
    int device = 0;                 // its number on the host
    std::vector<int> ranks;         // that use it, by number
    std::string name;               // "NVIDIA H100 80GB HBM3"; empty: unknown
    std::optional<bool> visible;    // the job may use it
    std::int64_t memory_bytes = 0;  // that it has; 0: unknown
    double power_limit_watts = 0;   // 0: unknown
    // Of a GPU the share of time in which a kernel ran (NVML's); of cores those that the job's processes
    // used.
    std::optional<double> utilization_percent, utilization_p95_percent, idle_percent;
    std::optional<double> memory_mean_bytes, memory_peak_bytes;
    std::optional<double> power_watts, power_p95_watts;
    std::optional<double> energy_j;
    bool energy_from_counter = false;  // the device's own; else power is integrated over time
    std::optional<double> sm_clock_mhz, memory_clock_mhz;
    std::optional<double> throttled_percent;  // of its time, its clocks were held down
    std::string throttled_by;                 // "power cap 12.0 %, temperature 3.0 %"
    std::optional<double> throttled_sm_clock_mhz, free_sm_clock_mhz;  // while throttled, and not
    std::optional<double> temperature_celsius, temperature_highest_celsius;
    std::vector<SampledFigure> sampled;
    std::vector<LanePoint> lane;  // if asked for

    // Visible to the job, and idle in every sample.
    bool unused() const;
    std::string title() const;  // "GPU 3", "cores"
};
Fields<DeviceUse> device_use_fields();

struct RankUse {
    int rank = 0;
    std::string host;
    std::vector<int> devices;  // GPUs' numbers on the host
    int allowed_cores = 0;     // that its process may run on; 0: unknown
    std::optional<double> cores, cores_p95, cores_idle_percent;
    std::optional<double> resident_mean_bytes, resident_peak_bytes, swap_peak_bytes;
    std::optional<double> read_bytes_per_second, written_bytes_per_second;
    std::vector<SampledFigure> sampled;
};
Fields<RankUse> rank_use_fields();

struct AdapterUse {
    std::string host;
    std::string kind;  // "infiniband", "ethernet"
    int number = 0;
    std::string name;             // "mlx5_0"; empty: unknown
    double bytes_per_second = 0;  // that it can, in one direction; 0: unknown
    std::optional<double> sent, sent_p95, received, received_p95;  // bytes per second
    std::optional<double> idle_percent;                            // neither sent nor received
    std::optional<double> near_limit_percent;  // of its time, at 80 % of what it can or more, in a direction
    std::vector<SampledFigure> sampled;
};
Fields<AdapterUse> adapter_use_fields();

struct HostUse {
    std::string host;
    std::vector<int> ranks;
    std::int64_t devices = 0, unused_devices = 0;
    std::optional<double> utilization_percent;  // of its devices that are sampled, each with the same weight
    int cpus = 0;                               // logical processors; 0: unknown
    double cpu_limit_cores = 0;                 // of the job's cgroup; 0: none, or unknown
    std::int64_t memory_bytes = 0;              // 0: unknown
    std::optional<double> busy_cores, busy_cores_p95;  // of the whole host
    std::optional<double> job_cores, job_cores_p95;    // of the job's processes
    std::optional<double> job_resident_peak_bytes;
    std::optional<double> memory_available_least_bytes;
    std::optional<double> swap_in_bytes_per_second, swap_out_bytes_per_second;
    std::optional<double> cgroup_throttled_percent;
    std::optional<double> energy_j;  // of its devices
    std::vector<SampledFigure> sampled;

    // The cores that the job may use: those of the host, or the limit; 0: unknown.
    double usable_cores() const;
};
Fields<HostUse> host_use_fields();

// The job as a whole.
struct JobUse {
    double seconds = 0;  // the selected time
    std::int64_t hosts = 0, devices = 0, sampled_devices = 0, unused_devices = 0;
    std::optional<double> utilization_percent,
        idle_percent;                 // of the sampled devices, each with equal weight
    std::optional<double> energy_j;   // of all devices whose energy is known
    std::int64_t energy_devices = 0;  // number of these
    std::int64_t steps = 0;           // selected; 0: the trace has none
    double step_seconds = 0;          // from the first selected step to the last one's end
    std::optional<double> samples_per_step, tokens_per_step;  // of all ranks
    std::optional<double> energy_per_step_j, energy_per_sample_j, energy_per_token_j;
    double device_hours = 0;
    std::optional<double> price_per_device_hour;  // in the currency in which it was given
    std::optional<double> cost, cost_per_million_tokens, cost_per_million_samples;
};
Fields<JobUse> job_use_fields();

struct UtilizationReport {
    Interval time;  // selected
    JobUse job;
    // Each by host, then by number: a host's devices are neighbours.
    std::vector<HostUse> hosts;
    std::vector<DeviceUse> devices;
    std::vector<RankUse> ranks;
    std::vector<AdapterUse> adapters;
    std::vector<std::string> notes;  // sentences: what was left out, and what is unknown and why

    bool any_sample() const;  // of anything
};

struct UtilizationOptions {
    double price_per_device_hour = 0;  // 0: what the trace says, if it does
    std::size_t lane_points = 0;       // of each device's lane; 0: no lanes
    std::size_t all_lane_points = 0;   // of all lanes together, though at least 60 of each; 0: any number
};

// Devices and hosts of the selected rank alone, if one is selected.
UtilizationReport utilization_report(const store::Trace& trace, const Selection& selection = {},
                                     const UtilizationOptions& options = {});

}  // namespace shardscope::traces::analysis
