// Keeps the columns and tracks of large traces in files beside them, on a thread of its own, so that they
// open at once the next time (traces/lanes/kept_tracks.h). Frame thread only. No Dear ImGui.
#pragma once

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "traces/lanes/tracks.h"
#include "viewer/model/analysis_cache.h"

namespace shardscope::viewer::timeline {

class ColumnsKeeper {
  public:
    // Traces with fewer events are read in less than half a second.
    static constexpr std::size_t kLarge = 1'000'000;

    explicit ColumnsKeeper(std::size_t large = kLarge) : large_(large) {}
    ~ColumnsKeeper() { cancel_ = true; }  // then waits for the end of the writing
    ColumnsKeeper(const ColumnsKeeper&) = delete;
    ColumnsKeeper& operator=(const ColumnsKeeper&) = delete;

    // Called every frame for a trace whose tracks are there: begins to keep it, once. Returns a sentence when
    // a file has been written or could not be, else "".
    std::string keep(const model::TracePtr& trace,
                     const std::shared_ptr<const traces::lanes::Tracks>& tracks);
    bool busy() const { return writing_.valid(); }

  private:
    std::size_t large_;
    std::vector<std::weak_ptr<const traces::store::Trace>> seen_;
    std::atomic<bool> cancel_{false};
    std::future<std::string> writing_;  // its destructor waits
};

}  // namespace shardscope::viewer::timeline
