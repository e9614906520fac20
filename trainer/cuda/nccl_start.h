// Bringing the members of NCCL communicators together.
#pragma once

#include <vector>

#include "trainer/cuda/nccl_library.h"
#include "trainer/device/bootstrap.h"

namespace shardscope::trainer::cuda {

struct NcclStart {
    struct Member {
        int rank = 0;   // of the job
        int place = 0;  // in the communicator
        int gpu = 0;
    };
    NcclId id{};
    int members = 1;           // of all processes
    std::vector<Member> here;  // of this one, at least one
};

// The communicators, by start and member of it; they are begun in the order given, which must be the same on
// all processes. Throws CudaError. With a `bootstrap`, also where that takes longer than `timeout_s` (0: it
// may) and where the job fails meanwhile: then what is under way is left behind, as NCCL does not let itself
// be interrupted there.
std::vector<std::vector<NcclComm*>> start_communicators(const NcclLibrary& nccl,
                                                        const std::vector<NcclStart>& starts,
                                                        double timeout_s, Bootstrap* bootstrap);

}  // namespace shardscope::trainer::cuda
