// Ranks as a mesh of named axes, the innermost first: `tensor` consecutive ranks share the arithmetic of
// every layer and read the same samples; `shard` of these groups together hold one copy of the parameters;
// `data` copies follow (FULL_SHARD: one copy; NO_SHARD and DDP: shard is 1; HYBRID_SHARD: in between). All
// these are repeated for each place of the outermost axis, `pipeline`, which has other layers of the model.
//
// rank = tensor place + tensor * (shard place + shard * (replica + replicas * pipeline place)), as in
// Megatron's order tp-dp-pp.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace shardscope::trainer::plan {

// The ranks that take part in a collective: along one axis, or (data) along both that read different samples.
// expert: `expert` neighbours of those, which divide the experts; expert_data: those with the same experts;
// expert_shard: those of a shard group with the same experts.
enum class Group : std::uint8_t {
    world,
    shard,
    replicate,
    tensor,
    data,
    pipeline,
    expert,
    expert_shard,
    expert_data
};
inline constexpr std::array<std::string_view, 9> kGroupNames = {
    "world", "shard", "replicate", "tensor", "data", "pipeline", "expert", "expert_shard", "expert_data"};

// The number of a communicator, unique in the run.
enum class CommunicatorId : int { none = -1, world = 0 };
constexpr int format_as(CommunicatorId id) {
    return static_cast<int>(id);
}

struct Mesh {
    int ranks = 1;
    int shard = 1;     // ranks of a shard group
    int tensor = 1;    // ranks of a tensor group
    int pipeline = 1;  // ranks of a pipeline group; tensor * shard * pipeline divides `ranks`
    int expert = 1;    // ranks of an expert group; divides `shard` or, without shards, the data group

    int data_size() const { return ranks / (tensor * pipeline); }  // ranks that read different samples
    int replicas() const { return data_size() / shard; }
    int tensor_index(int rank) const { return rank % tensor; }
    int data_rank(int rank) const { return rank / tensor % data_size(); }
    int pipeline_index(int rank) const { return place(Group::pipeline, rank); }
    int shard_index(int rank) const { return data_rank(rank) % shard; }
    int replica(int rank) const { return data_rank(rank) / shard; }
    // The ranks that together hold one copy of the parameters (of the layers of a pipeline place) are
    // neighbours; a rank's place among them.
    int copy_size() const { return tensor * std::max(shard, expert); }
    int copy_index(int rank) const { return rank % copy_size(); }
    // The group of all ranks that read different samples.
    Group all_data() const { return tensor * pipeline == 1 ? Group::world : Group::data; }

