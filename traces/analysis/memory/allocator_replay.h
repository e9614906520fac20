// Replays a history of requests with given settings of the allocator. Internal to the library. Times in
// nanoseconds, sizes in bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "traces/analysis/base/intervals.h"
#include "traces/analysis/memory/allocator_history.h"

namespace shardscope::traces::analysis {

// Whether a request that failed in the recording fits in a replay.
struct RequestOutcome {
    bool fits = false;
    std::int64_t left = 0;  // of the limit, after the request and what had to be reserved for it; negative:
                            // what is missing
    AllocatorState state;   // before the request
};

struct TimedChange {
    std::int64_t time = 0;
    SegmentChange change;
};

struct AllocatorReplay {
    AllocatorState peak;  // when the most was reserved in the selected time
    std::int64_t peak_time = 0;
    std::int64_t retries = 0;  // requests before which all cached blocks were released
    std::int64_t failed = 0;   // requests that succeeded in the recording and fail here
    // For each failed request of the recording; none where it is unknown how much there was,
    // and beyond the first thousand.
    std::vector<std::optional<RequestOutcome>> failures;
    std::vector<TimedChange> changes;
    std::vector<ReservedSegment> segments;                  // at the end
    std::int64_t allocations = 0, at_recorded_address = 0;  // numbers of them
};

// `limit`: the most that the allocator can have; 0: any amount. `selected`: the time in which the peak is
// searched; null: the whole time.
AllocatorReplay replay_allocator(const AllocatorHistory& history, const AllocatorSettings& settings,
                                 std::int64_t limit, const IntervalSet* selected);

}  // namespace shardscope::traces::analysis
