// A flame graph as one SVG: each frame a box as wide as its share of the samples, callers below callees.
#pragma once

#include <string>

namespace shardscope::traces::analysis {
struct SamplesReport;
}

namespace shardscope::traces::report {

// `title`: above the picture. Frames narrower than a quarter of a pixel are left out; a line below the title
// says how many. The report must have samples.
std::string flame_graph_svg(const analysis::SamplesReport& report, const std::string& title);

}  // namespace shardscope::traces::report
