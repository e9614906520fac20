#include "profiler/base/beside_tool.h"

#include <filesystem>
#include <system_error>

namespace shardscope::profiler {

std::string find_beside_tool(const char* library) {
    namespace fs = std::filesystem;
    std::error_code error;
    const fs::path tool = fs::read_symlink("/proc/self/exe", error);
    if (error) return {};
    const fs::path prefix = tool.parent_path().parent_path();
    for (const char* folder :
         {SHARDSCOPE_LIBDIR "/shardscope", "lib/shardscope", "lib64/shardscope", "lib"}) {
        const fs::path candidate = prefix / folder / library;
        if (fs::exists(candidate, error)) return candidate.string();
    }
    return {};
}

}  // namespace shardscope::profiler
