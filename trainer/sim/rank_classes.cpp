#include "trainer/sim/rank_classes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

namespace shardscope::trainer::sim {

namespace {

constexpr std::array kGroups = {plan::Group::world,  plan::Group::shard,        plan::Group::replicate,
                                plan::Group::tensor, plan::Group::data,         plan::Group::pipeline,
                                plan::Group::expert, plan::Group::expert_shard, plan::Group::expert_data,
                                plan::Group::context};

// The remaining share of a link's bandwidth at a node.
double share_left(const std::vector<job::SlowLink>& slow_links, bool between_nodes, int node) {
    double share = 1;
    for (const job::SlowLink& slow : slow_links) {
        if (slow.between_nodes == between_nodes && (slow.node < 0 || slow.node == node)) share *= slow.share;
    }
    return share;
}

struct Communicator {
    std::vector<int> members;
    Spread spread;
};

// All communicators of a group, and the index of each rank's.
struct Communicators {
    std::vector<Communicator> all;
    std::vector<int> of_rank;
};

Communicators communicators_of(const plan::Mesh& mesh, plan::Group group, const Cluster& cluster,
                               const std::vector<job::SlowLink>& slow_links) {
    Communicators found;
    found.of_rank.resize(static_cast<std::size_t>(mesh.ranks), -1);
    for (int rank = 0; rank < mesh.ranks; ++rank) {
        if (found.of_rank[static_cast<std::size_t>(rank)] >= 0) continue;
        Communicator communicator;
        for (int place = 0; place < mesh.size(group); ++place) {
            const int member = mesh.member(group, rank, place);
            communicator.members.push_back(member);
            found.of_rank[static_cast<std::size_t>(member)] = static_cast<int>(found.all.size());
        }
        communicator.spread = spread_of(mesh, group, rank, cluster, slow_links);
        found.all.push_back(std::move(communicator));
    }
    return found;
}

// Gives equal things the same number, in the order of their first appearance.
template <class Key>
class Numbering {
  public:
    int of(const Key& key) {
        return numbers_.try_emplace(key, static_cast<int>(numbers_.size())).first->second;
    }
    int count() const { return static_cast<int>(numbers_.size()); }

  private:
    std::map<Key, int> numbers_;
};

using CommunicatorKey = std::tuple<plan::Group, decltype(Spread().key()), std::vector<int>>;

std::vector<int> classes_of_members(const Communicator& communicator, const std::vector<int>& class_of) {
    std::vector<int> classes;
    for (const int member : communicator.members) {
        const int c = class_of[static_cast<std::size_t>(member)];
        if (classes.empty() || classes.back() != c) classes.push_back(c);
    }
    std::sort(classes.begin(), classes.end());
    classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
    return classes;
}

// The group whose queue a group's collectives use.
plan::Group queue_of(const plan::Mesh& mesh, plan::Group group) {
    return mesh.is_world(group) ? plan::Group::world : group;
}

}  // namespace

namespace {

// The slowest of some links.
struct Slowest {
    double bandwidth = std::numeric_limits<double>::infinity(), latency = -1;

    void add(const PairFigures& bandwidths, const PairFigures& latencies, int from, int to) {
        if (bandwidths.known()) bandwidth = std::min(bandwidth, bandwidths.of(from, to));
        if (latencies.known()) latency = std::max(latency, latencies.of(from, to));
    }
    // As a share of a link's bandwidth; 1: no pair has its own.
    double share_of(const Link& link) const {
        return std::isfinite(bandwidth) ? bandwidth / link.bandwidth : 1;
    }
};

// Takes into account that pairs of the ring through the ranks have links of their own.
void walk_ring(const std::vector<int>& ranks, const Cluster& cluster, Spread& spread) {
    const PairLinks& links = cluster.links;
    if (links == PairLinks() || ranks.size() < 2) return;
    Slowest inside, across;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        const int from = ranks[i], to = ranks[(i + 1) % ranks.size()];
        const int from_node = cluster.node_of(from), to_node = cluster.node_of(to);
        const int from_device = cluster.device_of(from), to_device = cluster.device_of(to);
        if (from_device == to_device) continue;  // no link
        if (from_node == to_node) {
            inside.add(links.bandwidth, links.latency, from_device % cluster.devices,
                       to_device % cluster.devices);
        } else {
            across.add(links.node_bandwidth, links.node_latency, from_node, to_node);
        }
    }
    spread.intra *= inside.share_of(cluster.intra);
    spread.hop = inside.latency;
    if (spread.nodes < 2) return;
    spread.across *= across.share_of(cluster.inter);
    spread.hop_across = across.latency;
}

// The members of a communicator on one node.
struct NodeMembers {
    int count = 0;
    std::map<int, int> on_device;  // by device, if ranks share devices

