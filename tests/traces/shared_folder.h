// Real traces, which are no part of the project: beside it, or where the environment's SHARDSCOPE_SHARED
// says.
#pragma once

#include <cstdlib>
#include <filesystem>

namespace shardscope::traces {

inline std::filesystem::path shared_folder() {
    const char* chosen = std::getenv("SHARDSCOPE_SHARED");
    return std::filesystem::path(chosen != nullptr ? chosen : SHARDSCOPE_SHARED_FOLDER) / "traces";
}

}  // namespace shardscope::traces
