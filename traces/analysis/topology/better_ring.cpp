#include "traces/analysis/topology/better_ring.h"

#include <algorithm>
#include <cstdint>

namespace shardscope::traces::analysis {

namespace {

int distance_of(const HostTopology& host, std::size_t a, std::size_t b) {
    const TopologyLink* link = host.link(a, b);
    return link == nullptr ? kUnknownDistance : link_distance(link->link);
}

}  // namespace

int farthest(const HostTopology& host, const std::vector<std::size_t>& nodes, bool closed) {
    int most = 0;
    for (std::size_t i = 0; i + 1 < nodes.size(); ++i)
        most = std::max(most, distance_of(host, nodes[i], nodes[i + 1]));
    return closed && nodes.size() > 1 ? std::max(most, distance_of(host, nodes.back(), nodes.front())) : most;
}

std::optional<std::vector<std::size_t>> order_nearer_than(const HostTopology& host,
                                                          const std::vector<std::size_t>& nodes, int distance,
                                                          bool closed) {
    const std::size_t n = nodes.size();
    if (n < 2 || n > kMostOfRing) return {};
    std::vector<std::uint32_t> near(n);  // of each node: the others within the distance
    for (std::size_t a = 0; a < n; ++a)
        for (std::size_t b = 0; b < n; ++b)
            if (a != b && distance_of(host, nodes[a], nodes[b]) < distance) near[a] |= std::uint32_t{1} << b;
    // ends[set]: the nodes with which a path through exactly the set can end that begins at node 0 or, if the
    // ring is open, at any node.
    const std::uint32_t all = (std::uint32_t{1} << n) - 1;
    std::vector<std::uint32_t> ends(std::size_t{all} + 1, 0);
    for (std::size_t a = 0; a < (closed ? 1 : n); ++a) ends[std::size_t{1} << a] = std::uint32_t{1} << a;
    for (std::uint32_t set = 1; set <= all; ++set) {
        for (std::size_t a = 0; a < n; ++a) {
            const std::uint32_t bit = std::uint32_t{1} << a;
            if ((set & bit) != 0 && (ends[set & ~bit] & near[a]) != 0) ends[set] |= bit;
        }
    }
    std::uint32_t last = closed ? ends[all] & near[0] : ends[all];
    if (last == 0) return {};
    std::vector<std::size_t> order;
    for (std::uint32_t set = all; set != 0;) {
        std::size_t a = 0;
        while ((last >> a & 1) == 0) ++a;
        order.push_back(nodes[a]);
        set &= ~(std::uint32_t{1} << a);
        last = ends[set] & near[a];
    }
    std::reverse(order.begin(), order.end());
    return order;
}

}  // namespace shardscope::traces::analysis
