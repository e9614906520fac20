// Ranks as a mesh of named axes: `tensor` ranks share the arithmetic of every layer and read the same
// samples; `context` ranks have other tokens of the same samples; `shard` ranks read different samples and
// together hold one copy of the parameters, `replica` copies follow (FULL_SHARD: one copy; NO_SHARD and DDP:
// shard is 1; HYBRID_SHARD: in between); `pipeline` places have other layers of the model.
//
// A rank is the sum of its places, each times the sizes of the axes inside its own. The order of the axes is
// free; Megatron's is the default, tp-cp-dp-pp from the inside: rank = tensor place + tensor * (context place
// + context * (shard place + ...)). Gradients are sums over data and context; a copy of the parameters is
// divided among the shard and the context axis.
//
// The ranks of a parameter server come last. They are in no group but the world; `shard` says which part of
// the parameters each holds.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace shardscope::trainer::plan {

// The axes of a mesh; `shard` and `replica` are the two parts of Megatron's dp.
enum class Axis : std::uint8_t { tensor, context, shard, replica, pipeline };
using AxisOrder = std::array<Axis, 5>;  // innermost first
inline constexpr AxisOrder kMegatronOrder = {Axis::tensor, Axis::context, Axis::shard, Axis::replica,
                                             Axis::pipeline};

// The ranks that take part in a collective: along one axis or several. shard: those among which a copy of the
// parameters is divided; data: those that have gradients of the same parameters. expert: `expert` neighbours
// of those, which divide the experts; expert_data: those with the same experts; expert_shard: those of a
// shard group with the same experts.
enum class Group : std::uint8_t {
    world,
    shard,
    replicate,
    tensor,
    data,
    pipeline,
    expert,
    expert_shard,
    expert_data,
    context
};
inline constexpr std::array<std::string_view, 10> kGroupNames = {
    "world",    "shard",  "replicate",    "tensor",      "data",
    "pipeline", "expert", "expert_shard", "expert_data", "context"};

// The number of a communicator, unique in the run.
enum class CommunicatorId : int { none = -1, world = 0 };
constexpr int format_as(CommunicatorId id) {
    return static_cast<int>(id);
}

struct Mesh {
    int ranks = 1;
    int shard = 1;     // parts that a copy of the parameters is divided into; if not 1, a multiple of context
    int tensor = 1;    // ranks of a tensor group
    int pipeline = 1;  // ranks of a pipeline group
    int expert = 1;    // ranks of an expert group; divides `shard` or, without shards, the data group
    int context = 1;   // ranks of a context group; tensor * context * pipeline divides `ranks`
    AxisOrder order = kMegatronOrder;
    bool ring = false;  // whether neighbours in a context group send messages
    int servers = 0;    // ranks of a parameter server; the others are one data group
    bool disk = false;  // whether what the hosts update is in files
    int talkers = 0;    // each of the first so many ranks may send a message to each other one (benchmarks)

    int size(Axis axis) const {
        switch (axis) {
            case Axis::tensor:
                return tensor;
            case Axis::context:
                return context;
            case Axis::shard:
                return shard > 1 ? shard / context : 1;
            case Axis::replica:
                return data_size() / size(Axis::shard);
            case Axis::pipeline:
                break;
        }
        return pipeline;
    }
    // The rank's place on an axis.
    int place(Axis axis, int rank) const { return serves(rank) ? 0 : rank / stride(axis) % size(axis); }

    int workers() const { return ranks - servers; }
    bool serves(int rank) const { return rank >= workers(); }
    // Ranks of one role do the same (sharding::Program): those of a place in the pipeline; or the workers,
    // after which each server has a role of its own.
    int role(int rank) const { return serves(rank) ? 1 + rank - workers() : pipeline_index(rank); }
    // Of a role: its first rank, and how many it has.
    int first_of_role(int role) const {
        return servers == 0 ? role * ranks_of_role(role) : role == 0 ? 0 : workers() + role - 1;
    }
    int ranks_of_role(int role) const { return servers == 0 ? ranks / pipeline : role == 0 ? workers() : 1; }

