// The memory and the disks of the nodes, which the ranks of each share.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "trainer/plan/plan.h"
#include "trainer/sim/rank_classes.h"

namespace shardscope::trainer::sim {

class NodeMemory {
  public:
    NodeMemory(const RankClasses& ranks, const Cluster& cluster);

    // Each rank of the class takes so many bytes. False: a node of theirs has no room for that.
    bool take(int rank_class, plan::MemorySpace space, std::int64_t bytes);
    void give_back(int rank_class, plan::MemorySpace space, std::int64_t bytes);
    // Bytes of a node; 0: unknown, without limit.
    double room(plan::MemorySpace space) const { return of(space).room; }

  private:
    using Node = std::map<int, int>;  // ranks by class
    struct Place {
        double room = 0;
        std::vector<std::int64_t> used;  // by class, of each of its ranks
    };
    const Place& of(plan::MemorySpace space) const {
        return space == plan::MemorySpace::disk ? disk_ : host_;
    }
    std::int64_t& used(int rank_class, plan::MemorySpace space) {
        Place& place = space == plan::MemorySpace::disk ? disk_ : host_;
        return place.used[static_cast<std::size_t>(rank_class)];
    }

    std::vector<Node> nodes_;  // one of those that look the same
    Place host_, disk_;
};

}  // namespace shardscope::trainer::sim
