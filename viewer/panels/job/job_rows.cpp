// See job_rows.h.
#include "viewer/panels/job/job_rows.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "traces/lanes/counter_words.h"
#include "traces/schema/text.h"
#include "traces/store/grouped.h"
#include "viewer/draw/format.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::Interval;
using traces::analysis::JobUse;
using traces::analysis::Sample;
using traces::analysis::SampledCurve;
using traces::store::Trace;

struct SampledKind {
    std::string_view id, title, unit;
    double full;  // 0: the largest that a device can, or the largest value of all lanes
    // Counters' names; of GPUs without "gpu_" or "gpu3_" before them.
    std::array<std::string_view, 4> names;
    bool of_gpu;
};

constexpr SampledKind kSampledKinds[] = {
    {"utilization", "Utilization", "%", 100, {"utilization_percent"}, true},
    {"memory", "Memory", "bytes", 0, {"memory_used_bytes"}, true},
    {"power", "Power", "W", 0, {"power_watts"}, true},
    {"temperature", "Temperature", "\u00b0C", 0, {"temperature_celsius"}, true},
    {"clock", "Clock", "MHz", 0, {"sm_clock_mhz"}, true},
    {"nvlink",
     "NVLink",
     "bytes/s",
     0,
     {"nvlink_sent_bytes_per_second", "nvlink_received_bytes_per_second"},
     true},
    {"pcie", "PCIe", "bytes/s", 0, {"pcie_sent_bytes_per_second", "pcie_received_bytes_per_second"}, true},
    {"cores", "Processor", "cores", 0, {"host_cpu_cores", "process_cpu_cores"}, false},
    {"resident", "Resident memory", "bytes", 0, {"process_resident_bytes"}, false},
    {"network",
     "Network",
     "bytes/s",
     0,
     {"infiniband_sent_bytes_per_second", "infiniband_received_bytes_per_second",
      "ethernet_sent_bytes_per_second", "ethernet_received_bytes_per_second"},
     false},
    {"disk",
     "Disk",
     "bytes/s",
     0,
     {"process_read_bytes_per_second", "process_written_bytes_per_second"},
     false},
};

// "gpu3_power_watts": "power_watts" and 3; "gpu_power_watts": no number. Other names: an empty one.
std::pair<std::string_view, std::optional<int>> without_gpu(std::string_view name) {
    if (!name.starts_with("gpu")) return {};
    const std::size_t end = name.find('_');
    if (end == std::string_view::npos) return {};
    const std::string_view digits = name.substr(3, end - 3);
    const auto number = traces::schema::number_of<int>(digits);
    if (!digits.empty() && !number) return {};
    return {name.substr(end + 1), number};
}

bool is_of(const SampledKind& kind, std::string_view name) {
    if (kind.of_gpu) name = without_gpu(name).first;
    return !name.empty() && std::find(kind.names.begin(), kind.names.end(), name) != kind.names.end();
}

Interval selected_time(const Trace& trace, const traces::analysis::Selection& selection) {
    const std::int64_t from = std::max(trace.first_ns, selection.from_ns.value_or(trace.first_ns));
    const std::int64_t to = std::min(trace.last_ns, selection.to_ns.value_or(trace.last_ns));
    return {from, std::max(to, from + 1)};
}

// The lanes of one kind, from the rows of SHARD_COUNTERS.
class LanesOfKind {
  public:
    LanesOfKind(const Trace& trace, const SampledKind& kind, Interval within)
        : trace_(trace), kind_(kind), within_(within) {
        const auto& counters = trace.counters;
        for (std::size_t i = 0; i < counters.size(); ++i) {
            if (!of_kind(counters.name[i]) || !std::isfinite(counters.value[i])) continue;
            traces::store::RankIndex rank(counters.rank[i]);
            if (rank.at() >= trace.ranks.size()) rank = {};
            samples_[{host_of(rank, counters.host[i]), device_of(counters.device[i], counters.name[i]), rank,
                      counters.name[i]}]
                .push_back({counters.time[i], counters.value[i]});
        }
    }

    JobMeasure measure() {
        JobMeasure measure{.id = kind_.id, .title = kind_.title, .unit = kind_.unit, .full = kind_.full};
        const auto period = static_cast<std::int64_t>(
            traces::schema::number_of<std::int64_t>(trace_.config_value("sampler.period_ns")).value_or(0));
        double highest = 0;
        for (auto& [key, samples] : samples_) {
            const auto& [host, device, rank, name] = key;
            SampledCurve curve(std::move(samples), {}, period, within_);
            if (curve.empty()) continue;
            highest = std::max(highest, curve.highest());
            if (measure.hosts.empty() || measure.hosts.back().name != host)
                measure.hosts.push_back({host, {}});
            JobLane lane = named(device, rank, trace_.strings[name]);
            lane.curve = std::move(curve);
            measure.hosts.back().lanes.push_back(std::move(lane));
        }
        if (measure.full == 0) measure.full = std::max(highest, largest_of_devices());
        return measure;
    }

  private:
    using Key = std::tuple<std::string, int, traces::store::RankIndex, traces::schema::StringId>;

