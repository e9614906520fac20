#include "traces/store/memory_origin.h"

#include <array>

namespace shardscope::traces {

namespace {

struct Origin {
    std::string_view part;  // of the name
    MemoryCategory category;
};

// In this order: the first that the name contains. Names: PyTorch's ranges of FSDP1 and FSDP2, c10d and the
// optimizers.
constexpr std::array kOrigins = std::to_array<Origin>({
    {"FSDP::all_gather", MemoryCategory::unsharded_parameters},
    {"_unshard", MemoryCategory::unsharded_parameters},
    {"fsdp::all_gather", MemoryCategory::unsharded_parameters},
    {"nccl:_all_gather", MemoryCategory::unsharded_parameters},
    {"nccl:all_gather", MemoryCategory::unsharded_parameters},
    {"reduce", MemoryCategory::communication},
    {"nccl:", MemoryCategory::communication},
    {"c10d::", MemoryCategory::communication},
    {"Optimizer.step", MemoryCategory::optimizer_state},
});

}  // namespace

MemoryCategory category_of_origin(std::string_view annotation) {
    for (const Origin& origin : kOrigins) {
        if (annotation.find(origin.part) != std::string_view::npos) return origin.category;
    }
    return MemoryCategory::other;
}

}  // namespace shardscope::traces
