// Whether the devices of a ring have an order that avoids its slowest links.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "traces/analysis/topology/host_topology.h"

namespace shardscope::traces::analysis {

inline constexpr std::size_t kMostOfRing = 16;  // the search takes 2^n · n steps

// The largest link_distance() from each node to the next one; `closed`: also from the last to the first.
int farthest(const HostTopology& host, const std::vector<std::size_t>& nodes, bool closed);

// An order of the nodes (indices into host.nodes, at most kMostOfRing of them) whose links are all nearer
// than `distance`; none: there is no such order. A closed one begins with the first node.
std::optional<std::vector<std::size_t>> order_nearer_than(const HostTopology& host,
                                                          const std::vector<std::size_t>& nodes, int distance,
                                                          bool closed);

}  // namespace shardscope::traces::analysis
