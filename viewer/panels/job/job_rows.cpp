// See job_rows.h.
#include "viewer/panels/job/job_rows.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/core.h>

#include "traces/analysis/job/owned_counters.h"
#include "traces/lanes/counter_words.h"
#include "traces/store/grouped.h"
#include "viewer/draw/format.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::CounterOwner;
using traces::analysis::CounterPlace;
using traces::analysis::Interval;
using traces::analysis::JobUse;
using traces::analysis::OwnedCurves;
using traces::analysis::Sample;
using traces::analysis::SampledCurve;
using traces::store::Trace;

// A figure of a GPU, an adapter, a host or a rank, as owned_counters() calls it.
struct Figure {
    CounterOwner owner = CounterOwner::gpu;
    std::string_view name;
    std::string_view counter;  // its name in SHARD_COUNTERS; of GPUs not needed
};

struct SampledKind {
    std::string_view id, title, unit;
    double full;  // 0: the largest that a device can, or the largest value of all lanes
    std::array<Figure, 4> figures;
};

constexpr Figure of_gpu(std::string_view name) {
    return {CounterOwner::gpu, name, {}};
}
constexpr SampledKind kSampledKinds[] = {
    {"utilization", "Utilization", "%", 100, {of_gpu("utilization_percent")}},
    {"memory", "Memory", "bytes", 0, {of_gpu("memory_used_bytes")}},
    {"power", "Power", "W", 0, {of_gpu("power_watts")}},
    {"temperature", "Temperature", "\u00b0C", 0, {of_gpu("temperature_celsius")}},
    {"clock", "Clock", "MHz", 0, {of_gpu("sm_clock_mhz")}},
    {"nvlink",
     "NVLink",
     "bytes/s",
     0,
     {of_gpu("nvlink_sent_bytes_per_second"), of_gpu("nvlink_received_bytes_per_second")}},
    {"pcie",
     "PCIe",
     "bytes/s",
     0,
     {of_gpu("pcie_sent_bytes_per_second"), of_gpu("pcie_received_bytes_per_second")}},
    {"cores",
     "Processor",
     "cores",
     0,
     {Figure{CounterOwner::host, "cpu_cores", "host_cpu_cores"},
      {CounterOwner::host, "job_cpu_cores", "process_cpu_cores"},
      {CounterOwner::rank, "cpu_cores", "process_cpu_cores"}}},
    {"resident",
     "Resident memory",
     "bytes",
     0,
     {Figure{CounterOwner::host, "job_resident_bytes", "process_resident_bytes"},
      {CounterOwner::rank, "resident_bytes", "process_resident_bytes"}}},
    {"network",
     "Network",
     "bytes/s",
     0,
     {Figure{CounterOwner::infiniband, "sent_bytes_per_second", "infiniband_sent_bytes_per_second"},
      {CounterOwner::infiniband, "received_bytes_per_second", "infiniband_received_bytes_per_second"},
      {CounterOwner::ethernet, "sent_bytes_per_second", "ethernet_sent_bytes_per_second"},
      {CounterOwner::ethernet, "received_bytes_per_second", "ethernet_received_bytes_per_second"}}},
    {"disk",
     "Disk",
     "bytes/s",
     0,
     {Figure{CounterOwner::host, "job_read_bytes_per_second", "process_read_bytes_per_second"},
      {CounterOwner::host, "job_written_bytes_per_second", "process_written_bytes_per_second"},
      {CounterOwner::rank, "read_bytes_per_second", "process_read_bytes_per_second"},
      {CounterOwner::rank, "written_bytes_per_second", "process_written_bytes_per_second"}}},
};

Interval selected_time(const Trace& trace, const traces::analysis::Selection& selection) {
    const std::int64_t from = std::max(trace.first_ns, selection.from_ns.value_or(trace.first_ns));
    const std::int64_t to = std::min(trace.last_ns, selection.to_ns.value_or(trace.last_ns));
    return {from, std::max(to, from + 1)};
}

// What the devices of the trace can, at most; 0: unknown.
double largest_of_devices(const Trace& trace, std::string_view kind) {
    double largest = 0;
    for (const traces::schema::DeviceRow& device : trace.devices) {
        if (device.kind != "gpu") continue;
        if (kind == "memory") largest = std::max(largest, static_cast<double>(device.memory_bytes));
        if (kind == "power") largest = std::max(largest, device.power_limit_watts);
    }
    return largest;
}

JobLane lane_of(const Trace& trace, const CounterPlace& place, const OwnedCurves& owned,
                const SampledKind& kind, const Figure& figure) {
    JobLane lane;
    // A GPU that several ranks use is no single rank's.
    if (owned.ranks.size() == 1) lane.rank = trace.rank_of_number(*owned.ranks.begin());
    if (lane.rank.known()) lane.note = fmt::format("rank {}", trace.ranks[lane.rank.at()].number);
    if (place.owner == CounterOwner::gpu) {
        lane.device = place.number;
        lane.label = fmt::format("GPU {}", place.number);
        if (!kind.figures[1].name.empty())  // two directions
            lane.label += figure.name.find("_sent_") != std::string_view::npos ? " sent" : " received";
        return lane;
    }
    if (place.owner == CounterOwner::infiniband || place.owner == CounterOwner::ethernet)
        lane.device = place.number;
    lane.label = traces::lanes::counter_words(figure.counter, lane.device).label;
    return lane;
}

std::string sentence_of(std::string text) {
    if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
    return text + ".";
}

}  // namespace

std::vector<JobMeasure> job_measures(const Trace& trace, const traces::analysis::Selection& selection) {
    std::vector<JobMeasure> measures;
    std::map<std::string, std::int64_t> unusable;
    const auto places = traces::analysis::owned_counters(trace, selected_time(trace, selection), unusable);
    for (const SampledKind& kind : kSampledKinds) {
        JobMeasure measure{.id = kind.id, .title = kind.title, .unit = kind.unit, .full = kind.full};
        double highest = 0;
        for (const auto& [place, owned] : places) {
            for (const Figure& figure : kind.figures) {
                const SampledCurve* curve = figure.owner == place.owner ? owned.find(figure.name) : nullptr;
                if (curve == nullptr) continue;
                highest = std::max(highest, curve->highest());
                if (measure.hosts.empty() || measure.hosts.back().name != place.host)
                    measure.hosts.push_back({place.host, {}});
                JobLane lane = lane_of(trace, place, owned, kind, figure);
                lane.curve = *curve;
                measure.hosts.back().lanes.push_back(std::move(lane));
            }
        }
        if (measure.full == 0) measure.full = std::max(highest, largest_of_devices(trace, kind.id));
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
