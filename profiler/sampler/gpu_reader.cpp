#include "profiler/sampler/gpu_reader.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/core.h>

namespace shardscope::profiler {
namespace {

constexpr unsigned kMostProcesses = 64;

constexpr const char* kWords[] = {"utilization", "memory",       "power",      "energy",      "temperature",
                                  "SM clock",    "memory clock", "throttling", "PCIe traffic"};

}  // namespace

bool GpuReader::read(Source source, nvml::Result result) {
    State& state = states_[source];
    if (result == nvml::kSuccess) {
        state.worked = true;
        state.failure.reset();
    } else {
        state.failure = result;
    }
    return result == nvml::kSuccess;
}

void GpuReader::read_values(GpuSample& sample, bool with_pcie) {
    const nvml::Functions& call = nvml_.call();
    const nvml::Device device = gpu_.device;
    const auto put = [&](const char* name, double value) { sample.values.push_back({name, value}); };
    nvml::Utilization use{};
    if (call.utilization != nullptr && read(utilization, call.utilization(device, &use))) {
        put("utilization_percent", use.gpu);
        put("memory_utilization_percent", use.memory);
    }
    nvml::Memory bytes{};
    if (call.memory != nullptr && read(memory, call.memory(device, &bytes)))
        put("memory_used_bytes", static_cast<double>(bytes.used));
    unsigned number = 0;
    if (call.power != nullptr && read(power, call.power(device, &number))) put("power_watts", number * 1e-3);
    unsigned long long large = 0;
    if (call.energy != nullptr && read(energy, call.energy(device, &large)))
        put("energy_joules", static_cast<double>(large) * 1e-3);
    if (call.temperature != nullptr &&
        read(temperature, call.temperature(device, nvml::kTemperatureGpu, &number)))
        put("temperature_celsius", number);
    if (call.clock != nullptr && read(sm_clock, call.clock(device, nvml::kClockSm, &number)))
        put("sm_clock_mhz", number);
    if (call.clock != nullptr && read(memory_clock, call.clock(device, nvml::kClockMemory, &number)))
        put("memory_clock_mhz", number);
    if (call.throttling != nullptr && read(throttling, call.throttling(device, &large)))
        put("throttle_reasons_bits", static_cast<double>(large));
    if (!with_pcie || call.pcie == nullptr) return;
    if (read(pcie, call.pcie(device, nvml::kPcieSent, &number)))
        put("pcie_sent_bytes_per_second", number * 1e3);
    if (read(pcie, call.pcie(device, nvml::kPcieReceived, &number)))
        put("pcie_received_bytes_per_second", number * 1e3);
}

void GpuReader::read_links(GpuSample& sample) {
    const auto add = [&](unsigned field, GrowingCounter& counter, const char* name) {
        nvml::FieldValue value{};
        value.field = field;
        value.scope = nvml::kAllLinks;
        if (nvml_.call().fields(gpu_.device, 1, &value) != nvml::kSuccess || value.result != nvml::kSuccess)
            return;
        const std::uint64_t kib =
            value.value_type == nvml::kTypeUnsigned ? value.value.small : value.value.number;
        if (const auto rate = counter.next(kib, MonotonicTime::now()))
            sample.values.push_back({name, *rate * 1024});
    };
    if (nvml_.call().fields == nullptr) return;
    add(nvml::kNvlinkSent, sent_, "nvlink_sent_bytes_per_second");
    add(nvml::kNvlinkReceived, received_, "nvlink_received_bytes_per_second");
}

void GpuReader::read_processes(GpuSample& sample) {
    nvml::ProcessInfo processes[kMostProcesses];
    unsigned count = kMostProcesses;
    if (nvml_.call().processes == nullptr ||
        nvml_.call().processes(gpu_.device, &count, processes) != nvml::kSuccess)
        return;
    for (unsigned i = 0; i < std::min(count, kMostProcesses); ++i)
        sample.pids.push_back(static_cast<pid_t>(processes[i].pid));
}

void GpuReader::note_failures(MonotonicTime time, std::vector<SamplerNote>& notes) {
    bool any = false, all = true, says_so = false;
    nvml::Result why = nvml::kSuccess;
    for (std::size_t source = 0; source < sources; ++source) {
        const State& state = states_[source];
        if (!state.worked || source == pcie) continue;  // PCIe's may be of an earlier round
        any = any || state.failure;
        all = all && state.failure;
        says_so = says_so || state.failure == nvml::kGpuIsLost;
        if (state.failure) why = *state.failure;
    }
    lost_ = says_so || (any && all);
    if (lost_) {
        if (!std::exchange(told_lost_, true)) {
            notes.push_back(
                {time, fmt::format("GPU {} no longer answers: {}; its counters end here, those of "
                                   "other GPUs continue",
                                   gpu_.number, nvml_.error_text(why))});
        }
        return;
    }
    for (std::size_t source = 0; source < sources; ++source) {
        State& state = states_[source];
        if (!state.worked || !state.failure || std::exchange(state.told, true)) continue;
        notes.push_back({time, fmt::format("GPU {}: the {} could not be read: {}; samples of it are missing",
                                           gpu_.number, kWords[source], nvml_.error_text(*state.failure))});
    }
}

GpuSample GpuReader::sample(bool with_pcie, std::vector<SamplerNote>& notes) {
    GpuSample sample;
    sample.gpu = gpu_.number;
    sample.time = MonotonicTime::now();
    read_values(sample, with_pcie);
    note_failures(sample.time, notes);
    if (lost_) return sample;
    read_links(sample);
    read_processes(sample);
    return sample;
}

}  // namespace shardscope::profiler
