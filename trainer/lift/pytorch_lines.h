// The lines of PyTorch code that produce a configuration.
#pragma once

#include <string>
#include <vector>

#include "trainer/job/job.h"
#include "trainer/lift/lift.h"

namespace shardscope::trainer::lift {

struct PytorchLines {
    std::string api;                 // "FSDP1", "FSDP2" or "DDP"
    std::vector<std::string> lines;  // to paste
};

// For FSDP, one entry for fully_shard and one for FullyShardedDataParallel; otherwise one entry.
std::vector<PytorchLines> pytorch_lines(const Lifted& lifted, const job::Job& job);

}  // namespace shardscope::trainer::lift
