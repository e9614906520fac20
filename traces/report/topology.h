// Topology: the matrices of links and of peer access of each host, as nvidia-smi topo prints them, and the
// bytes that went between ranks; as text, JSON, CSV, and as a picture.
#pragma once

#include <cstddef>
#include <string>

#include "traces/report/report.h"

namespace shardscope::traces::analysis {
struct TopologyReport;
}

namespace shardscope::traces::report {

// Table: the matrices are as wide as they are (read_topology_text() reads them again). CSV: the links.
std::string render(const analysis::TopologyReport& report, Format format, std::size_t width = kTableWidth);

// A whole SVG file: for each host a matrix whose cells are links, coloured by the distance that they stand
// for, with the bytes of the trace and the bus bandwidth where ranks used them. Light and dark.
std::string topology_svg(const analysis::TopologyReport& report);

}  // namespace shardscope::traces::report
