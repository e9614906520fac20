// The traces for measuring the viewer: 8 ranks with 4 host threads each, whose ranges nest 4 deep; and the
// devices of 8 ranks alone. Not a test.
#pragma once

#include <cstdint>
#include <string>

namespace shardscope::viewer::bench {

// Writes `events` ranges, or a few more, with the store's writer.
void make_trace(const std::string& path, std::int64_t events);
// Writes `events` kernels and copies on 3 streams per rank, as a device-only profiler records them.
void make_device_trace(const std::string& path, std::int64_t events);

}  // namespace shardscope::viewer::bench
