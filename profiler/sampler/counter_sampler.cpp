// What is sampled in which process, and which rank a GPU belongs to.
#include "profiler/sampler/counter_sampler.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "profiler/sampler/gpu_visibility.h"

namespace shardscope::profiler {
namespace {

// A figure is not continued over a gap that is longer (docs/definitions.md, "Utilization, energy").
constexpr std::int64_t kGapNs = 3 * kSamplePeriodNs;

}  // namespace

CounterSampler::CounterSampler(SamplerOptions options)
    : options_(std::move(options)),
      files_(options_.root),
      processes_(files_, options_.from_the_start ? std::optional(options_.origin) : std::nullopt),
      gpus_(options_.whole_host ? GpuCounters::What::samples : GpuCounters::What::facts, options_.root) {
    if (options_.whole_host) machine_ = std::make_unique<MachineCounters>(files_);
}

void CounterSampler::describe(Samples& samples) {
    samples.facts.push_back({"sampler.period_ns", fmt::format("{}", kSamplePeriodNs)});
    if (!options_.whole_host) return;
    for (traces::schema::RunInfoRow& fact : host_facts(files_, options_.host))
        samples.facts.push_back(std::move(fact));
    std::vector<Adapter> adapters = infiniband_adapters(files_);
    for (Adapter& adapter : ethernet_adapters(files_)) adapters.push_back(std::move(adapter));
    adapters_ = std::make_unique<AdapterCounters>(files_, adapters);
    std::vector<traces::schema::DeviceRow> rows = numa_nodes(files_);
    for (Adapter& adapter : adapters) rows.push_back(std::move(adapter.row));
    for (traces::schema::DeviceRow& row : rows) {
        row.host = options_.host;
        samples.devices.push_back(std::move(row));
    }
}

void CounterSampler::describe_gpus(const std::vector<nvml::GpuFacts>& gpus, Samples& samples) const {
    const std::vector<bool> visible = visible_gpus(gpus, options_.visible_gpus);
    for (std::size_t i = 0; i < gpus.size(); ++i) {
        // Each process of a job may see other GPUs: one that it does not see may be another's.
        if (!visible[i] && !options_.alone) continue;
        traces::schema::DeviceRow row;
        row.host = options_.host;
        row.kind = "gpu";
        row.number = gpus[i].number;
        row.name = gpus[i].name;
        row.bus = gpus[i].bus;
        row.memory_bytes = gpus[i].memory_bytes;
        row.power_limit_watts = gpus[i].power_limit_watts;
        row.visible = visible[i];
        add_place(files_, row);
        samples.devices.push_back(std::move(row));
    }
}

void CounterSampler::note_gap(const std::string& what, MonotonicTime from, MonotonicTime to, bool& told,
                              Samples& samples) const {
    if (to - from <= kGapNs || std::exchange(told, true)) return;
    samples.note(
        to,
        fmt::format("{} not sampled from {:.2f} s to {:.2f} s: the machine was too busy, or stood still; "
                    "mean values leave such gaps out",
                    what, static_cast<double>(from - options_.origin) * 1e-9,
                    static_cast<double>(to - options_.origin) * 1e-9),
        false);
}

int CounterSampler::rank_using(const GpuSample& sample, std::span<const WatchedProcess> processes) {
    int lowest = -1;
    for (const pid_t pid : sample.pids) {
        const auto watched = std::find_if(processes.begin(), processes.end(),
                                          [&](const WatchedProcess& process) { return process.pid == pid; });
        int rank = watched == processes.end() ? -1 : watched->rank;
        if (watched == processes.end() && options_.rank_of) {
            const auto [known, is_new] = ranks_of_pids_.try_emplace(pid, -1);
            if (is_new) known->second = options_.rank_of(pid);
            rank = known->second;
        }
        if (rank >= 0 && (lowest < 0 || rank < lowest)) lowest = rank;
    }
    return lowest;
}

void CounterSampler::add_gpu(const GpuSample& sample, std::span<const WatchedProcess> processes,
                             Samples& samples) {
    const auto [last, is_first] = last_of_gpu_.try_emplace(sample.gpu, sample.time);
    if (!is_first)
        note_gap(fmt::format("GPU {} was", sample.gpu), std::exchange(last->second, sample.time), sample.time,
                 told_gpu_gap_, samples);
    const int rank = rank_using(sample, processes);
    const bool its_first =
        rank >= 0 && gpu_of_rank_.try_emplace(rank, sample.gpu).first->second == sample.gpu;
    const std::string prefix = its_first ? "gpu_" : fmt::format("gpu{}_", sample.gpu);
    for (const GpuSample::Value& value : sample.values)
        samples.add({sample.time, prefix + value.name, value.value, rank, sample.gpu});
}

void CounterSampler::add_gpus(std::span<const WatchedProcess> processes, Samples& samples) {
    GpuFindings found = gpus_.take();
    describe_gpus(found.gpus, samples);
    for (traces::schema::TopologyRow& link : found.links) {
        link.host = link.to_host = options_.host;
        samples.topology.push_back(std::move(link));
    }
    for (SamplerNote& note : found.notes) samples.notes.push_back(std::move(note));
    for (const GpuSample& sample : found.samples) add_gpu(sample, processes, samples);
}

Samples CounterSampler::sample(std::span<const WatchedProcess> processes) {
    Samples samples;
    if (!std::exchange(described_, true)) describe(samples);
    const MonotonicTime now = MonotonicTime::now();
    if (last_) note_gap("counters were", *last_, now, told_gap_, samples);
    last_ = now;
    processes_.sample(processes, samples);
    if (machine_ != nullptr) machine_->sample(samples);
    if (adapters_ != nullptr) adapters_->sample(samples);
    add_gpus(processes, samples);
    return samples;
}

}  // namespace shardscope::profiler
