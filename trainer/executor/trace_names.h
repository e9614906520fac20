// The names in a run's trace for what is not part of the Plan: runtime calls under CUDA's names, with its
// suffixes; collectives under NCCL's; counters. The same for every device, the simulated one too.
#pragma once

#include <string>
#include <string_view>

#include <fmt/core.h>

#include "traces/schema/enums.h"

namespace shardscope::trainer::trace_names {

inline constexpr std::string_view kLaunchKernel = "cudaLaunchKernel_v7000";
inline constexpr std::string_view kLaunchCollective = "cudaLaunchKernelExC_v11060";
inline constexpr std::string_view kMemcpyAsync = "cudaMemcpyAsync_v3020";
inline constexpr std::string_view kMemsetAsync = "cudaMemsetAsync_v3020";
inline constexpr std::string_view kEventRecord = "cudaEventRecord_v3020";
inline constexpr std::string_view kStreamWaitEvent = "cudaStreamWaitEvent_v3020";
inline constexpr std::string_view kEventSynchronize = "cudaEventSynchronize_v3020";
inline constexpr std::string_view kMallocDevice = "cudaMalloc_v3020";
inline constexpr std::string_view kMallocHost = "cudaHostAlloc_v3020";

inline constexpr std::string_view kNcclDomain = "NCCL";
inline constexpr std::string_view kActiveBytes = "active_bytes";
inline constexpr std::string_view kReservedBytes = "reserved_bytes";
inline constexpr std::string_view kDeviceBytes = "device_bytes";
inline constexpr std::string_view kHostCopy = "aten::copy_";
inline constexpr std::string_view kHostZero = "aten::zero_";
inline constexpr std::string_view kHostFill = "aten::fill_";

// "ncclDevKernel_AllGather_local"; `engine`: what carries it out.
inline std::string collective_kernel(traces::Operation operation, std::string_view engine) {
    return fmt::format("ncclDevKernel_{}_{}",
                       traces::kOperationNcclNames[static_cast<std::size_t>(operation)], engine);
}
// The host's call: "ncclAllGather".
inline std::string collective_call(traces::Operation operation) {
    return fmt::format("nccl{}", traces::kOperationNcclNames[static_cast<std::size_t>(operation)]);
}

inline std::string step_range(std::int64_t step) {
    return fmt::format("ProfilerStep#{}", step);
}

// ENUM_CUDA_MEM_KIND of a view's space.
inline int memory_kind(traces::MemorySpace space) {
    return space == traces::MemorySpace::device   ? traces::kMemKindDevice
           : space == traces::MemorySpace::pinned ? traces::kMemKindPinned
                                                  : traces::kMemKindPageable;
}

}  // namespace shardscope::trainer::trace_names
