// A configuration as the lines of PyTorch that make it.
#pragma once

#include <string>
#include <vector>

#include "trainer/job/job.h"
#include "trainer/lift/lift.h"

namespace shardscope::trainer::lift {

struct PytorchLines {
    std::string api;                 // "FSDP2 (torch.distributed.fsdp.fully_shard)"
    std::vector<std::string> lines;  // to paste
};

// For FSDP, one entry for fully_shard and one for FullyShardedDataParallel; otherwise one entry.
std::vector<PytorchLines> pytorch_lines(const Lifted& lifted, const Job& job);

}  // namespace shardscope::trainer::lift