    bool linked() const { return on_device.size() != 1; }
};

// The share of a link's bandwidth that the ranks of shared devices leave these members, who all communicate
// at the same time. A ring enters and leaves a device once, however many of its members are there; where each
// member fetches its own, it has a rank's part of the link. On one device alone there is no link: every byte
// is read from its memory and written to it.
double part_of_links(const NodeMembers& members, const plan::Mesh& mesh, const Cluster& cluster) {
    if (cluster.ranks_per_device == 1 || mesh.servers > 0) return 1;  // a server's messages do not meet
    int fewest = members.count;
    for (const auto& [device, count] : members.on_device) fewest = std::min(fewest, count);
    const Algorithm inside = cluster.collectives.inside;
    if (inside == Algorithm::direct || inside == Algorithm::shared_memory) fewest = 1;
    const double part = static_cast<double>(fewest) / cluster.ranks_per_device;
    if (members.linked()) return part;
    return part * cluster.device.memory_bandwidth / 2 / cluster.intra.bandwidth;
}

}  // namespace

Spread spread_of(const plan::Mesh& mesh, const std::vector<int>& ranks, const Cluster& cluster,
                 const std::vector<job::SlowLink>& slow_links) {
    std::map<int, NodeMembers> members_on;  // by node
    for (const int rank : ranks) {
        NodeMembers& here = members_on[cluster.node_of(rank)];
        ++here.count;
        if (cluster.ranks_per_device > 1) ++here.on_device[cluster.device_of(rank)];
    }
    Spread spread;
    spread.members = static_cast<int>(ranks.size());
    spread.nodes = static_cast<int>(members_on.size());
    spread.fullest = 0;
    spread.intra = 1;
    double across = -1;
    double intra = std::numeric_limits<double>::infinity();
    for (const auto& [node, members] : members_on) {
        spread.fullest = std::max(spread.fullest, members.count);
        if (members.count > 1) {
            const double left = members.linked() ? share_left(slow_links, false, node) : 1;
            intra = std::min(intra, left * part_of_links(members, mesh, cluster));
        }
        // All ranks of a node share its one link, those of a device its adapter, of which the group's members
        // get this part; a server's messages come one after the other.
        const int ranks_here = std::min(cluster.ranks_of_node(), mesh.ranks - node * cluster.ranks_of_node());
        const double links = mesh.servers > 0       ? 1.0
                             : cluster.inter.shared ? 1.0 / ranks_here
                                                    : 1.0 / cluster.ranks_per_device;
        const double here = members.count * links * share_left(slow_links, true, node);
        across = across < 0 ? here : std::min(across, here);
    }
    if (std::isfinite(intra)) spread.intra = intra;
    spread.across = spread.nodes > 1 ? across : 0;
    walk_ring(ranks, cluster, spread);
    return spread;
}

Spread spread_of(const plan::Mesh& mesh, plan::Group group, int rank, const Cluster& cluster,
                 const std::vector<job::SlowLink>& slow_links) {
    std::vector<int> ranks;
    ranks.reserve(static_cast<std::size_t>(mesh.size(group)));
    for (int place = 0; place < mesh.size(group); ++place) ranks.push_back(mesh.member(group, rank, place));
    return spread_of(mesh, ranks, cluster, slow_links);
}

