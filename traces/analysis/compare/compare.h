// Compares several runs. Definition: docs/definitions.md, "Compare". All numbers are means over the run's
// ranks unless stated otherwise; the peak is the largest of the ranks.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/analysis/base/result_table.h"
#include "traces/analysis/communication/collectives.h"
#include "traces/analysis/memory/memory.h"
#include "traces/analysis/time/summary.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

// The spread of a mean: the median of the per-step values and half their interquartile range. A step's value
// is the mean over the ranks that kept the step.
struct Spread {
    double median = 0, spread = 0;
};

// Unknown values are not a number (NaN): figures of a device if no rank recorded one.
struct RunColumn {
    std::string file;
    std::vector<std::pair<std::string, std::string>> config;  // only the keys that differ between the runs
    int ranks = 0;
    // Of the steps' windows. The median is the headline; it and the spread (half the interquartile range)
    // exclude the trace's first step, which warms up, if three or more steps are kept.
    double average_step_us = 0, median_step_us = 0, spread_step_us = 0;
    bool first_left_out = false;
    std::array<double, kTimeCategories> categories_us{};
    schema::MemorySpace space =
        schema::MemorySpace::device;  // of the memory below: the host's if no device allocated
    std::int64_t peak_bytes = 0;      // of the rank with the largest; 0: the run has no memory events
    CategoryBytes at_peak{};
    double communication_us = 0;  // per step: union of communication; without a device, that of host threads
    double exposed_communication_us = 0;      // per step: outside compute
    double memcpy_us = 0;                     // per step: union of memcpy
    double device_busy_percent = 0;           // union of all device events / window
    std::vector<OperationStats> collectives;  // rank-averaged, by operation; whole run

    bool stepped = true;     // false: the trace has no steps, and "per step" values are of the whole trace
    std::int64_t steps = 0;  // kept, of the rank with the most
    double mean_steps = 0;   // kept, mean over the ranks that kept any: a figure per step
                             // times this is the figure of the whole run
    std::int64_t predicted_peak_bytes = -1;  // by the memory account, for the same rank; -1 none stored
    std::array<Spread, kTimeCategories> categories_spread{};
    Spread communication_spread, exposed_communication_spread, memcpy_spread, device_busy_spread;
    double to_loss_us = std::numeric_limits<double>::quiet_NaN();     // until Comparison::loss was reached
    double diverged_step = std::numeric_limits<double>::quiet_NaN();  // metrics.h
    struct Metric {
        std::string name;
        double value = 0;         // the last
        bool is_of_rank = false;  // of the only rank that reports it
    };
    std::vector<Metric> metrics;  // of the job, by name
};

struct Comparison {
    std::vector<RunColumn> runs;
    std::optional<double> loss;  // the runs' times to this loss are compared, too

    bool any_stepped() const;  // some run has steps
};

Fields<RunColumn> run_fields();

// A figure of one run with its spread over the steps. The mean is NaN if it is unknown.
struct ComparedValue {
    double mean = 0, spread = 0;

    // The difference of the means in percent of the first; none if that is 0 or one is unknown.
    std::optional<double> change_percent(const ComparedValue& first) const;
    // Whether the steps' spread explains the difference.
    bool inside_spread(const ComparedValue& first) const;
};

// One figure of all runs, as a table shows it.
struct ComparedFigure {
    enum class Group : std::uint8_t { time, memory, collectives };

    std::string title;  // with its unit
    Unit unit = Unit::us;
    Group group = Group::time;
    bool less_is_better = true;
    std::vector<ComparedValue> runs;
};
// Omits memory categories and operations that no run has. If no run has steps, no title has "/step".
std::vector<ComparedFigure> compared_figures(const Comparison& comparison);

// `selection` applies to each run.
Comparison compare(const std::vector<const store::Trace*>& traces, const Selection& selection = {});
// The same with one selection per run.
Comparison compare(const std::vector<const store::Trace*>& traces, const std::vector<Selection>& selections);

// Adds the runs' times from the start of the first step to a training loss of at most `loss`.
void add_times_to_loss(Comparison& comparison, const std::vector<const store::Trace*>& traces, double loss);

// Whether a fact stored with a run can make it another run: not where it was written to, what a simulation
// found, how well its parts were merged, or what was sampled on which hosts.
bool is_setting(std::string_view key);
// The settings that differ or are missing in some run, in the order in which the runs list them.
std::vector<std::string> differing_keys(const std::vector<const store::Trace*>& traces);

// How runs are called: each file's name without its folder; with it if two would have the same name.
std::vector<std::string> run_names(const std::vector<std::string>& files);

// True if the medians' |a - b| is within the larger spread of the two runs, so that no difference can be
// claimed.
bool inside_spread(const RunColumn& a, const RunColumn& b);
// The same for any figure: two means and their spreads over the steps.
bool inside_spread(double a, double a_spread, double b, double b_spread);

// Median and half the interquartile range (quartiles by linear interpolation); zeros for no values.
Spread spread_of(std::vector<double> values);

}  // namespace shardscope::traces::analysis
