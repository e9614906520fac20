// open, fstat, pread; see text_file.h.
#include "trainer/data/text_file.h"

#include <cerrno>
#include <cstddef>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace shardscope::trainer::data {
namespace {

[[noreturn]] void fail(const std::string& path, int error) {
    throw std::system_error(error, std::generic_category(), path);
}

// Allows this process as many open files as the system lets it ask for.
bool raise_limit_of_files() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return false;
    limit.rlim_cur = limit.rlim_max;
    return ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

// Non-blocking: opening a pipe that has replaced the file would wait for a writer.
int open_to_read(const std::string& path) {
    return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

}  // namespace

TextFile::TextFile(const std::string& path) : path_(path), descriptor_(open_to_read(path)) {
    // A text may be a folder of more files than a shell's usual limit.
    if (descriptor_ < 0 && errno == EMFILE && raise_limit_of_files()) descriptor_ = open_to_read(path);
    if (descriptor_ < 0) fail(path, errno);
    struct stat status {};
    int error = 0;
    if (::fstat(descriptor_, &status) != 0) {
        error = errno;
    } else if (!S_ISREG(status.st_mode)) {
        error = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
    }
    if (error != 0) {
        ::close(descriptor_);
        fail(path, error);
    }
    size_ = status.st_size;
}

TextFile::~TextFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

void TextFile::read(std::int64_t first, std::span<char> bytes) const {
    while (!bytes.empty()) {
        const ssize_t got = ::pread(descriptor_, bytes.data(), bytes.size(), first);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) fail(path_, errno);
        if (got == 0) {
            throw std::runtime_error(fmt::format(
                "{} was truncated while it was read: it had {} bytes and ends at byte {} now; start "
                "again, with a text that nobody writes to",
                path_, size_, first));
        }
        first += got;
        bytes = bytes.subspan(static_cast<std::size_t>(got));
    }
}

std::string TextFile::whole() const {
    std::string text(static_cast<std::size_t>(size_), '\0');
    read(0, text);
    return text;
}

}  // namespace shardscope::trainer::data
