// Everything that a report says about one run: the results of the analyses, for both the command line's
// report and the viewer's. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "traces/analysis/base/selection.h"
#include "traces/report/html_report.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces {

// The run is named after `path`: the file, or the folder if several files of a folder are one run.
ReportedRun reported_run(const Trace& trace, const std::string& path, const Selection& selection);

// Several runs compared with the first of them, each in its own selection; nullopt for fewer than two.
std::optional<ReportedComparison> reported_comparison(const std::vector<const Trace*>& traces,
                                                      const std::vector<Selection>& selections);

}  // namespace shardscope::traces
