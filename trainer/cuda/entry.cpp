// The module's exported functions; see trainer/device/cuda_interface.h.
#include <exception>
#include <string>

#include <shardscope/version.h>

#include "trainer/cuda/cuda_device.h"
#include "trainer/cuda/gpus.h"

using namespace shardscope::trainer;
using namespace shardscope::trainer::device;

namespace {

bool same_version(const std::string& version, std::string& why) {
    if (version == shardscope::kVersion) return true;
    why = "libshardscope_cuda.so has version " + std::string(shardscope::kVersion) +
          ", but shardscope-train has version " + version + "; install both from one build";
    return false;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) Device* shardscope_open_cuda_device(
    const DeviceSettings& settings, std::string& why) {
    if (!same_version(settings.version, why)) return nullptr;
    try {
        return new cuda::CudaDevice(settings);
    } catch (const std::exception& error) {
        why = error.what();
        return nullptr;
    }
}

extern "C" __attribute__((visibility("default"))) bool shardscope_find_gpus(const std::string& version,
                                                                            Gpus& gpus, std::string& why) {
    if (!same_version(version, why)) return false;
    try {
        gpus = cuda::describe_gpus(cuda::find_gpus());
        return true;
    } catch (const std::exception& error) {
        why = error.what();
        return false;
    }
}
