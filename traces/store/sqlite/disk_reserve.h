// A small reserve on a file's disk that can be released when the disk is full, so that a last message can
// still be written.
#pragma once

#include <string>

#include "traces/store/file_descriptor.h"

namespace shardscope::traces::store {

// An unnamed file holds the space and disappears with its process. There is no reserve if the file system
// does not support such files.
class DiskReserve {
  public:
    explicit DiskReserve(const std::string& beside);
    void give_back() { file_.close(); }

  private:
    FileDescriptor file_;
};

}  // namespace shardscope::traces::store
