// Opens a trace database read-only and loads it into columns. Tables that are absent mean "no data".
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "traces/store/columns/trace.h"
#include "traces/store/error.h"

namespace shardscope::traces::store {

// Set by a caller on another thread to follow and stop a load.
struct LoadProgress {
    std::atomic<double> fraction = 0;  // 0..1
    std::atomic<bool> cancel = false;
};

// Throws StoreError (missing, not a trace, truncated, of a newer schema, cancelled); the text names the file
// and what to do.
std::unique_ptr<Trace> load_trace(const std::string& path, LoadProgress* progress = nullptr);

}  // namespace shardscope::traces::store
