// Writes one device of a memory snapshot as rows; see memory_snapshot.h. Internal to the library.
#pragma once

#include <cstdint>

#include "traces/import/pytorch_memory/frames.h"
#include "traces/import/pytorch_memory/snapshot_values.h"
#include "traces/store/sink.h"

namespace shardscope::traces::importer {

// Writes rows in the order of their times, which are nanoseconds since `start_us`; returns the last time.
// `cut`: the end of the recording is missing, so that nothing is known of what was before it.
std::int64_t write_snapshot_rows(const SnapshotDevice& device, int rank, std::int64_t start_us, bool cut,
                                 store::EventSink& sink, Frames& frames);

}  // namespace shardscope::traces::importer
