#include "trainer/cuda/gpus.h"

#include <fmt/core.h>

namespace shardscope::trainer::cuda {

namespace {

// CUDA's version numbers are 1000 * major + 10 * minor.
std::string version_text(int version) {
    return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

[[noreturn]] void none(const std::string& why, cudaError_t code) {
    throw CudaError("run.device = \"cuda\": " + why + ", or use run.device = \"cpu\"", code);
}

}  // namespace

std::vector<Gpu> find_gpus() {
    int driver = 0, runtime = 0, count = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
        (void)cudaGetLastError();
        none("there is no NVIDIA driver (libcuda.so.1); install one on a machine with an NVIDIA GPU",
             cudaErrorNoDevice);
    }
    check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
    const cudaError_t result = cudaGetDeviceCount(&count);
    if (result == cudaErrorInsufficientDriver) {
        none(
            fmt::format("the NVIDIA driver is for CUDA {} and this build for CUDA {}; install a later driver",
                        version_text(driver), version_text(runtime)),
            result);
    }
    if (result != cudaSuccess || count == 0) {
        (void)cudaGetLastError();
        none(fmt::format("no GPU can be used ({}); see what nvidia-smi and CUDA_VISIBLE_DEVICES say",
                         result == cudaSuccess ? "CUDA reports none" : cudaGetErrorString(result)),
             result);
    }
    std::vector<Gpu> gpus;
    for (int ordinal = 0; ordinal < count; ++ordinal) {
        cudaDeviceProp properties{};
        check(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties");
        gpus.push_back({ordinal, properties.name, static_cast<std::int64_t>(properties.totalGlobalMem),
                        fmt::format("{:04x}:{:02x}:{:02x}", properties.pciDomainID, properties.pciBusID,
                                    properties.pciDeviceID)});
    }
    return gpus;
}

device::Gpus describe_gpus(const std::vector<Gpu>& gpus) {
    device::Gpus described;
    for (std::size_t i = 0; i < gpus.size();) {
        std::size_t alike = 1;
        while (i + alike < gpus.size() && gpus[i + alike].name == gpus[i].name) ++alike;
        described.text += fmt::format("{}{} x {}", i == 0 ? "" : ", ", alike, gpus[i].name);
        i += alike;
    }
    int driver = 0, runtime = 0;
    check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
    check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
    described.driver = version_text(driver);
    described.runtime = version_text(runtime);
    return described;
}

}  // namespace shardscope::trainer::cuda
