// The rows of a marked area: from the mouse to keys, from keys to tracks, from tracks to the columns of the
// trace. Pure; any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "traces/analysis/area/area.h"
#include "viewer/model/session.h"
#include "viewer/timeline/rows.h"
#include "viewer/timeline/tracks.h"

namespace shardscope::viewer::timeline {

// The keys of the tracks of these rows. A heading stands for its group if the group is collapsed, or if no
// other kind of row is among them.
std::vector<std::string> keys_of_rows(const RowLayout& layout, const std::vector<std::string>& track_keys,
                                      std::size_t first, std::size_t last);

// What a marked area means in a trace. `tracks`: by index into Tracks::tracks, whether it is in the area.
struct ResolvedArea {
    traces::analysis::Area area;
    std::vector<bool> tracks;
    std::size_t rows = 0;  // number of tracks
};
ResolvedArea resolve(const model::MarkedArea& marked, const traces::store::Trace& trace, const Tracks& tracks,
                     const std::vector<std::string>& track_keys);

// The last area that was resolved: resolved again when the area or the tracks change.
class KeptArea {
  public:
    // nullptr without an area, or while the tracks are computed.
    const ResolvedArea* update(const std::optional<model::MarkedArea>& marked,
                               const traces::store::Trace& trace,
                               const std::shared_ptr<const Tracks>& tracks);
    const std::vector<std::string>& track_keys() const { return keys_; }
    int serial() const { return serial_; }  // grows with each change

  private:
    std::shared_ptr<const Tracks> tracks_;
    std::vector<std::string> keys_;
    std::optional<model::MarkedArea> marked_;
    ResolvedArea resolved_;
    int serial_ = 0;
};

}  // namespace shardscope::viewer::timeline
