// How the library gets into the command: where it is, and which variables make NVTX, CUDA and NCCL load it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace shardscope::profiler {

// libshardscope_inject.so next to the tool: in the build folder, or installed. Empty when it is missing.
std::string find_injection_library();

struct Injection {
    std::vector<std::pair<std::string, std::string>> variables;  // to add to the command's environment
    // Sentences about variables that the user has set to another library: those are left as they are.
    std::vector<std::string> notices;
};

// `sources`: bits of SessionHeader::sources. `window_needs_nvtx`: steps or a named range decide what is
// recorded, so NVTX is injected even if its events are not requested.
Injection make_injection(const std::string& library, const std::string& session_directory,
                         std::uint32_t sources, bool window_needs_nvtx);

// libshardscope_preload.so, likewise. It samples threads (profiler/preload).
std::string find_preload_library();

// Has the library loaded into the command and all that it starts, after libraries that the user has loaded
// so.
void preload(Injection& injection, const std::string& library, const std::string& session_directory);

// Why the system loads no such library into a command (looked for in PATH), as in "is linked statically";
// empty: it does.
std::string why_not_preloaded(const std::string& command);

// Whether a command (looked for in PATH) is a statically linked program that calls NVTX. NVTX would load the
// recorder into it, and glibc crashes a static program that loads a library with thread-local variables.
// Statically linked programs without NVTX load nothing, and may start others that can be recorded.
bool cannot_load_recorder(const std::string& command);

}  // namespace shardscope::profiler
