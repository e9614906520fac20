#include "traces/store/sqlite/in_use.h"

#include <fcntl.h>

#include "traces/store/file_descriptor.h"

namespace shardscope::traces::store {

namespace {

// The bytes that SQLite locks in a file of any size (sqlite.org/fileformat2.html, "the lock-byte page").
constexpr off_t kFirstLockByte = 0x40000000;
constexpr off_t kLockBytes = 512;

}  // namespace

int process_that_uses(const std::string& path) {
    const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file) return 0;
    struct flock lock = {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = kFirstLockByte;
    lock.l_len = kLockBytes;
    const bool held = ::fcntl(file.get(), F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    return held ? lock.l_pid : 0;
}

}  // namespace shardscope::traces::store
