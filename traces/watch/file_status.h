// What a trace says of its run while it is written, for runs without a status server: as of its last commit,
// which is at most a second old. Who waits for whom is not in it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "traces/status/run_status.h"
#include "traces/watch/display.h"

namespace shardscope::traces::watch {

// The trace, or the parts that its ranks write while there is none: "run.rank-00003.sqlite" of "run.sqlite".
// Empty: there is neither.
std::vector<std::string> files_of_run(const std::string& trace);

class FileStatus {
  public:
    // Throws StoreError: not a trace of ours.
    explicit FileStatus(const std::string& trace);
    ~FileStatus();
    FileStatus(const FileStatus&) = delete;
    FileStatus& operator=(const FileStatus&) = delete;

    // Throws StoreError.
    status::RunStatus read();
    // The course of loss and speed up to now.
    void add_to(Course& course);

  private:
    struct File;
    std::string trace_;
    std::vector<std::unique_ptr<File>> files_;
    std::int64_t number_ = 0;
};

}  // namespace shardscope::traces::watch
