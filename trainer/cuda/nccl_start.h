// Starts NCCL communicators by bringing their members together.
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
    int members = 1;           // in all processes
    std::vector<Member> here;  // the members in this process, at least one
    bool channel = false;      // of messages, from place 0 to place 1
};

// The communicators, by start and by member of it. They are started in the given order, which must be the
// same in all processes. NCCL connects the ends of a channel in their first message, in which each call waits
// for the other's: that message is sent here, so that later calls return whatever the order in which ranks
// send to each other. Throws CudaError; with a `bootstrap` also if that takes longer than `timeout_s`
// (0: no limit) or if the job fails meanwhile. The attempt is then abandoned, because NCCL cannot be
// interrupted there.
std::vector<std::vector<NcclComm*>> start_communicators(const NcclLibrary& nccl,
                                                        const std::vector<NcclStart>& starts,
                                                        double timeout_s, device::Bootstrap* bootstrap);

}  // namespace shardscope::trainer::cuda
