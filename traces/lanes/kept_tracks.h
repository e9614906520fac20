// The tracks of a trace in the file of its columns (traces/store/beside/column_file.h), to be used in place.
// Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "traces/lanes/tracks.h"
#include "traces/store/beside/column_file.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::lanes {

// Writes the file beside a trace whose columns can be kept (can_be_kept()), with its columns and tracks;
// those of a query's result are left out. Returns its bytes. Throws StoreError: the disk is too full, it was
// cancelled.
std::int64_t keep_beside(const store::Trace& trace, const std::vector<Track>& tracks,
                         const std::atomic<bool>* cancel = nullptr);

// Takes what keep_beside() wrote from the file from which the trace was opened. False if there is none, or if
// it is damaged: then `into` is empty.
bool take_tracks(const store::Trace& trace, std::vector<Track>& into);

}  // namespace shardscope::traces::lanes
