// A search that runs beside the frames: what was typed last is looked for on a thread, what was typed before
// is given up. Frame thread only (the worker is inside); no Dear ImGui.
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

    // Asked every frame: what there is for this text of this trace; nullptr while it is being looked for and
    // where the text is empty.
    std::shared_ptr<const FoundEvents> of(const TracePtr& trace, const std::string& text);
    bool busy() const { return next_.valid(); }
    // Gives up the search in this trace and what it found; false: it searched another.
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
