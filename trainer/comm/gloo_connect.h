// Makes Gloo's connections between the processes of a job. Gloo accepts whoever connects first to a
// connection's port. Ports are therefore exchanged through the World, whose members have proved that they
// know the job's token, and each connection carries such a proof in both directions before anything else.
#pragma once

#include <memory>

#include "trainer/comm/wire_peers.h"

namespace gloo::transport {
class Context;
}

namespace shardscope::trainer::comm {

// Makes connections to every other rank. Collective. Throws WorldError if two ranks cannot be connected (it
// names both), or if a process without the token has connected.
std::shared_ptr<gloo::transport::Context> connect_by_gloo(const WirePeers& peers, double timeout_s);

}  // namespace shardscope::trainer::comm
