// A little room on a file's disk that can be given back when the disk is full, for what must still be said.
#pragma once

#include <string>

#include "traces/store/file_descriptor.h"

namespace shardscope::traces {

// Held by a file without a name, which goes with its process. Where the file system has no such files there
// is no room either.
class DiskReserve {
  public:
    explicit DiskReserve(const std::string& beside);
    void give_back() { file_.close(); }

  private:
    FileDescriptor file_;
};

}  // namespace shardscope::traces
