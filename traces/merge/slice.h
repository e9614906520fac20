// Copies ranks, steps or a range of time of a large trace into a file of its own. docs/merging.md says what
// is kept. The rows are read once and copied; memory holds 8 bytes for each call that launched work in the
// slice, the allocations that are live at its start, and its names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/merge/slice_windows.h"
#include "traces/merge/work.h"

namespace shardscope::traces::merge {

struct SliceOptions {
    std::string input, output;
    bool overwrite = false;
    SliceChoice choice;
};

struct SliceResult {
    std::vector<std::int64_t> ranks;
    std::vector<std::int64_t> steps;  // empty unless steps were chosen
    std::int64_t rows = 0, rows_of_input = 0;
    std::int64_t first_ns = 0, last_ns = 0;  // of the slice, within the capture
    std::vector<std::string> notes;
};

// Throws as merge_traces() does, and StoreError if the choice matches nothing.
SliceResult slice_trace(const SliceOptions& options, const WorkOptions& work = {});

}  // namespace shardscope::traces::merge
