// The variables that NVTX (nvtxInit.h), the CUDA driver and NCCL (its environment page) read.
#include "profiler/record/injection.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include <elf.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiler/base/beside_tool.h"
#include "profiler/inject/session_format.h"

namespace shardscope::profiler {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLibrary = "libshardscope_inject.so";
constexpr const char* kPreloadLibrary = "libshardscope_preload.so";
constexpr const char* kNvtxVariable = "NVTX_INJECTION64_PATH";

// The file that execvp() would execute; empty if there is none.
std::string path_of(const std::string& command) {
    if (command.find('/') != std::string::npos) return command;
    const char* path = std::getenv("PATH");
    for (std::string_view rest = path == nullptr ? "/bin:/usr/bin" : path; !rest.empty();) {
        const std::size_t end = rest.find(':');
        const std::string folder(rest.substr(0, end));
        std::string file = (folder.empty() ? "." : folder) + "/" + command;
        if (::access(file.c_str(), X_OK) == 0) return file;
        rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    }
    return "";
}

// Reads a struct at an offset of the file; false if the file ends before it does.
template <typename T>
bool read_at(std::ifstream& file, std::uint64_t at, T& value) {
    file.seekg(static_cast<std::streamoff>(at));
    return static_cast<bool>(file.read(reinterpret_cast<char*>(&value), sizeof value));
}

// A dynamically linked program names its loader (PT_INTERP).
bool is_static(std::ifstream& file) {
    Elf64_Ehdr header{};
    if (!read_at(file, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64)
        return false;
    for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
        Elf64_Phdr part{};
        if (!read_at(file, header.e_phoff + i * header.e_phentsize, part) || part.p_type == PT_INTERP)
            return false;
    }
    return true;
}

}  // namespace

std::string find_injection_library() {
    return find_beside_tool(kLibrary);
}

Injection make_injection(const std::string& library, const std::string& session_directory,
                         std::uint32_t sources, bool window_needs_nvtx) {
    Injection result;
    const auto inject = [&](const char* variable, const char* what) {
        const char* given = std::getenv(variable);
        // A library of ours comes from an enclosing recording, which this one replaces.
        if (given != nullptr && *given != '\0' && fs::path(given).filename() != kLibrary) {
            result.notices.push_back(
                fmt::format("{} is already set to {} and is kept: {} not recorded", variable, given, what));
            return;
        }
        result.variables.emplace_back(variable, library);
    };
    if ((sources & kSourceNvtx) != 0 || window_needs_nvtx) inject(kNvtxVariable, "NVTX is");
    if ((sources & kSourceCuda) != 0) inject("CUDA_INJECTION64_PATH", "CUDA is");
    if ((sources & kSourceNccl) != 0) inject("NCCL_PROFILER_PLUGIN", "NCCL's own account is");
    if (!result.variables.empty()) result.variables.emplace_back(kSessionVariable, session_directory);
    return result;
}

std::string find_preload_library() {
    return find_beside_tool(kPreloadLibrary);
}

void preload(Injection& injection, const std::string& library, const std::string& session_directory) {
    const auto set = [&](const char* name, const std::string& value) {
        for (const auto& variable : injection.variables)
            if (variable.first == name) return;
        injection.variables.emplace_back(name, value);
    };
    set(kSessionVariable, session_directory);
    std::string libraries;
    const char* given = std::getenv("LD_PRELOAD");
    for (std::string_view rest = given == nullptr ? "" : given; !rest.empty();) {
        const std::size_t end = std::min(rest.find_first_of(": "), rest.size());
        const std::string_view other = rest.substr(0, end);
        // A library of ours comes from an enclosing recording.
        if (!other.empty() && fs::path(other).filename() != kPreloadLibrary)
            libraries += fmt::format("{}:", other);
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    set("LD_PRELOAD", libraries + library);
    // The address sanitizer's library insists on being the first, which makes no difference here.
    const char* sanitizer = std::getenv("ASAN_OPTIONS");
    set("ASAN_OPTIONS", fmt::format("{}{}verify_asan_link_order=0", sanitizer == nullptr ? "" : sanitizer,
                                    sanitizer == nullptr || *sanitizer == '\0' ? "" : ":"));
}

std::string why_not_preloaded(const std::string& command) {
    const std::string path = path_of(command);
    struct stat facts;
    if (::stat(path.c_str(), &facts) == 0 &&
        (((facts.st_mode & S_ISUID) != 0 && facts.st_uid != ::geteuid()) ||
         ((facts.st_mode & S_ISGID) != 0 && facts.st_gid != ::getegid())))
        return "runs as another user";
    std::ifstream file(path, std::ios::binary);
    return file && is_static(file) ? "is linked statically" : "";
}

bool cannot_load_recorder(const std::string& command) {
    std::ifstream file(path_of(command), std::ios::binary);
    if (!file || !is_static(file)) return false;
    file.clear();
    file.seekg(0);
    // NVTX is compiled into the program, and with it the name of NVTX's variable.
    const std::string content{std::istreambuf_iterator<char>(file), {}};
    return content.find(kNvtxVariable) != std::string::npos;
}

}  // namespace shardscope::profiler
