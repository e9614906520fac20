// Which GPUs a job may use, as CUDA_VISIBLE_DEVICES says.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "profiler/nvml/library.h"

namespace shardscope::profiler {

// For each of the host's GPUs, by the variable's value (none: it is not set, so all are visible). A value
// lists numbers or the beginnings of UUIDs ("GPU-8a56"); like CUDA, it ends at the first entry that no GPU
// has. A number is taken to be NVML's, as it is with GPUs of one kind. An entry that is a slice of a GPU
// (MIG) means the GPU if it contains its UUID.
std::vector<bool> visible_gpus(const std::vector<nvml::GpuFacts>& gpus,
                               const std::optional<std::string>& variable);

}  // namespace shardscope::profiler
