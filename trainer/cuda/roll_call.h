// What the processes of a job exchange, once, before their first collective: which GPU each rank is on, which
// NCCL they have, and the ids by which NCCL brings the members of a communicator together.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/cuda/gpus.h"
#include "trainer/cuda/nccl_library.h"
#include "trainer/device/bootstrap.h"

namespace shardscope::trainer::cuda {

// A GPU, identified in a way that all processes understand.
struct GpuPlace {
    std::string machine;  // identifies one running system
    std::string bus;      // the GPU's place in the machine
    std::string host;     // the machine's name, for messages
    int ordinal = 0;      // among the GPUs that the process sees, for messages
};
GpuPlace place_of(const Gpu& gpu);

// What one process contributes; its text form is lines of words.
struct Introduction {
    int nccl_version = 0;        // 0: no NCCL
    std::string missing;         // why NCCL is missing; one clause
    std::map<int, GpuPlace> on;  // by rank: the ranks of this process
    std::map<int, NcclId> ids;   // by communicator: those whose first rank is in this process
};
std::string write(const Introduction& introduction);
// Throws CudaError if the text is not an introduction.
Introduction read(std::string_view text);

// All processes call it together. Returns the ids of all communicators, by Mesh::id; unused ids are zeros.
// Throws the same CudaError in all of them if NCCL is missing somewhere or its versions differ, or if two
// ranks share a GPU.
std::vector<NcclId> call_roll(device::Bootstrap& bootstrap, const Introduction& mine, int ranks,
                              std::size_t communicators);

}  // namespace shardscope::trainer::cuda
