#include "traces/store/sqlite/disk_reserve.h"

#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>

namespace shardscope::traces::store {

namespace {

constexpr off_t kRoom = 64 << 10;  // room for some pages of a journal, 16 KiB each with its frame

}  // namespace

DiskReserve::DiskReserve(const std::string& beside) {
    const std::filesystem::path folder = std::filesystem::path(beside).parent_path();
    file_ = FileDescriptor(
        ::open(folder.empty() ? "." : folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, S_IRUSR | S_IWUSR));
    if (file_ && ::fallocate(file_.get(), 0, 0, kRoom) != 0) give_back();
}

}  // namespace shardscope::traces::store
