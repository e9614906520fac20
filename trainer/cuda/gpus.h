// The GPUs of this machine that CUDA can use.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/cuda/runtime.h"
#include "trainer/device/cuda_interface.h"

namespace shardscope::trainer::cuda {

struct Gpu {
    int ordinal = 0;
    std::string name;
    std::int64_t memory = 0;  // bytes
    std::string bus;          // PCI: "0000:3b:00"
};

// The GPUs by ordinal, at least one. Throws CudaError if there is none or the driver is missing or too old.
std::vector<Gpu> find_gpus();

device::Gpus describe_gpus(const std::vector<Gpu>& gpus);

}  // namespace shardscope::trainer::cuda
