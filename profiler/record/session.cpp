#include "profiler/record/session.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

namespace shardscope::profiler {
namespace {

// mkdtemp gives a new directory that only this user can enter (0700). Empty on failure.
std::string make_directory(const std::string& parent) {
    std::string path = parent + "/shardscope-XXXXXX";
    return ::mkdtemp(path.data()) != nullptr ? path : std::string();
}

std::string make_directory() {
    if (std::string path = make_directory("/dev/shm"); !path.empty()) return path;
    const char* chosen = std::getenv("TMPDIR");
    const std::string parent = chosen != nullptr && *chosen != '\0' ? chosen : "/tmp";
    std::string path = make_directory(parent);
    if (path.empty()) {
        throw std::runtime_error(
            fmt::format("cannot make a directory for buffers in {}: {}; set TMPDIR to a "
                        "folder that can be written",
                        parent, std::strerror(errno)));
    }
    return path;
}

}  // namespace

Session::Session(std::uint64_t max_bytes_per_process) : directory_(make_directory()) {
    const std::string path = directory_ + "/" + kSessionFile;
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    void* memory = MAP_FAILED;
    if (fd >= 0 && ::posix_fallocate(fd, 0, sizeof(SessionHeader)) == 0) {
        memory = ::mmap(nullptr, sizeof(SessionHeader), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (fd >= 0) ::close(fd);
    if (memory == MAP_FAILED) {
        std::error_code ignored;
        std::filesystem::remove_all(directory_, ignored);
        throw std::runtime_error(
            fmt::format("cannot write {}: no space there; set TMPDIR to a folder with more", path));
    }
    header_ = static_cast<SessionHeader*>(memory);
    header_->magic = kSessionMagic;
    header_->format = kRecordFormat;
    header_->clock = clock_source();
    header_->max_bytes = max_bytes_per_process;
    set_state(SessionState::waiting);
}

Session::~Session() {
    set_state(SessionState::stopped);  // whoever still runs stops writing
    ::munmap(header_, sizeof(SessionHeader));
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
}

void Session::set_state(SessionState state) {
    header_->state.store(state, std::memory_order_release);
}

}  // namespace shardscope::profiler
