// The sections of the HTML report, each from the result of one analysis. Inside the room only.
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

// The memory curve of one rank, folded to the picture's pixels: each column stands at the state with the
// largest total in its time, and a line shows the smallest.
std::string memory_curve_svg(const std::vector<MemoryPoint>& curve, const RankMemory& rank, int width,
                             int height);

}  // namespace shardscope::traces
