// Messages over connections between all pairs of processes, where no MPI is to be had: the launcher is
// torchrun, or shardscope-train itself (run.processes). TCP between hosts; within one, what is faster and
// means the same: local sockets, and large messages straight from the sender's memory where the kernel lets
// one process read another's.
//
// Small messages are sent at once, and kept until they are received; large ones when their receive is there.
// So messages with different tags never hold each other up, and memory is bounded by what is small.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trainer/comm/wire.h"
#include "trainer/world/world.h"

namespace shardscope::trainer {

// What connecting needs of the processes' world: World's members of these names.
struct TcpPeers {
    int rank = 0, ranks = 1;
    std::function<std::vector<std::string>(const std::string& mine)> gather;
    std::function<std::string(const std::string& from_rank_0)> broadcast;
    std::function<bool()> failed;           // ends waiting; may be empty
    std::function<std::string(int)> where;  // for messages: "rank 2 on host b"; may be empty
};

struct TcpWireOptions {
    bool local_sockets = true;  // between processes of one host
    bool direct_reads = true;   // of the sender's memory
    double timeout_s = 60;      // for all connections
};

// Collective among the world's processes. Throws WorldError where two cannot reach each other (it names
// both).
std::unique_ptr<Wire> make_tcp_wire(World& world);
std::unique_ptr<Wire> make_tcp_wire(const TcpPeers& peers, const TcpWireOptions& options = {});

}  // namespace shardscope::trainer
