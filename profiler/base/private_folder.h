// A folder that only this user can enter, for files that other processes write and this one reads: in memory
// (/dev/shm) if possible, else in $TMPDIR or /tmp. It is removed with its contents.
#pragma once

#include <string>
#include <string_view>

#include "traces/store/file_descriptor.h"

namespace shardscope::profiler {

class PrivateFolder {
  public:
    // Removes folders of this `prefix` that killed processes left, then makes a new one, in which `lock_name`
    // is a file that stays locked. Throws std::runtime_error with a sentence.
    PrivateFolder(std::string_view prefix, std::string_view lock_name);
    ~PrivateFolder();
    PrivateFolder(const PrivateFolder&) = delete;
    PrivateFolder& operator=(const PrivateFolder&) = delete;

    const std::string& path() const { return path_; }
    std::string lock_path() const { return path_ + "/" + lock_name_; }
    int lock_file() const { return lock_.get(); }  // open for reading and writing, empty at first

  private:
    std::string path_, lock_name_;
    traces::store::FileDescriptor lock_;
};

}  // namespace shardscope::profiler
