// Replaces NVIDIA's management library (libnvidia-ml.so.1): two GPUs with known values. The first is used by
// the child of the calling process, the second by no process.
#include <atomic>
#include <cstdio>
#include <cstring>

#include <unistd.h>

#include "profiler/nvml/abi.h"

namespace {

using namespace shardscope::profiler::nvml;

int gpus[2] = {0, 1};
bool started = false;

int number_of(Device device) {
    return *static_cast<int*>(device);
}

unsigned child_of_this_process() {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/self/task/%d/children", static_cast<int>(::getpid()));
    unsigned child = 0;
    if (std::FILE* file = std::fopen(path, "r")) {
        if (std::fscanf(file, "%u", &child) != 1) child = 0;
        std::fclose(file);
    }
    return child;
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
    started = true;
    return 0;
}
int nvmlShutdown() {
    started = false;
    return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
    *count = 2;
    return started ? 0 : 1;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
    *device = &gpus[index];
    return 0;
}
int nvmlDeviceGetUtilizationRates(Device device, Utilization* use) {
    *use = {number_of(device) == 0 ? 87u : 3u, 12u};
    return 0;
}
int nvmlDeviceGetMemoryInfo(Device, Memory* memory) {
    *memory = {80ull << 30, 77ull << 30, 3ull << 30};
    return 0;
}
int nvmlDeviceGetPowerUsage(Device, unsigned* milliwatts) {
    *milliwatts = 250'500;
    return 0;
}
int nvmlDeviceGetClockInfo(Device, int clock, unsigned* mhz) {
    *mhz = clock == kClockSm ? 1410 : 2619;
    return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(Device, unsigned long long* reasons) {
    *reasons = 0x44;  // power cap, hardware thermal
    return 0;
}
int nvmlDeviceGetPcieThroughput(Device, int direction, unsigned* kilobytes) {
    *kilobytes = direction == kPcieSent ? 1000 : 2000;
    return 0;
}
int nvmlDeviceGetFieldValues(Device device, int count, FieldValue* values) {
    static std::atomic<unsigned long long> kib{0};
    for (int i = 0; i < count; ++i) {
        values[i].result =
            number_of(device) == 0 && values[i].field == kNvlinkSent ? 0 : 3;  // 3: not supported
        values[i].value_type = 3;
        values[i].value.number = values[i].result == 0 ? kib += 1024 : 0;
    }
    return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned* count, ProcessInfo* processes) {
    if (number_of(device) != 0) {
        *count = 0;
        return 0;
    }
    processes[0] = {child_of_this_process(), 1ull << 30, ~0u, ~0u};
    *count = 1;
    return 0;
}

}  // extern "C"
