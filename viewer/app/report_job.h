// The HTML report of all open traces, made and written on a thread: traces/report's, the one that
// `shardscope-trace report` writes. Frame thread only (the thread is inside). No Dear ImGui.
#pragma once

#include <future>
#include <string>

#include "viewer/model/session.h"

namespace shardscope::viewer {

class ReportJob {
  public:
    // Of every trace that is read, each within its limit range; ends without doing anything where one is
    // being made. An existing file is replaced when the new one is whole.
    void start(const Session& session, const std::string& path);
    bool busy() const;
    // Of the latest report, when it is done: where it is, or why there is none. Empty: not the case.
    std::string path();
    std::string error();

  private:
    void take();
    std::string wanted_, path_, error_;
    mutable std::future<std::string> outcome_;  // the error, or nothing
};

}  // namespace shardscope::viewer
