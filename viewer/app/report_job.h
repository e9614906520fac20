// The HTML report of all open traces, made and written on a thread: the report of traces/report that
// `shardscope-trace report` writes too. Frame thread only (the thread is inside). No Dear ImGui.
#pragma once

#include <future>
#include <string>

#include "viewer/model/session.h"

namespace shardscope::viewer {

class ReportJob {
  public:
    // Reports on every trace that has been read, each within its limit range; does nothing while another
    // report is being made. An existing file is replaced when the new one is complete.
    void start(const Session& session, const std::string& path);
    bool busy() const;
    // The state of the latest report once it is done: its path, or why it failed. Empty: not the case.
    std::string path();
    std::string error();

  private:
    void take();
    std::string wanted_, path_, error_;
    mutable std::future<std::string> outcome_;  // the error; empty: none
};

}  // namespace shardscope::viewer
