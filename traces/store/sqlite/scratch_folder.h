// A folder of this process in $TMPDIR, removed at the end, for its owner only. One that a killed process left
// is removed when the next is made: who lives holds a lock on his.
#pragma once

#include <string>

#include "traces/store/file_descriptor.h"

namespace shardscope::traces {

class ScratchFolder {
  public:
    // $TMPDIR/shardscope-USE-XXXXXX. Throws std::system_error.
    explicit ScratchFolder(const std::string& use);
    ~ScratchFolder();
    ScratchFolder(const ScratchFolder&) = delete;
    ScratchFolder& operator=(const ScratchFolder&) = delete;

    const std::string& path() const { return path_; }
    // Where it is made: $TMPDIR or /tmp, for messages.
    static std::string parent();

  private:
    std::string path_;
    FileDescriptor lock_;
};

}  // namespace shardscope::traces
