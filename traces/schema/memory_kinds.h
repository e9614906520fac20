// The kinds of memory that a copy reads and writes, as traces for people call them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "traces/schema/enums.h"

namespace shardscope::traces::schema {

// Whether a copy (ENUM_CUDA_MEMCPY_OPER) reads or writes a file.
inline bool is_of_file(int copy_kind) {
    return copy_kind == kCopyDiskToHost || copy_kind == kCopyHostToDisk;
}

inline constexpr int kMemKindDisk = 101;  // bytes of a file; Nsight Systems has no number for them

// "Pinned", of ENUM_CUDA_MEM_KIND; empty: another kind.
inline std::string_view memory_kind_name(std::int64_t kind) {
    constexpr std::array<std::string_view, 5> kNames = {"Pageable", "Pinned", "Device", "Array", "Managed"};
    if (kind == kMemKindDisk) return "Disk";
    return kind >= 0 && kind < static_cast<std::int64_t>(kNames.size())
               ? kNames[static_cast<std::size_t>(kind)]
               : std::string_view();
}

}  // namespace shardscope::traces::schema
