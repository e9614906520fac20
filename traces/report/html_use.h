// Utilization as HTML and as a picture. Everything is in the one file: no script, nothing loaded from
// elsewhere.
#pragma once

#include <string>
#include <vector>

#include "traces/analysis/job/utilization.h"
#include "traces/report/html_parts.h"

namespace shardscope::traces::report {

// Tables of devices, hosts, ranks and adapters, and the notes.
std::string html_use_tables(const analysis::UtilizationReport& report, const Redactor& redact);

// For `redacted` pages: without names of machines.
std::string utilization_page(const analysis::UtilizationReport& report, const std::string& title,
                             bool redacted);
// SVG; empty if no device has samples.
std::string utilization_picture(const analysis::UtilizationReport& report, const std::string& title,
                                bool redacted);

// The page of one job as job portals have it: what ran, when and on what; what its devices did; what it cost.
std::string job_page(const ReportedRun& run, const HtmlOptions& options);

}  // namespace shardscope::traces::report
