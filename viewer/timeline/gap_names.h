// The idle gaps of streams in words: what the event after a gap waited for. Kept, because the same gaps are
// drawn in every frame. Frame thread only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "traces/analysis/waits/wait_names.h"
#include "viewer/timeline/tracks.h"

namespace shardscope::viewer::timeline {

struct NamedGap {
    std::vector<traces::analysis::Wait> parts;  // in order of time; empty: no gap
    std::vector<std::string> names;             // of each
};

class GapNames {
  public:
    // The gap before a device event on its stream.
    const NamedGap& before(const traces::analysis::TraceWaits& waits, std::int64_t event);

  private:
    const traces::analysis::TraceWaits* from_ = nullptr;
    std::unordered_map<std::int64_t, NamedGap> known_;
};

// The device event after a stream's idle time at `time`; none if it is busy then, or after its last event.
std::optional<std::int64_t> event_after_gap(const Track& track, int lane, std::int64_t time);

}  // namespace shardscope::viewer::timeline
