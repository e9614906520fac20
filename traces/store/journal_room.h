// Room on the disk behind what a journal holds, so that a few more pages can be written when the disk is full.
#pragma once

#include <string>

namespace shardscope::traces {

class JournalRoom {
  public:
    explicit JournalRoom(const std::string& database) : path_(database + "-wal") {}
    ~JournalRoom();
    JournalRoom(const JournalRoom&) = delete;
    JournalRoom& operator=(const JournalRoom&) = delete;

    // Keeps it free behind the journal's present end, where the file system can.
    void keep();

  private:
    std::string path_;
    int file_ = -1;
};

}  // namespace shardscope::traces
