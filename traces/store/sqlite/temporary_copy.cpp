#include "traces/store/sqlite/temporary_copy.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fmt/core.h>
#include <unistd.h>

#include "traces/store/error.h"

namespace shardscope::traces::store {

namespace fs = std::filesystem;

TemporaryCopy::TemporaryCopy(const std::string& path) {
    for (const char* suffix : {"", "-wal", "-journal"}) {
        const std::string file = path + suffix;
        if (::access(file.c_str(), R_OK) == 0 || errno == ENOENT) continue;
        throw StoreError(fmt::format("{} was not finished, and {} cannot be read ({}); check its permissions",
                                     path, file, std::strerror(errno)));
    }
    try {
        folder_.emplace("copy");
        for (const char* suffix : {"", "-wal", "-journal"}) {
            if (!fs::exists(path + suffix)) continue;
            const std::string to = this->path() + suffix;
            fs::copy_file(path + suffix, to);
            fs::permissions(to, fs::perms(0600));
        }
    } catch (const std::system_error& error) {
        throw StoreError(fmt::format(
            "{} was not finished and its folder cannot be written, and it cannot be copied to {} ({}); set "
            "TMPDIR to a folder with room for it",
            path, ScratchFolder::parent(), error.code().message()));
    }
}

}  // namespace shardscope::traces::store
