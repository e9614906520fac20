// Which process group carries a run's collectives on CUDA devices.
#pragma once

#include <memory>
#include <vector>

#include "trainer/cuda/group.h"
#include "trainer/cuda/module.h"

namespace shardscope::trainer::cuda {

// Every communicator of the run, by Mesh::id. `ordinals`: each rank's GPU. Automatic: NCCL where it is
// installed and every rank has a GPU of its own, else `local`. Throws CudaError where NCCL is asked for and
// cannot be had.
std::vector<std::unique_ptr<Group>> make_groups(const DeviceSettings& settings,
                                                const std::vector<int>& ordinals);

}  // namespace shardscope::trainer::cuda
