// Several runs side by side. Definition: docs/definitions.md, "Compare". All numbers are the mean over the
// run's ranks unless said; the peak is the largest of them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "traces/analysis/communication/collectives.h"
#include "traces/analysis/memory/memory.h"
#include "traces/analysis/time/summary.h"

namespace shardscope::traces {

struct Trace;

// A mean's company: the middle of the per-step values and half their interquartile range. A step's value is
// the mean over the ranks that kept the step.
struct Spread {
    double median = 0, spread = 0;
};

// What a run does not tell is not a number (NaN): figures of a device where no rank recorded one.
struct RunColumn {
    std::string file;
    std::vector<std::pair<std::string, std::string>> config;  // only the keys that differ between the runs
    int ranks = 0;
    // Of the steps' windows. The median is the headline: it and the spread (half the interquartile range)
    // leave out the trace's first step, which warms up, where three or more are kept.
    double average_step_us = 0, median_step_us = 0, spread_step_us = 0;
    bool first_left_out = false;
    std::array<double, kTimeCategories> categories_us{};
    MemorySpace space = MemorySpace::device;  // of the memory below: the host's where no device allocated
    std::int64_t peak_bytes = 0;              // of the rank with the largest; 0: the run tells no memory
    CategoryBytes at_peak{};
    double communication_us = 0;  // per step: union of communication, of host threads without a device
    double exposed_communication_us = 0;      // per step: outside compute
    double memcpy_us = 0;                     // per step: union of memcpy
    double device_busy_percent = 0;           // union of all device events / window
    std::vector<OperationStats> collectives;  // rank-averaged, by operation; whole run

    bool stepped = true;     // false: the trace names no steps, and what is "per step" is of the whole trace
    std::int64_t steps = 0;  // kept, of the rank with the most
    double mean_steps = 0;   // kept, mean over the ranks that kept any: what figures per step
                             // times this is, is the whole run's
    std::int64_t predicted_peak_bytes = -1;  // the memory account's, of the same rank; -1 none stored
    std::array<Spread, kTimeCategories> categories_spread{};
    Spread communication_spread, exposed_communication_spread, memcpy_spread, device_busy_spread;
};

struct Comparison {
    std::vector<RunColumn> runs;
};

// Keys that name the output of a run ("run.trace", "run.overwrite") are no difference between runs.
// `selection` holds for each run.
Comparison compare(const std::vector<const Trace*>& traces, const Selection& selection = {});
// The same with a selection for each run.
Comparison compare(const std::vector<const Trace*>& traces, const std::vector<Selection>& selections);

// Keys of the configuration with another value (or none) in some run, in the order in which the runs name
// them; none that name the output.
std::vector<std::string> differing_keys(const std::vector<const Trace*>& traces);

// True where the medians' |a - b| lies inside the larger spread of the two runs: no difference can be
// claimed.
bool inside_spread(const RunColumn& a, const RunColumn& b);
// The same for any figure: two means and the spreads of their steps.
bool inside_spread(double a, double a_spread, double b, double b_spread);

// Median and half the interquartile range (quartiles by linear interpolation); zeros for no values.
Spread spread_of(std::vector<double> values);

}  // namespace shardscope::traces
