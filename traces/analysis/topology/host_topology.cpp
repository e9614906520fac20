#include "traces/analysis/topology/host_topology.h"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include <fmt/core.h>

#include "traces/schema/text.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {

namespace {

constexpr std::size_t kMostNodes = 1024;  // of a host; a damaged file may have any number

struct DeviceLabel {
    bool gpu = true;
    int number = 0;
};

std::optional<DeviceLabel> parse_label(std::string_view text) {
    const bool gpu = text.starts_with("GPU");
    if (!gpu && !text.starts_with("NIC")) return {};
    const auto number = schema::number_of<int>(text.substr(3));
    if (!number || *number < 0) return {};
    return DeviceLabel{gpu, *number};
}

// Builds one host.
struct HostBuilder {
    std::map<std::pair<bool, int>, TopologyNode> nodes;  // key: adapter, number

    TopologyNode* node(DeviceLabel label) {
        const std::pair key(!label.gpu, label.number);
        if (nodes.size() >= kMostNodes && !nodes.contains(key)) return nullptr;
        TopologyNode& node = nodes[key];
        node.gpu = label.gpu;
        node.number = label.number;
        node.label = fmt::format("{}{}", label.gpu ? "GPU" : "NIC", label.number);
        return &node;
    }
};

// Adds what the row states and the link does not.
void add(TopologyLink& link, const schema::TopologyRow& row) {
    const auto take = [](auto& known, const auto& told, const auto& unknown) {
        if (known == unknown) known = told;
    };
    const std::string none;
    take(link.link, row.link, none);
    take(link.lanes, row.lanes, -1);
    take(link.bytes_per_second, row.bytes_per_second, -1.0);
    take(link.read, row.read, none);
    take(link.write, row.write, none);
    take(link.nvlink, row.nvlink, none);
    take(link.atomics, row.atomics, none);
    take(link.source, row.source, none);
}

struct LinkWord {
    std::string_view word;
    int distance;
    std::string_view meaning;
};
// Words of nvidia-smi topo; its manual page describes them.
constexpr std::array kLinkWords =
    std::to_array<LinkWord>({{"PIX", 1, "through one PCIe switch at most"},
                             {"PSB", 1, "through the PCIe switch of one board"},
                             {"PXB", 2, "through several PCIe switches"},
                             {"PHB", 3, "through a PCIe host bridge"},
                             {"NODE", 4, "through PCIe host bridges of one NUMA node"},
                             {"SYS", 5, "through the link between NUMA nodes"}});
constexpr std::pair<std::string_view, std::string_view> kAccessWords[] = {
    {"OK", "possible"},
    {"CNS", "not supported by the chipset"},
    {"GNS", "not supported by the GPU"},
    {"TNS", "not supported by the topology"},
    {"DR", "switched off by a setting of the driver"},
    {"NS", "not supported"},
    {"U", "unknown"},
};

std::optional<int> nvlinks(std::string_view link) {
    if (!link.starts_with("NV")) return {};
    const auto number = schema::number_of<int>(link.substr(2));
    return number && *number > 0 ? number : std::nullopt;
}

}  // namespace

const TopologyLink* HostTopology::link(std::size_t from, std::size_t to) const {
    auto at = links.find({from, to});
    if (at == links.end()) at = links.find({to, from});
    return at == links.end() ? nullptr : &at->second;
}

std::optional<std::size_t> HostTopology::find(std::string_view label) const {
    for (std::size_t n = 0; n < nodes.size(); ++n) {
        if (nodes[n].label == label) return n;
    }
    return {};
}

std::vector<HostTopology> host_topologies(const store::Trace& trace) {
    std::map<std::string, HostBuilder> building;
    for (const schema::DeviceRow& row : trace.devices) {
        if ((row.kind != "gpu" && row.kind != "infiniband") || row.number < 0) continue;
        TopologyNode* node = building[row.host].node({row.kind == "gpu", row.number});
        if (node == nullptr) continue;
        node->name = row.name;
        node->bus = row.bus;
        node->cpus = row.cpus;
        node->numa = row.numa;
        node->bytes_per_second = row.bytes_per_second;
        node->visible = row.visible;
    }
    for (const schema::TopologyRow& row : trace.topology) {
        for (const std::string& text : {row.from, row.to}) {
            const auto label = parse_label(text);
            if (label && row.host == row.to_host) building[row.host].node(*label);
        }
    }
    std::vector<HostTopology> hosts;
    std::map<std::string_view, std::map<std::pair<bool, int>, std::size_t>> places;  // of each host's nodes
    for (auto& [name, host] : building) {
        if (host.nodes.empty()) continue;
        HostTopology& result = hosts.emplace_back();  // by name, as `building` is
        result.host = name;
        auto& of_host = places[name];
        for (auto& [key, node] : host.nodes) {
            of_host[key] = result.nodes.size();
            result.nodes.push_back(std::move(node));
        }
    }
    for (const schema::TopologyRow& row : trace.topology) {
        const auto from = parse_label(row.from), to = parse_label(row.to);
        if (row.host != row.to_host || !from || !to) continue;
        const auto host = std::partition_point(hosts.begin(), hosts.end(),
                                               [&](const HostTopology& h) { return h.host < row.host; });
        if (host == hosts.end() || host->host != row.host) continue;
        const auto& of_host = places[host->host];
        const auto a = of_host.find({!from->gpu, from->number}), b = of_host.find({!to->gpu, to->number});
        if (a != of_host.end() && b != of_host.end() && a != b) add(host->links[{a->second, b->second}], row);
    }
    const std::vector<RankGpu> gpus = gpus_of_ranks(trace, hosts);
    for (HostTopology& host : hosts) {
        const auto& of_host = places[host.host];
        for (std::size_t r = 0; r < trace.ranks.size(); ++r) {
            if (host.host != trace.ranks[r].host) continue;
            if (const auto at = of_host.find({false, gpus[r].number}); at != of_host.end())
                host.nodes[at->second].ranks.push_back(trace.ranks[r].number);
        }
    }
    return hosts;
}

