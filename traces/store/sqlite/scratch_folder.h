// A folder of this process in $TMPDIR, accessible only to its owner and removed at the end. A folder that a
// killed process left is removed when the next is made: a running process holds a lock on its own.
#pragma once

#include <string>

#include "traces/store/file_descriptor.h"

namespace shardscope::traces::store {

class ScratchFolder {
  public:
    // $TMPDIR/shardscope-USE-XXXXXX. Throws std::system_error.
    explicit ScratchFolder(const std::string& use);
    ~ScratchFolder();
    ScratchFolder(const ScratchFolder&) = delete;
    ScratchFolder& operator=(const ScratchFolder&) = delete;

    const std::string& path() const { return path_; }
    // The folder in which it is made, $TMPDIR or /tmp; for messages.
    static std::string parent();

  private:
    std::string path_;
    FileDescriptor lock_;
};

}  // namespace shardscope::traces::store
