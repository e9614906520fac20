// Gives modules of different runs common names for comparison. Wrappers are not part of a joined path, and a
// class that FSDP2 renamed has its original name, so that one model has the same paths under every wrap
// policy and under DDP. Definition: docs/definitions.md, "Compare".
#pragma once

#include <string>
#include <unordered_map>

#include "traces/analysis/modules/modules.h"

namespace shardscope::traces::analysis {

// Maps the path of each row of a rank's view ("FullyShardedDataParallel_0/GPT_0", names from the root with
// '/') to the joined one ("GPT_0"). A wrapper's own row has the name of the module that it wraps: "GPT_0
// [FSDP]".
using JoinedPaths = std::unordered_map<std::string, std::string>;
JoinedPaths joined_paths(const RankModules& rank);

}  // namespace shardscope::traces::analysis
