#include "trainer/disk/disk_files.h"

#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

namespace shardscope::trainer::disk {

namespace {

[[noreturn]] void throw_errno(int number, const std::string& what) {
    throw std::system_error(number, std::generic_category(), what);
}

// A file without a name; on a file system that has none, one whose name is removed at once.
traces::store::FileDescriptor open_nameless(const std::string& folder) {
    traces::store::FileDescriptor file(
        ::open(folder.c_str(), O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR));
    if (file) return file;
    std::string path = folder + "/.shardscope-XXXXXX";
    file = traces::store::FileDescriptor(::mkostemp(path.data(), O_CLOEXEC));
    if (!file || ::unlink(path.c_str()) != 0) throw_errno(errno, folder);
    return file;
}

// A rank may have a file of each parameter; the usual limit of 1024 is for programs that call select().
void open_as_many_as_possible() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);  // if it cannot be raised, a file that is too many says so
}

// Calls part(done), which reads or writes what it can of the rest, until all bytes are done.
template <class Part>
void carry_whole(std::int64_t bytes, const Part& part) {
    for (std::int64_t done = 0; done < bytes;) {
        const ssize_t count = part(done);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) throw_errno(count < 0 ? errno : EIO, "a file");
        done += count;
    }
}

}  // namespace

DiskFile::DiskFile(const std::string& folder, std::int64_t bytes, bool direct)
    : cached_(open_nameless(folder)), bytes_(whole_blocks(bytes)) {
    int error = EINTR;
    while (error == EINTR) error = ::posix_fallocate(cached_.get(), 0, bytes_);
    if (error != 0) throw_errno(error, folder);
    if (direct) {
        const std::string again = fmt::format("/proc/self/fd/{}", cached_.get());
        uncached_ = traces::store::FileDescriptor(::open(again.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC));
        direct_ = static_cast<bool>(uncached_);
    }
    void* range = ::mmap(nullptr, static_cast<std::size_t>(bytes_), PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) throw_errno(errno, folder);
    address_ = static_cast<std::byte*>(range);
}

DiskFile::~DiskFile() {
    ::munmap(address_, static_cast<std::size_t>(bytes_));
}

int DiskFile::descriptor(const std::byte* memory, std::int64_t offset, std::int64_t bytes) const {
    const bool whole = reinterpret_cast<std::uintptr_t>(memory) % kDiskBlock == 0 &&
                       offset % kDiskBlock == 0 && bytes % kDiskBlock == 0;
    return direct_ && whole ? uncached_.get() : cached_.get();
}

void DiskFile::read(std::byte* memory, std::int64_t offset, std::int64_t bytes) const {
    carry_whole(bytes, [&](std::int64_t done) {
        return ::pread(cached_.get(), memory + done, static_cast<std::size_t>(bytes - done), offset + done);
    });
}

void DiskFile::write(const std::byte* memory, std::int64_t offset, std::int64_t bytes) const {
    carry_whole(bytes, [&](std::int64_t done) {
        return ::pwrite(cached_.get(), memory + done, static_cast<std::size_t>(bytes - done), offset + done);
    });
}

DiskFiles::DiskFiles(std::string folder, bool direct) : folder_(std::move(folder)), direct_(direct) {
    (void)open_nameless(folder_);
    open_as_many_as_possible();
}

std::byte* DiskFiles::take(std::int64_t bytes) {
    // Held meanwhile, so that of two ranks the first gets what is left of a disk that is too small for both.
    const std::lock_guard lock(mutex_);
    auto file = std::make_unique<DiskFile>(folder_, bytes, direct_);
    std::byte* address = file->address();
    files_.emplace(address, std::move(file));
    return address;
}

void DiskFiles::give_back(const std::byte* address) noexcept {
    const std::lock_guard lock(mutex_);
    files_.erase(address);
}

const DiskFile* DiskFiles::find(const std::byte* address) const {
    const std::lock_guard lock(mutex_);
    const auto after = files_.upper_bound(address);
    if (after == files_.begin()) return nullptr;
    const DiskFile& file = *std::prev(after)->second;
    return file.offset_of(address) < file.bytes() ? &file : nullptr;
}

std::int64_t DiskFiles::free_bytes() const {
    struct statvfs system {};
    if (::statvfs(folder_.c_str(), &system) != 0) return 0;
    return static_cast<std::int64_t>(system.f_bavail) * static_cast<std::int64_t>(system.f_frsize);
}

}  // namespace shardscope::trainer::disk
