#include "traces/store/temporary_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "traces/store/error.h"

namespace shardscope::traces {

void remove_side_files(const std::string& path) {
    for (const char* suffix : {"-wal", "-shm", "-journal"}) ::unlink((path + suffix).c_str());
}

TemporaryFile::TemporaryFile(std::string path) : path_(std::move(path)) {
    const int file = ::open(path_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (file < 0) {
        throw StoreError(
            fmt::format("{} cannot be created: {}; choose another path", path_, std::strerror(errno)));
    }
    ::close(file);
}

TemporaryFile::~TemporaryFile() {
    if (path_.empty()) return;
    remove_side_files(path_);
    ::unlink(path_.c_str());
}

void TemporaryFile::rename_to(const std::string& target, bool replace) {
    if (!replace && ::access(target.c_str(), F_OK) == 0) {  // a live one's journal is not ours to remove
        throw StoreError(
            fmt::format("{} was created by another program just now; choose another path", target));
    }
    remove_side_files(target);
    int failed =
        ::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, target.c_str(), replace ? 0 : RENAME_NOREPLACE);
    // Some file systems know no such flag; the check before is then all there is.
    if (failed != 0 && errno == EINVAL && !replace) failed = ::rename(path_.c_str(), target.c_str());
    if (failed != 0) {
        throw StoreError(
            fmt::format("{} cannot be created: {}; choose another path", target, std::strerror(errno)));
    }
    path_.clear();
}

}  // namespace shardscope::traces