namespace {

// Ranks of one class have neighbours of one class: those of their pipeline groups are each that of one place,
// and classify() tells those of context groups apart.
void add_channels(const plan::Mesh& mesh, const Cluster& cluster,
                  const std::vector<job::SlowLink>& slow_links, RankClasses& found) {
    found.links = 2 * mesh.servers;
    const std::size_t groups = found.communicators.size();
    Numbering<std::pair<int, int>> ends;  // the classes of sender and receiver
    const auto class_of = [&](int rank) { return found.class_of[static_cast<std::size_t>(rank)]; };
    for (RankClass& c : found.classes) {
        const int rank = c.representative;
        // Both ways of a server's link, which is its own while it carries a message.
        const auto link_of = [&](int from, int to) {
            if (mesh.servers == 0 || cluster.device.cores > 0) return -1;
            return 2 * (std::max(from, to) - mesh.workers()) + (to < from ? 1 : 0);
        };
        const auto add = [&](int from, int to) {
            const std::size_t number =
                groups + static_cast<std::size_t>(ends.of({class_of(from), class_of(to)}));
            c.channels[mesh.servers > 0 ? mesh.talk(from, to) : mesh.channel(from, to)] =
                static_cast<int>(number);
            if (number < found.communicators.size()) return;
            found.communicators.push_back({spread_of(mesh, {from, to}, cluster, slow_links),
                                           {class_of(from), class_of(to)},
                                           0,
                                           link_of(from, to)});
        };
        for (int peer = 0; peer < mesh.ranks && mesh.servers > 0; ++peer) {
            if (mesh.serves(peer) == mesh.serves(rank)) continue;
            add(rank, peer);
            add(peer, rank);
        }
        for (const int steps : {1, -1}) {
            const int peer = mesh.neighbour(rank, steps);
            if (mesh.pipeline > 1) add(rank, peer);
            if (mesh.pipeline > 1) add(peer, rank);
        }
        if (mesh.ring) add(rank, mesh.neighbour(plan::Group::context, rank, 1));
        if (mesh.ring) add(mesh.neighbour(plan::Group::context, rank, -1), rank);
    }
}

}  // namespace

