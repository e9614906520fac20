// Advice about what the job was given: devices that do nothing or are held down, too few processor cores,
// memory in swap, full network adapters. From samples (traces/analysis/job).
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "traces/analysis/advice/advice_facts.h"
#include "traces/analysis/job/utilization.h"
#include "traces/store/columns/trace.h"
#include "traces/store/grouped.h"
#include "traces/store/number_list.h"

namespace shardscope::traces::analysis {
namespace {

using Findings = std::vector<Finding>;

constexpr std::size_t kDevicesNamed = 16;  // unused devices with a finding of their own
constexpr double kThrottledPercent = 5;    // of a device's time
constexpr double kAllCores = 0.9;          // of the cores that a process may use
constexpr double kCgroupPercent = 5;       // of the time
constexpr double kSwapRate = 1 << 20;      // bytes a second, in and out
constexpr double kSwapped = 64 << 20;      // bytes of a process
constexpr double kNearLimitPercent = 10;   // of the time, at 80 % of an adapter's rate
constexpr double kFewCores = 0.5;          // of a host's

constexpr std::string_view kNotReplayed = "Unknown, because no replay of the run has it.";

std::string of_host(const std::string& host) {
    return host.empty() ? std::string() : " of " + host;
}
std::string number(double value, int decimals = 1) {
    return store::grouped(value, decimals);
}

// Ranks whose launcher could start one on each device.
void suggest_all_devices(const AdviceFacts& f, std::int64_t devices, Finding& finding) {
    finding.change =
        "Start a rank on each device, or ask for as many devices as the job uses: an idle one costs the "
        "same.";
    if (f.ours()) finding.job_setting = fmt::format("run.ranks = {}", devices);
    finding.pytorch = fmt::format("torchrun --nproc-per-node {} train.py", devices);
    finding.expected = kNotReplayed;
}

void gpu_unused(const AdviceFacts& f, Findings& found) {
    const std::string_view runs_on = f.config("run.device");
    if (runs_on == "cpu" || runs_on == "sim") return;  // by the job's own wish
    std::map<std::string, std::int64_t> devices;       // of each host, that the job may use
    std::vector<const DeviceUse*> unused;
    for (const DeviceUse& device : f.use.devices) {
        devices[device.host] += device.visible.value_or(false) ? 1 : 0;
        if (device.unused()) unused.push_back(&device);
    }
    for (std::size_t i = 0; i < std::min(unused.size(), kDevicesNamed); ++i) {
        const DeviceUse& device = *unused[i];
        const SampledFigure& utilization = *find_figure(device.sampled, "utilization_percent");
        Finding finding;
        finding.what = fmt::format(
            "{}{} is visible to the job and did nothing: utilization 0 % in {} over {} s{}.", device.title(),
            of_host(device.host), store::counted(utilization.samples, "sample", "samples"),
            number(utilization.seconds),
            device.power_watts ? fmt::format(", at {} W", number(*device.power_watts)) : std::string());
        finding.figures = {{"device", static_cast<double>(device.device), ""},
                           {"utilization", 0, "%"},
                           {"samples", static_cast<double>(utilization.samples), ""}};
        suggest_all_devices(f, devices[device.host], finding);
        found.push_back(std::move(finding));
    }
    if (unused.size() <= kDevicesNamed) return;
    Finding rest;
    const std::size_t more = unused.size() - kDevicesNamed;
    rest.what =
        fmt::format("{} more devices are visible to the job and did nothing: utilization 0 % in all samples.",
                    store::grouped(static_cast<std::int64_t>(more)));
    rest.figures = {{"devices", static_cast<double>(more), ""}, {"utilization", 0, "%"}};
    suggest_all_devices(f, devices[unused.back()->host], rest);
    found.push_back(std::move(rest));
}

void gpu_throttled(const AdviceFacts& f, Findings& found) {
    const DeviceUse* worst = nullptr;
    std::int64_t devices = 0;
    for (const DeviceUse& device : f.use.devices) {
        if (device.throttled_percent.value_or(0) < kThrottledPercent || !device.visible.value_or(false))
            continue;
        ++devices;
        if (worst == nullptr || *device.throttled_percent > *worst->throttled_percent) worst = &device;
    }
    if (worst == nullptr) return;
    Finding finding;
    finding.what = fmt::format("The clocks of {}{} were held down for {} % of its time: {}.", worst->title(),
                               of_host(worst->host), number(*worst->throttled_percent), worst->throttled_by);
    finding.figures = {{"devices", static_cast<double>(devices), ""},
                       {"throttled", *worst->throttled_percent, "%"}};
    if (worst->throttled_sm_clock_mhz && worst->free_sm_clock_mhz) {
        finding.what +=
            fmt::format(" Its multiprocessors then ran at {} MHz on average, otherwise at {}.",
                        number(*worst->throttled_sm_clock_mhz, 0), number(*worst->free_sm_clock_mhz, 0));
        finding.figures.push_back({"clock", *worst->throttled_sm_clock_mhz, "MHz"});
        finding.figures.push_back({"clock_else", *worst->free_sm_clock_mhz, "MHz"});
    }
    if (devices > 1)
        finding.what +=
            fmt::format(" So were those of {}.", store::counted(devices - 1, "more device", "more devices"));
    finding.change =
        worst->throttled_by.find("temperature") != std::string::npos ||
                worst->throttled_by.find("hardware") != std::string::npos
            ? "Look after the cooling and the power supply of that machine, or take another."
            : "A device at its power limit is busy; raise the limit if it was lowered (nvidia-smi -q -d "
              "POWER), or compare machines by their clocks.";
    finding.expected = kNotReplayed;
    found.push_back(std::move(finding));
}

// Ranks that may run on the same processors of a host.
struct CoreShare {
    std::string host;
    std::vector<int> ranks;
    double allowed = 0, used = 0;
    bool gpu = false;
};

void add_narrow_ranks(const AdviceFacts& f, Findings& found) {
    std::map<std::pair<std::string, std::string>, CoreShare> shares;  // by host and processors
    for (const RankUse& rank : f.use.ranks) {
        const store::RankIndex at = f.trace.rank_of_number(rank.rank);
        if (!at.known() || rank.allowed_cores == 0 || !rank.cores) continue;
        CoreShare& share = shares[{rank.host, f.trace.ranks[at.at()].cpus}];
        share.host = rank.host;
        share.ranks.push_back(rank.rank);
        share.allowed = rank.allowed_cores;
        share.used += *rank.cores;
        share.gpu |= !rank.devices.empty();
    }
    // Where the processors are the device, using all of them is the aim; the job's part of them is not.
    std::map<std::string, std::set<int>> all_allowed;
    for (const auto& [place, share] : shares)
        for (const int cpu : store::numbers_of_list(place.second)) all_allowed[place.first].insert(cpu);
    const CoreShare* worst = nullptr;
    double cpus = 0;
    for (const auto& [place, share] : shares) {
        if (share.used < kAllCores * share.allowed) continue;
        double in_host = 0;
        for (const HostUse& host : f.use.hosts)
            if (host.host == share.host) in_host = host.usable_cores();
        const auto job = static_cast<double>(all_allowed[share.host].size());
        if (in_host <= share.allowed) continue;  // no more are there to be used
        if (!share.gpu && job > kFewCores * in_host) continue;
        if (worst == nullptr || share.used / share.allowed > worst->used / worst->allowed) {
            worst = &share;
            cpus = in_host;
        }
    }
    if (worst == nullptr) return;
    Finding finding;
    finding.what =
        fmt::format("{} {} may run on {} of the {} processors{}, and {} {} of them busy on average.",
                    worst->ranks.size() == 1 ? "Rank" : "Ranks",
                    store::number_list(std::vector<std::int64_t>(worst->ranks.begin(), worst->ranks.end())),
                    number(worst->allowed, 0), number(cpus, 0), of_host(worst->host),
                    worst->ranks.size() == 1 ? "keeps" : "keep", number(worst->used, 2));
    finding.figures = {{"cores", worst->used, ""}, {"allowed", worst->allowed, ""}, {"host", cpus, ""}};
    finding.change = "Bind each rank to more processors, near its device, or leave it unbound.";
    finding.pytorch =
        "mpirun --bind-to none; srun --cpus-per-task=N --cpu-bind=cores; numactl --cpunodebind=N";
    finding.expected = kNotReplayed;
    found.push_back(std::move(finding));
}

void cpu_starved(const AdviceFacts& f, Findings& found) {
    add_narrow_ranks(f, found);
    std::set<std::string> with_gpus;
    for (const DeviceUse& device : f.use.devices)
        if (device.kind == UsedDevice::gpu && !device.ranks.empty()) with_gpus.insert(device.host);
    const HostUse *full = nullptr, *held = nullptr;
    const auto busy_of = [](const HostUse& host) {
        // What others do on the host takes nothing from the job's own limit.
        const bool limited = host.cpu_limit_cores > 0 && host.usable_cores() == host.cpu_limit_cores;
        return limited ? host.job_cores.value_or(0)
                       : std::max(host.busy_cores.value_or(0), host.job_cores.value_or(0));
    };
    for (const HostUse& host : f.use.hosts) {
        const double cores = host.usable_cores();
        if (with_gpus.contains(host.host) && cores > 0 && busy_of(host) >= kAllCores * cores &&
            (full == nullptr || busy_of(host) / cores > busy_of(*full) / full->usable_cores()))
            full = &host;
        if (host.cgroup_throttled_percent.value_or(0) >= kCgroupPercent &&
            (held == nullptr || *host.cgroup_throttled_percent > *held->cgroup_throttled_percent))
            held = &host;
    }
    if (full != nullptr) {
        const double busy = busy_of(*full);
        Finding finding;
        finding.what = fmt::format(
            "{} of the {} processors{} are busy on average, {} of them for this job: threads that feed "
            "the devices wait for one.",
            number(busy), number(full->usable_cores()), of_host(full->host),
            full->job_cores ? number(*full->job_cores) : "some");
        finding.figures = {{"busy", busy, ""}, {"cores", full->usable_cores(), ""}};
        finding.change = "Fewer loader workers or threads per rank, or a machine with more cores per device.";
        Settings settings(f);
        if (!f.config("data.workers").empty()) settings.add("data.workers", "", "data.workers = ... (fewer)");
        finding.job_setting = settings.text;
        finding.pytorch = "torch.set_num_threads(n); DataLoader(..., num_workers=n)";
        finding.expected = kNotReplayed;
        found.push_back(std::move(finding));
    }
    if (held == nullptr) return;
    Finding finding;
    finding.what = fmt::format(
        "The control group's limit{} stopped the job's processes{} for {} % of the time.",
        held->cpu_limit_cores > 0 ? fmt::format(" of {} cores", number(held->cpu_limit_cores)) : "",
        held->host.empty() ? "" : " on " + held->host, number(*held->cgroup_throttled_percent));
    finding.figures = {{"throttled", *held->cgroup_throttled_percent, "%"},
                       {"limit", held->cpu_limit_cores, ""}};
    finding.change =
        "Ask the scheduler or the container for more cores, or start fewer threads than the limit has cores.";
    finding.pytorch = "srun --cpus-per-task=N; docker run --cpus=N; torch.set_num_threads(n)";
    finding.expected = kNotReplayed;
    found.push_back(std::move(finding));
}

void swap(const AdviceFacts& f, Findings& found) {
    const HostUse* worst = nullptr;
    const auto rate = [](const HostUse& host) {
        return host.swap_in_bytes_per_second.value_or(0) + host.swap_out_bytes_per_second.value_or(0);
    };
    for (const HostUse& host : f.use.hosts)
        if (rate(host) >= kSwapRate && (worst == nullptr || rate(host) > rate(*worst))) worst = &host;
    const RankUse* most = nullptr;
    for (const RankUse& rank : f.use.ranks)
        if (rank.swap_peak_bytes.value_or(0) >= kSwapped &&
            (most == nullptr || *rank.swap_peak_bytes > *most->swap_peak_bytes))
            most = &rank;
    if (worst == nullptr && most == nullptr) return;
    Finding finding;
    if (worst != nullptr) {
        finding.what = fmt::format(
            "Memory{} went to swap and back: {} a second in and {} out on average.", of_host(worst->host),
            bytes_text(static_cast<std::int64_t>(worst->swap_in_bytes_per_second.value_or(0))),
            bytes_text(static_cast<std::int64_t>(worst->swap_out_bytes_per_second.value_or(0))));
        finding.figures = {{"swapped_in", worst->swap_in_bytes_per_second.value_or(0), "bytes/s"},
                           {"swapped_out", worst->swap_out_bytes_per_second.value_or(0), "bytes/s"}};
    }
    if (most != nullptr) {
        finding.what += fmt::format("{}Up to {} of rank {}{} were in swap.", finding.what.empty() ? "" : " ",
                                    bytes_text(static_cast<std::int64_t>(*most->swap_peak_bytes)), most->rank,
                                    of_host(most->host));
        finding.figures.push_back({"in_swap", *most->swap_peak_bytes, "bytes"});
    }
    finding.change = "Use less host memory (loader workers, prefetched batches, offload), or ask for more.";
    finding.pytorch = "DataLoader(..., num_workers=n, prefetch_factor=1); srun --mem=SIZE";
    finding.expected = kNotReplayed;
    found.push_back(std::move(finding));
}

void nic_saturated(const AdviceFacts& f, Findings& found) {
    const AdapterUse* worst = nullptr;
    std::int64_t adapters = 0;
    for (const AdapterUse& adapter : f.use.adapters) {
        if (adapter.near_limit_percent.value_or(0) < kNearLimitPercent) continue;
        ++adapters;
        if (worst == nullptr || *adapter.near_limit_percent > *worst->near_limit_percent) worst = &adapter;
    }
    if (worst == nullptr) return;
    const auto gb = [](double bytes) { return number(bytes * 1e-9, 2) + " GB/s"; };
    Finding finding;
    finding.what = fmt::format(
        "{}{} was at 80 % of its {} or more for {} % of the time (95 % of the time it sent at most {} "
        "and received at most {}).",
        worst->name.empty() ? fmt::format("Adapter {}", worst->number) : worst->name, of_host(worst->host),
        gb(worst->bytes_per_second), number(*worst->near_limit_percent), gb(worst->sent_p95.value_or(0)),
        gb(worst->received_p95.value_or(0)));
    if (adapters > 1)
        finding.what += fmt::format(" So {} {}.", adapters == 2 ? "was" : "were",
                                    store::counted(adapters - 1, "more adapter", "more adapters"));
    finding.figures = {{"near_limit", *worst->near_limit_percent, "%"},
                       {"bandwidth", worst->bytes_per_second, "bytes/s"},
                       {"adapters", static_cast<double>(adapters), ""}};
    finding.change =
        "Send less between hosts: shard within a host and replicate between them, accumulate gradients, or "
        "reduce "
        "in 16 bits; or use more adapters per host.";
    Settings settings(f);
    if (f.ours() && f.config("parallel.mode") == "fsdp")
        settings.add("fsdp.sharding_strategy", "HYBRID_SHARD");
    if (f.ours()) settings.add("precision.reduce", "bf16");
    finding.job_setting = settings.text;
    finding.pytorch = "fully_shard(model, mesh=mesh_2d); MixedPrecisionPolicy(reduce_dtype=torch.bfloat16)";
    finding.expected = kNotReplayed;
    found.push_back(std::move(finding));
}

constexpr AdviceRule kUseRules[] = {
    {"gpu-unused", "A device that the job may use does nothing", gpu_unused, false, true},
    {"gpu-throttled", "A device's clocks are held down", gpu_throttled, false, true},
    {"cpu-starved", "Too few processor cores for the job's threads", cpu_starved, false, true},
    {"swap", "Memory is swapped", swap, false, true},
    {"nic-saturated", "A network adapter is full", nic_saturated, false, true},
};

}  // namespace

std::span<const AdviceRule> use_rules() {
    return kUseRules;
}

}  // namespace shardscope::traces::analysis
