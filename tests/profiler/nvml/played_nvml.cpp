// Plays NVIDIA's management library (libnvidia-ml.so.1) for the links of four GPUs. SHARDSCOPE_PLAYED_NVML
// says which board: "neighbours": PCIe alone, GPUs reach only the one next to them; "all": NVLinks between
// all, through switches; "half": GPU 2 answers nothing; "old": a driver without the functions for links.
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "profiler/nvml/abi.h"

namespace {

using namespace shardscope::profiler::nvml;

constexpr unsigned kGpus = 4, kLinks = 6;
int gpus[kGpus] = {0, 1, 2, 3};

int number_of(Device device) {
    return *static_cast<int*>(device);
}
bool board_is(std::string_view name) {
    const char* board = std::getenv("SHARDSCOPE_PLAYED_NVML");
    return board != nullptr && name == board;
}
bool is_lost(Device device) {
    return board_is("half") && number_of(device) == 2;
}
bool are_neighbours(Device a, Device b) {
    return number_of(a) / 2 == number_of(b) / 2;
}

}  // namespace

extern "C" {

Result nvmlInit_v2() {
    return kSuccess;
}
Result nvmlShutdown() {
    return kSuccess;
}
Result nvmlDeviceGetCount_v2(unsigned* count) {
    *count = kGpus;
    return kSuccess;
}
Result nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
    *device = &gpus[index];
    return kSuccess;
}
Result nvmlDeviceGetPciInfo_v3(Device device, PciInfo* pci) {
    *pci = {};
    pci->bus = 0x10 + static_cast<unsigned>(number_of(device));
    std::strcpy(pci->bus_id, "00000000:10:00.0");
    pci->bus_id[10] = static_cast<char>('0' + number_of(device));
    return kSuccess;
}
Result nvmlDeviceGetTopologyCommonAncestor(Device a, Device b, int* level) {
    if (is_lost(a) || is_lost(b)) return kGpuIsLost;
    *level = are_neighbours(a, b) ? 30 : 50;  // a host bridge, the system
    return kSuccess;
}
// what: 0 reads, 1 writes, 2 NVLink, 3 atomics.
Result nvmlDeviceGetP2PStatus(Device a, Device b, int what, int* status) {
    if (is_lost(a) || is_lost(b)) return kGpuIsLost;
    if (board_is("all")) {
        *status = 0;
    } else {
        *status = what < 2 && are_neighbours(a, b) ? 0 : what < 2 ? 1 : 5;
    }
    return kSuccess;
}
Result nvmlDeviceGetNvLinkState(Device, unsigned link, int* active) {
    if (!board_is("all")) return kNotSupported;
    if (link >= kLinks) return 2;  // a wrong argument
    *active = link == 5 ? 0 : 1;   // one is down
    return kSuccess;
}
Result nvmlDeviceGetNvLinkRemotePciInfo_v2(Device, unsigned, PciInfo* pci) {
    *pci = {};
    pci->bus = 0x40;
    return kSuccess;
}
Result nvmlDeviceGetNvLinkRemoteDeviceType(Device, unsigned, int* type) {
    *type = 2;  // a switch
    return kSuccess;
}
Result nvmlDeviceGetFieldValues(Device, int count, FieldValue* values) {
    for (int i = 0; i < count; ++i) {
        values[i].result = values[i].field == 90 ? kSuccess : kNotSupported;  // 90: MB/s of a link
        values[i].value_type = kTypeUnsigned;
        values[i].value.small = 25'000;
    }
    return kSuccess;
}

}  // extern "C"
