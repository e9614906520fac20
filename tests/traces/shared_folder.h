// Real traces, which are not part of the project: in a folder next to it, or in $SHARDSCOPE_SHARED.
#pragma once

#include <cstdlib>
#include <filesystem>

namespace shardscope::traces {

inline std::filesystem::path shared_folder() {
    const char* chosen = std::getenv("SHARDSCOPE_SHARED");
    return std::filesystem::path(chosen != nullptr ? chosen : SHARDSCOPE_SHARED_FOLDER) / "traces";
}

}  // namespace shardscope::traces
