// See file_stamp.h.
#include "viewer/model/file_stamp.h"

#include <sys/stat.h>

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

std::string change_of(const FileStamp& before, const FileStamp& now) {
    if (before == now) return "";
    if (!now.exists()) return "is gone";
    if (before.inode != now.inode || before.device != now.device) return "was replaced by another file";
    if (now.bytes < before.bytes) return "is shorter than when it was read";
    return "has changed since it was read";
}

}  // namespace shardscope::viewer::model
