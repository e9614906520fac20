// Makes the connections of a TcpWire. Every process listens and announces where; each then connects to those
// of lower rank, and both sides show the nonce that only the job's processes know.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/comm/socket.h"
#include "trainer/comm/tcp_wire.h"

namespace shardscope::trainer::comm {

struct TcpConnection {
    Socket socket;       // non-blocking; none for this rank itself
    int memory_of = -1;  // the process whose memory can be read directly; -1: none
};

// The connections by rank. Collective. Throws WorldError.
std::vector<TcpConnection> connect_all(const WirePeers& peers, const TcpWireOptions& options);

}  // namespace shardscope::trainer::comm
