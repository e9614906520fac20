// The processes that a process has started, with those that they have started.
#pragma once

#include <vector>

#include <sys/types.h>

#include "profiler/sampler/system_files.h"

namespace shardscope::profiler {

// `root` and its living descendants, by /proc/PID/task/TID/children: one whose parent has ended is not found.
// At most a few thousand.
std::vector<pid_t> process_tree(const SystemFiles& files, pid_t root);

}  // namespace shardscope::profiler
