// The command line of shardscope-record.
#pragma once

#include <optional>

#include "profiler/record/record_command.h"

namespace shardscope::profiler {

// The exit status for failures of shardscope-record itself, not of the command.
inline constexpr int kOwnFailure = 125;

struct CommandLine {
    RecordOptions options;
    std::optional<int> status;  // exit with it immediately: --help, --version or a reported error
};

CommandLine parse_command_line(int argc, char** argv);

}  // namespace shardscope::profiler
