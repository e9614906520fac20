// Copies /proc/self/maps.
#include "profiler/preload/process_maps.h"

#include <cstddef>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "profiler/preload/sample_ring.h"

namespace shardscope::profiler::preload {
namespace {

constexpr std::size_t kMostBytes = 4 << 20;  // mappings of some forty thousand libraries

// A path made piece by piece: snprintf is not for signal handlers.
class Path {
  public:
    void add(const char* text) {
        while (*text != '\0' && size_ + 1 < sizeof text_) text_[size_++] = *text++;
    }
    void add(std::uint64_t number) {
        char digits[20];
        std::size_t count = 0;
        do digits[count++] = static_cast<char>('0' + number % 10);
        while ((number /= 10) != 0);
        while (count > 0 && size_ + 1 < sizeof text_) text_[size_++] = digits[--count];
    }
    const char* text() const { return text_; }

  private:
    char text_[4200] = {};
    std::size_t size_ = 0;
};

// Not on the handler's stack, which may be small.
constinit Path part, whole;
constinit char buffer[16 << 10];

// System calls as such: the C library's functions are places where a thread may be cancelled, and sanitizers
// replace them by functions that must not be called in a handler.
int open_file(const char* path, int flags) {
    return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0600));
}

// A file beyond the program's limit (ulimit -f) would end it by SIGXFSZ.
bool may_write() {
    rlimit limit;
    return ::syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, nullptr, &limit) == 0 && limit.rlim_cur >= kMostBytes;
}

bool copy(int from, int to) {
    for (std::size_t bytes = 0; bytes < kMostBytes;) {
        const long size = ::syscall(SYS_read, from, buffer, sizeof buffer);
        if (size <= 0) return size == 0;
        for (long at = 0; at < size;) {
            const long written = ::syscall(SYS_write, to, buffer + at, size - at);
            if (written <= 0) return false;
            at += written;
        }
        bytes += static_cast<std::size_t>(size);
    }
    return false;
}

}  // namespace

void write_process_maps(const char* directory, std::int32_t pid, std::uint64_t image) {
    if (!may_write()) return;
    part = whole = Path();
    for (Path* path : {&part, &whole}) {
        path->add(directory);
        path->add("/");
        path->add(static_cast<std::uint64_t>(pid));
        path->add("-");
        path->add(image);
        path->add(kMapsSuffix);
    }
    part.add("-part");
    const int from = open_file("/proc/self/maps", O_RDONLY);
    if (from < 0) return;
    const int to = open_file(part.text(), O_WRONLY | O_CREAT | O_EXCL);
    if (to >= 0) {
        const bool done = copy(from, to);
        ::syscall(SYS_close, to);
        if (!done || ::syscall(SYS_renameat, AT_FDCWD, part.text(), AT_FDCWD, whole.text()) != 0)
            ::syscall(SYS_unlinkat, AT_FDCWD, part.text(), 0);
    }
    ::syscall(SYS_close, from);
}

}  // namespace shardscope::profiler::preload
