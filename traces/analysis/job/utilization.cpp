// Gathers each device's, host's, rank's and adapter's curves and puts them in figures; see utilization.h.
#include "traces/analysis/job/utilization.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "traces/analysis/base/percentile.h"
#include "traces/analysis/job/device_figures.h"
#include "traces/analysis/job/job_use.h"
#include "traces/analysis/job/owned_counters.h"
#include "traces/analysis/topology/host_topology.h"
#include "traces/schema/sort_rows.h"
#include "traces/schema/text.h"
#include "traces/store/columns/trace.h"
#include "traces/store/grouped.h"
#include "traces/store/number_list.h"

namespace shardscope::traces::analysis {
namespace {

using Curve = const SampledCurve*;

constexpr double kNearItsRate = 0.8;  // of an adapter's rate

// The selected time: between the ends of the selected steps, or of the recording.
Interval selected_span(const store::Trace& trace, const Selection& selection) {
    Interval span{trace.first_ns, trace.last_ns};
    if (trace.counters.size() > 0) {
        span.start = std::min(span.start, trace.counters.time[0]);
        span.end = std::max(span.end, trace.counters.time[trace.counters.size() - 1]);
    }
    if (selection.first_step || selection.last_step) {
        Interval steps{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
        for (const store::Step& step : trace.steps) {
            if (!selection.has_step(step.number)) continue;
            steps.start = std::min(steps.start, step.start);
            steps.end = std::max(steps.end, step.end);
        }
        if (steps.start < steps.end) span = steps;
    }
    span.start = std::max(span.start, selection.from_ns.value_or(span.start));
    span.end = std::max(span.start, std::min(span.end, selection.to_ns.value_or(span.end)));
    return span;
}

class Utilization {
  public:
    Utilization(const store::Trace& trace, const Selection& selection, const UtilizationOptions& options)
        : trace_(trace), selection_(selection), options_(options), only_host_(only_host(trace)) {
        report_.time = selected_span(trace, selection);
        owned_ = owned_counters(trace, report_.time, unusable_);
    }

    UtilizationReport report() && {
        add_gpus();
        add_ranks_without_gpu();
        add_ranks();
        add_adapters();
        if (selection_.rank) keep_rank(*selection_.rank);
        if (options_.lane_points > 0) add_lanes();
        add_hosts();
        add_job({trace_, selection_, options_, owned_, unusable_}, report_);
        return std::move(report_);
    }

  private:
    const OwnedCurves* owned(const std::string& host, CounterOwner owner, int number) const {
        const auto found = owned_.find({host, owner, number});
        return found == owned_.end() ? nullptr : &found->second;
    }
    // A number that the recorder has stored about a host; 0: unknown.
    double fact(const std::string& host, std::string_view what) const {
        const auto value =
            schema::number_of<double>(trace_.config_value(fmt::format("host.{}.{}", host, what)));
        return value && std::isfinite(*value) && *value > 0 && *value < 1e18 ? *value : 0;
    }
    // Of a host's cores those that the job may use; 0: unknown.
    double usable_cores(const std::string& host) const {
        const double cpus = fact(host, "cpus"), limit = fact(host, "cpu_limit_cores");
        return limit > 0 && (cpus <= 0 || limit < cpus) ? limit : cpus;
    }

    // --- devices ---

    void add_gpus() {
        std::map<std::pair<std::string, int>, DeviceUse> gpus;
        const auto gpu = [&](const std::string& host, int number) -> DeviceUse& {
            const auto [at, is_new] = gpus.try_emplace({host, number});
            if (is_new) {
                at->second.host = host;
                at->second.device = number;
            }
            return at->second;
        };
        for (const schema::DeviceRow& row : trace_.devices) {
            if (row.kind != "gpu") continue;
            DeviceUse& use = gpu(row.host, row.number);
            use.name = row.name;
            use.visible = row.visible;
            use.memory_bytes = std::max<std::int64_t>(row.memory_bytes, 0);
            use.power_limit_watts = std::max(row.power_limit_watts, 0.0);
        }
        for (const auto& [place, owned] : owned_) {
            if (place.owner != CounterOwner::gpu) continue;
            DeviceUse& use = gpu(place.host, place.number);
            use.ranks.assign(owned.ranks.begin(), owned.ranks.end());
            add_gpu_figures(owned, use);
        }
        // Ranks whose processes the sampler could not find on a GPU, as in a container: by their places.
        const std::vector<RankGpu> by_place =
            computes_on_gpu() ? gpus_of_ranks(trace_, host_topologies(trace_)) : std::vector<RankGpu>();
        for (std::size_t r = 0; r < by_place.size(); ++r) {
            const store::Rank& rank = trace_.ranks[r];
            if (has_gpu(gpus, rank.number)) continue;
            const std::string host = rank.host.empty() ? only_host_ : rank.host;
            const int number = by_place[r].number >= 0 ? by_place[r].number : std::max(rank.device, 0);
            gpu(host, number).ranks.push_back(rank.number);
        }
        for (auto& [place, use] : gpus) {
            std::sort(use.ranks.begin(), use.ranks.end());
            if (!use.ranks.empty()) use.visible = true;
            const store::RankIndex first =
                use.ranks.empty() ? store::RankIndex() : trace_.rank_of_number(use.ranks.front());
            if (first.known()) {
                const store::Rank& rank = trace_.ranks[first.at()];
                if (use.name.empty()) use.name = rank.device_name;
                if (use.memory_bytes == 0) use.memory_bytes = std::max<std::int64_t>(rank.device_memory, 0);
            }
            report_.devices.push_back(std::move(use));
        }
    }

    static bool has_gpu(const std::map<std::pair<std::string, int>, DeviceUse>& gpus, int rank) {
        return std::any_of(gpus.begin(), gpus.end(), [rank](const auto& gpu) {
            const std::vector<int>& ranks = gpu.second.ranks;
            return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
        });
    }

    // Whether ranks compute on GPUs, as far as the run says it.
    bool computes_on_gpu() const {
        const std::string_view device = trace_.config_value("run.device");
        return device.empty() ? trace_.device.size() > 0 : device != "cpu";
    }

    // The cores of each host on which ranks compute themselves.
    void add_ranks_without_gpu() {
        if (computes_on_gpu()) return;
        std::map<std::string, std::vector<const store::Rank*>> hosts;
        for (const store::Rank& rank : trace_.ranks) {
            const bool on_gpu =
                std::any_of(report_.devices.begin(), report_.devices.end(), [&](const DeviceUse& use) {
                    return std::find(use.ranks.begin(), use.ranks.end(), rank.number) != use.ranks.end();
                });
            if (!on_gpu) hosts[rank.host].push_back(&rank);
        }
        for (const auto& [host, ranks] : hosts) {
            DeviceUse& use = report_.devices.emplace_back();
            use.host = host;
            use.kind = UsedDevice::cores;
            use.visible = true;
            use.name = ranks.front()->device_name;
            use.memory_bytes = static_cast<std::int64_t>(fact(host, "memory_bytes"));
            for (const store::Rank* rank : ranks) use.ranks.push_back(rank->number);
            const SampledCurve cores = job_curve(host, "cpu_cores"),
                               resident = job_curve(host, "resident_bytes");
            if (!resident.empty()) {
                use.memory_mean_bytes = resident.mean();
                use.memory_peak_bytes = resident.highest();
            }
            if (cores.empty()) continue;
            use.idle_percent = cores.zero_percent();
            const double usable = usable_cores(host);
            if (usable <= 0) continue;
            std::vector<Sample> share(cores.samples().begin(), cores.samples().end());
            for (Sample& sample : share) sample.value = std::min(100 * sample.value / usable, 100.0);
            const SampledCurve percent(std::move(share), {}, static_cast<std::int64_t>(cores.period_ns()),
                                       report_.time);
            use.utilization_percent = percent.mean();
            use.utilization_p95_percent = percent.percentile(0.95);
            cores_.emplace(host, percent);
        }
    }

    void add_lanes() {
        constexpr std::size_t kLeastPoints = 60;
        std::size_t points = options_.lane_points;
        if (options_.all_lane_points > 0)
            points = std::min(
                points, std::max(options_.all_lane_points / std::max<std::size_t>(report_.devices.size(), 1),
                                 kLeastPoints));
        for (DeviceUse& use : report_.devices) {
            if (const auto cores = cores_.find(use.host);
                use.kind == UsedDevice::cores && cores != cores_.end()) {
                use.lane = lane_of(&cores->second, nullptr, report_.time, points);
            } else if (const OwnedCurves* gpu = owned(use.host, CounterOwner::gpu, use.device);
                       use.kind == UsedDevice::gpu && gpu != nullptr) {
                use.lane = lane_of(gpu->find("utilization_percent"), gpu->find("throttle_reasons_bits"),
                                   report_.time, points);
            }
        }
    }

    // The sum over the job's processes on a host.
    SampledCurve job_curve(const std::string& host, std::string_view name) const {
        std::vector<Curve> curves;
        for (const auto& [place, owned] : owned_) {
            if (place.host != host) continue;
            const Curve curve = place.owner == CounterOwner::rank   ? owned.find(name)
                                : place.owner == CounterOwner::host ? owned.find(fmt::format("job_{}", name))
                                                                    : nullptr;
            if (curve != nullptr) curves.push_back(curve);
        }
        return curves.empty() ? SampledCurve() : sum_of(curves, report_.time);
    }

    // --- ranks, adapters, hosts ---

    void add_ranks() {
        for (const store::Rank& rank : trace_.ranks) {
            RankUse use;
            use.rank = rank.number;
            use.host = rank.host;
            for (const DeviceUse& device : report_.devices) {
                if (device.kind == UsedDevice::gpu &&
                    std::find(device.ranks.begin(), device.ranks.end(), rank.number) != device.ranks.end())
                    use.devices.push_back(device.device);
            }
            use.allowed_cores = static_cast<int>(store::numbers_of_list(rank.cpus).size());
            if (const OwnedCurves* owned = this->owned(rank.host, CounterOwner::rank, rank.number)) {
                const Curve cores = owned->find("cpu_cores"), resident = owned->find("resident_bytes");
                use.cores = mean_of(cores);
                use.cores_p95 = p95_of(cores);
                use.cores_idle_percent = idle_of(cores);
                use.resident_mean_bytes = mean_of(resident);
                use.resident_peak_bytes = highest_of(resident);
                use.swap_peak_bytes = highest_of(owned->find("swap_bytes"));
                use.read_bytes_per_second = mean_of(owned->find("read_bytes_per_second"));
                use.written_bytes_per_second = mean_of(owned->find("written_bytes_per_second"));
                use.sampled = figures_of(*owned);
            }
            report_.ranks.push_back(std::move(use));
        }
    }

    void add_adapters() {
        std::map<std::tuple<std::string, std::string, int>, AdapterUse> adapters;
        const auto adapter = [&](const std::string& host, const std::string& kind,
                                 int number) -> AdapterUse& {
            AdapterUse& use = adapters[{host, kind, number}];
            use.host = host;
            use.kind = kind;
            use.number = number;
            return use;
        };
        for (const schema::DeviceRow& row : trace_.devices) {
            if (row.kind != "infiniband" && row.kind != "ethernet") continue;
            AdapterUse& use = adapter(row.host, row.kind, row.number);
            use.name = row.name;
            use.bytes_per_second = std::max(row.bytes_per_second, 0.0);
        }
        for (const auto& [place, owned] : owned_) {
            if (place.owner != CounterOwner::infiniband && place.owner != CounterOwner::ethernet) continue;
            AdapterUse& use =
                adapter(place.host, place.owner == CounterOwner::infiniband ? "infiniband" : "ethernet",
                        place.number);
            const Curve sent = owned.find("sent_bytes_per_second"),
                        received = owned.find("received_bytes_per_second");
            use.sent = mean_of(sent);
            use.sent_p95 = p95_of(sent);
            use.received = mean_of(received);
            use.received_p95 = p95_of(received);
            if (sent != nullptr && received != nullptr) add_both_ways(*sent, *received, use);
            use.sampled = figures_of(owned);
        }
        for (auto& [place, use] : adapters) report_.adapters.push_back(std::move(use));
    }

    // Where one direction is not known, neither is whether the adapter is idle.
    void add_both_ways(const SampledCurve& sent, const SampledCurve& received, AdapterUse& use) const {
        const SampledCurve higher = higher_of(sent, received, report_.time);
        if (higher.empty()) return;
        use.idle_percent = higher.zero_percent();
        if (use.bytes_per_second <= 0) return;
        use.near_limit_percent = higher.percent_of_time(
            [&](const Sample& s) { return s.value >= kNearItsRate * use.bytes_per_second; });
    }

    void keep_rank(int rank) {
        std::erase_if(report_.ranks, [rank](const RankUse& use) { return use.rank != rank; });
        std::erase_if(report_.devices, [rank](const DeviceUse& use) {
            return std::find(use.ranks.begin(), use.ranks.end(), rank) == use.ranks.end();
        });
        std::set<std::string> hosts;
        for (const RankUse& use : report_.ranks) hosts.insert(use.host);
        std::erase_if(report_.adapters, [&](const AdapterUse& use) { return !hosts.contains(use.host); });
    }

    void add_hosts() {
        std::map<std::string, HostUse> hosts;
        const auto host = [&](const std::string& name) -> HostUse& {
            HostUse& use = hosts[name];
            use.host = name;
            return use;
        };
        for (const RankUse& rank : report_.ranks) host(rank.host).ranks.push_back(rank.rank);
        for (const AdapterUse& adapter : report_.adapters) host(adapter.host);
        std::map<std::string, std::vector<double>> utilizations;
        for (const DeviceUse& device : report_.devices) {
            HostUse& use = host(device.host);
            ++use.devices;
            if (!device.visible.value_or(false)) continue;  // another job's
            use.unused_devices += device.unused() ? 1 : 0;
            add(use.energy_j, device.energy_j);
            if (device.utilization_percent) utilizations[device.host].push_back(*device.utilization_percent);
        }
        if (!selection_.rank) {
            for (const auto& [place, owned] : owned_)
                if (place.owner == CounterOwner::host) host(place.host);
        }
        for (auto& [name, use] : hosts) {
            if (const auto& all = utilizations[name]; !all.empty())
                use.utilization_percent = mean_over(all, [](double value) { return value; });
            use.cpus = static_cast<int>(std::min(fact(name, "cpus"), 1e6));
            use.cpu_limit_cores = fact(name, "cpu_limit_cores");
            use.memory_bytes = static_cast<std::int64_t>(fact(name, "memory_bytes"));
            const SampledCurve cores = job_curve(name, "cpu_cores"),
                               resident = job_curve(name, "resident_bytes");
            if (!cores.empty()) {
                use.job_cores = cores.mean();
                use.job_cores_p95 = cores.percentile(0.95);
            }
            if (!resident.empty()) use.job_resident_peak_bytes = resident.highest();
            const OwnedCurves* owned = this->owned(name, CounterOwner::host, 0);
            if (owned != nullptr) {
                use.busy_cores = mean_of(owned->find("cpu_cores"));
                use.busy_cores_p95 = p95_of(owned->find("cpu_cores"));
                if (const Curve available = owned->find("memory_available_bytes"))
                    use.memory_available_least_bytes = available->lowest();
                use.swap_in_bytes_per_second = mean_of(owned->find("swap_in_bytes_per_second"));
                use.swap_out_bytes_per_second = mean_of(owned->find("swap_out_bytes_per_second"));
                use.cgroup_throttled_percent = mean_of(owned->find("cgroup_throttled_percent"));
                use.sampled = figures_of(*owned);
            }
            report_.hosts.push_back(std::move(use));
        }
        const auto by_place = [](const DeviceUse& a, const DeviceUse& b) {
            return std::tie(a.host, a.kind, a.device) < std::tie(b.host, b.kind, b.device);
        };
        schema::sort_rows(report_.devices, by_place);
        schema::sort_rows(report_.ranks, [](const RankUse& a, const RankUse& b) {
            return std::tie(a.host, a.rank) < std::tie(b.host, b.rank);
        });
    }

    const store::Trace& trace_;
    const Selection& selection_;
    const UtilizationOptions& options_;
    const std::string only_host_;
    std::map<std::string, std::int64_t> unusable_;
    std::map<CounterPlace, OwnedCurves> owned_;
    std::map<std::string, SampledCurve> cores_;  // of hosts whose cores are a device: their use in percent
    UtilizationReport report_;
};

}  // namespace

bool DeviceUse::unused() const {
    const SampledFigure* figure = find_figure(sampled, "utilization_percent");
    return kind == UsedDevice::gpu && visible.value_or(false) && figure != nullptr && figure->highest == 0;
}

std::string DeviceUse::title() const {
    return kind == UsedDevice::gpu ? fmt::format("GPU {}", device) : "cores";
}

double HostUse::usable_cores() const {
    return cpu_limit_cores > 0 && (cpus == 0 || cpu_limit_cores < cpus) ? cpu_limit_cores : cpus;
}

const SampledFigure* find_figure(const std::vector<SampledFigure>& figures, std::string_view name) {
    const auto found = std::find_if(figures.begin(), figures.end(),
                                    [name](const SampledFigure& figure) { return figure.name == name; });
    return found == figures.end() ? nullptr : &*found;
}

bool UtilizationReport::any_sample() const {
    const auto any = [](const auto& rows) {
        return std::any_of(rows.begin(), rows.end(), [](const auto& row) { return !row.sampled.empty(); });
    };
    return any(devices) || any(ranks) || any(hosts) || any(adapters);
}

UtilizationReport utilization_report(const store::Trace& trace, const Selection& selection,
                                     const UtilizationOptions& options) {
    return Utilization(trace, selection, options).report();
}

}  // namespace shardscope::traces::analysis
