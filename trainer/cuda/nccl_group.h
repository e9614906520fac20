// The `nccl` process group: ranks with a GPU each, as threads of this process or of several. There is one
// NCCL communicator for each group of ranks. Sums are in NCCL's order and averaged once after the sum.
#pragma once

#include <memory>
#include <vector>

#include "trainer/cuda/group.h"
#include "trainer/cuda/nccl_library.h"
#include "trainer/cuda/nccl_watchdog.h"

namespace shardscope::trainer::cuda {

// `members`: the ranks of each communicator, by Mesh::id, the last `channels` of them those of messages
// (Mesh::channel); `ordinals`: each rank's GPU, -1 for a rank of
// another process. Communicators that equal the world, or in which this process has no rank, are not started.
// `peers`: the data of the other processes; null if there are none. If `timeout_s` > 0, a collective that
// takes longer ends the run; see nccl_watchdog.h. Throws CudaError.
std::vector<std::unique_ptr<Group>> make_nccl_groups(const NcclLibrary& nccl,
                                                     const std::vector<std::vector<int>>& members,
                                                     const std::vector<int>& ordinals, double timeout_s,
                                                     const NcclPeers* peers = nullptr, int channels = 0);

}  // namespace shardscope::trainer::cuda
