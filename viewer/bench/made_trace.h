// The trace that the viewer is measured with: 8 ranks of 4 host threads whose ranges nest 4 deep. Not a test.
#pragma once

#include <cstdint>
#include <string>

namespace shardscope::viewer::bench {

// Writes `events` ranges, or a few more, with the store's writer.
void make_trace(const std::string& path, std::int64_t events);

}  // namespace shardscope::viewer::bench
