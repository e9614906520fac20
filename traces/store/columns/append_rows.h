// Puts the rows that one sink has collected behind those of another. Internal to the store.
#pragma once

#include "traces/store/columns/pending_rows.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::store {

// `strings` are those of `from`; what `into_strings` lacks of them is added. Only columns of events: device,
// calls, ranges, marks and memory. False: the sums of both would go beyond what a trace may have.
bool append_rows(PendingRows&& from, const StringTable& strings, PendingRows& into,
                 StringTable& into_strings);

}  // namespace shardscope::traces::store
