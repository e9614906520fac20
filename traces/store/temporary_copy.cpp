#include "traces/store/temporary_copy.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>
#include <stdlib.h>

#include "traces/store/error.h"

namespace shardscope::traces {

namespace fs = std::filesystem;

TemporaryCopy::TemporaryCopy(const std::string& path) {
    std::error_code error;
    const fs::path parent = fs::temp_directory_path(error);
    if (!error) {
        folder_ = (parent / "shardscope-copy-XXXXXX").string();
        if (::mkdtemp(folder_.data()) == nullptr) {  // which makes it for its owner only
            error = std::error_code(errno, std::generic_category());
            folder_.clear();
        }
    }
    for (const char* suffix : {"", "-wal", "-journal"}) {
        if (error) break;
        if (!fs::exists(path + suffix)) continue;
        const std::string to = this->path() + suffix;
        if (fs::copy_file(path + suffix, to, error)) fs::permissions(to, fs::perms(0600), error);
    }
    if (!error) return;
    remove();
    throw StoreError(fmt::format(
        "{} was not finished and its folder cannot be written, and it cannot be copied to {} ({}); set "
        "TMPDIR to a folder with room for it",
        path, parent.empty() ? "$TMPDIR" : parent.string(), error.message()));
}

TemporaryCopy::~TemporaryCopy() {
    remove();
}

void TemporaryCopy::remove() noexcept {
    std::error_code ignored;
    if (!folder_.empty()) fs::remove_all(folder_, ignored);
}

}  // namespace shardscope::traces
