// A counter over the columns of a view, without losing its extremes; and what was folded for the rows on
// show, kept until the view changes. Pure arithmetic; times in nanoseconds.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "viewer/model/time_view.h"
#include "viewer/timeline/rows.h"
#include "viewer/timeline/tracks.h"

namespace shardscope::viewer {

// Neighbouring columns with the same lowest and highest value in force.
struct CounterRun {
    int first = 0, count = 0;
    double lowest = 0, highest = 0;
    bool operator==(const CounterRun&) const = default;
};

// A value holds from its time on; before the first there is none and no column.
std::vector<CounterRun> fold_counter(const CounterTrack& counter, const TimeView& view, int columns);
// The same of points sorted by time, by looking at each of them: what the one above is tested against.
std::vector<CounterRun> fold_counter(const std::vector<std::pair<std::int64_t, double>>& points,
                                     const TimeView& view, int columns);

// Frame thread.
class CounterRows {
  public:
    // Folds what is missing for the rows on show and forgets the others.
    void update(const Tracks& tracks, const std::vector<const Row*>& rows, const TimeView& view);
    const std::vector<CounterRun>* find(int counter) const;  // index into Tracks::counters
    int columns() const { return columns_; }                 // that share the view's width

  private:
    const Tracks* tracks_ = nullptr;
    TimeView view_;
    int columns_ = 1;
    std::map<int, std::vector<CounterRun>> rows_;
};

}  // namespace shardscope::viewer
