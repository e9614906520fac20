// How Gloo's connections between the processes of a job come about. Gloo accepts whoever connects to the port
// of a connection first. Ports are therefore exchanged through the World, whose members have proved that they
// know the job's token, and each connection carries such a proof in both directions before anything else is
// sent over it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace gloo::transport {
class Context;
}

namespace shardscope::trainer {

// What connecting needs of the processes' world: World's members of these names.
struct GlooPeers {
    int rank = 0, ranks = 1;
    std::string token;
    std::function<std::vector<std::string>(const std::string& mine)> gather;
    std::function<bool()> failed;           // ends waiting; may be empty
    std::function<std::string(int)> where;  // for messages: "rank 2 on host b"; may be empty
};

// Connections to every other rank. Collective. Throws WorldError where two ranks cannot be connected (it
// names both), or where somebody without the token has connected.
std::shared_ptr<gloo::transport::Context> connect_by_gloo(const GlooPeers& peers, double timeout_s);

}  // namespace shardscope::trainer