    int size(Group group) const {
        if (group == Group::expert) return expert;
        if (divides_experts(group)) return std::max(1, size(around(group)) / expert);
        return line(group).size;
    }
    // The rank's place in its group, and the rank at a place of the group.
    int place(Group group, int rank) const {
        if (divides_experts(group)) {
            const int outer = place(around(group), rank);
            return group == Group::expert ? outer % expert : outer / expert;
        }
        const Line own = line(group);
        return rank / own.stride % own.size;
    }
    int member(Group group, int rank, int place_there) const {
        if (divides_experts(group)) {
            const int outer = place(around(group), rank);
            return member(around(group), rank,
                          group == Group::expert ? outer / expert * expert + place_there
                                                 : place_there * expert + outer % expert);
        }
        return rank + (place_there - place(group, rank)) * line(group).stride;
    }
    // Whether the group's collectives are those of the world: it contains all ranks. An expert group has
    // collectives of every layer, which do not queue behind those of the parameters.
    bool is_world(Group group) const { return group != Group::expert && size(group) == ranks; }
    // The rank's communicator; none if the mesh does not have the group.
    CommunicatorId id(Group group, int rank) const {
        if (is_world(group)) return CommunicatorId::world;
        if (count(group) == 0) return CommunicatorId::none;
        return CommunicatorId{first_of(group) + number(group, rank)};
    }
    // The group among those of experts that has the communicator; world: none has.
    Group expert_group_of(CommunicatorId id) const {
        for (const Group group : {Group::expert, Group::expert_shard, Group::expert_data}) {
            const int first = first_of(group), own = format_as(id);
            if (own >= first && own < first + count(group)) return group;
        }
        return Group::world;
    }
    // The rank `steps` (-1 or 1) places on in the rank's pipeline group, cyclically.
    int neighbour(int rank, int steps) const {
        return member(Group::pipeline, rank, (pipeline_index(rank) + steps + pipeline) % pipeline);
    }
    // The communicator of the messages from a rank to another, which is its neighbour in its
    // pipeline group; the last place and the first are neighbours, too. Each direction has a communicator of
    // its own, in which the sender has place 0 and the receiver place 1.
    CommunicatorId channel(int from, int to) const {
        const int next = neighbour(from, 1);
        if (from == to || (to != next && to != neighbour(from, -1)))
            throw std::logic_error("a message goes to a rank that is not a neighbour in its pipeline group");
        return CommunicatorId{first_of(Group::world) + channels() * from + (to == next ? 0 : 1)};
    }
    // The ranks {from, to} of a channel; empty: it is another communicator.
    std::vector<int> ends(CommunicatorId channel) const {
        const int number = format_as(channel) - first_of(Group::world);
        if (number < 0 || number >= channel_count()) return {};
        const int from = number / channels();
        return {from, neighbour(from, number % channels() == 0 ? 1 : -1)};
    }
    int channel_count() const { return channels() * ranks; }
    // The members of every communicator by place, by id; those of channels come last.
    std::vector<std::vector<int>> communicators() const {
        std::vector<std::vector<int>> members(
            static_cast<std::size_t>(first_of(Group::world) + channel_count()));
        for (int rank = 0; rank < ranks; ++rank) {
            members[0].push_back(rank);
            for (const Group group : kNumbered) {
                const CommunicatorId own = id(group, rank);
                if (own > CommunicatorId::world) members[static_cast<std::size_t>(own)].push_back(rank);
            }
        }
        for (std::size_t id = 0; id < members.size(); ++id) {
            if (members[id].empty()) members[id] = ends(CommunicatorId(id));
        }
        return members;
    }

  private:
    // The members of a group are evenly spaced.
    struct Line {
        int stride, size;
    };
    static constexpr std::array kNumbered = {Group::shard,        Group::replicate,  Group::tensor,
                                             Group::data,         Group::pipeline,   Group::expert,
                                             Group::expert_shard, Group::expert_data};

    static bool divides_experts(Group group) {
        return group == Group::expert || group == Group::expert_shard || group == Group::expert_data;
    }
    // The group that a group of experts' is a part of.
    static Group around(Group group) { return group == Group::expert_shard ? Group::shard : Group::data; }
    // The rank's group among those of its kind.
    int number(Group group, int rank) const {
        if (divides_experts(group)) {
            const int outer = place(around(group), rank), size_there = size(around(group));
            const int of_outer = number(around(group), rank);
            return group == Group::expert ? of_outer * (size_there / expert) + outer / expert
                                          : of_outer * std::min(expert, size_there) + outer % expert;
        }
        const Line own = line(group);
        return rank / (own.stride * own.size) * own.stride + rank % own.stride;
    }

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
            case Group::pipeline:
                return {ranks / pipeline, pipeline};
            default:
                break;
        }
        return {1, ranks};
    }
    // Communicators of a group. Of an axis that is not used there are none; `data` is the world without
    // tensor and pipeline parallelism.
    int count(Group group) const {
        const bool exists = group == Group::tensor         ? tensor > 1
                            : group == Group::pipeline     ? pipeline > 1
                            : group == Group::data         ? all_data() == Group::data
                            : group == Group::expert_shard ? expert > 1 && shard > 1
                            : divides_experts(group)       ? expert > 1
                                                           : true;
        return exists ? ranks / size(group) : 0;
    }
    // The number of a group's first communicator; Group::world: the number behind the last group's.
    int first_of(Group group) const {
        int first = 1;
        for (const Group earlier : kNumbered) {
            if (earlier == group) break;
            first += count(earlier);
        }
        return first;
    }
    // Channels from each rank: to the next and the previous place, which are one in a pipeline of two.
    int channels() const { return std::min(2, pipeline - 1); }
};

}  // namespace shardscope::trainer::plan