    bool of_kind(traces::schema::StringId name) {
        const auto [it, is_new] = known_.try_emplace(name, false);
        if (is_new) it->second = is_of(kind_, trace_.strings[name]);
        return it->second;
    }
    std::string host_of(traces::store::RankIndex rank, traces::schema::StringId host) const {
        if (host != traces::schema::StringId::empty) return std::string(trace_.strings[host]);
        return rank.known() ? trace_.ranks[rank.at()].host : std::string();
    }
    int device_of(int device, traces::schema::StringId name) const {
        return device >= 0 || !kind_.of_gpu ? device : without_gpu(trace_.strings[name]).second.value_or(-1);
    }

    JobLane named(int device, traces::store::RankIndex rank, std::string_view name) const {
        JobLane lane;
        lane.device = device;
        lane.rank = rank;
        const std::string of_rank =
            rank.known() ? fmt::format("rank {}", trace_.ranks[rank.at()].number) : std::string();
        if (kind_.of_gpu) {
            lane.label = device >= 0 ? fmt::format("GPU {}", device) : std::string("GPU");
            if (!kind_.names[1].empty())  // two directions
                lane.label += name.find("_sent_") != std::string_view::npos ? " sent" : " received";
            lane.note = of_rank;
            return lane;
        }
        lane.label = traces::lanes::counter_words(name, device).label;
        lane.note = of_rank;
        return lane;
    }

    // What the devices of the trace can, at most; 0: unknown.
    double largest_of_devices() const {
        double largest = 0;
        for (const traces::schema::DeviceRow& device : trace_.devices) {
            if (device.kind != "gpu") continue;
            if (kind_.id == "memory") largest = std::max(largest, static_cast<double>(device.memory_bytes));
            if (kind_.id == "power") largest = std::max(largest, device.power_limit_watts);
        }
        return largest;
    }

    const Trace& trace_;
    const SampledKind& kind_;
    Interval within_;
    std::map<traces::schema::StringId, bool> known_;
    std::map<Key, std::vector<Sample>> samples_;
};

std::string sentence_of(std::string text) {
    if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
    return text + ".";
}

}  // namespace

std::vector<JobMeasure> job_measures(const Trace& trace, const traces::analysis::Selection& selection) {
    std::vector<JobMeasure> measures;
    const Interval within = selected_time(trace, selection);
    for (const SampledKind& kind : kSampledKinds) {
        JobMeasure measure = LanesOfKind(trace, kind, within).measure();
        if (!measure.hosts.empty()) measures.push_back(std::move(measure));
    }
    return measures;
}

std::optional<double> value_at(const SampledCurve& curve, std::int64_t time) {
    const auto samples = curve.samples();
    const auto after = std::partition_point(samples.begin(), samples.end(),
                                            [time](const Sample& sample) { return sample.time <= time; });
    if (after == samples.begin()) return {};
    const auto before = std::prev(after);
    if (before->time == time) return before->value;
    if (after == samples.end() || !curve.joined(static_cast<std::size_t>(before - samples.begin())))
        return {};
    const double share =
        static_cast<double>(time - before->time) / static_cast<double>(after->time - before->time);
    return before->value + (after->value - before->value) * share;
}

std::string energy_text(double joules) {
    static constexpr std::array<std::string_view, 6> kUnits = {"\u00b5J", "mJ", "J", "kJ", "MJ", "GJ"};
    double value = joules * 1e6;
    std::size_t unit = 0;
    for (; std::abs(value) >= 999.995 && unit + 1 < kUnits.size(); ++unit) value /= 1000;
    return fmt::format("{} {}", draw::format_decimal(value, 2), kUnits[unit]);
}

std::string job_headline(const JobUse& job) {
    using traces::store::counted;
    std::vector<std::string> said;
    std::string first = fmt::format("{} on {}", counted(job.devices, "device", "devices"),
                                    counted(job.hosts, "host", "hosts"));
    if (job.utilization_percent)
        first += fmt::format(", used {}", draw::format_percent(*job.utilization_percent));
    if (job.seconds > 0) first += fmt::format(" over {}", draw::format_duration(job.seconds * 1e9));
    said.push_back(std::move(first));
    if (job.unused_devices > 0)
        said.push_back(fmt::format("{} unused", counted(job.unused_devices, "device is", "devices are")));
    if (job.energy_j) {
        std::string energy = "energy " + energy_text(*job.energy_j);
        if (job.energy_per_token_j) {
            energy += fmt::format(" ({} a token)", energy_text(*job.energy_per_token_j));
        } else if (job.energy_per_sample_j) {
            energy += fmt::format(" ({} a sample)", energy_text(*job.energy_per_sample_j));
        }
        said.push_back(std::move(energy));
    }
    if (job.cost) said.push_back(fmt::format("cost {}", draw::format_decimal(*job.cost, 2)));
    std::string text;
    for (std::string& sentence : said) {
        if (!text.empty()) text += ' ';
        text += sentence_of(std::move(sentence));
    }
    return text;
}

std::vector<std::size_t> job_findings(const traces::analysis::AdviceReport& report) {
    static constexpr std::array<std::string_view, 8> kRules = {
        "gpu-unused",    "gpu-throttled", "cpu-starved", "swap",
        "nic-saturated", "p2p-missing",   "cross-numa",  "ring-over-slow-link"};
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < report.findings.size(); ++i) {
        if (std::find(kRules.begin(), kRules.end(), report.findings[i].id) != kRules.end())
            found.push_back(i);
    }
    return found;
}

}  // namespace shardscope::viewer::panels
