// The variables that NVTX (nvtxInit.h), the CUDA driver and NCCL (its environment page) read.
#include "profiler/record/injection.h"

#include <cstdlib>
#include <filesystem>

#include <fmt/core.h>

#include "profiler/base/beside_tool.h"
#include "profiler/inject/session_format.h"

namespace shardscope::profiler {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLibrary = "libshardscope_inject.so";

}  // namespace

std::string find_injection_library() {
    return find_beside_tool(kLibrary);
}

Injection make_injection(const std::string& library, const std::string& session_directory,
                         std::uint32_t sources, bool window_needs_nvtx) {
    Injection result;
    const auto inject = [&](const char* variable, const char* what) {
        const char* given = std::getenv(variable);
        // Our own library there comes from an enclosing recording, which this one replaces.
        if (given != nullptr && *given != '\0' && fs::path(given).filename() != kLibrary) {
            result.notices.push_back(fmt::format("{} is set already (to {}) and stays so: {} not recorded",
                                                 variable, given, what));
            return;
        }
        result.variables.emplace_back(variable, library);
    };
    if ((sources & kSourceNvtx) != 0 || window_needs_nvtx) inject("NVTX_INJECTION64_PATH", "NVTX is");
    if ((sources & kSourceCuda) != 0) inject("CUDA_INJECTION64_PATH", "CUDA is");
    if ((sources & kSourceNccl) != 0) inject("NCCL_PROFILER_PLUGIN", "NCCL's own account is");
    if (!result.variables.empty()) result.variables.emplace_back(kSessionVariable, session_directory);
    return result;
}

}  // namespace shardscope::profiler
