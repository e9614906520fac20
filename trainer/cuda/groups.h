// Chooses the process group that carries out a run's collectives on CUDA devices.
#pragma once

#include <memory>
#include <vector>

#include "trainer/cuda/gpus.h"
#include "trainer/cuda/group.h"
#include "trainer/cuda/nccl_library.h"
#include "trainer/device/cuda_interface.h"

namespace shardscope::trainer::cuda {

// Every communicator of the run, by Mesh::id. `gpus`: each rank's GPU, null for a rank of another process.
// Automatic means NCCL if it is installed and every rank has a GPU of its own, else `local`; between
// processes there is only NCCL. `nccl`: the library; null for the installed one. Throws CudaError if NCCL is
// requested or needed but not available.
std::vector<std::unique_ptr<Group>> make_groups(const device::DeviceSettings& settings,
                                                const std::vector<const Gpu*>& gpus, const NcclLibrary* nccl);

}  // namespace shardscope::trainer::cuda
