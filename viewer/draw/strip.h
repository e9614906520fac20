// A small picture of the device rows over a short time: how busy each stream was in each pixel column, and
// with what. Pure arithmetic, no drawing; any thread. Times in nanoseconds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/store/columns/trace.h"

namespace shardscope::viewer::draw {

// Neighbouring pixel columns that look alike: `busy` is the share of the time with an event, 0 < busy <= 1.
struct StripRun {
    int first = 0, count = 0;
    float busy = 0;
    traces::store::DeviceKind kind =
        traces::store::DeviceKind::kernel;  // the kind that takes the most of that time
    bool operator==(const StripRun&) const = default;
};

struct StripRow {
    std::string name;  // the stream's name
    std::vector<StripRun> runs;
};

// The stream's name, or "stream 7" if it has none.
std::string stream_title(const traces::store::DeviceStream& stream);

// One row for each stream of the rank that has an event in [from, to), in the order of the trace's streams.
std::vector<StripRow> fold_streams(const traces::store::Trace& trace, traces::store::RankIndex rank,
                                   std::int64_t from, std::int64_t to, int columns);

}  // namespace shardscope::viewer::draw
