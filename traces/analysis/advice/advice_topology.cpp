// Rules about where ranks stand: peer access that is missing, processors far from a rank's GPU, rings over
// slow links. They speak only of what the trace knows of its hosts' topology.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/core.h>

#include "traces/analysis/advice/advice_facts.h"
#include "traces/analysis/topology/better_ring.h"
#include "traces/store/columns/trace.h"
#include "traces/store/grouped.h"
#include "traces/store/number_list.h"

namespace shardscope::traces::analysis {
namespace {

using Findings = std::vector<Finding>;

constexpr int kSlowDistance = 3;  // PHB, NODE, SYS
constexpr int kNearDistance = 2;  // NVLink and PCIe switches: hardware that can have peer access

std::string on_host(const std::string& host) {
    return host.empty() ? "" : " of " + std::string(shown(host));
}

// The steps of the selection, 1 without any.
double steps_of(const AdviceFacts& f) {
    const auto ranks = static_cast<double>(std::max<std::size_t>(1, f.trace.ranks.size()));
    return std::max(1.0, static_cast<double>(f.units.rank_steps) / ranks);
}

// --- peer access -------------------------------------------------------------------------------------------

// The status that keeps a pair from peer access; empty: it has it, or nothing is known.
std::string missing_status(const PairTraffic& pair) {
    for (const std::string& status : {pair.read, pair.write})
        if (!status.empty() && status != "OK" && status != "U") return status;
    return {};
}

// Two GPUs with peer access, of the host or else of another one.
std::string pair_with_access(const AdviceFacts& f, const std::string& host) {
    std::string elsewhere;
    for (const HostTopology& one : f.topology.hosts) {
        for (const auto& [ends, link] : one.links) {
            if (link.read != "OK" || (!link.write.empty() && link.write != "OK")) continue;
            const std::string names =
                fmt::format("{} and {}", one.nodes[ends.first].label, one.nodes[ends.second].label);
            if (one.host == host) return names;
            if (elsewhere.empty()) elsewhere = names + on_host(one.host);
        }
    }
    return elsewhere;
}

void p2p_missing(const AdviceFacts& f, Findings& found) {
    const PairTraffic* worst = nullptr;
    double bytes = 0, transfer_us = 0;
    std::set<std::pair<int, int>> pairs;
    bool near = false, switched_off = false;
    for (const PairTraffic& pair : f.topology.pairs) {
        const std::string status = missing_status(pair);
        if (status.empty() || pair.from_host != pair.to_host) continue;
        pairs.insert(std::minmax(pair.from_rank, pair.to_rank));
        bytes += static_cast<double>(pair.bytes);
        transfer_us = std::max(transfer_us, pair.transfer_us);
        switched_off = switched_off || status == "DR";
        const bool could = link_distance(pair.link) <= kNearDistance;
        if (worst == nullptr || (could && !near) || (could == near && pair.bytes > worst->bytes))
            worst = &pair;
        near = near || could;
    }
    if (worst == nullptr) return;
    const std::string others = pair_with_access(f, worst->from_host);
    if (others.empty() && !near && !switched_off) return;  // the hardware has none
    const std::string status = missing_status(*worst);
    Finding finding;
    finding.what = fmt::format("Rank {} ({}) and rank {} ({}){} exchange data without peer access ({}: {})",
                               worst->from_rank, worst->from_device, worst->to_rank, worst->to_device,
                               on_host(worst->from_host), status, access_meaning(status));
    if (!others.empty()) finding.what += fmt::format(", while {} have it", others);
    if (near) finding.what += fmt::format("; they are joined {}", link_meaning(worst->link));
    finding.what += fmt::format(". With all such pairs ({}) that is {}{}.", pairs.size(),
                                bytes_text(static_cast<std::int64_t>(bytes / steps_of(f))), f.a_step());
    finding.figures = {{"pairs_without_access", static_cast<double>(pairs.size()), ""},
                       {"bytes_without_access", bytes / steps_of(f), "bytes/step"},
                       {"transfer", transfer_us / steps_of(f), "us/step"}};
    if (switched_off) {
        finding.change = "Switch peer access on in the driver's settings.";
    } else if (near) {
        finding.change =
            "Check what takes it away: PCIe access control (ACS) or an IOMMU that is on, a virtual machine, "
            "NCCL_P2P_DISABLE.";
    } else {
        finding.change =
            "Let ranks that exchange most stand on GPUs with peer access: order the job's GPUs so that "
            "neighbours in a "
            "ring are such pairs.";
    }
    finding.pytorch =
        "NCCL_DEBUG=INFO  # which pairs go through P2P and which through SHM; CUDA_VISIBLE_DEVICES orders "
        "them";
    finding.expected = "Unknown: the trace does not time the way through host memory apart.";
    found.push_back(std::move(finding));
}

// --- NUMA --------------------------------------------------------------------------------------------------

// The processors of a NUMA node of a host, as the trace lists them; empty: unknown.
std::vector<int> processors_of(const store::Trace& trace, const std::string& host, int numa) {
    for (const schema::DeviceRow& row : trace.devices)
        if (row.kind == "numa" && row.host == host && row.number == numa && numa >= 0)
            return store::numbers_of_list(row.cpus);
    return {};
}

bool apart(const std::vector<int>& a, const std::vector<int>& b) {
    std::vector<int> both;
    std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
    return !a.empty() && !b.empty() && both.empty();
}

void cross_numa(const AdviceFacts& f, Findings& found) {
    std::vector<std::int64_t> ranks;
    std::string first;
    int node = -1;
    std::set<int> between;  // ranks that communicate with other hosts
    for (const PairTraffic& pair : f.topology.pairs)
        if (pair.from_host != pair.to_host) between.insert({pair.from_rank, pair.to_rank});
    for (const HostTopology& host : f.topology.hosts) {
        for (std::size_t n = 0; n < host.nodes.size(); ++n) {
            const TopologyNode& gpu = host.nodes[n];
            for (const int number : gpu.ranks) {
                const store::Rank& rank = f.trace.ranks[f.trace.rank_of_number(number).at()];
                const std::vector<int> own = store::numbers_of_list(rank.cpus);
                std::vector<int> near = processors_of(f.trace, host.host, gpu.numa);
                if (near.empty()) near = store::numbers_of_list(gpu.cpus);
                const TopologyNode* far = apart(own, near) ? &gpu : nullptr;
                if (far == nullptr && between.contains(number)) {
                    const auto adapter = nearest_adapter(host, n);
                    if (adapter && apart(own, processors_of(f.trace, host.host, host.nodes[*adapter].numa)))
                        far = &host.nodes[*adapter];
                }
                if (far == nullptr) continue;
                ranks.push_back(number);
                if (!first.empty()) continue;
                node = far->numa;
                first = fmt::format("Rank {}{} may run on the processors {} alone, and its {} {}", number,
                                    on_host(host.host), rank.cpus, far->gpu ? "GPU" : "network adapter",
                                    far->label);
                first += node >= 0 ? fmt::format(" is next to NUMA node {}", node)
                                   : fmt::format(" is next to the processors {}", far->cpus);
            }
        }
    }
    if (ranks.empty()) return;
    std::sort(ranks.begin(), ranks.end());
    Finding finding;
    finding.what = first + ".";
    if (ranks.size() > 1) finding.what += fmt::format(" So it is with ranks {}.", store::number_list(ranks));
    finding.figures = {{"ranks_across_numa", static_cast<double>(ranks.size()), ""}};
    finding.change = "Bind each rank to the processors next to its GPU.";
    finding.pytorch = fmt::format(
        "numactl --cpunodebind={0} --membind={0} python train.py  # or mpirun --bind-to numa, srun "
        "--cpu-bind=...",
        node >= 0 ? std::to_string(node) : "NODE");
    finding.expected =
        "Unknown: launches and copies cross the link between the nodes, which the trace does not time.";
    found.push_back(std::move(finding));
}

// --- rings -------------------------------------------------------------------------------------------------

std::string ring_text(const HostTopology& host, const std::vector<std::size_t>& nodes, bool closed) {
    std::string text;
    for (const std::size_t n : nodes) text += (text.empty() ? "" : "-") + host.nodes[n].label;
    return closed ? text + "-" + host.nodes[nodes.front()].label : text;
}

// A part of a ring within one host that takes slower links than it must.
struct SlowRing {
    std::string what, devices;
    std::int64_t group = 0;
};

std::optional<SlowRing> slow_ring(const HostTopology& host, const std::vector<std::size_t>& nodes,
                                  bool closed) {
    if (nodes.size() < 3 || nodes.size() > kMostOfRing) return {};
    const int worst = farthest(host, nodes, closed);
    if (worst < kSlowDistance || worst >= kUnknownDistance) return {};
    const auto better = order_nearer_than(host, nodes, worst, closed);
    if (!better) return {};
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        const std::size_t a = nodes[i], b = nodes[(i + 1) % nodes.size()];
        const TopologyLink* link = host.link(a, b);
        if (link == nullptr || link_distance(link->link) != worst) continue;
        SlowRing ring;
        ring.what = fmt::format("A ring{} goes {}, from {} to {} {} ({}), although {} avoids such links.",
                                on_host(host.host), ring_text(host, nodes, closed), host.nodes[a].label,
                                host.nodes[b].label, link_meaning(link->link), link->link,
                                ring_text(host, *better, closed));
        for (const std::size_t n : *better)
            ring.devices += fmt::format("{}{}", ring.devices.empty() ? "" : ",", host.nodes[n].number);
        return ring;
    }
    return {};
}

void ring_over_slow_link(const AdviceFacts& f, Findings& found) {
    if (f.trace.topology.empty()) return;
    const bool simulated = !f.config("sim.cluster").empty();  // its rings are in the order of ranks
    const std::vector<RankGpu> gpus = gpus_of_ranks(f.trace, f.topology.hosts);
    std::map<std::int64_t, std::set<int>> groups;
    const store::Collectives& rows = f.trace.collectives;
    for (std::size_t i = 0; i < rows.size(); ++i)
        if (rows.rank[i] < f.trace.ranks.size())
            groups[rows.group[i]].insert(f.trace.ranks[rows.rank[i]].number);
    std::optional<SlowRing> first;
    std::size_t slow = 0;
    std::set<std::set<int>> seen;
    for (const auto& [group, members] : groups) {
        if (members.size() < 3 || !seen.insert(members).second) continue;
        const RingOrder order = ring_order(f.trace, gpus, {members.begin(), members.end()});
        if (!order.told && !simulated) continue;
        for (const HostTopology& host : f.topology.hosts) {
            std::vector<std::size_t> nodes;
            for (const int number : order.ranks) {
                const std::size_t r = f.trace.rank_of_number(number).at();
                if (f.trace.ranks[r].host != host.host) continue;
                if (const auto node = host.find(fmt::format("GPU{}", gpus[r].number))) nodes.push_back(*node);
            }
            auto ring = slow_ring(host, nodes, nodes.size() == members.size());
            if (!ring) continue;
            ++slow;
            if (!first) first = std::move(ring);
        }
    }
    if (!first) return;
    Finding finding;
    finding.what = first->what;
    finding.figures = {{"slow_rings", static_cast<double>(slow), ""}};
    double transfer_us = 0;
    for (const PairTraffic& pair : f.topology.pairs)
        if (link_distance(pair.link) >= kSlowDistance && link_distance(pair.link) < kUnknownDistance)
            transfer_us = std::max(transfer_us, pair.transfer_us);
    if (transfer_us > 0) finding.figures.push_back({"transfer", transfer_us / steps_of(f), "us/step"});
    finding.change =
        simulated ? "Order the devices of a node so that neighbours in the ring are near each other."
                  : "Order the job's GPUs so that neighbours in the ring are near each other, and let NCCL "
                    "choose (without NCCL_GRAPH_FILE).";
    finding.pytorch = fmt::format("CUDA_VISIBLE_DEVICES={}", first->devices);
    finding.expected = "Unknown: how fast the other links are with this traffic was not measured.";
    found.push_back(std::move(finding));
}

constexpr AdviceRule kTopologyRules[] = {
    {"p2p-missing", "Ranks communicate without peer access", p2p_missing},
    {"cross-numa", "A rank runs far from its GPU", cross_numa},
    {"ring-over-slow-link", "A ring takes slow links", ring_over_slow_link},
};

}  // namespace

std::span<const AdviceRule> topology_rules() {
    return kTopologyRules;
}

}  // namespace shardscope::traces::analysis