    // The number of different samples that the ranks read at a time, and the rank's place among them.
    int data_size() const { return workers() / (tensor * context * pipeline); }
    int data_rank(int rank) const {
        return place(Axis::shard, rank) + size(Axis::shard) * place(Axis::replica, rank);
    }
    int replicas() const { return size(Group::replicate); }
    int tensor_index(int rank) const { return place(Axis::tensor, rank); }
    int context_index(int rank) const { return place(Axis::context, rank); }
    int pipeline_index(int rank) const { return place(Axis::pipeline, rank); }
    int shard_index(int rank) const { return place(Group::shard, rank); }
    int replica(int rank) const { return place(Group::replicate, rank); }
    // The ranks that together hold one copy of the parameters (of the layers of a pipeline place), a rank's
    // place among them, and the rank at a place of the first copy.
    int copy_size() const { return tensor * std::max(shard, expert); }
    int copy_index(int rank) const { return tensor_index(rank) + tensor * place(holders(), rank); }
    int rank_in_copy(int pipeline_place, int copy_place) const {
        return member(Group::pipeline,
                      member(holders(), copy_place % tensor * stride(Axis::tensor), copy_place / tensor),
                      pipeline_place);
    }
    // The group of all ranks that have gradients of the same parameters.
    Group all_data() const { return tensor * pipeline == 1 && servers == 0 ? Group::world : Group::data; }

