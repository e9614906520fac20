// A little room on a file's disk that can be given back when the disk is full, for what must still be said.
#pragma once

#include <string>

namespace shardscope::traces {

// Held by a file without a name, which goes with its process. Where the file system has no such files there
// is no room either.
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
