// Makes and writes HTML files on a background thread: the report of all open traces, or the timeline of one,
// as `shardscope-trace report` and `timeline` write them. Call on the frame thread only. No Dear ImGui.
#pragma once

#include <future>
#include <string>

#include "viewer/model/session.h"

namespace shardscope::viewer::app {

class ReportJob {
  public:
    // Reports on every trace that has been read, each within its time filter; does nothing while another
    // report is being made. An existing file is replaced when the new one is complete.
    void start(const model::Session& session, const std::string& path);
    // The timeline of the active trace, in its visible range of time or all of it; likewise.
    void start_timeline(const model::Session& session, const std::string& path, bool visible);
    bool busy() const;
    // The path of the latest file, or why it failed; each is empty unless it applies.
    std::string path();
    std::string error();

  private:
    void take();
    void begin(const std::string& path);
    std::string wanted_, path_, error_;
    mutable std::future<std::string> outcome_;  // the error; empty: none
};

}  // namespace shardscope::viewer::app
