// Everything that a report says of one run: the results of the analyses, for the command line's report and
// the viewer's alike. Pure.
#pragma once

#include <string>

#include "traces/analysis/selection.h"
#include "traces/report/html_report.h"
#include "traces/store/trace.h"

namespace shardscope::traces {

// `path` gives the run its name: the file's, or the folder's where several files of a folder are one run.
ReportedRun reported_run(const Trace& trace, const std::string& path, const Selection& selection);

}  // namespace shardscope::traces
