#include "traces/store/sqlite/scratch_folder.h"

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace shardscope::traces::store {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kBegin = "shardscope-";
constexpr std::size_t kRandom = 6;  // random characters after a dash
// A younger folder may belong to a process that has not locked it yet.
constexpr std::chrono::seconds kYoung{60};

// The lock lasts while the descriptor is open. None if locking fails or another process holds the lock.
FileDescriptor lock_folder(const std::string& path) {
    FileDescriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (folder && ::flock(folder.get(), LOCK_EX | LOCK_NB) != 0) folder.close();
    return folder;
}

bool is_ours(const fs::path& path, const std::string& begin) {
    const std::string name = path.filename().string();
    if (name.size() != begin.size() + kRandom || !name.starts_with(begin)) return false;
    struct stat facts = {};
    return ::lstat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) && facts.st_uid == ::geteuid() &&
           std::chrono::system_clock::now() - std::chrono::system_clock::from_time_t(facts.st_mtime) > kYoung;
}

void remove_abandoned(const std::string& parent, const std::string& begin) {
    std::error_code error;
    for (fs::directory_iterator each(parent, error), end; !error && each != end; each.increment(error)) {
        if (!is_ours(each->path(), begin)) continue;
        const FileDescriptor lock = lock_folder(each->path().string());
        if (!lock) continue;
        std::error_code ignored;
        fs::remove_all(each->path(), ignored);
    }
}

}  // namespace

ScratchFolder::ScratchFolder(const std::string& use) {
    std::error_code error;
    const std::string parent = fs::temp_directory_path(error).string();
    if (error) throw std::system_error(error);
    const std::string begin = std::string(kBegin) + use + "-";
    remove_abandoned(parent, begin);
    std::string path = parent + "/" + begin + std::string(kRandom, 'X');
    if (::mkdtemp(path.data()) == nullptr) throw std::system_error(errno, std::generic_category());
    path_ = path;
    lock_ = lock_folder(path_);
}

ScratchFolder::~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
}

std::string ScratchFolder::parent() {
    std::error_code error;
    const std::string path = fs::temp_directory_path(error).string();
    return error ? "$TMPDIR" : path;
}

}  // namespace shardscope::traces::store
