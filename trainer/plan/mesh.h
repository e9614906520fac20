// Ranks as a mesh of two dimensions: `shard` consecutive ranks together hold one copy of the parameters;
// ranks with the same place in their shard groups hold the same shard and form a replication group.
// FULL_SHARD: one shard group of all ranks; NO_SHARD and DDP: shard groups of one rank; HYBRID_SHARD: in
// between.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace shardscope::trainer::plan {

// The ranks that take part in a collective.
enum class Group : std::uint8_t { world, shard, replicate };
inline constexpr std::array<std::string_view, 3> kGroupNames = {"world", "shard", "replicate"};

struct Mesh {
    int ranks = 1;
    int shard = 1;  // ranks of a shard group; divides `ranks`

    int replicas() const { return ranks / shard; }
    int shard_index(int rank) const { return rank % shard; }
    int replica(int rank) const { return rank / shard; }

    int size(Group group) const {
        return group == Group::world ? ranks : group == Group::shard ? shard : replicas();
    }
    // The rank's place in its group, and the rank at a place of the group.
    int place(Group group, int rank) const {
        return group == Group::world ? rank : group == Group::shard ? shard_index(rank) : replica(rank);
    }
    int member(Group group, int rank, int place) const {
        if (group == Group::world) return place;
        if (group == Group::shard) return replica(rank) * shard + place;
        return place * shard + shard_index(rank);
    }
    // The number of the rank's communicator, unique in the run; 0 is the world, and every group that contains
    // all ranks.
    int id(Group group, int rank) const {
        if (group == Group::world || size(group) == ranks) return 0;
        return group == Group::shard ? 1 + replica(rank) : 1 + replicas() + shard_index(rank);
    }
};

}  // namespace shardscope::trainer::plan
