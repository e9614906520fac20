// The CUDA module, libshardscope_cuda.so, opened at run time: shardscope-train starts without CUDA, without a
// driver and without a GPU, and needs them only for run.device = "cuda".
#pragma once

#include <memory>

#include "trainer/device/cuda_interface.h"
#include "trainer/executor/devices.h"

namespace shardscope::trainer::executor {

// The GPUs that run.device = "cuda" would use. Throws DeviceError: no module, no driver, no GPU.
device::Gpus find_gpus();

// `marks` may be null: nothing is recorded. Throws DeviceError.
std::unique_ptr<device::Device> open_cuda_device(const DeviceRequest& request, device::WorkMarks* marks);

}  // namespace shardscope::trainer::executor
