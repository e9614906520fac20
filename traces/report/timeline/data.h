// The data of the HTML timeline, which its script (page.js) reads: a block of JSON (names, groups, rows,
// curves), then columns of numbers (packing.h) with the items of all lanes, row by row, lane by lane:
//
//   gap     from the end of the previous item of the lane, of a lane's first from `base`; nanoseconds
//   length  from the item's start to its end
//   look    below the number of paints: a fold, of which this kind takes most time; else, less that number,
//           the index of the event's fields in `looks`
//   events, busy   of folds only: how many events, and the sum of their lengths
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/area/event_groups.h"
#include "traces/report/timeline/rows.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::report {

struct TimelineData {
    std::string bytes;
    std::int64_t folded = 0, folds = 0;  // events in folds, and these
};

class TimelineEncoder {
  public:
    // `shown` makes a text of the trace fit to be shown. Trace and rows must outlive it.
    TimelineEncoder(const store::Trace& trace, const TimelineRows& rows,
                    std::function<std::string(std::string_view)> shown);

    std::int64_t events() const { return events_; }  // in rows of ranks and threads
    // The number of items when events shorter than that are folded; stops counting above `most`.
    std::size_t items(std::int64_t shorter, std::size_t most) const;
    TimelineData encode(std::int64_t shorter) const;

  private:
    class Encoding;
    const store::Trace& trace_;
    const TimelineRows& rows_;
    std::function<std::string(std::string_view)> shown_;
    analysis::EventGroups modules_, units_;
    std::vector<std::int64_t> events_of_name_;  // in rows of ranks and threads
    std::vector<std::size_t> frequent_;         // names that most events have, also if all are folded
    std::int64_t events_ = 0;
    std::int64_t base_ = 0;  // the first start
};

}  // namespace shardscope::traces::report
