// Which bytes of a trace went from which rank to which, over which link, and how fast. Definition:
// docs/definitions.md, "Topology".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/analysis/base/result_table.h"
#include "traces/analysis/base/selection.h"
#include "traces/analysis/topology/host_topology.h"

namespace shardscope::traces::analysis {

// From one rank to another, in this direction.
struct PairTraffic {
    int from_rank = 0, to_rank = 0;      // numbers
    std::string from_host, to_host;      // "" unknown
    std::string from_device, to_device;  // "GPU0"; empty: unknown
    std::string link;                    // as in TopologyRow; "network" between hosts; empty: unknown
    int lanes = -1;                      // -1 unknown
    double nominal_gbps = 0;             // in one direction; 0: unknown
    std::string nominal_from;            // what told it: "topology", "adapter", "cluster"; empty: unknown
    std::string read, write;             // peer access, as in TopologyRow
    std::int64_t bytes = 0;              // of collectives and messages that went this way
    std::int64_t collectives = 0, messages = 0;
    double transfer_us = 0;  // of those whose bytes are known
    double bus_gbps = 0;     // their bus bandwidth; 0: unknown
    std::string path;        // "node0 GPU0 -PIX- NIC1 -network- node1 NIC0 -PXB- GPU3"
};
Fields<PairTraffic> pair_traffic_fields();

struct TopologyReport {
    std::vector<HostTopology> hosts;
    std::vector<PairTraffic> pairs;             // those with bytes, by (from_rank, to_rank)
    double slowest_gbps = 0, fastest_gbps = 0;  // bus bandwidth of the pairs where it is known; 0: of none
    std::int64_t most_bytes = 0;                // of a pair
    std::vector<std::string> notes;             // sentences: what is assumed or left out, and why

    const PairTraffic* pair(int from_rank, int to_rank) const;  // null: nothing went this way
};

TopologyReport topology_report(const store::Trace& trace, const Selection& selection = {});

// The ranks of a communicator (numbers, rising) in the order of its ring: host by host, in the order of the
// first rank of each; within a host by NCCL's ring if it is known, else by number. `told`: it is known on all
// hosts with several of the ranks.
struct RingOrder {
    std::vector<int> ranks;
    bool told = false;
};
RingOrder ring_order(const store::Trace& trace, const std::vector<RankGpu>& gpus,
                     const std::vector<int>& ranks);

}  // namespace shardscope::traces::analysis
