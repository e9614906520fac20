// What shardscope-record does: run a command with the library injected, and write what it records to a trace.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace shardscope::profiler {

struct RecordOptions {
    std::vector<std::string> command;
    std::string output;  // empty: a name made from the command, announced on standard error
    bool overwrite = false;
    bool nvtx = true;
    double delay_s = 0;                // recording begins that long after the start
    std::optional<double> duration_s;  // and lasts that long at most
};

// The status to exit with: the command's, or 125, 126, 127. Errors are told on standard error.
int record(const RecordOptions& options);

}  // namespace shardscope::profiler
