// A search in the background: a thread searches for the latest text, and the search for an earlier one is
// cancelled. Frame thread only (the worker is inside); no Dear ImGui.
#pragma once

#include <atomic>
#include <future>
#include <memory>
#include <string>

#include "viewer/timeline/find_text.h"

namespace shardscope::viewer {

class Finder {
  public:
    Finder() = default;
    ~Finder() { stop(); }
    Finder(const Finder&) = delete;
    Finder& operator=(const Finder&) = delete;

    // Called every frame: the matches of this text in this trace; nullptr while the search runs and if the
    // text is empty.
    std::shared_ptr<const FoundEvents> of(const TracePtr& trace, const std::string& text);
    bool busy() const { return next_.valid(); }
    // Cancels the search in this trace and drops its matches; false: the search was in another trace.
    bool forget(const traces::Trace& trace);

  private:
    void stop();

    TracePtr trace_;
    std::string text_;
    std::shared_ptr<const FoundEvents> found_;
    std::atomic<bool> cancel_{false};
    std::future<FoundEvents> next_;
};

}  // namespace shardscope::viewer
