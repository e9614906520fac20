// Which kernels communicate, by their names: the one list that the loaded columns, the SQL views and
// docs/definitions.md follow. Case-sensitive.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace shardscope::traces::schema {

struct KernelNamePattern {
    std::string_view text;
    bool anywhere = false;  // false: the name must start with it
};

inline constexpr std::array kCommunicationKernelNames = {
    KernelNamePattern{"nccl"},                 // NCCL, and RCCL's copies of its kernels
    KernelNamePattern{"rccl"},                 // RCCL
    KernelNamePattern{"msccl"},                // RCCL's kernels of programmed algorithms
    KernelNamePattern{"oneccl"},               // oneCCL
    KernelNamePattern{"hcom_"},                // HCCL on NPUs
    KernelNamePattern{"ncclKernel", true},     // behind a return type or a namespace
    KernelNamePattern{"ncclDevKernel", true},  // the same, or in the arguments: "(ncclDevKernelArgs4K)"
    KernelNamePattern{"oneapi::ccl", true},    // oneCCL's C++ names
    KernelNamePattern{"hccl", true},           // HCCL, on NPUs, Gaudi and MTIA
};

constexpr bool is_communication_kernel(std::string_view name) {
    for (const KernelNamePattern& pattern : kCommunicationKernelNames) {
        if (pattern.anywhere ? name.find(pattern.text) != std::string_view::npos
                             : name.starts_with(pattern.text))
            return true;
    }
    return false;
}

// The same test as an SQL expression on a column. Either of a kernel's names may match; NULL does not.
std::string communication_kernel_sql(std::string_view column);
std::string communication_kernel_sql(std::string_view short_name, std::string_view full_name);

// A SELECT of (collective, kernel): the row id of each row of SHARD_COLLECTIVES, and the row id of its
// kernel or NULL. It has no index, so it must be the outer table of a join with SHARD_COLLECTIVES. All work
// of a launched graph shares one correlation id: of several kernels with the id, those with a communication
// kernel's name are paired with its collectives, in the order of both. If none has such a name, all of them
// are, unless they outnumber the collectives. build_collectives() in the store does the same.
std::string collective_kernels_sql();

}  // namespace shardscope::traces::schema
