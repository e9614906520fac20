// The few functions of NVIDIA's management library that we need, declared by hand, since its header is not
// installed everywhere: names, numbers and layouts from the NVML API reference.
#pragma once

#include <cstdint>

namespace shardscope::profiler::nvml {

using Device = void*;

inline constexpr char kLibrary[] = "libnvidia-ml.so.1";

// What every function returns.
using Result = int;
inline constexpr Result kSuccess = 0, kNotSupported = 3, kNoPermission = 4, kDriverNotLoaded = 9,
                        kGpuIsLost = 15, kUnknownError = 999;

inline constexpr int kClockSm = 1, kClockMemory = 2;
inline constexpr int kPcieSent = 0, kPcieReceived = 1;
inline constexpr int kTemperatureGpu = 0;

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

struct PciInfo {
    char legacy_bus_id[16];
    unsigned domain, bus, device;
    unsigned device_id, subsystem_id;
    char bus_id[32];  // "00000000:17:00.0"
};
static_assert(sizeof(PciInfo) == 68);

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

}  // namespace shardscope::profiler::nvml
