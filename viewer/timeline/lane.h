// A lane is one line of bars: events that do not overlap, sorted by time, with what folding them needs (sums
// of busy time, longest event by block). Pure data and arithmetic, any thread. Times in nanoseconds.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "traces/store/trace.h"
#include "viewer/app/session.h"

namespace shardscope::viewer {

// What a bar looks like: the kinds of device event, then the kinds of range, then runtime calls.
inline constexpr int kFirstRangePaint = traces::kDeviceKinds;
inline constexpr int kRangeKinds = 7;
inline constexpr int kRuntimePaint = kFirstRangePaint + kRangeKinds;
inline constexpr int kPaints = kRuntimePaint + 1;
using Paint = std::uint8_t;
constexpr Paint paint_of(traces::DeviceKind kind) {
    return static_cast<Paint>(kind);
}
constexpr Paint paint_of(traces::RangeKind kind) {
    return static_cast<Paint>(kFirstRangePaint + static_cast<int>(kind));
}

class Lane {
  public:
    // Events come in order of start; one that starts before the last one's end is refused (false).
    bool add(std::int64_t start, std::int64_t end, SelectedEvent event, Paint paint);
    // After the last add(): makes the sums. Before it only size() and the events themselves may be asked for.
    void finish();

    std::size_t size() const { return start_.size(); }
    std::int64_t start(std::size_t i) const { return start_[i]; }
    std::int64_t end(std::size_t i) const { return end_[i]; }
    Paint paint(std::size_t i) const { return paint_[i]; }
    SelectedEvent event(std::size_t i) const { return {kind_[i], index_[i]}; }
    std::int64_t last_end() const { return end_.empty() ? INT64_MIN : end_.back(); }

    // The first event that ends after `time`; size() if none does.
    std::size_t first_ending_after(std::int64_t time) const;
    // The first event from `at` on that starts at or after `time`, by galloping: cheap if it is near.
    std::size_t first_starting_from(std::size_t at, std::int64_t time) const;
    // The first event from `at` on that lasts at least `ns`; size() if none does.
    std::size_t next_lasting(std::size_t at, std::int64_t ns) const;

    // Busy time of events [first, last), whole events.
    std::int64_t busy(std::size_t first, std::size_t last) const { return sum_[last] - sum_[first]; }
    // The kind that takes most of events [first, last).
    Paint dominant(std::size_t first, std::size_t last) const;

  private:
    struct PaintSum {
        Paint paint = 0;
        std::vector<std::int64_t> sum;
    };
    static constexpr std::size_t kBlock = 64, kSuperBlock = kBlock * 64;

    std::vector<std::int64_t> start_, end_;
    std::vector<std::int32_t> index_;
    std::vector<EventKind> kind_;
    std::vector<Paint> paint_;
    std::vector<std::int64_t> sum_;   // of the events before i
    std::vector<PaintSum> by_paint_;  // only where a lane has several paints
    std::vector<std::int64_t> longest_, longest_super_;
};

}  // namespace shardscope::viewer
