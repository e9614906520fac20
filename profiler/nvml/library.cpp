// Finds NVML, and its functions by name.
#include "profiler/nvml/library.h"

#include <cctype>
#include <cstring>
#include <type_traits>

#include <dlfcn.h>
#include <fmt/core.h>

namespace shardscope::profiler::nvml {
namespace {

// "00000000:1B:00.0" -> "0000:1b:00.0"
std::string bus_of(const PciInfo& pci) {
    std::string bus(pci.bus_id, ::strnlen(pci.bus_id, sizeof pci.bus_id));
    for (char& c : bus) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    // The kernel prints a domain with four digits unless it needs more.
    while (bus.starts_with('0') && bus.find(':') != std::string::npos && bus.find(':') > 4) bus.erase(0, 1);
    return bus;
}

template <std::size_t kSize>
std::string text_of(Result (*function)(Device, char*, unsigned), Device device) {
    char text[kSize] = {};
    if (function == nullptr || function(device, text, kSize) != kSuccess) return "";
    return std::string(text, ::strnlen(text, kSize));
}

}  // namespace

std::unique_ptr<Library> Library::open(std::string* why) {
    why->clear();
    std::unique_ptr<Library> nvml(new Library);
    nvml->library_ = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    if (nvml->library_ == nullptr) return nullptr;
    Functions& call = nvml->call_;
    const char* missing = nullptr;
    const auto find = [&](const char* name, auto* function) {
        *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(nvml->symbol(name));
    };
    const auto need = [&](const char* name, auto* function) {
        find(name, function);
        if (*function == nullptr && missing == nullptr) missing = name;
    };
    need("nvmlInit_v2", &call.init);
    need("nvmlDeviceGetCount_v2", &call.count);
    need("nvmlDeviceGetHandleByIndex_v2", &call.handle);
    Result (*shutdown)() = nullptr;  // the destructor's, once the library has started
    need("nvmlShutdown", &shutdown);
    find("nvmlErrorString", &call.error);
    find("nvmlDeviceGetName", &call.name);
    find("nvmlDeviceGetUUID", &call.uuid);
    find("nvmlDeviceGetPciInfo_v3", &call.pci);
    find("nvmlDeviceGetEnforcedPowerLimit", &call.power_limit);
    find("nvmlDeviceGetUtilizationRates", &call.utilization);
    find("nvmlDeviceGetMemoryInfo", &call.memory);
    find("nvmlDeviceGetPowerUsage", &call.power);
    find("nvmlDeviceGetTotalEnergyConsumption", &call.energy);
    find("nvmlDeviceGetTemperature", &call.temperature);
    find("nvmlDeviceGetClockInfo", &call.clock);
    find("nvmlDeviceGetCurrentClocksThrottleReasons", &call.throttling);
    find("nvmlDeviceGetPcieThroughput", &call.pcie);
    find("nvmlDeviceGetFieldValues", &call.fields);
    find("nvmlDeviceGetComputeRunningProcesses_v3", &call.processes);
    if (missing != nullptr) {
        *why = fmt::format("{} has no {}; install a newer driver", kLibrary, missing);
        return nullptr;
    }
    if (const Result result = call.init(); result != kSuccess) {
        if (result != kDriverNotLoaded)
            *why = fmt::format("{} does not start: {}", kLibrary, nvml->error_text(result));
        return nullptr;
    }
    call.shutdown = shutdown;
    return nvml;
}

Library::~Library() {
    if (call_.shutdown != nullptr) call_.shutdown();
}

void* Library::symbol(const char* name) const {
    return ::dlsym(library_, name);
}

std::vector<Gpu> Library::gpus(std::vector<std::string>* failures) const {
    unsigned count = 0;
    std::vector<Gpu> gpus;
    if (const Result result = call_.count(&count); result != kSuccess) {
        failures->push_back(fmt::format("the GPUs cannot be counted: {}", error_text(result)));
        return gpus;
    }
    for (unsigned i = 0; i < count; ++i) {
        Gpu gpu{static_cast<int>(i), nullptr};
        const Result result = call_.handle(i, &gpu.device);
        if (result == kSuccess)
            gpus.push_back(gpu);
        else
            failures->push_back(fmt::format("GPU {}: {}", i, error_text(result)));
    }
    return gpus;
}

GpuFacts Library::facts(const Gpu& gpu) const {
    const Device device = gpu.device;
    GpuFacts facts;
    facts.number = gpu.number;
    facts.name = text_of<96>(call_.name, device);
    facts.uuid = text_of<96>(call_.uuid, device);
    PciInfo pci{};
    if (call_.pci != nullptr && call_.pci(device, &pci) == kSuccess) facts.bus = bus_of(pci);
    Memory memory{};
    if (call_.memory != nullptr && call_.memory(device, &memory) == kSuccess)
        facts.memory_bytes = static_cast<std::int64_t>(memory.total);
    unsigned milliwatts = 0;
    if (call_.power_limit != nullptr && call_.power_limit(device, &milliwatts) == kSuccess)
        facts.power_limit_watts = milliwatts * 1e-3;
    return facts;
}

std::string Library::error_text(Result result) const {
    const char* text = call_.error == nullptr ? nullptr : call_.error(result);
    return text == nullptr || *text == '\0' ? fmt::format("error {}", result) : text;
}

}  // namespace shardscope::profiler::nvml
