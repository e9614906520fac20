// A counter folded to the columns of a view, without losing its extremes; and the folds of the visible rows,
// kept until the view changes. Pure arithmetic; times in nanoseconds.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "viewer/model/time_view.h"
#include "viewer/timeline/rows.h"
#include "viewer/timeline/tracks.h"

namespace shardscope::viewer::timeline {

// Neighbouring columns with the same lowest and highest value.
struct CounterRun {
    int first = 0, count = 0;
    double lowest = 0, highest = 0;
    bool operator==(const CounterRun&) const = default;
};

// A value holds from its time on; before the first value there are no columns.
std::vector<CounterRun> fold_counter(const CounterTrack& counter, const model::TimeView& view, int columns);
// The plain version, a scan over all points (sorted by time): tests compare the version above with it.
std::vector<CounterRun> fold_counter(const std::vector<std::pair<std::int64_t, double>>& points,
                                     const model::TimeView& view, int columns);

// Used on the frame thread.
class CounterRows {
  public:
    // Folds visible rows that are missing and drops the others.
    void update(const Tracks& tracks, const std::vector<const Row*>& rows, const model::TimeView& view);
    const std::vector<CounterRun>* find(int counter) const;  // index into Tracks::counters
    int columns() const { return columns_; }                 // columns in the view's width

  private:
    const Tracks* tracks_ = nullptr;
    model::TimeView view_;
    int columns_ = 1;
    std::map<int, std::vector<CounterRun>> rows_;
};

}  // namespace shardscope::viewer::timeline
