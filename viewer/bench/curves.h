// Measures how long a memory curve and a counter of many points take to fold at eight zooms, with their
// indices and by a scan over every point. Not a test.
#pragma once

#include <cstddef>

namespace shardscope::viewer::bench {

void measure_curves(std::size_t points);

}  // namespace shardscope::viewer::bench
