// The devices of each host of a trace and how they reach each other, by the rows of SHARD_DEVICES and
// SHARD_TOPOLOGY; and which GPU each rank uses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

struct TopologyNode {
    std::string label;  // "GPU0", "NIC1", as in TopologyRow
    bool gpu = true;    // false: a network adapter
    int number = 0;     // on its host, among those of its kind
    // As in DeviceRow.
    std::string name, bus, cpus;
    int numa = -1;
    double bytes_per_second = -1;
    bool visible = true;
    std::vector<int> ranks;  // numbers of the ranks that use it
};

struct TopologyLink {
    std::string link;                          // "NV12", "PIX" ...; empty: unknown
    int lanes = -1;                            // -1, as below: unknown
    double bytes_per_second = -1;              // in one direction
    std::string read, write, nvlink, atomics;  // "OK", "CNS" ...; empty: unknown
    std::string source;
};

struct HostTopology {
    std::string host;
    std::vector<TopologyNode> nodes;  // GPUs, then adapters; by number
    // By indices into `nodes`. A pair that the trace has in one direction is the same in the other.
    std::map<std::pair<std::size_t, std::size_t>, TopologyLink> links;

    const TopologyLink* link(std::size_t from, std::size_t to) const;  // null: unknown
    std::optional<std::size_t> find(std::string_view label) const;
};

// In the order of the hosts' names. A host without GPUs, adapters and links is left out.
std::vector<HostTopology> host_topologies(const store::Trace& trace);

// The rank's GPU.
struct RankGpu {
    int number = -1;    // on its host; -1: unknown
    bool told = false;  // the trace says so (a counter has rank and GPU); false: taken from the rank's place
};
// By rank index. A rank whose GPU the trace does not tell uses the one of its place among the ranks of its
// host, of the GPUs that the job may use; run.ranks_per_device consecutive ones use one together. Where the
// trace has no GPU of the host and ranks share them, that place is the number. With run.device "cpu" none is
// taken from a place.
std::vector<RankGpu> gpus_of_ranks(const store::Trace& trace, const std::vector<HostTopology>& hosts);

// How far apart a link puts two devices: 0 NVLink, 1 one PCIe switch, 2 several, 3 a host bridge, 4 several
// of a NUMA node, 5 the link between NUMA nodes; 6 unknown.
int link_distance(std::string_view link);
inline constexpr int kUnknownDistance = 6;
// "through a PCIe host bridge"; empty: not a link. Of "NV4": "through 4 NVLinks".
std::string link_meaning(std::string_view link);
// "not supported by the chipset"; empty: not a status.
std::string_view access_meaning(std::string_view status);

// The adapter that is nearest to a GPU, the first of equals; none: the host has none, or no link to one is
// known.
std::optional<std::size_t> nearest_adapter(const HostTopology& host, std::size_t gpu);

// The GPUs of a host in the order of NCCL's rings, where its dump of graphs told them: facts of the run
// "nccl.rings.HOST", lists of GPU numbers separated by ";".
std::vector<std::vector<int>> rings_of_host(const store::Trace& trace, const std::string& host);
inline constexpr std::string_view kRingsFact = "nccl.rings.";

}  // namespace shardscope::traces::analysis