RankClasses classify(const plan::Mesh& mesh, const Cluster& cluster,
                     const std::vector<job::SlowRank>& slow_ranks,
                     const std::vector<job::SlowLink>& slow_links) {
    const auto ranks = static_cast<std::size_t>(mesh.ranks);
    std::vector<double> slowdown(ranks, 1);
    for (const job::SlowRank& slow : slow_ranks) slowdown[static_cast<std::size_t>(slow.rank)] *= slow.factor;

    std::array<plan::Group, kGroups.size()> queues{};
    std::array<Communicators, kGroups.size()> groups;
    for (std::size_t g = 0; g < kGroups.size(); ++g) {
        queues[g] = queue_of(mesh, kGroups[g]);
        groups[g] = communicators_of(mesh, queues[g], cluster, slow_links);
    }

    RankClasses found;
    found.class_of.resize(ranks);
    // Ranks of one place in the pipeline run the same Plan; their neighbours have to be equally far.
    using Distance = decltype(Spread().key());
    using Start = std::tuple<double, int, std::array<Distance, 4>>;
    Numbering<Start> starts;
    for (std::size_t r = 0; r < ranks; ++r) {
        const auto rank = static_cast<int>(r);
        const auto to = [&](plan::Group group, int steps) {
            const bool sends = group == plan::Group::pipeline ? mesh.pipeline > 1 : mesh.ring;
            if (!sends) return Spread().key();
            return spread_of(mesh, {rank, mesh.neighbour(group, rank, steps)}, cluster, slow_links).key();
        };
        // Workers of a server are not in step: each is a class.
        found.class_of[r] = starts.of({slowdown[r],
                                       mesh.servers > 0 ? rank : mesh.pipeline_index(rank),
                                       {to(plan::Group::pipeline, 1), to(plan::Group::pipeline, -1),
                                        to(plan::Group::context, 1), to(plan::Group::context, -1)}});
    }
    int count = starts.count();
    // The classes of the ranks on a rank's device, sorted.
    const auto device_of = [&](std::size_t rank) {
        const std::size_t sharing = static_cast<std::size_t>(cluster.ranks_per_device);
        const auto first = found.class_of.begin() + static_cast<std::ptrdiff_t>(rank / sharing * sharing);
        std::vector<int> classes(first, std::min(first + cluster.ranks_per_device, found.class_of.end()));
        std::sort(classes.begin(), classes.end());
        return classes;
    };
    Numbering<CommunicatorKey> looks;
    std::array<std::vector<int>, kGroups.size()> look_of;  // by communicator of the group
    for (;;) {
        looks = {};
        for (std::size_t g = 0; g < groups.size(); ++g) {
            look_of[g].clear();
            for (const Communicator& communicator : groups[g].all) {
                look_of[g].push_back(looks.of({queues[g], communicator.spread.key(),
                                               classes_of_members(communicator, found.class_of)}));
            }
        }
        const auto look = [&](std::size_t g, std::size_t r) {
            return look_of[g][static_cast<std::size_t>(groups[g].of_rank[r])];
        };
        Numbering<std::array<int, 4 + kGroups.size()>> finer;
        Numbering<std::vector<int>> devices;
        std::vector<int> next(ranks);
        for (std::size_t r = 0; r < ranks; ++r) {
            std::array<int, 4 + kGroups.size()> key = {found.class_of[r]};
            for (const int steps : {1, -1}) {  // in a ring
                if (!mesh.ring) break;
                const int peer = mesh.neighbour(plan::Group::context, static_cast<int>(r), steps);
                key[steps == 1 ? 1 : 2] = found.class_of[static_cast<std::size_t>(peer)];
            }
            if (cluster.ranks_per_device > 1) key[3] = devices.of(device_of(r));
            for (std::size_t g = 0; g < kGroups.size(); ++g) key[4 + g] = look(g, r);
            next[r] = finer.of(key);
        }
        // A refinement with the same number of classes is the same partition.
        const bool stable = finer.count() == count;
        found.class_of = std::move(next);
        count = finer.count();
        if (stable) break;
    }

    // The class numbers may have changed in the last round: the looks are computed again with the final ones.
    looks = {};
    Numbering<std::vector<int>> devices;
    found.classes.resize(static_cast<std::size_t>(count));
    for (RankClass& c : found.classes) c.representative = -1;
    for (std::size_t r = 0; r < ranks; ++r) {
        RankClass& c = found.classes[static_cast<std::size_t>(found.class_of[r])];
        ++c.ranks;
        if (c.representative >= 0) continue;
        c.representative = static_cast<int>(r);
        c.slowdown = slowdown[r];
        const std::vector<int> beside = device_of(r);
        c.device = devices.of(beside);
        c.beside = static_cast<int>(std::count(beside.begin(), beside.end(), found.class_of[r]));
        for (std::size_t g = 0; g < groups.size(); ++g) {
            const Communicator& own = groups[g].all[static_cast<std::size_t>(groups[g].of_rank[r])];
            const std::vector<int> classes = classes_of_members(own, found.class_of);
            const int look = looks.of({queues[g], own.spread.key(), classes});
            c.communicators[g] = look;
            if (static_cast<std::size_t>(look) == found.communicators.size())
                found.communicators.push_back({own.spread, classes, 0});
        }
    }
    found.share_devices = cluster.ranks_per_device > 1;
    found.devices.resize(static_cast<std::size_t>(devices.count()));
    for (int c = 0; c < count; ++c)
        found.devices[static_cast<std::size_t>(found.classes[static_cast<std::size_t>(c)].device)].push_back(
            c);
    add_channels(mesh, cluster, slow_links, found);
    for (CommunicatorClass& communicator : found.communicators) {
        for (const int c : communicator.classes)
            communicator.ranks += found.classes[static_cast<std::size_t>(c)].ranks;
    }
    found.nodes = cluster.node_of(mesh.ranks - 1) + 1;
    return found;
}

}  // namespace shardscope::trainer::sim
