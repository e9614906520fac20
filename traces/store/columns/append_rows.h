// Puts the rows that one sink has collected behind those of another. Internal to the store.
#pragma once

#include <cstddef>

#include "traces/store/columns/pending_rows.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::store {

// The strings of a sink, and how many of them both sinks have had from the beginning, with the same numbers.
struct PartStrings {
    const StringTable& all;
    std::size_t common = 0;
};

// What `into_strings` lacks of the strings is added. Only columns of events: device, calls, ranges, marks and
// memory. False: the sums of both would go beyond what a trace may have.
bool append_rows(PendingRows&& from, const PartStrings& strings, PendingRows& into,
                 StringTable& into_strings);

}  // namespace shardscope::traces::store
