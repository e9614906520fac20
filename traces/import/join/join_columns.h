// Puts the events of several traces into the columns of one, in a trace's sort order; see join.h. Internal to
// the library.
#pragma once

#include "traces/import/join/join_ids.h"

namespace shardscope::traces::importer {

// Fills threads, streams and all event columns of `out`. n log n in the events. Throws StoreError if there
// are more than a column can index.
void join_columns(const Parts& parts, const JoinIds& ids, store::Trace& out);

}  // namespace shardscope::traces::importer
