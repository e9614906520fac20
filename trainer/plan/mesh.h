// Ranks as a mesh of named axes, the innermost first: `tensor` consecutive ranks share the arithmetic of
// every layer and read the same samples; `shard` of these groups together hold one copy of the parameters;
// `data` copies follow. FULL_SHARD: one copy; NO_SHARD and DDP: shard is 1; HYBRID_SHARD: in between.
//
// rank = tensor place + tensor * (shard place + shard * replica), as in Megatron's order tp-dp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace shardscope::trainer::plan {

// The ranks that take part in a collective: along one axis, or (data) along both that read different samples.
enum class Group : std::uint8_t { world, shard, replicate, tensor, data };
inline constexpr std::array<std::string_view, 5> kGroupNames = {"world", "shard", "replicate", "tensor",
                                                                "data"};

struct Mesh {
    int ranks = 1;
    int shard = 1;   // ranks of a shard group
    int tensor = 1;  // ranks of a tensor group; tensor * shard divides `ranks`

    int data_size() const { return ranks / tensor; }  // ranks that read different samples
    int replicas() const { return data_size() / shard; }
    int tensor_index(int rank) const { return rank % tensor; }
    int data_rank(int rank) const { return rank / tensor; }
    int shard_index(int rank) const { return data_rank(rank) % shard; }
    int replica(int rank) const { return data_rank(rank) / shard; }
    // The ranks that together hold one copy of the parameters are neighbours; a rank's place among them.
    int copy_size() const { return tensor * shard; }
    int copy_index(int rank) const { return rank % copy_size(); }
    // The group of all ranks that read different samples.
    Group all_data() const { return tensor == 1 ? Group::world : Group::data; }

    int size(Group group) const { return line(group).size; }
    // The rank's place in its group, and the rank at a place of the group.
    int place(Group group, int rank) const {
        const Line own = line(group);
        return rank / own.stride % own.size;
    }
    int member(Group group, int rank, int place_there) const {
        return rank + (place_there - place(group, rank)) * line(group).stride;
    }
    // The number of the rank's communicator, unique in the run; 0 is the world, and every group that contains
    // all ranks.
    int id(Group group, int rank) const {
        if (size(group) == ranks) return 0;
        int first = 1;
        for (const Group earlier : kNumbered) {
            if (earlier == group) break;
            first += count(earlier);
        }
        const Line own = line(group);
        return first + rank / (own.stride * own.size) * own.stride + rank % own.stride;
    }
    // The members of every communicator, by id.
    std::vector<std::vector<int>> communicators() const {
        std::size_t ids = 1;
        for (const Group group : kNumbered) ids += static_cast<std::size_t>(count(group));
        std::vector<std::vector<int>> members(ids);
        for (int rank = 0; rank < ranks; ++rank) {
            members[0].push_back(rank);
            for (const Group group : kNumbered) {
                const int own = id(group, rank);
                if (own > 0 && count(group) > 0) members[static_cast<std::size_t>(own)].push_back(rank);
            }
        }
        return members;
    }

  private:
    // The members of a group are evenly spaced.
    struct Line {
        int stride, size;
    };
    static constexpr std::array kNumbered = {Group::shard, Group::replicate, Group::tensor, Group::data};

    Line line(Group group) const {
        switch (group) {
            case Group::shard:
                return {tensor, shard};
            case Group::replicate:
                return {tensor * shard, replicas()};
            case Group::tensor:
                return {1, tensor};
            case Group::data:
                return {tensor, data_size()};
            case Group::world:
                break;
        }
        return {1, ranks};
    }
    // Communicators of a group. Without tensor parallelism a rank is alone in `tensor`, and `data` is the
    // world.
    int count(Group group) const {
        const bool exists = tensor > 1 || (group != Group::tensor && group != Group::data);
        return exists ? ranks / size(group) : 0;
    }
};

}  // namespace shardscope::trainer::plan
