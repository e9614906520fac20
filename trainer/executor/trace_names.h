// What a run's trace calls what is not part of the Plan: runtime calls under CUDA's names, with its suffixes;
// collectives under NCCL's; counters. The same for every device, the simulated one too.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "traces/schema/enums.h"
#include "traces/schema/memory_kinds.h"
#include "trainer/plan/plan.h"

namespace shardscope::trainer::executor::trace_names {

// The runtime's functions that a rank's host thread calls.
enum class RuntimeFunction : std::uint8_t {
    launch_kernel,
    launch_collective,
    memcpy_async,
    memset_async,
    event_record,
    stream_wait_event,
    event_synchronize,
    malloc_device,
    malloc_host
};
inline constexpr std::array<std::string_view, 9> kRuntimeFunctionNames = {
    "cudaLaunchKernel_v7000",     "cudaLaunchKernelExC_v11060", "cudaMemcpyAsync_v3020",
    "cudaMemsetAsync_v3020",      "cudaEventRecord_v3020",      "cudaStreamWaitEvent_v3020",
    "cudaEventSynchronize_v3020", "cudaMalloc_v3020",           "cudaHostAlloc_v3020"};
inline constexpr std::string_view name(RuntimeFunction function) {
    return kRuntimeFunctionNames[static_cast<std::size_t>(function)];
}

// The call that the host makes for an operation; nullopt if it makes none. An allocation makes one only if
// the pool grows.
inline std::optional<RuntimeFunction> call_of(const plan::Op& op) {
    switch (op.kind) {
        case plan::OpKind::record_event:
            return RuntimeFunction::event_record;
        case plan::OpKind::wait_event:
            return RuntimeFunction::stream_wait_event;
        case plan::OpKind::host_wait:
            return RuntimeFunction::event_synchronize;
        case plan::OpKind::collective:
            return RuntimeFunction::launch_collective;
        default:
            if (!is_device_work(op)) return std::nullopt;
            return op.kind == plan::OpKind::kernel   ? RuntimeFunction::launch_kernel
                   : op.kind == plan::OpKind::memcpy ? RuntimeFunction::memcpy_async
                                                     : RuntimeFunction::memset_async;
    }
}
inline RuntimeFunction growth_call(plan::MemorySpace space) {
    return space == plan::MemorySpace::device ? RuntimeFunction::malloc_device : RuntimeFunction::malloc_host;
}

inline constexpr std::string_view kNcclDomain = "NCCL";
inline constexpr std::string_view kActiveBytes = "active_bytes";
inline constexpr std::string_view kReservedBytes = "reserved_bytes";
inline constexpr std::string_view kDeviceBytes = "device_bytes";

// "ncclDevKernel_AllGather_local"; `engine`: what carries it out.
inline std::string collective_kernel(traces::schema::Operation operation, std::string_view engine) {
    return fmt::format("ncclDevKernel_{}_{}",
                       traces::schema::kOperationNcclNames[static_cast<std::size_t>(operation)], engine);
}
// The host's call: "ncclAllGather".
inline std::string collective_call(traces::schema::Operation operation) {
    return fmt::format("nccl{}", traces::schema::kOperationNcclNames[static_cast<std::size_t>(operation)]);
}

inline std::string step_range(std::int64_t step) {
    return fmt::format("ProfilerStep#{}", step);
}

// ENUM_CUDA_MEM_KIND of a view's space.
inline int memory_kind(traces::schema::MemorySpace space) {
    return space == traces::schema::MemorySpace::device   ? traces::schema::kMemKindDevice
           : space == traces::schema::MemorySpace::pinned ? traces::schema::kMemKindPinned
           : space == traces::schema::MemorySpace::disk   ? traces::schema::kMemKindDisk
                                                          : traces::schema::kMemKindPageable;
}

}  // namespace shardscope::trainer::executor::trace_names
