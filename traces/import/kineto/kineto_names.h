// What the words in a Kineto trace mean, over the years: categories, copies, waits, overheads, collectives.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "traces/schema/enums.h"

namespace shardscope::traces::importer {

enum class EventCategory : std::uint8_t {
    other,  // not a category of Kineto: another tracer's
    operation,
    annotation,
    function,  // Python frames, modules among them
    runtime,
    driver,
    kernel,
    mtia,  // any work of an MTIA device; its name decides (mtia_category)
    memcpy,
    memset,
    synchronization,
    overhead,
    instant,
    backward_link,
    ignored,  // copies of host ranges on device rows, launch arrows, spans of the tracer
};

// Ignores case: "Kernel" of 2020 is "kernel" of 2022.
EventCategory category_of(std::string_view cat);

// What an event of an MTIA device is: a copy ("dma_request"), a wait ("event_wait"), else a kernel.
EventCategory mtia_category(std::string_view name);

// ENUM_CUDA_MEMCPY_OPER and ENUM_CUDA_MEM_KIND of "Memcpy HtoD (Pageable -> Device)", "CopyHostToDevice",
// "zeCommandListAppendMemoryCopy(M2D)".
struct CopyKinds {
    int copy = 0;  // 0 unknown
    int source = schema::kMemKindDevice, destination = schema::kMemKindDevice;
};
CopyKinds copy_kinds(std::string_view name);

// ENUM_CUDA_MEM_KIND of "Memset (Device)".
int memset_kind(std::string_view name);

// ENUM_CUPTI_SYNC_TYPE of "Stream Wait Event" and the like.
int sync_type(std::string_view name);

// ENUM_CUPTI_OVERHEAD_TYPE of "Buffer Flush" and the like.
int overhead_type(std::string_view name);

// The operation of a "Collective name", in c10d's words: "_allgather_base", "allreduce",
// "reduce_scatter_tensor_coalesced".
schema::Operation collective_operation(std::string_view name);

// The axis of a mesh that a process group's description names (GroupRow::axis): "tensor" of DeviceMesh's
// "mesh_tp" and Megatron's "TENSOR_MODEL_PARALLEL_GROUP". An axis with another name keeps it ("mesh_dim_0" is
// "dim_0"); "world" of the default group; "" if the description is of neither kind.
std::string axis_of_group(std::string_view description);

// Bytes per element of a tensor of that type ("Float", "BFloat16", "Float8_e4m3fn"); 0 unknown.
std::int64_t element_size(std::string_view data_type);

}  // namespace shardscope::traces::importer
