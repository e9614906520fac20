// What the processes of a job tell each other before their first collective: which GPU each rank is on, which
// NCCL they have, and the numbers under which NCCL brings the members of a communicator together. One
// exchange.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/cuda/gpus.h"
#include "trainer/cuda/nccl_library.h"
#include "trainer/device/bootstrap.h"

namespace shardscope::trainer::cuda {

// A GPU as all processes know it.
struct GpuPlace {
    std::string machine;  // what tells one system that runs from every other
    std::string bus;      // where the GPU is on it
    std::string host;     // its name, for messages
    int ordinal = 0;      // among those that the process sees, for messages
};
GpuPlace place_of(const Gpu& gpu);

// What one process brings. As text it is lines of words.
struct Introduction {
    int nccl_version = 0;        // 0: it has none
    std::string missing;         // why; one clause
    std::map<int, GpuPlace> on;  // by rank: those of this process
    std::map<int, NcclId> ids;   // by communicator: those whose first rank is of this process
};
std::string write(const Introduction& introduction);
// Throws CudaError where the text is no introduction.
Introduction read(std::string_view text);

// All come together: the ids of all communicators, by Mesh::id; those that nobody needs are zeros. Throws
// CudaError, the same on all: NCCL is missing somewhere or of different versions, or two ranks share a GPU.
std::vector<NcclId> call_roll(Bootstrap& bootstrap, const Introduction& mine, int ranks,
                              std::size_t communicators);

}  // namespace shardscope::trainer::cuda
