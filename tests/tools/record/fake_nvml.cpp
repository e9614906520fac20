// Replaces NVIDIA's management library (libnvidia-ml.so.1). What its GPUs do is said by the variable
// FAKE_NVML:
//
//   (not set)    two GPUs with known values. The first is used by the child of the calling process (or, if it
//   has
//                none, by the process itself), the second by no process
//   constant     one GPU, used by that process: 70 % and 350 W at all times
//   one_of_four  four GPUs, of which the first does that, and the others nothing, at 60 W
//   triangle     one GPU, whose power rises from 0 to 400 W within half a second and falls again, over and
//   over falls_off    two GPUs like the first; the second is lost after 0.5 s no_power     one GPU like the
//   first, whose power cannot be read any more after 0.5 s one_lost     two GPUs, of which the second is lost
//   from the beginning mismatch     a library that does not fit the kernel's driver
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <unistd.h>

#include "profiler/nvml/abi.h"

namespace {

using namespace shardscope::profiler::nvml;

constexpr Result kNotFound = 6, kVersionMismatch = 18;
constexpr double kTopWatts = 400, kRampSeconds = 0.5;

int gpus[4] = {0, 1, 2, 3};
bool started = false;
double start_s = 0;

bool plays(const char* what) {
    const char* play = std::getenv("FAKE_NVML");
    return what == nullptr ? play == nullptr : play != nullptr && std::strcmp(play, what) == 0;
}

int number_of(Device device) {
    return *static_cast<int*>(device);
}

double now_s() {
    timespec t;
    ::clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// The integral of power since the start is `energy`.
double watts(int gpu, double* energy) {
    const double t = now_s() - start_s;
    if (plays("triangle")) {
        const double period = 2 * kRampSeconds;
        const auto periods = static_cast<double>(static_cast<long>(t / period));
        const double in = t - periods * period, rising = in < kRampSeconds ? in : kRampSeconds;
        const double slope = kTopWatts / kRampSeconds, falling = in - rising;
        *energy = periods * kTopWatts * kRampSeconds + slope * rising * rising / 2 +
                  falling * (kTopWatts - slope * falling / 2);
        return falling > 0 ? kTopWatts - slope * falling : slope * rising;
    }
    const double power = plays(nullptr) ? 250.5 : gpu > 0 && plays("one_of_four") ? 60 : 350;
    *energy = power * t;
    return power;
}

bool is_lost(Device device) {
    return number_of(device) == 1 && plays("falls_off") && now_s() - start_s > 0.5;
}

// The calls below give this back where there is nothing else to say.
Result answer(Device device) {
    return is_lost(device) ? kGpuIsLost : kSuccess;
}

unsigned user_of_gpus() {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/self/task/%d/children", static_cast<int>(::getpid()));
    unsigned child = 0;
    if (std::FILE* file = std::fopen(path, "r")) {
        if (std::fscanf(file, "%u", &child) != 1) child = 0;
        std::fclose(file);
    }
    return child != 0 ? child : static_cast<unsigned>(::getpid());
}

}  // namespace

extern "C" {

Result nvmlInit_v2() {
    if (plays("mismatch")) return kVersionMismatch;
    started = true;
    start_s = now_s();
    return kSuccess;
}
Result nvmlShutdown() {
    started = false;
    return kSuccess;
}
const char* nvmlErrorString(Result result) {
    switch (result) {
        case kGpuIsLost:
            return "GPU is lost";
        case kVersionMismatch:
            return "Driver/library version mismatch";
        case kUnknownError:
            return "Unknown Error";
        default:
            return "";
    }
}
Result nvmlDeviceGetCount_v2(unsigned* count) {
    *count = plays("one_of_four") ? 4 : plays(nullptr) || plays("falls_off") || plays("one_lost") ? 2 : 1;
    return started ? kSuccess : 1;
}
Result nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
    if (index == 1 && plays("one_lost")) return kGpuIsLost;
    *device = &gpus[index];
    return kSuccess;
}
Result nvmlDeviceGetName(Device device, char* name, unsigned size) {
    std::snprintf(name, size, "Played GPU");
    return answer(device);
}
Result nvmlDeviceGetUUID(Device device, char* uuid, unsigned size) {
    std::snprintf(uuid, size, "GPU-0000000%d-played", number_of(device));
    return answer(device);
}
Result nvmlDeviceGetPciInfo_v3(Device device, PciInfo* pci) {
    *pci = {};
    std::snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%d7:00.0", number_of(device) + 1);
    return answer(device);
}
Result nvmlDeviceGetTopologyCommonAncestor(Device a, Device b, int* level) {
    *level = number_of(a) / 2 == number_of(b) / 2 ? 10 : 50;  // one switch; the system
    return kSuccess;
}
Result nvmlDeviceGetP2PStatus(Device a, Device b, int, int* status) {
    *status = number_of(a) / 2 == number_of(b) / 2 ? 0 : 1;  // OK; the chipset does not support it
    return kSuccess;
}
Result nvmlDeviceGetEnforcedPowerLimit(Device device, unsigned* milliwatts) {
    *milliwatts = 700'000;
    return answer(device);
}
Result nvmlDeviceGetUtilizationRates(Device device, Utilization* use) {
    if (plays(nullptr))
        *use = {number_of(device) == 0 ? 87u : 3u, 12u};
    else if (plays("one_of_four") && number_of(device) > 0)
        *use = {0, 0};
    else
        *use = {70, 40};
    return answer(device);
}
Result nvmlDeviceGetMemoryInfo(Device device, Memory* memory) {
    *memory = {80ull << 30, 77ull << 30, 3ull << 30};
    return answer(device);
}
Result nvmlDeviceGetPowerUsage(Device device, unsigned* milliwatts) {
    double energy = 0;
    *milliwatts = static_cast<unsigned>(watts(number_of(device), &energy) * 1000 + 0.5);
    return plays("no_power") && now_s() - start_s > 0.5 ? kUnknownError : answer(device);
}
Result nvmlDeviceGetTotalEnergyConsumption(Device device, unsigned long long* millijoules) {
    double energy = 0;
    watts(number_of(device), &energy);
    *millijoules = static_cast<unsigned long long>((5000 + energy) * 1000);
    return answer(device);
}
Result nvmlDeviceGetTemperature(Device device, int sensor, unsigned* celsius) {
    *celsius = 61;
    return sensor == kTemperatureGpu ? answer(device) : kNotFound;
}
Result nvmlDeviceGetClockInfo(Device device, int clock, unsigned* mhz) {
    *mhz = clock == kClockSm ? 1410 : 2619;
    return answer(device);
}
Result nvmlDeviceGetCurrentClocksThrottleReasons(Device device, unsigned long long* reasons) {
    *reasons = plays(nullptr) ? 0x44 : 0;  // power cap, hardware thermal
    return answer(device);
}
Result nvmlDeviceGetPcieThroughput(Device device, int direction, unsigned* kilobytes) {
    *kilobytes = direction == kPcieSent ? 1000 : 2000;
    return answer(device);
}
Result nvmlDeviceGetFieldValues(Device device, int count, FieldValue* values) {
    static std::atomic<unsigned long long> kib{0};
    for (int i = 0; i < count; ++i) {
        values[i].result =
            number_of(device) == 0 && values[i].field == kNvlinkSent ? kSuccess : kNotSupported;
        values[i].value_type = 3;
        values[i].value.number = values[i].result == kSuccess ? kib += 1024 : 0;
    }
    return answer(device);
}
Result nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned* count, ProcessInfo* processes) {
    *count = 0;
    if (number_of(device) == 0) processes[(*count)++] = {user_of_gpus(), 1ull << 30, ~0u, ~0u};
    return answer(device);
}

}  // extern "C"
