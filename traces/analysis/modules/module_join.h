// Modules of different runs under one name, for comparing them. Wrappers are no part of a joined path, and a
// class that FSDP2 renamed goes by its own name, so that one model has the same paths under every wrap policy
// and under DDP. Definition: docs/definitions.md, "Compare".
#pragma once

#include <string>
#include <unordered_map>

#include "traces/analysis/modules/modules.h"

namespace shardscope::traces {

// By the path of each row of a rank's view ("FullyShardedDataParallel_0/GPT_0", names from the root with
// '/'): the joined one ("GPT_0"). A wrapper's own row goes by the module that it wraps: "GPT_0 [FSDP]".
using JoinedPaths = std::unordered_map<std::string, std::string>;
JoinedPaths joined_paths(const RankModules& rank);

}  // namespace shardscope::traces
