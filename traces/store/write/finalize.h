// Makes a finished file from a recorded one: event tables sorted by time, indexes, sums by name, a single
// file without a journal, which can be opened in a read-only folder.
//
// The finished file is built next to the recorded one ("FILE.finalizing") and takes its place in one step, at
// the end. Whatever happens before that (a kill, a full disk, a cancel) leaves the recorded file as it was,
// to be finalized later; programs that read it meanwhile go on reading.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

namespace shardscope::traces::store {

struct FinalizeOptions {
    const std::atomic<bool>* cancel = nullptr;   // set by another thread or a signal handler: stop soon
    std::function<void(double share)> progress;  // called regularly with the share done, 0 to 1
    std::int64_t rows_at_once = 2 << 20;         // sorted in memory; 16 bytes each
};

struct FinalizeResult {
    enum class Outcome {
        finalized,
        already,    // it was finished before; nothing was done
        cancelled,  // the file is as it was
    };
    Outcome outcome = Outcome::finalized;
    bool run_was_killed = false;  // the run's end was not recorded; it is now the end of the last event
    std::int64_t rows = 0;        // copied
};

// Finalizes a file that is no longer written. If its run was killed, the file records that: SHARD_RUN
// "finalized" = "after the run was killed", a DIAGNOSTIC_EVENT, and the length of the capture is the end of
// its last event. Throws StoreError (one sentence) if `path` is missing, not a Shardscope trace, damaged, of
// a newer schema, or still written or read by another program, or if the disk is full.
FinalizeResult finalize_trace(const std::string& path, const FinalizeOptions& options = {});

// The same for the process that wrote the file and has stored the run's end in ANALYSIS_DETAILS: a file that
// others are reading is not refused but indexed and summed in place, unsorted. Internal to the store.
FinalizeResult finalize_ended_run(const std::string& path, const FinalizeOptions& options);

}  // namespace shardscope::traces::store
