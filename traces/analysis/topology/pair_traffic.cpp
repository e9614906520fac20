#include "traces/analysis/topology/pair_traffic.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "traces/analysis/communication/collectives.h"
#include "traces/analysis/topology/nominal_bandwidth.h"
#include "traces/store/columns/trace.h"
#include "traces/store/grouped.h"

namespace shardscope::traces::analysis {

namespace {

constexpr double kGiga = 1e9;

// The number of ranks whose pairs an all-to-all still counts one by one.
constexpr std::size_t kMostOfAllToAll = 1024;

// Sums over collectives and messages.
struct PairSums {
    double bytes = 0;  // that went this way
    std::int64_t collectives = 0, messages = 0, transfer_ns = 0;
    // Of those with a bus bandwidth: nccl-tests' bytes on the busiest wire, and the time.
    double bus_bytes = 0;
    std::int64_t bus_ns = 0;

    PairSums& operator+=(const PairSums& other) {
        bytes += other.bytes;
        collectives += other.collectives;
        messages += other.messages;
        transfer_ns += other.transfer_ns;
        bus_bytes += other.bus_bytes;
        bus_ns += other.bus_ns;
        return *this;
    }
    double bus_gbps() const { return bus_ns > 0 ? bus_bytes / static_cast<double>(bus_ns) : 0; }
};

// Bytes that one rank sends to the next one of the ring for a collective of `bytes`.
std::optional<double> ring_bytes(schema::Operation operation, double bytes, double n) {
    switch (operation) {
        case schema::Operation::all_gather:
        case schema::Operation::reduce_scatter:
        // A chain from or to a root that the trace does not tell: it leaves out one pair of the ring.
        case schema::Operation::broadcast:
        case schema::Operation::reduce:
            return bytes * (n - 1) / n;
        case schema::Operation::all_reduce:
            return bytes * 2 * (n - 1) / n;
        default:
            return {};
    }
}

class TrafficByPair {
  public:
    TrafficByPair(const store::Trace& trace, const Selection& selection)
        : trace_(trace), hosts_(host_topologies(trace)), gpus_(gpus_of_ranks(trace, hosts_)) {
        for (std::size_t r = 0; r < trace.ranks.size(); ++r) index_[trace.ranks[r].number] = r;
        const store::Collectives& rows = trace.collectives;
        for (std::size_t i = 0; i < rows.size(); ++i)
            if (rows.rank[i] < trace.ranks.size())
                members_[rows.group[i]].insert(trace.ranks[rows.rank[i]].number);
        for (const CollectiveTimes& c : collective_list(trace, selection)) add(c);
        spread();
    }

    TopologyReport take() {
        TopologyReport report;
        for (const auto& [ends, sums] : sums_) report.pairs.push_back(pair(ends.first, ends.second, sums));
        for (const PairTraffic& pair : report.pairs) {
            report.most_bytes = std::max(report.most_bytes, pair.bytes);
            if (pair.bus_gbps <= 0) continue;
            report.fastest_gbps = std::max(report.fastest_gbps, pair.bus_gbps);
            if (report.slowest_gbps <= 0 || pair.bus_gbps < report.slowest_gbps)
                report.slowest_gbps = pair.bus_gbps;
        }
        report.hosts = std::move(hosts_);
        note(report);
        return report;
    }

  private:
    void add(const CollectiveTimes& c) {
        if (c.operation == schema::Operation::barrier) return;
        if (c.bytes <= 0) {
            ++unknown_;
            return;
        }
        if (c.operation == schema::Operation::send || c.operation == schema::Operation::recv) {
            if (!c.ends.known()) {
                ++unknown_;
                return;
            }
            sums_[{c.ends.source, c.ends.destination}] += sums_of(c, static_cast<double>(c.bytes), true);
            return;
        }
        const auto group = members_.find(c.group);
        const auto size = static_cast<std::size_t>(std::max(2, c.group_size));
        if (group == members_.end() || group->second.size() < size) {  // some ranks are not in the trace
            ++unknown_;
            return;
        }
        const auto n = static_cast<double>(group->second.size());
        const auto all = static_cast<double>(c.bytes);
        if (c.operation == schema::Operation::all_to_all && group->second.size() <= kMostOfAllToAll) {
            each_to_each_[c.group] += sums_of(c, all / n, false);
        } else if (const auto bytes = ring_bytes(c.operation, all, n)) {
            around_[c.group] += sums_of(c, *bytes, false);
        } else {
            ++unknown_;
        }
    }

