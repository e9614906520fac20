// See file_stamp.h.
#include "viewer/model/file_stamp.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace shardscope::viewer::model {
namespace {

std::int64_t nanoseconds(const timespec& time) {
    return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

FileStamp stamp_of(const std::string& path) {
    FileStamp stamp;
    struct stat file {};
    if (::stat(path.c_str(), &file) != 0) return stamp;
    stamp.device = file.st_dev;
    stamp.inode = file.st_ino;
    stamp.bytes = file.st_size;
    stamp.changed_ns = nanoseconds(file.st_mtim);
    // An empty log means the same as none: reading a database creates and removes one.
    if (::stat((path + "-wal").c_str(), &file) == 0 && file.st_size > 0) {
        stamp.log_bytes = file.st_size;
        stamp.log_changed_ns = nanoseconds(file.st_mtim);
    }
    return stamp;
}

std::vector<FileStamp> stamps_of(const std::vector<std::string>& paths) {
    std::vector<FileStamp> stamps;
    stamps.reserve(paths.size());
    for (const std::string& path : paths) stamps.push_back(stamp_of(path));
    return stamps;
}

std::int64_t written_ns(const FileStamp& stamp) {
    return std::max(stamp.changed_ns, stamp.log_changed_ns);
}

// The file is not opened to ask: closing it would release the locks that SQLite holds for this process.
bool is_open_elsewhere(const std::string& path) {
    struct stat index {};
    if (::stat((path + "-shm").c_str(), &index) != 0) return false;
    const std::string wanted =
        fmt::format("{:02x}:{:02x}:{}", major(index.st_dev), minor(index.st_dev), index.st_ino);
    std::ifstream locks("/proc/locks");
    for (std::string line; std::getline(locks, line);) {
        // 1: POSIX  ADVISORY  READ 861 fe:00:11198520 128 128
        std::istringstream words(line);
        std::string number, kind, advice, access, file;
        long process = 0;
        if (words >> number >> kind >> advice >> access >> process >> file && file == wanted &&
            process != ::getpid())
            return true;
    }
    return false;
}

std::string change_of(const FileStamp& before, const FileStamp& now) {
    if (before == now) return "";
    if (!now.exists()) return "is gone";
    if (before.inode != now.inode || before.device != now.device) return "was replaced by another file";
    if (now.bytes < before.bytes) return "is shorter than when it was read";
    return "has changed since it was read";
}

}  // namespace shardscope::viewer::model
