// The steps of one rank, found without a scan over those of the others: a trace may
// have a thousand ranks of a thousand steps. No Dear ImGui; any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "traces/store/columns/trace.h"

namespace shardscope::viewer::model {

// Sorted by start.
inline std::span<const traces::store::Step> steps_of(const traces::store::Trace& trace,
                                                     traces::store::RankIndex rank) {
    const auto& all = trace.steps;  // sorted by (rank, start)
    const auto first = std::partition_point(all.begin(), all.end(),
                                            [rank](const traces::store::Step& s) { return s.rank < rank; });
    const auto last = std::partition_point(first, all.end(),
                                           [rank](const traces::store::Step& s) { return s.rank == rank; });
    return {first, last};
}

// The first step that contains the instant; nullptr if none does.
inline const traces::store::Step* step_at(const traces::store::Trace& trace, traces::store::RankIndex rank,
                                          std::int64_t time) {
    const std::span<const traces::store::Step> steps = steps_of(trace, rank);
    const auto found = std::find_if(steps.begin(), steps.end(), [time](const traces::store::Step& s) {
        return s.start <= time && time < s.end;
    });
    return found == steps.end() ? nullptr : &*found;
}

}  // namespace shardscope::viewer::model
