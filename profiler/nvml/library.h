// NVIDIA's management library, opened at run time: nothing of it is linked. Any thread; its calls may take
// tens of milliseconds and, with a broken driver, never return, so call them on a thread that nobody waits
// for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "profiler/nvml/abi.h"

namespace shardscope::profiler::nvml {

// Its functions. Those after `handle` are null where the driver is too old for them.
struct Functions {
    Result (*init)() = nullptr;                                   // nvmlInit_v2
    Result (*shutdown)() = nullptr;                               // nvmlShutdown
    Result (*count)(unsigned*) = nullptr;                         // nvmlDeviceGetCount_v2
    Result (*handle)(unsigned, Device*) = nullptr;                // nvmlDeviceGetHandleByIndex_v2
    const char* (*error)(Result) = nullptr;                       // nvmlErrorString
    Result (*name)(Device, char*, unsigned) = nullptr;            // nvmlDeviceGetName
    Result (*uuid)(Device, char*, unsigned) = nullptr;            // nvmlDeviceGetUUID
    Result (*pci)(Device, PciInfo*) = nullptr;                    // nvmlDeviceGetPciInfo_v3
    Result (*power_limit)(Device, unsigned*) = nullptr;           // nvmlDeviceGetEnforcedPowerLimit: mW
    Result (*utilization)(Device, Utilization*) = nullptr;        // nvmlDeviceGetUtilizationRates
    Result (*memory)(Device, Memory*) = nullptr;                  // nvmlDeviceGetMemoryInfo
    Result (*power)(Device, unsigned*) = nullptr;                 // nvmlDeviceGetPowerUsage: mW
    Result (*energy)(Device, unsigned long long*) = nullptr;      // nvmlDeviceGetTotalEnergyConsumption: mJ
    Result (*temperature)(Device, int, unsigned*) = nullptr;      // nvmlDeviceGetTemperature: Celsius
    Result (*clock)(Device, int, unsigned*) = nullptr;            // nvmlDeviceGetClockInfo: MHz
    Result (*throttling)(Device, unsigned long long*) = nullptr;  // nvmlDeviceGetCurrentClocksThrottleReasons
    Result (*pcie)(Device, int, unsigned*) = nullptr;             // nvmlDeviceGetPcieThroughput: KB/s
    Result (*fields)(Device, int, FieldValue*) = nullptr;         // nvmlDeviceGetFieldValues
    Result (*processes)(Device, unsigned*,
                        ProcessInfo*) = nullptr;  // nvmlDeviceGetComputeRunningProcesses_v3
};

struct Gpu {
    int number = 0;  // NVML's
    Device device = nullptr;
};

// What does not change while the driver runs; what is unknown is empty or -1.
struct GpuFacts {
    int number = 0;    // NVML's
    std::string name;  // "NVIDIA H100 80GB HBM3"
    std::string uuid;  // "GPU-8a56c8f2-…"
    std::string bus;   // as in /sys/bus/pci/devices: "0000:17:00.0"
    std::int64_t memory_bytes = -1;
    double power_limit_watts = -1;
};

class Library {
  public:
    // Opens the library and starts it. Null if that is impossible; `why` is then a clause that says so, or
    // empty on a host without NVIDIA's driver.
    static std::unique_ptr<Library> open(std::string* why);
    ~Library();  // shuts it down; its code stays loaded, since the threads that it started still need it
    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;

    const Functions& call() const { return call_; }
    // A function that is not among these; null where the driver is too old for it.
    template <typename Function>
    Function* find(const char* name) const {
        return reinterpret_cast<Function*>(symbol(name));
    }

    // The GPUs that answer. The others are in `failures`, each as a clause: "GPU 3: GPU is lost".
    std::vector<Gpu> gpus(std::vector<std::string>* failures) const;
    GpuFacts facts(const Gpu& gpu) const;
    std::string error_text(Result result) const;  // "GPU is lost", or "error 15"

  private:
    Library() = default;
    void* symbol(const char* name) const;

    void* library_ = nullptr;
    Functions call_;
};

}  // namespace shardscope::profiler::nvml
