// Ranks as a mesh of two dimensions: `shard` consecutive ranks hold one copy of the parameters between them;
// groups of ranks with the same place hold the same shard. FULL_SHARD: one shard group of all ranks;
// NO_SHARD and DDP: shard groups of one; HYBRID_SHARD: in between.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace shardscope::trainer {

// Whom a collective is among.
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
    // The rank's place in its group, and the rank at a place of it.
    int place(Group group, int rank) const {
        return group == Group::world ? rank : group == Group::shard ? shard_index(rank) : replica(rank);
    }
    int member(Group group, int rank, int place) const {
        if (group == Group::world) return place;
        if (group == Group::shard) return replica(rank) * shard + place;
        return place * shard + shard_index(rank);
    }
    // A number for the rank's communicator, unique in the run: 0 the world; groups that are the world are it.
    int id(Group group, int rank) const {
        if (group == Group::world || size(group) == ranks) return 0;
        return group == Group::shard ? 1 + replica(rank) : 1 + replicas() + shard_index(rank);
    }
};

}  // namespace shardscope::trainer
