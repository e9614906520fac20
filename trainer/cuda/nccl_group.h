// The `nccl` process group: ranks that have a GPU each, as threads of this process. One NCCL communicator for
// each group of ranks. Sums are in NCCL's order and averaged once after the sum.
#pragma once

#include <memory>
#include <vector>

#include "trainer/cuda/group.h"
#include "trainer/cuda/nccl_library.h"

namespace shardscope::trainer::cuda {

// `members`: the ranks of each communicator, by Mesh::id; `ordinals`: each rank's GPU. Communicators of one
// rank, and those that are the world again, are not made. With `timeout_s` > 0 a watchdog ends a run whose
// collectives fail, or take longer: it aborts the communicators, so that no stream waits for ever, and every
// call gets a sentence that names the rank and the collective. Throws CudaError.
std::vector<std::unique_ptr<Group>> make_nccl_groups(const NcclLibrary& nccl,
                                                     const std::vector<std::vector<int>>& members,
                                                     const std::vector<int>& ordinals, double timeout_s);

}  // namespace shardscope::trainer::cuda
