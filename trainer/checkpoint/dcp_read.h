// Reads checkpoints of torch.distributed.checkpoint as PyTorch writes them (dcp_write.h has the format).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "trainer/checkpoint/foreign.h"

namespace shardscope::trainer::checkpoint {

// The folder has a .metadata. CheckpointError.
ForeignCheckpoint read_dcp(const std::filesystem::path& folder);

// Which parameter a name in the state dict means, and which state of it ("": itself). `model_prefix` is what
// the parameters' names begin with.
struct DcpName {
    std::string path, state;
    bool ignored = false;  // neither: of a scheduler, a data loader, …
};
DcpName parse_dcp_name(std::string_view name, std::string_view model_prefix);

}  // namespace shardscope::trainer::checkpoint
