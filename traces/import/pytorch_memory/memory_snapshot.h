// PyTorch's memory snapshots (torch.cuda.memory._dump_snapshot, _snapshot) as rows.
//
// Each device becomes a rank. `alloc` allocates, `free_completed` frees (until then the allocator keeps the
// block for a stream that may still use it), so that the totals are of *active* bytes; SHARD_RUN says so
// under kMemoryCountedKey. What was live before the recording is found by replaying the events backwards from
// the blocks that are live at the end; it is allocated at time 0 under kBeforeRecording. Times are those of
// the snapshot (us), from its first event on; in versions without times (PyTorch 2.0) each event takes 1 us.
//
// Source: PyTorch's documentation "Understanding CUDA Memory Usage" and torch.cuda.memory._snapshot's.
#pragma once

#include <string>
#include <string_view>

#include "traces/import/input/importer.h"
#include "traces/import/json/value_tree.h"

namespace shardscope::traces::importer {

bool is_memory_snapshot(const Value& root);

// `root` is a snapshot. `cut`: the file ended early, so that its last events may be missing and nothing can
// be inferred from the blocks at its end. Throws StoreError if there is nothing to read.
FileFacts read_memory_snapshot(const Value& root, bool cut, const std::string& path, store::EventSink& sink,
                               const FileRequest& request);

}  // namespace shardscope::traces::importer
