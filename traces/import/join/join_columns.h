// The events of several traces in the columns of one, sorted as its own would be; see join.h. Internal to the
// library.
#pragma once

#include "traces/import/join/join_ids.h"

namespace shardscope::traces {

// Fills threads, streams and all event columns of `out`. n log n in the events. Throws StoreError where there
// are more than columns hold.
void join_columns(const Parts& parts, const JoinIds& ids, Trace& out);

}  // namespace shardscope::traces