    // What is summed up by group goes to its pairs.
    void spread() {
        for (const auto& [group, sums] : around_) {
            const std::vector<int> ring = ring_of(members_.at(group));
            for (std::size_t i = 0; i < ring.size(); ++i)
                sums_[{ring[i], ring[(i + 1) % ring.size()]}] += sums;
        }
        for (const auto& [group, sums] : each_to_each_) {
            for (const int from : members_.at(group))
                for (const int to : members_.at(group))
                    if (from != to) sums_[{from, to}] += sums;
        }
    }

    std::vector<int> ring_of(const std::set<int>& members) {
        RingOrder order = ring_order(trace_, gpus_, {members.begin(), members.end()});
        assumed_ = assumed_ || (!order.told && order.ranks.size() > 2);
        return std::move(order.ranks);
    }

    static PairSums sums_of(const CollectiveTimes& c, double bytes, bool message) {
        PairSums sums;
        sums.bytes = bytes;
        ++(message ? sums.messages : sums.collectives);
        sums.transfer_ns = std::max<std::int64_t>(0, c.transfer_ns);
        const double factor = bus_factor(c.operation, c.group_size);
        if (std::isnan(factor) || c.transfer_ns <= 0) return sums;
        sums.bus_bytes = factor * static_cast<double>(c.bytes);
        sums.bus_ns = c.transfer_ns;
        return sums;
    }

    // The host and node of a rank's GPU.
    struct End {
        std::string host;
        const HostTopology* topology = nullptr;
        std::optional<std::size_t> node;
    };
    const End& end_of(int rank) {
        const auto [known, is_new] = ends_.try_emplace(rank);
        End& end = known->second;
        const auto at = index_.find(rank);
        if (!is_new || at == index_.end()) return end;
        end.host = trace_.ranks[at->second].host;
        for (const HostTopology& host : hosts_)
            if (host.host == end.host) end.topology = &host;
        if (end.topology != nullptr && gpus_[at->second].number >= 0)
            end.node = end.topology->find(fmt::format("GPU{}", gpus_[at->second].number));
        return end;
    }

    PairTraffic pair(int from, int to, const PairSums& sums) {
        PairTraffic pair;
        pair.from_rank = from;
        pair.to_rank = to;
        pair.bytes = std::llround(sums.bytes);
        pair.collectives = sums.collectives;
        pair.messages = sums.messages;
        pair.transfer_us = static_cast<double>(sums.transfer_ns) * 1e-3;
        pair.bus_gbps = sums.bus_gbps();
        const End &a = end_of(from), &b = end_of(to);
        pair.from_host = a.host;
        pair.to_host = b.host;
        if (a.node) pair.from_device = a.topology->nodes[*a.node].label;
        if (b.node) pair.to_device = b.topology->nodes[*b.node].label;
        if (a.host != b.host) {
            between(a, b, pair);
        } else if (a.node && b.node) {
            within(a, b, pair);
        }
        if (pair.nominal_gbps <= 0) {
            pair.nominal_gbps = nominal_bandwidth(trace_, a.host != b.host) / kGiga;
            if (pair.nominal_gbps > 0) pair.nominal_from = "cluster";
        }
        return pair;
    }

