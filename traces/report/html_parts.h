// The sections of the HTML report, each made from the result of one analysis. Internal to traces/report.
#pragma once

#include <string>

#include "traces/report/html_report.h"
#include "traces/report/html_writer.h"

namespace shardscope::traces {

std::string html_cards(const ReportedRun& run);
std::string html_advice(const ReportedRun& run, const Redactor& redact);
std::string html_summary(const ReportedRun& run);
std::string html_memory(const ReportedRun& run, const Redactor& redact);
std::string html_collectives(const ReportedRun& run);
std::string html_units(const ReportedRun& run, const Redactor& redact);
std::string html_modules(const ReportedRun& run, const Redactor& redact);
std::string html_configuration(const ReportedRun& run, const Redactor& redact);
std::string html_comparison(const Comparison& comparison, const std::vector<ReportedRun>& runs,
                            const Redactor& redact);
// A table for each kind of part that occurs in any run: the parts that differ most, with each run's figure
// and its difference from the first's.
std::string html_compared_parts(const std::vector<PartsComparison>& comparisons,
                                const std::vector<ReportedRun>& runs, const Redactor& redact);
// A run's mean compared with the first's, each with half the interquartile range of its steps: "-12.3 %",
// coloured (less is better); "~ -1.2 %" and pale if the difference is within the spread.
std::string html_difference(double mean, double spread, double first_mean, double first_spread);

// The memory curve of one rank, folded to the picture's pixels: each column shows the state with the largest
// total in its time, and a line shows the smallest.
std::string memory_curve_svg(const std::vector<MemoryPoint>& curve, const RankMemory& rank, int width,
                             int height);

}  // namespace shardscope::traces
