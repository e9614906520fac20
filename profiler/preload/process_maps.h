// Leaves the process's mappings in the session's directory, so that addresses can be resolved also when the
// process has ended. For a signal handler: no heap, no lock, little stack.
#pragma once

#include <cstdint>

namespace shardscope::profiler::preload {

// Writes DIRECTORY/PID-IMAGE.maps, complete or not at all. One thread at a time.
void write_process_maps(const char* directory, std::int32_t pid, std::uint64_t image);

}  // namespace shardscope::profiler::preload
