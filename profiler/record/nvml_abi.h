// The few functions of NVIDIA's management library that the counters need, declared by hand, since its
// header is not installed everywhere: names, numbers and layouts from the NVML API reference. All return 0
// for success.
#pragma once

#include <cstdint>

namespace shardscope::profiler::nvml {

using Device = void*;

inline constexpr char kLibrary[] = "libnvidia-ml.so.1";

inline constexpr int kClockSm = 1, kClockMemory = 2;
inline constexpr int kPcieSent = 0, kPcieReceived = 1;

struct Utilization {
    unsigned gpu, memory;  // percent of the last sample period in which something ran
};
struct Memory {
    unsigned long long total, free, used;  // bytes
};
struct ProcessInfo {
    unsigned pid;
    unsigned long long used_memory;
    unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(ProcessInfo) == 24);

struct FieldValue {
    unsigned field, scope;
    long long timestamp, latency_us;
    int value_type, result;
    union {
        double real;
        unsigned small;
        unsigned long long number;
    } value;
};
static_assert(sizeof(FieldValue) == 40);
inline constexpr int kTypeUnsigned = 1;
// Data transferred over all NVLinks of a device, in KiB since the driver was loaded.
inline constexpr unsigned kNvlinkSent = 138, kNvlinkReceived = 139, kAllLinks = ~0u;

struct Functions {
    int (*init)() = nullptr;                                      // nvmlInit_v2
    int (*shutdown)() = nullptr;                                  // nvmlShutdown
    int (*count)(unsigned*) = nullptr;                            // nvmlDeviceGetCount_v2
    int (*handle)(unsigned, Device*) = nullptr;                   // nvmlDeviceGetHandleByIndex_v2
    int (*utilization)(Device, Utilization*) = nullptr;           // nvmlDeviceGetUtilizationRates
    int (*memory)(Device, Memory*) = nullptr;                     // nvmlDeviceGetMemoryInfo
    int (*power)(Device, unsigned*) = nullptr;                    // nvmlDeviceGetPowerUsage: mW
    int (*clock)(Device, int, unsigned*) = nullptr;               // nvmlDeviceGetClockInfo: MHz
    int (*throttling)(Device, unsigned long long*) = nullptr;     // nvmlDeviceGetCurrentClocksThrottleReasons
    int (*pcie)(Device, int, unsigned*) = nullptr;                // nvmlDeviceGetPcieThroughput: KB/s
    int (*fields)(Device, int, FieldValue*) = nullptr;            // nvmlDeviceGetFieldValues
    int (*processes)(Device, unsigned*, ProcessInfo*) = nullptr;  // nvmlDeviceGetComputeRunningProcesses_v3
};

}  // namespace shardscope::profiler::nvml
