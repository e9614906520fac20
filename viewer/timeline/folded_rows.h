// The folded lanes and summary strips of the visible rows, kept until the view changes, with a limited number
// of rectangles to draw: rows with more have wider columns. Frame thread; no Dear ImGui.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "viewer/timeline/color_modes.h"
#include "viewer/timeline/fold_lane.h"
#include "viewer/timeline/rows.h"

namespace shardscope::viewer::timeline {

// Neighbouring folded columns that look alike, drawn as one rectangle.
struct FoldedRun {
    int first = 0, count = 0;  // columns
    Paint paint = 0;
    int level = 0;  // height in steps of the lane's pixels: at least 1 if there is anything
    bool operator==(const FoldedRun&) const = default;
};
// `levels`: the number of distinguishable heights (the lane's height in pixels).
std::vector<FoldedRun> strip_runs(const FoldedLane& folded, int levels);

// Stretches of columns without a gap, whatever they look like: the background of strips.
std::vector<FoldedRun> strip_grounds(const FoldedLane& folded);

struct FoldedRow {
    FoldedLane lane;  // for a summary strip only `pixels`
    std::vector<FoldedRun> runs, grounds;
    std::size_t rectangles() const { return lane.bars.size() + runs.size() + grounds.size(); }
};

// What is to be folded, and for which picture.
struct FoldRequest {
    const Tracks& tracks;
    const RowLayout& layout;
    std::vector<const Row*> rows;  // visible lanes, and headings of collapsed groups
    model::TimeView view;
    int levels = 1;                             // as in strip_runs
    std::shared_ptr<const TrackPaints> paints;  // nullptr: by kind
    // The union of a group's events (busy_union()), nullptr while it is being computed.
    std::function<std::shared_ptr<const Lane>(const RowGroup&)> busy_union;
    static constexpr std::size_t kMostRectangles = 6000;
    std::size_t most = kMostRectangles;
};

class FoldedRows {
  public:
    static constexpr std::size_t kMostRectangles = FoldRequest::kMostRectangles;

    // Folds what is missing.
    void update(const FoldRequest& request);

    const FoldedRow* find(int track, int lane) const;           // nullptr: not visible
    const FoldedRow* strip_of(const std::string& group) const;  // by key; nullptr: not visible, or not ready
    std::size_t rectangles() const;
    void clear();

  private:
    using Key = std::pair<int, int>;  // track, lane
    FoldedRow fold_row(const FoldRequest& request, const Row& row, int columns) const;
    void fold_lanes(const FoldRequest& request, std::size_t room);
    void fold_strips(const FoldRequest& request, std::size_t room);

    const Tracks* tracks_ = nullptr;
    model::TimeView view_;
    int levels_ = 0;
    std::shared_ptr<const TrackPaints> paints_;
    std::map<Key, FoldedRow> rows_;
    std::map<std::string, FoldedRow> strips_;
};

}  // namespace shardscope::viewer::timeline