std::vector<RankGpu> gpus_of_ranks(const store::Trace& trace, const std::vector<HostTopology>& hosts) {
    std::vector<RankGpu> gpus(trace.ranks.size());
    // "gpu_power_watts" is of a rank's first GPU, "gpu3_power_watts" of another one.
    const store::Counters& counters = trace.counters;
    std::set<std::uint16_t> unknown;
    for (std::size_t r = 0; r < gpus.size(); ++r) unknown.insert(static_cast<std::uint16_t>(r));
    for (std::size_t i = 0; i < counters.size() && !unknown.empty(); ++i) {
        if (counters.device[i] < 0 || !unknown.contains(counters.rank[i])) continue;
        if (!trace.strings[counters.name[i]].starts_with("gpu_")) continue;
        gpus[counters.rank[i]] = {counters.device[i], true};
        unknown.erase(counters.rank[i]);
    }
    if (trace.config_value("run.device") == "cpu") return gpus;
    std::map<std::string_view, std::vector<int>> visible;  // by host
    for (const HostTopology& host : hosts)
        for (const TopologyNode& node : host.nodes)
            if (node.gpu && node.visible) visible[host.host].push_back(node.number);
    const std::size_t sharing =
        std::max(schema::number_of<std::size_t>(trace.config_value("run.ranks_per_device")).value_or(1),
                 std::size_t{1});
    std::map<std::string_view, std::size_t> ranks_of;  // by host, so far
    for (std::size_t r = 0; r < gpus.size(); ++r) {
        const store::Rank& rank = trace.ranks[r];
        const std::size_t place = ranks_of[rank.host]++;
        const std::size_t wanted =
            (rank.local_rank >= 0 ? static_cast<std::size_t>(rank.local_rank) : place) / sharing;
        if (gpus[r].told) continue;
        if (const auto here = visible.find(rank.host); here != visible.end()) {
            if (wanted < here->second.size()) gpus[r].number = here->second[wanted];
        } else if (sharing > 1) {
            gpus[r].number = static_cast<int>(wanted);
        }
    }
    return gpus;
}

int link_distance(std::string_view link) {
    if (nvlinks(link)) return 0;
    for (const LinkWord& word : kLinkWords)
        if (word.word == link) return word.distance;
    return kUnknownDistance;
}

std::string link_meaning(std::string_view link) {
    if (const auto count = nvlinks(link))
        return fmt::format("through {} NVLink{}", *count, *count == 1 ? "" : "s");
    for (const LinkWord& word : kLinkWords)
        if (word.word == link) return std::string(word.meaning);
    return {};
}

std::string_view access_meaning(std::string_view status) {
    for (const auto& [word, meaning] : kAccessWords)
        if (word == status) return meaning;
    return {};
}

std::optional<std::size_t> nearest_adapter(const HostTopology& host, std::size_t gpu) {
    std::optional<std::size_t> best;
    int least = kUnknownDistance;
    for (std::size_t n = 0; n < host.nodes.size(); ++n) {
        if (host.nodes[n].gpu) continue;
        const TopologyLink* link = host.link(gpu, n);
        const int distance = link == nullptr ? kUnknownDistance : link_distance(link->link);
        if (distance >= least) continue;
        least = distance;
        best = n;
    }
    return best;
}

std::vector<std::vector<int>> rings_of_host(const store::Trace& trace, const std::string& host) {
    std::vector<std::vector<int>> rings;
    std::string_view rest = trace.config_value(std::string(kRingsFact) + host);
    while (!rest.empty()) {
        const std::size_t end = std::min(rest.find(';'), rest.size());
        std::vector<int> ring;
        for (std::string_view part = rest.substr(0, end); !part.empty();) {
            const std::size_t comma = std::min(part.find(','), part.size());
            if (const auto number = schema::number_of<int>(part.substr(0, comma))) ring.push_back(*number);
            part.remove_prefix(std::min(comma + 1, part.size()));
        }
        if (ring.size() > 1) rings.push_back(std::move(ring));
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return rings;
}

}  // namespace shardscope::traces::analysis
