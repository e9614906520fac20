// How the steps and the kernels of several runs spread: their durations, overlaid histograms, and a table of
// them. Pure arithmetic over analysis results and columns, no drawing; any thread. Times in microseconds
// unless stated otherwise.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "traces/analysis/base/selection.h"
#include "traces/analysis/time/steps.h"
#include "viewer/model/session.h"
#include "viewer/panels/compare/compare_tables.h"
#include "viewer/tables/table_model.h"

namespace shardscope::viewer::panels {

struct Durations {
    std::vector<double> us;  // steps by number, kernels by start
    // Where the longest one is.
    model::TimeRange longest;
    traces::store::RankIndex longest_rank;
    model::SelectedEvent longest_event;
};

// The windows of the selected kept steps, each averaged over the ranks that kept it (the basis of the spread
// in "Compare"), by number.
Durations step_durations(const traces::store::Trace& trace, const traces::analysis::StepsReport& steps);

// All selected device events of that name (compute and communication kernels) in a kept step.
Durations kernel_durations(const traces::store::Trace& trace, const traces::analysis::Selection& selection,
                           const std::string& name);

// The same bins for all runs: bin i covers [low + i*width, low + (i+1)*width), the last one also `high`. A
// run's bins hold percentages of its values, so that runs of different lengths compare.
struct Histogram {
    double low = 0, high = 1;
    std::vector<std::vector<double>> percent;  // by run, then bin
    double largest = 0;                        // percent
    std::vector<double> medians;               // by run; kNoNumber: it has no value
};
Histogram make_histogram(const std::vector<Durations>& runs, int bins);

// Durations in order, in at most `columns` columns of equal count: the shortest and the longest of each.
struct DurationColumn {
    std::size_t first = 0;  // its first value's index
    double shortest = 0, longest = 0;
};
std::vector<DurationColumn> fold_durations(const Durations& run, std::size_t columns);

// A row for each run: how many, mean, median, spread (half the interquartile range), shortest, longest, and
// the change of mean and median against the first run.
std::shared_ptr<const tables::TableModel> durations_table(const std::vector<RunHead>& heads,
                                                          const std::vector<Durations>& runs,
                                                          const char* what);

}  // namespace shardscope::viewer::panels