    static void within(const End& a, const End& b, PairTraffic& pair) {
        const TopologyLink* link = a.topology->link(*a.node, *b.node);
        if (link == nullptr) return;
        pair.link = link->link;
        pair.lanes = link->lanes;
        pair.read = link->read;
        pair.write = link->write;
        if (link->bytes_per_second > 0) {
            pair.nominal_gbps = link->bytes_per_second / kGiga;
            pair.nominal_from = "topology";
        }
        pair.path = fmt::format("{} -{}- {}", pair.from_device, link->link.empty() ? "?" : link->link,
                                pair.to_device);
    }

    static void between(const End& a, const End& b, PairTraffic& pair) {
        pair.link = "network";
        if (!a.node || !b.node) return;
        const auto hop = [](const End& end) {
            const auto adapter = nearest_adapter(*end.topology, *end.node);
            return std::pair(adapter, adapter ? end.topology->link(*end.node, *adapter) : nullptr);
        };
        const auto [from, from_link] = hop(a);
        const auto [to, to_link] = hop(b);
        pair.path = fmt::format("{} {}", a.host, pair.from_device);
        if (from) pair.path += fmt::format(" -{}- {}", from_link->link, a.topology->nodes[*from].label);
        pair.path += fmt::format(" -network- {} ", b.host);
        if (to) pair.path += fmt::format("{} -{}- ", b.topology->nodes[*to].label, to_link->link);
        pair.path += pair.to_device;
        if (!from || !to) return;
        const double slower =
            std::min(a.topology->nodes[*from].bytes_per_second, b.topology->nodes[*to].bytes_per_second);
        if (slower > 0) {
            pair.nominal_gbps = slower / kGiga;
            pair.nominal_from = "adapter";
        }
    }

    void note(TopologyReport& report) const {
        if (report.pairs.empty() && !trace_.ranks.empty()) {
            report.notes.emplace_back(
                "No collective or message with known bytes ran on a device in the selection: no traffic is "
                "known.");
        }
        if (assumed_) {
            report.notes.emplace_back(
                "The order of rings is not in the trace: bytes of collectives are counted along the order of "
                "the ranks (NCCL_GRAPH_DUMP_FILE tells NCCL's).");
        }
        if (unknown_ > 0) {
            report.notes.push_back(fmt::format(
                "{} not counted: bytes, ends or root are unknown, or some of the ranks are not in the trace.",
                store::counted(unknown_, "collective or message is", "collectives and messages are")));
        }
        const bool guessed = std::any_of(gpus_.begin(), gpus_.end(),
                                         [](const RankGpu& gpu) { return gpu.number >= 0 && !gpu.told; });
        if (guessed) {
            report.notes.emplace_back(
                "Which GPU a rank uses is not in the trace: the one of its place among the ranks of its host "
                "is "
                "taken.");
        }
    }

