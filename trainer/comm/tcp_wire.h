// Messages over connections between all pairs of processes, for jobs without MPI: the launcher is torchrun,
// or shardscope-train itself (run.processes). Between hosts the connections are TCP. Within a host they are
// local sockets, which are faster, and large messages are read straight from the sender's memory if the
// kernel lets one process read another's.
//
// Small messages are sent immediately and kept until they are received, large ones once their receive is
// posted. So messages with different tags never hold each other up, and only small messages take memory.
#pragma once

#include <memory>

#include "trainer/comm/wire.h"
#include "trainer/comm/wire_peers.h"

namespace shardscope::trainer::comm {

struct TcpWireOptions {
    bool local_sockets = true;  // between processes of one host
    bool direct_reads = true;   // of large messages, from the sender's memory
    double timeout_s = 60;      // for all connections
};

// Collective among the world's processes. Throws WorldError if two cannot reach each other (it names both).
std::unique_ptr<Wire> make_tcp_wire(world::World& world);
std::unique_ptr<Wire> make_tcp_wire(const WirePeers& peers, const TcpWireOptions& options = {});

}  // namespace shardscope::trainer::comm
