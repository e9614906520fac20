// Makes Gloo's connections between the processes of a job. Gloo accepts whoever connects first to a
// connection's port. Ports are therefore exchanged through the World, whose members have proved that they
// know the job's token, and each connection carries such a proof in both directions before anything else.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace gloo::transport {
class Context;
}

namespace shardscope::trainer {

// The parts of the World that connecting uses.
struct GlooPeers {
    int rank = 0, ranks = 1;
    std::string token;
    std::function<std::vector<std::string>(const std::string& mine)> gather;
    std::function<bool()> failed;           // true ends the waiting; may be empty
    std::function<std::string(int)> where;  // for messages: "rank 2 on host b"; may be empty
};

// Makes connections to every other rank. Collective. Throws WorldError if two ranks cannot be connected (it
// names both), or if a process without the token has connected.
std::shared_ptr<gloo::transport::Context> connect_by_gloo(const GlooPeers& peers, double timeout_s);

}  // namespace shardscope::trainer
