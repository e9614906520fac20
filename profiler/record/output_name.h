// The name of the trace: as given, from a pattern, or made up; it contains the rank if a launcher has started
// one shardscope-record per rank.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <sys/types.h>

namespace shardscope::profiler {

// Value of an environment variable; std::nullopt: not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
std::optional<std::string> environment_variable(const std::string& name);

// The place that a launcher (torchrun, mpirun, srun) gives this process, if it started several.
struct LaunchedRank {
    int rank = 0, ranks = 1;
    std::optional<int> local_rank;  // among those of its host, if the launcher says it
};
std::optional<LaunchedRank> launched_rank(const Environment& environment);

struct OutputName {
    std::string path;
    bool made_up = false;   // the user named no file
    std::string all_ranks;  // a shell pattern for the files of all ranks; empty: this is the only file
    std::string merged;     // a good name for the merged file
};

// `wanted`: what the user gave to -o, or empty. In it %p is this process's id, %r its rank (0 without one),
// %h the host's name, %q{NAME} the value of an environment variable and %% a percent sign. Without %r, %p,
// %h or %q, one of several ranks gets ".rankN" before the ending. Throws std::invalid_argument with a
// sentence.
OutputName output_name(const std::string& wanted, const std::string& program, pid_t pid,
                       const Environment& environment);

}  // namespace shardscope::profiler