    const store::Trace& trace_;
    std::vector<HostTopology> hosts_;
    std::vector<RankGpu> gpus_;
    std::map<int, std::size_t> index_;                        // of a rank's number
    std::map<int, End> ends_;                                 // of a rank's number
    std::map<std::int64_t, std::set<int>> members_;           // of a group
    std::map<std::int64_t, PairSums> around_, each_to_each_;  // of a group's rings, and of its all-to-alls
    std::map<std::pair<int, int>, PairSums> sums_;
    std::int64_t unknown_ = 0;
    bool assumed_ = false;
};

}  // namespace

RingOrder ring_order(const store::Trace& trace, const std::vector<RankGpu>& gpus,
                     const std::vector<int>& ranks) {
    std::vector<std::pair<std::string, std::vector<int>>> by_host;
    std::map<int, std::size_t> index;
    for (std::size_t r = 0; r < trace.ranks.size(); ++r) index[trace.ranks[r].number] = r;
    for (const int rank : ranks) {
        const auto at = index.find(rank);
        const std::string host = at == index.end() ? "" : trace.ranks[at->second].host;
        const auto place = std::find_if(by_host.begin(), by_host.end(),
                                        [&](const auto& known) { return known.first == host; });
        (place == by_host.end() ? by_host.emplace_back(host, std::vector<int>()) : *place)
            .second.push_back(rank);
    }
    RingOrder order{.ranks = {}, .told = true};
    for (auto& [host, members] : by_host) {
        bool told = members.size() < 2;
        for (const std::vector<int>& ring : rings_of_host(trace, host)) {
            std::vector<int> found;
            for (const int gpu : ring) {
                for (const int rank : members)
                    if (gpus[index.at(rank)].number == gpu) found.push_back(rank);
            }
            if (found.size() != members.size() || told) continue;
            members = std::move(found);
            told = true;
        }
        order.told = order.told && told;
        order.ranks.insert(order.ranks.end(), members.begin(), members.end());
    }
    return order;
}

const PairTraffic* TopologyReport::pair(int from_rank, int to_rank) const {
    const auto at = std::lower_bound(pairs.begin(), pairs.end(), std::pair(from_rank, to_rank),
                                     [](const PairTraffic& p, const std::pair<int, int>& ends) {
                                         return std::pair(p.from_rank, p.to_rank) < ends;
                                     });
    return at != pairs.end() && at->from_rank == from_rank && at->to_rank == to_rank ? &*at : nullptr;
}

TopologyReport topology_report(const store::Trace& trace, const Selection& selection) {
    return TrafficByPair(trace, selection).take();
}

Fields<PairTraffic> pair_traffic_fields() {
    using P = PairTraffic;
    static constexpr Field<P> kFields[] = {
        {{"from_rank", "From", Unit::index, "The rank that sends."}, value_of<&P::from_rank>},
        {{"to_rank", "To", Unit::index, "The rank that receives."}, value_of<&P::to_rank>},
        {{"from_host", "", Unit::text, "The sender's host.", in_programs},
         [](const P& p) { return known_text(p.from_host); }},
        {{"from_device", "", Unit::text, "The sender's GPU.", in_programs},
         [](const P& p) { return known_text(p.from_device); }},
        {{"to_host", "", Unit::text, "The receiver's host.", in_programs},
         [](const P& p) { return known_text(p.to_host); }},
        {{"to_device", "", Unit::text, "The receiver's GPU.", in_programs},
         [](const P& p) { return known_text(p.to_device); }},
        {{"link", "Link", Unit::text,
          "What joins the two, in the words of nvidia-smi topo; \"network\" between hosts."},
         [](const P& p) { return known_text(p.link); }},
        {{"lanes", "", Unit::count, "NVLinks, or lanes of PCIe.", in_programs}, known_value_of<&P::lanes>},
        {{"bytes", "MiB", Unit::bytes, "Bytes of collectives and messages that went this way."},
         value_of<&P::bytes>},
        {{"collectives", "Collectives", Unit::count, "Collectives of which a part went this way."},
         value_of<&P::collectives>},
        {{"messages", "Messages", Unit::count, "Messages that went this way."}, value_of<&P::messages>},
        {{"transfer_us", "Transfer", Unit::us, "The time of their transfers."}, value_of<&P::transfer_us>},
        {{"bus_gbps", "busbw", Unit::gbps, "Their bus bandwidth as nccl-tests defines it."},
         known_value_of<&P::bus_gbps>},
        {{"nominal_gbps", "Nominal", Unit::gbps, "What the link can carry in one direction."},
         known_value_of<&P::nominal_gbps>},
        {{"nominal_from", "", Unit::text, "What told it: topology, adapter or cluster.", in_programs},
         [](const P& p) { return known_text(p.nominal_from); }},
        {{"read", "", Unit::text, "Peer access for reads.", in_programs},
         [](const P& p) { return known_text(p.read); }},
        {{"write", "", Unit::text, "Peer access for writes.", in_programs},
         [](const P& p) { return known_text(p.write); }},
        {{"path", "Path", Unit::text, "The devices and links on the way."},
         [](const P& p) { return known_text(p.path); }},
    };
    return kFields;
}

}  // namespace shardscope::traces::analysis
