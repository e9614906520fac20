// report: one HTML file of one run, or of several side by side.
#pragma once

#include <string>

#include "traces/cli/arguments.h"

namespace shardscope::traces {

struct ReportArguments {
    Inputs inputs;       // each file (or folder) is a run
    std::string output;  // OUT.html
    std::string title;   // empty: made from the names of the files
    bool redact = false, overwrite = false;
};

int run_report(const ReportArguments& arguments);

}  // namespace shardscope::traces
