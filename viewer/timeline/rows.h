// The layout of rows on the page: a heading for each group (a rank, a kind of work), below it its memory,
// streams, threads and counters with one line for each lane. Collapsed groups show only their heading; pinned
// rows are on top. Pure arithmetic, any thread. Pixels from the top of the page; pinned rows come first on it
// and stay in place while the rest scrolls below them.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "viewer/model/arrangement.h"
#include "viewer/timeline/tracks.h"

namespace shardscope::viewer::timeline {

struct Row {
    enum class Kind : std::uint8_t { group, memory, lane, counter };
    Kind kind = Kind::group;
    int entry = -1;                 // index into RowLayout::entries; groups: none
    int group = -1;                 // index into RowLayout::groups
    traces::store::RankIndex rank;  // none: no rank, or several
    int track = -1;                 // lanes: index into Tracks::tracks; counters: into Tracks::counters
    int lane = 0;
    float y = 0, height = 0;
    bool first_of_track = false, last_of_track = false;
    bool pinned = false;
};

struct RowGroup {
    std::string key, label, note;  // note: the rank's device
    traces::store::RankIndex rank;
    bool collapsed = false;
    std::vector<int> tracks;  // all, including hidden ones: the contents of the summary strip
};

struct RowEntry {  // what a row, or all lanes of a track, belong to
    std::string key, label;
    int group = -1;
    bool pinned = false;
};

struct RowHeights {
    float rank = 24, memory = 44, lane = 20, counter = 28;
    float gap = 4;  // below the last lane of a track
    bool operator==(const RowHeights&) const = default;
};

struct RowLayout {
    std::vector<Row> rows;  // top to bottom, not overlapping; pinned ones first
    std::vector<RowGroup> groups;
    std::vector<RowEntry> entries;
    float pinned_height = 0;         // total height of the pinned rows
    float height = 0;                // total height
    std::size_t first_scrolled = 0;  // index of the first row that is not pinned
    std::size_t filtered_out = 0;    // number of entries that the filter removes

    // The rows that are visible in any part of [top, bottom) of the page, as a range of indices.
    struct Span {
        std::size_t first = 0, last = 0;
    };
    Span between(float top, float bottom) const;
    const Row* at(float y) const;                   // `y` on the page; nullptr between rows
    const Row* of_lane(int track, int lane) const;  // nullptr if it is not shown

    // For a window `window` pixels high that starts `scroll` pixels below the page's top:
    Span pinned(float window) const;
    Span scrolled(float scroll, float window) const;  // the rows visible below the pinned ones
    float on_screen(const Row& row, float scroll) const { return row.pinned ? row.y : row.y - scroll; }
    const Row* under(float y, float scroll) const { return at(y < pinned_height ? y : y + scroll); }
    // Rows to draw: pinned(), then scrolled().
    std::vector<const Row*> shown(float scroll, float window) const;

    // Keys of the rows of a row's group (of all groups, for a group's key), in their current order.
    std::vector<std::string> siblings(const std::string& key) const;

  private:
    friend RowLayout layout_rows(const traces::store::Trace&, const Tracks&, const model::RowArrangement&,
                                 const RowHeights&);
    std::vector<std::pair<std::pair<int, int>, std::size_t>> lane_rows_;  // (track, lane) -> row, sorted
};

RowLayout layout_rows(const traces::store::Trace& trace, const Tracks& tracks,
                      const model::RowArrangement& arrangement, const RowHeights& heights);

// The key of each track's rows, by index into Tracks::tracks.
std::vector<std::string> track_keys(const traces::store::Trace& trace, const Tracks& tracks);

// Changes an arrangement so that the rows of a track are shown: unfolds their group unless they are pinned,
// unhides them and it, and empties the filter if it removes them.
void show_track(model::RowArrangement& arrangement, const traces::store::Trace& trace, const Tracks& tracks,
                int track);

// Keeps the latest layout and rebuilds it only if something has changed: else a frame costs one comparison.
class KeptLayout {
  public:
    // `tracks` are kept alive until others are passed.
    const RowLayout& update(const traces::store::Trace& trace, const std::shared_ptr<const Tracks>& tracks,
                            const model::RowArrangement& arrangement, const RowHeights& heights);

  private:
    std::shared_ptr<const Tracks> tracks_;
    model::RowArrangement arrangement_;
    RowHeights heights_;
    RowLayout layout_;
};

}  // namespace shardscope::viewer::timeline
