// What a name says about an event: the rules of docs/definitions.md, "Kinds of event". The names of
// communication kernels are in the schema, whose views use them too.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "traces/schema/communication_kernels.h"
#include "traces/schema/enums.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::store {

// The operation in an NCCL kernel's name: "ncclDevKernel_AllGather_RING_LL",
// "ncclAllReduceRingLLKernel_sum_f32". A SendRecv kernel serves many operations and is `other`.
schema::Operation operation_of_kernel(std::string_view name);

// The operation of a call: "ncclAllGather"; nothing for other calls.
std::optional<schema::Operation> operation_of_call(std::string_view name);

// "cudaLaunchKernel_v7000" -> "cudaLaunchKernel". Other endings ("cuMemcpy_v2", "x_v") with fewer than three
// digits are part of the name and stay.
std::string_view without_version_suffix(std::string_view api_name);

// A module's call: "nn.Module: Linear_0"; its backward, if ranges have no ModuleRow::id: "nn.Module:
// Linear_0 (backward)".
inline constexpr std::string_view kModulePrefix = "nn.Module: ", kBackwardSuffix = " (backward)";
// A range (of any length) that names a module's place in the model: "nn.Module path: Linear_3
// layers.0.q_proj".
inline constexpr std::string_view kModulePathPrefix = "nn.Module path: ";

// Domains of ranges that come from Kineto: its operators, annotations and Python frames (modules among them).
inline constexpr std::string_view kOperatorDomain = "cpu_op", kAnnotationDomain = "user_annotation",
                                  kFunctionDomain = "python_function";

// The number of range kinds.
inline constexpr int kRangeKinds = static_cast<int>(RangeKind::operation) + 1;
inline constexpr std::array<std::string_view, kRangeKinds> kRangeKindNames = {
    "range", "module", "backward", "step", "DataLoader", "NCCL call", "function", "operator"};

// `ours`: the range carries a ModuleRow::id.
RangeKind range_kind(std::string_view text, std::string_view domain, bool ours);

// N of "ProfilerStep#N".
std::optional<std::int64_t> profiler_step(std::string_view text);

// "Memcpy HtoD" and the like, by ENUM_CUDA_MEMCPY_OPER.
std::string_view memcpy_name(int copy_kind);

// What waits for what, by ENUM_CUPTI_SYNC_TYPE.
std::string_view wait_name(int type);

}  // namespace shardscope::traces::store
