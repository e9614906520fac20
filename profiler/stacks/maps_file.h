// The mappings of a process as Linux lists them (proc_pid_maps(5)).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/stacks/sample_source.h"

namespace shardscope::profiler {

// Those of code, with that process and time; none if the file cannot be read.
std::vector<CodeMapping> read_maps_file(const std::string& path, std::int32_t pid, MonotonicTime time);

}  // namespace shardscope::profiler
