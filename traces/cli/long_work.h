// Interactive long work: the user sees its progress, and Ctrl-C cancels it cleanly.
#pragma once

#include <csignal>
#include <string>

#include "traces/merge/work.h"

namespace shardscope::traces::cli {

// While it lives, Ctrl-C and SIGTERM ask the work to stop instead of ending the program. One at a time.
class LongWork {
  public:
    explicit LongWork(std::string name);  // "merging", for the line on a terminal
    ~LongWork();
    LongWork(const LongWork&) = delete;
    LongWork& operator=(const LongWork&) = delete;

    const merge::WorkOptions& options() const { return options_; }
    // 128 + the signal that stopped it, as shells report it; 0 if none did.
    static int stopped_status();

  private:
    void show(double share);

    std::string name_;
    merge::WorkOptions options_;
    bool watched_;
    int shown_ = -1;
    struct sigaction interrupt_before_ = {}, terminate_before_ = {};
};

}  // namespace shardscope::traces::cli
