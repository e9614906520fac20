#include "profiler/base/private_folder.h"

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace shardscope::profiler {
namespace {

namespace fs = std::filesystem;

// Folders of killed processes stay behind. They are recognised by the lock, which a living process holds;
// young ones are left alone, since their process may not have locked the file yet.
void remove_abandoned(const std::string& parent, const std::string& prefix, const std::string& lock_name) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(parent, error)) {
        if (entry.path().filename().string().rfind(prefix, 0) != 0) continue;
        const std::string file = (entry.path() / lock_name).string();
        struct stat facts;
        if (::stat(file.c_str(), &facts) != 0 || facts.st_uid != ::geteuid()) continue;
        if (std::time(nullptr) - facts.st_mtime < 60) continue;
        const traces::store::FileDescriptor lock(::open(file.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
        if (lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) fs::remove_all(entry.path(), error);
    }
}

// mkdtemp gives a new directory that only this user can enter (0700). Empty on failure.
std::string make_folder_in(const std::string& parent, const std::string& prefix,
                           const std::string& lock_name) {
    remove_abandoned(parent, prefix, lock_name);
    std::string path = parent + "/" + prefix + "XXXXXX";
    return ::mkdtemp(path.data()) != nullptr ? path : std::string();
}

// With less, /dev/shm is not used.
constexpr std::uint64_t kLeastFreeBytes = std::uint64_t{4} << 20;

bool has_room(const std::string& folder) {
    struct statvfs facts;
    return ::statvfs(folder.c_str(), &facts) == 0 &&
           std::uint64_t{facts.f_bavail} * facts.f_frsize >= kLeastFreeBytes;
}

std::string make_folder(const std::string& prefix, const std::string& lock_name) {
    if (has_room("/dev/shm")) {
        if (std::string path = make_folder_in("/dev/shm", prefix, lock_name); !path.empty()) return path;
    }
    const char* chosen = std::getenv("TMPDIR");
    const std::string parent = chosen != nullptr && *chosen != '\0' ? chosen : "/tmp";
    std::string path = make_folder_in(parent, prefix, lock_name);
    if (path.empty()) {
        throw std::runtime_error(
            fmt::format("cannot make a directory for buffers in {}: {}; set TMPDIR to a writable folder",
                        parent, std::strerror(errno)));
    }
    return path;
}

}  // namespace

PrivateFolder::PrivateFolder(std::string_view prefix, std::string_view lock_name)
    : path_(make_folder(std::string(prefix), std::string(lock_name))), lock_name_(lock_name) {
    lock_ = traces::store::FileDescriptor(
        ::open(lock_path().c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (lock_ && ::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) return;
    std::error_code ignored;
    fs::remove_all(path_, ignored);
    throw std::runtime_error(
        fmt::format("cannot write {}: no space there; set TMPDIR to a folder with more", lock_path()));
}

PrivateFolder::~PrivateFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
}

}  // namespace shardscope::profiler
