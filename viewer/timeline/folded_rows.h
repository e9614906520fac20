// The folded lanes of the rows on show, kept until the view changes, with at most a stated number of
// rectangles to draw: where there are more, columns become wider. Frame thread; no Dear ImGui.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "viewer/timeline/fold_lane.h"
#include "viewer/timeline/rows.h"

namespace shardscope::viewer {

// Neighbouring folded columns that look alike: one rectangle.
struct StripRun {
    int first = 0, count = 0;  // columns
    Paint paint = 0;
    int level = 0;  // height in steps of the lane's pixels: 1 where anything is there at all
    bool operator==(const StripRun&) const = default;
};
// `levels`: how many heights the eye can tell apart (the lane's height in pixels).
std::vector<StripRun> strip_runs(const FoldedLane& folded, int levels);

// Stretches of columns without a hole, whatever they look like: the ground behind strips.
std::vector<StripRun> strip_grounds(const FoldedLane& folded);

struct FoldedRow {
    FoldedLane lane;
    std::vector<StripRun> runs, grounds;
    std::size_t rectangles() const { return lane.bars.size() + runs.size() + grounds.size(); }
};

class FoldedRows {
  public:
    static constexpr std::size_t kMostRectangles = 9000;

    // Folds what is missing for `span` of the rows. `levels` as in strip_runs.
    void update(const Tracks& tracks, const RowLayout& layout, RowLayout::Span span, const TimeView& view,
                int levels);
    const FoldedRow* find(int track, int lane) const;  // nullptr where update() did not cover it
    std::size_t rectangles() const;
    void clear() { rows_.clear(); }

  private:
    const Tracks* tracks_ = nullptr;
    TimeView view_;
    int levels_ = 0, columns_ = 0;
    std::map<std::pair<int, int>, FoldedRow> rows_;
};

}  // namespace shardscope::viewer
