// The command line of shardscope-record.
#pragma once

#include <optional>

#include "profiler/record/record_command.h"

namespace shardscope::profiler {

// The status of shardscope-record where it is its own and not the command's.
inline constexpr int kOwnFailure = 125;

struct CommandLine {
    RecordOptions options;
    std::optional<int> status;  // exit with it at once: --help, --version or an error, which is told
};

CommandLine parse_command_line(int argc, char** argv);

}  // namespace shardscope::profiler
