// Reads elements that lie apart in a file, or that are of another type, as fp32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "trainer/checkpoint/element_type.h"
#include "trainer/checkpoint/files.h"

namespace shardscope::trainer::checkpoint {

struct StridedRun {
    std::int64_t offset = 0;  // of its first element, in bytes
    std::int64_t stride = 1;  // from one element to the next, in elements
    ElementType type = ElementType::fp32;
    std::span<std::byte> to;  // fp32; not empty
};

constexpr std::int64_t kStridedBlock = 16 << 20;

// Reads blocks of the file, each once, whatever runs have elements in it: the rows of a transposed matrix
// are all spread over the whole of it. Blocks without elements are not read. std::system_error.
void read_strided(const File& file, std::span<const StridedRun> runs, std::int64_t block = kStridedBlock);

}  // namespace shardscope::trainer::checkpoint