    int size(Group group) const {
        if (group == Group::world) return ranks;
        if (group == Group::expert) return expert;
        if (divides_experts(group)) return std::max(1, size(around(group)) / expert);
        int product = 1;
        for_axes(group, [&](Axis, int, int own) { product *= own; });
        return product;
    }
    // The rank's place in its group, and the rank at a place of the group; the axes count in their order.
    int place(Group group, int rank) const {
        if (group == Group::world) return rank;
        if (serves(rank)) return group == Group::shard ? rank - workers() : 0;
        if (divides_experts(group)) {
            const int outer = place(around(group), rank);
            return group == Group::expert ? outer % expert : outer / expert;
        }
        int place = 0, before = 1;
        for_axes(group, [&](Axis, int step, int own) {
            place += rank / step % own * before;
            before *= own;
        });
        return place;
    }
    int member(Group group, int rank, int place_there) const {
        if (group == Group::world) return place_there;
        if (serves(rank)) return rank;
        if (divides_experts(group)) {
            const int outer = place(around(group), rank);
            return member(around(group), rank,
                          group == Group::expert ? outer / expert * expert + place_there
                                                 : place_there * expert + outer % expert);
        }
        for_axes(group, [&](Axis, int step, int own) {
            rank += (place_there % own - rank / step % own) * step;
            place_there /= own;
        });
        return rank;
    }
    // Whether the group's collectives are those of the world: it contains all ranks. Context and expert
    // groups have collectives of every layer, which do not queue behind those of the parameters.
    bool is_world(Group group) const {
        return group != Group::context && group != Group::expert && size(group) == ranks;
    }
    // The rank's communicator; none if the mesh does not have the group.
    CommunicatorId id(Group group, int rank) const {
        if (is_world(group)) return CommunicatorId::world;
        if (serves(rank) || count(group) == 0) return CommunicatorId::none;
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
    // The rank `steps` (-1 or 1) places on in the rank's group, cyclically.
    int neighbour(Group group, int rank, int steps) const {
        return member(group, rank, (place(group, rank) + steps + size(group)) % size(group));
    }
    int neighbour(int rank, int steps) const { return neighbour(Group::pipeline, rank, steps); }
    // The communicator of the messages from a rank to another, which is its neighbour in its
    // pipeline group; the last place and the first are neighbours, too. Each direction has a communicator of
    // its own, in which the sender has place 0 and the receiver place 1. In a ring, those of each rank to the
    // next of its context group come after these.
    CommunicatorId channel(int from, int to) const {
        const int next = neighbour(from, 1), first = first_of(Group::world);
        if (ring && from != to && to == neighbour(Group::context, from, 1))
            return CommunicatorId{first + channels() * ranks + from};
        if (from == to || (to != next && to != neighbour(from, -1)))
            throw std::logic_error("a message goes to a rank that is not a neighbour in its pipeline group");
        return CommunicatorId{first + channels() * from + (to == next ? 0 : 1)};
    }
    // The same between a worker and a server, or from one of the `talkers` to another; these communicators
    // are the last ones.
    CommunicatorId talk(int from, int to) const {
        if (servers > 0 && serves(from) != serves(to)) {
            const int worker = std::min(from, to), server = std::max(from, to) - workers();
            return CommunicatorId{first_of(Group::world) + 2 * (worker * servers + server) +
                                  (to < from ? 1 : 0)};
        }
        if (from == to || std::max(from, to) >= talkers)
            throw std::logic_error("a message goes to a rank that this one does not talk to");
        return CommunicatorId{first_of(Group::world) + neighbour_channels() + from * (talkers - 1) +
                              (to < from ? to : to - 1)};
    }
    // The ranks {from, to} of a channel; empty: it is another communicator.
    std::vector<int> ends(CommunicatorId channel) const {
        const int number = format_as(channel) - first_of(Group::world);
        if (number < 0 || number >= channel_count()) return {};
        if (servers > 0) {
            const int worker = number / 2 / servers, server = workers() + number / 2 % servers;
            return number % 2 == 0 ? std::vector{worker, server} : std::vector{server, worker};
        }
        if (number >= neighbour_channels()) {
            const int from = (number - neighbour_channels()) / (talkers - 1);
            const int to = (number - neighbour_channels()) % (talkers - 1);
            return {from, to < from ? to : to + 1};
        }
        if (number >= channels() * ranks) {
            const int from = number - channels() * ranks;
            return {from, neighbour(Group::context, from, 1)};
        }
        const int from = number / channels();
        return {from, neighbour(from, number % channels() == 0 ? 1 : -1)};
    }
    int channel_count() const {
        return servers > 0 ? 2 * workers() * servers
                           : neighbour_channels() + std::max(0, talkers * (talkers - 1));
    }
    // The members of every communicator by place, by id; those of channels come last.
    std::vector<std::vector<int>> communicators() const {
        std::vector<std::vector<int>> members(
            static_cast<std::size_t>(first_of(Group::world) + channel_count()));
        for (int rank = 0; rank < ranks; ++rank) {
            members[0].push_back(rank);
            for (const Group group : kNumbered) {
                const CommunicatorId own = id(group, rank);
                if (own <= CommunicatorId::world) continue;
                std::vector<int>& places = members[static_cast<std::size_t>(own)];
                places.resize(static_cast<std::size_t>(size(group)));
                places[static_cast<std::size_t>(place(group, rank))] = rank;
            }
        }
        for (std::size_t id = 0; id < members.size(); ++id) {
            if (members[id].empty()) members[id] = ends(CommunicatorId(id));
        }
        return members;
    }

  private:
    static constexpr std::array kNumbered = {Group::shard,        Group::replicate,   Group::tensor,
                                             Group::data,         Group::pipeline,    Group::expert,
                                             Group::expert_shard, Group::expert_data, Group::context};

    static bool divides_experts(Group group) {
        return group == Group::expert || group == Group::expert_shard || group == Group::expert_data;
    }
    // The group that a group of experts' is a part of.
    static Group around(Group group) { return group == Group::expert_shard ? Group::shard : Group::data; }
    // The group whose ranks hold different parts of a copy.
    Group holders() const { return shard > 1 || expert == 1 ? Group::shard : Group::expert; }
    // The rank's group among those of its kind: the rank's place on the other axes.
    int number(Group group, int rank) const {
        if (divides_experts(group)) {
            const int outer = place(around(group), rank), size_there = size(around(group));
            const int of_outer = number(around(group), rank);
            return group == Group::expert ? of_outer * (size_there / expert) + outer / expert
                                          : of_outer * std::min(expert, size_there) + outer % expert;
        }
        int number = 0, before = 1;
        for (const Axis axis : order) {
            if (has(group, axis)) continue;
            number += place(axis, rank) * before;
            before *= size(axis);
        }
        return number;
    }
    int stride(Axis axis) const {
        int product = 1;
        for (const Axis inner : order) {
            if (inner == axis) break;
            product *= size(inner);
        }
        return product;
    }
    // Without shards, ranks of a context group hold the same parameters.
    bool has(Group group, Axis axis) const {
        switch (group) {
            case Group::shard:
                return shard > 1 && (axis == Axis::shard || axis == Axis::context);
            case Group::replicate:
                return axis == Axis::replica || (shard == 1 && axis == Axis::context);
            case Group::tensor:
                return axis == Axis::tensor;
            case Group::data:
                return axis == Axis::shard || axis == Axis::replica || axis == Axis::context;
            case Group::pipeline:
                return axis == Axis::pipeline;
            case Group::context:
                return axis == Axis::context;
            default:
                break;
        }
        return true;
    }
    template <class Visit>  // visit(axis, stride, size) for the axes of a group, innermost first
    void for_axes(Group group, const Visit& visit) const {
        int step = 1;
        for (const Axis axis : order) {
            const int own = size(axis);
            if (has(group, axis)) visit(axis, step, own);
            step *= own;
        }
    }
    // Communicators of a group. Of an axis that is not used there are none; `data` is the world without
    // tensor and pipeline parallelism.
    int count(Group group) const {
        const bool exists = group == Group::tensor         ? tensor > 1
                            : group == Group::pipeline     ? pipeline > 1
                            : group == Group::context      ? context > 1
                            : group == Group::data         ? all_data() == Group::data
                            : group == Group::expert_shard ? expert > 1 && shard > 1
                            : divides_experts(group)       ? expert > 1
                                                           : true;
        return exists ? workers() / size(group) : 0;
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
    int neighbour_channels() const { return (channels() + (ring ? 1 : 0)) * ranks; }
    // Channels from each rank: to the next and the previous place, which are one in a pipeline of two.
    int channels() const { return std::min(2, pipeline - 1); }
};

}  // namespace shardscope::trainer::plan
