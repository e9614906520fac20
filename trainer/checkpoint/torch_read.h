// Reads where torch.save has put the numbers of a tensor: the archives of torch_file.h, as PyTorch writes
// them.
#pragma once

#include <cstdint>
#include <string>

#include "trainer/checkpoint/files.h"
#include "trainer/checkpoint/torch_file.h"

namespace shardscope::trainer::checkpoint {

struct StoredTensor {
    TorchTensor tensor;
    std::int64_t numbers = 0;  // offset in the file
    std::int64_t bytes = 0;    // of the numbers
};

// The archive in bytes [offset, offset + length) of the file, which has them. CheckpointError, which calls
// the archive `name`: it is cut off, packed, not of one tensor, or names other classes than torch.save does
// for one. std::system_error.
StoredTensor read_torch_tensor(const File& file, std::int64_t offset, std::int64_t length,
                               const std::string& name);

}  // namespace shardscope::trainer::checkpoint
