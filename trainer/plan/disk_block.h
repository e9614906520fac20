// What is read and written past the page cache (memory.nvme) is whole blocks of memory and of a file.
#pragma once

#include <cstdint>

namespace shardscope::trainer::plan {

inline constexpr std::int64_t kDiskBlock = 4096;

constexpr std::int64_t whole_blocks(std::int64_t bytes) {
    return (bytes + kDiskBlock - 1) / kDiskBlock * kDiskBlock;
}

}  // namespace shardscope::trainer::plan
