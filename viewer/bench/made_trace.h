// The traces that the viewer is measured with: 8 ranks of 4 host threads whose ranges nest 4 deep; 8 ranks'
// devices and nothing else. Not a test.
#pragma once

#include <cstdint>
#include <string>

namespace shardscope::viewer::bench {

// Writes `events` ranges, or a few more, with the store's writer.
void make_trace(const std::string& path, std::int64_t events);
// Writes `events` kernels and copies of 3 streams a rank, as a profiler of devices alone records them.
void make_device_trace(const std::string& path, std::int64_t events);

}  // namespace shardscope::viewer::bench
