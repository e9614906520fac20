#include "trainer/sim/node_memory.h"

#include <algorithm>
#include <set>

namespace shardscope::trainer::sim {

NodeMemory::NodeMemory(const RankClasses& ranks, const Cluster& cluster)
    : host_{cluster.host.memory, std::vector<std::int64_t>(ranks.classes.size())},
      disk_{cluster.disk.capacity, std::vector<std::int64_t>(ranks.classes.size())} {
    std::vector<Node> nodes(static_cast<std::size_t>(ranks.nodes));
    for (std::size_t r = 0; r < ranks.class_of.size(); ++r)
        ++nodes[static_cast<std::size_t>(cluster.node_of(static_cast<int>(r)))][ranks.class_of[r]];
    const std::set<Node> different(nodes.begin(), nodes.end());
    nodes_.assign(different.begin(), different.end());
}

bool NodeMemory::take(int rank_class, plan::MemorySpace space, std::int64_t bytes) {
    used(rank_class, space) += bytes;
    const Place& place = of(space);
    const bool fits = place.room <= 0 || std::all_of(nodes_.begin(), nodes_.end(), [&](const Node& node) {
                          if (!node.contains(rank_class)) return true;
                          double sum = 0;
                          for (const auto& [own, ranks] : node)
                              sum += static_cast<double>(place.used[static_cast<std::size_t>(own)]) * ranks;
                          return sum <= place.room;
                      });
    if (!fits) give_back(rank_class, space, bytes);
    return fits;
}

void NodeMemory::give_back(int rank_class, plan::MemorySpace space, std::int64_t bytes) {
    used(rank_class, space) -= bytes;
}

}  // namespace shardscope::trainer::sim
