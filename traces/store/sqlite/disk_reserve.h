// A small reserve on a file's disk that can be released when the disk is full, so that a last message can
// still be written.
#pragma once

#include <string>

namespace shardscope::traces {

// Held by an unnamed file, which disappears with its process. There is no reserve if the file system does not
// support such files.
class DiskReserve {
  public:
    explicit DiskReserve(const std::string& beside);
    ~DiskReserve() { give_back(); }
    DiskReserve(const DiskReserve&) = delete;
    DiskReserve& operator=(const DiskReserve&) = delete;

    void give_back();

  private:
    int file_ = -1;
};

}  // namespace shardscope::traces
