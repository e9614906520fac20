// Several runs side by side. Definition: docs/definitions.md, "Compare". All numbers are the mean over the
// run's ranks unless said; the peak is the largest of them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "traces/analysis/collectives.h"
#include "traces/analysis/memory.h"
#include "traces/analysis/summary.h"

namespace shardscope::traces {

struct Trace;

struct RunColumn {
    std::string file;
    std::vector<std::pair<std::string, std::string>> config;  // only the keys that differ between the runs
    int ranks = 0;
    double average_step_us = 0, median_step_us = 0,
           spread_step_us = 0;  // spread: half the interquartile range
    std::array<double, kTimeCategories> categories_us{};
    std::int64_t peak_bytes = 0;  // of the rank with the largest
    CategoryBytes at_peak{};
    double communication_us = 0;              // per step: union of communication
    double exposed_communication_us = 0;      // per step: outside compute
    double memcpy_us = 0;                     // per step: union of memcpy
    double device_busy_percent = 0;           // union of all device events / window
    std::vector<OperationStats> collectives;  // rank-averaged, by operation
};

struct Comparison {
    std::vector<RunColumn> runs;
};

Comparison compare(const std::vector<const Trace*>& traces);

// True where |a - b| lies inside the larger spread of the two runs: no difference can be claimed.
bool inside_spread(const RunColumn& a, const RunColumn& b);

}  // namespace shardscope::traces
