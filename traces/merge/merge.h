// Merges the parts of one job, from processes or hosts, into one file. docs/merging.md describes how ids and
// clocks are mapped.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "traces/merge/clock_fit.h"
#include "traces/merge/work.h"

namespace shardscope::traces::merge {

struct MergeOptions {
    std::vector<std::string> inputs;  // one or more, in the order given; the first is the reference
    std::string output;
    bool overwrite = false;
};

struct MergedPart : ClockShift {
    std::string file;
    std::vector<std::int64_t> ranks;  // in the merged file
    std::int64_t rows = 0;
    std::int64_t shift_ns = 0;  // added to its times
    double drift_ppm = 0;       // the speed of its clock against the reference, which was corrected
};

struct MergeResult : ClockResiduals {
    std::vector<MergedPart> parts;
    std::int64_t rows = 0;
    std::vector<std::string> notes;  // sentences; the merged file has them as diagnostics

    // The largest uncertainty of a part's clock; -1: none was measured.
    std::int64_t uncertainty_ns() const {
        std::int64_t worst = -1;
        for (const MergedPart& part : parts) worst = std::max(worst, part.uncertainty_ns);
        return worst;
    }
    bool was_measured() const { return uncertainty_ns() >= 0; }
};

// Writes the merged file; the inputs are only read. Throws StoreError with one sentence: an input that is
// missing, not a trace, damaged, of a newer schema, given twice or the output itself; parts that contradict
// each other; an output that cannot be written. Then no output is left. Throws Cancelled if it was cancelled.
MergeResult merge_traces(const MergeOptions& options, const WorkOptions& work = {});

}  // namespace shardscope::traces::merge
