// Everything that a report says of one run: the results of the analyses, for the command line's report and
// the viewer's alike. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "traces/analysis/base/selection.h"
#include "traces/report/html_report.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces {

// `path` gives the run its name: the file's, or the folder's where several files of a folder are one run.
ReportedRun reported_run(const Trace& trace, const std::string& path, const Selection& selection);

// Several runs against the first of them, each in its own selection; nullopt of fewer than two.
std::optional<ReportedComparison> reported_comparison(const std::vector<const Trace*>& traces,
                                                      const std::vector<Selection>& selections);

}  // namespace shardscope::traces
