// Whether a file is still the one that was read: its identity, size and time, and those of the write-ahead
// log that SQLite keeps beside a database that is being written. Any thread. No Dear ImGui.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardscope::viewer::model {

struct FileStamp {
    std::uint64_t device = 0, inode = 0;
    std::int64_t bytes = -1, log_bytes = -1;          // -1: there is none
    std::int64_t changed_ns = 0, log_changed_ns = 0;  // modification times, by the system's clock
    bool operator==(const FileStamp&) const = default;
    bool exists() const { return bytes >= 0; }
};

FileStamp stamp_of(const std::string& path);
std::vector<FileStamp> stamps_of(const std::vector<std::string>& paths);

// When the file, or its log, was last written, in nanoseconds of the system's clock; 0: there is none.
std::int64_t written_ns(const FileStamp& stamp);

// Whether another process on this machine has the database open, as a run has its trace until it ends or
// dies: SQLite holds a lock on the index of the write-ahead log (path + "-shm"). A short-lived reader counts,
// too; a process of another container or host is not seen.
bool is_open_elsewhere(const std::string& path);

// What has happened to a file since, as the rest of a sentence: "is gone", "was replaced", "is shorter than
// when it was read", "has changed since it was read"; empty: nothing.
std::string change_of(const FileStamp& before, const FileStamp& now);

}  // namespace shardscope::viewer::model
