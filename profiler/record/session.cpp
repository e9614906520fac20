// Makes, locks and removes the directory that the tool and the injected programs share.
#include "profiler/record/session.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace shardscope::profiler {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDirectoryPrefix = "shardscope-session-";

// Directories of killed tools stay behind. They are recognised by the session file, which a living tool keeps
// locked; young ones are left alone, since their tool may not have locked the file yet.
void remove_abandoned(const std::string& parent) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(parent, error)) {
        if (entry.path().filename().string().rfind(kDirectoryPrefix, 0) != 0) continue;
        const std::string file = (entry.path() / kSessionFile).string();
        struct stat facts;
        if (::stat(file.c_str(), &facts) != 0 || facts.st_uid != ::geteuid()) continue;
        if (std::time(nullptr) - facts.st_mtime < 60) continue;
        const traces::store::FileDescriptor lock(::open(file.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
        if (lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) fs::remove_all(entry.path(), error);
    }
}

// mkdtemp gives a new directory that only this user can enter (0700). Empty on failure.
std::string make_directory(const std::string& parent) {
    remove_abandoned(parent);
    std::string path = parent + "/" + kDirectoryPrefix + "XXXXXX";
    return ::mkdtemp(path.data()) != nullptr ? path : std::string();
}

// Space for the first records of a process next to the session file; with less, /dev/shm is not used.
constexpr std::uint64_t kLeastFreeBytes = std::uint64_t{4} << 20;

bool has_room(const std::string& folder) {
    struct statvfs facts;
    return ::statvfs(folder.c_str(), &facts) == 0 &&
           std::uint64_t{facts.f_bavail} * facts.f_frsize >= kLeastFreeBytes;
}

std::string make_directory() {
    if (has_room("/dev/shm")) {
        if (std::string path = make_directory("/dev/shm"); !path.empty()) return path;
    }
    const char* chosen = std::getenv("TMPDIR");
    const std::string parent = chosen != nullptr && *chosen != '\0' ? chosen : "/tmp";
    std::string path = make_directory(parent);
    if (path.empty()) {
        throw std::runtime_error(
            fmt::format("cannot make a directory for buffers in {}: {}; set TMPDIR to a writable folder",
                        parent, std::strerror(errno)));
    }
    return path;
}

}  // namespace

Session::Session(const SessionOptions& options) : directory_(make_directory()) {
    const std::string path = directory_ + "/" + kSessionFile;
    lock_ = traces::store::FileDescriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    void* memory = MAP_FAILED;
    if (lock_ && ::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0 &&
        ::posix_fallocate(lock_.get(), 0, sizeof(SessionHeader)) == 0) {
        memory = ::mmap(nullptr, sizeof(SessionHeader), PROT_READ | PROT_WRITE, MAP_SHARED, lock_.get(), 0);
    }
    if (memory == MAP_FAILED) {
        std::error_code ignored;
        fs::remove_all(directory_, ignored);
        throw std::runtime_error(
            fmt::format("cannot write {}: no space there; set TMPDIR to a folder with more", path));
    }
    header_ = static_cast<SessionHeader*>(memory);
    header_->magic = kSessionMagic;
    header_->format = kRecordFormat;
    header_->clock = clock_source();
    header_->max_bytes = options.max_bytes_per_process;
    header_->sources = options.sources;
    header_->window = options.window;
    header_->first_step = options.first_step;
    header_->last_step = options.last_step;
    options.range_name.copy(header_->range_name, sizeof header_->range_name - 1);  // the rest is zero
    for (const auto& [first, last] : options.ranks) {
        if (header_->rank_ranges == std::size(header_->ranks)) break;
        header_->ranks[header_->rank_ranges++] = {first, last};
    }
    set_state(SessionState::waiting);
}

Session::~Session() {
    set_state(SessionState::stopped);  // programs that still run stop writing
    ::munmap(header_, sizeof(SessionHeader));
    std::error_code ignored;
    fs::remove_all(directory_, ignored);
}

void Session::set_state(SessionState state) {
    header_->state.store(state, std::memory_order_release);
}

}  // namespace shardscope::profiler
