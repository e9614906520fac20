#include "traces/store/journal_room.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace shardscope::traces {

namespace {

constexpr off_t kRoom = 64 << 10;  // some pages of 16 KB, each with its frame

}  // namespace

JournalRoom::~JournalRoom() {
    if (file_ >= 0) ::close(file_);
}

// SQLite locks the database and its -shm, never the journal: a handle of our own harms no lock.
void JournalRoom::keep() {
    if (file_ < 0) file_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    struct stat facts {};
    if (file_ < 0 || ::fstat(file_, &facts) != 0) return;
    // Where it fails there is none, and a full disk may go unsaid in the trace.
    [[maybe_unused]] const int failed = ::fallocate(file_, FALLOC_FL_KEEP_SIZE, facts.st_size, kRoom);
}

}  // namespace shardscope::traces
