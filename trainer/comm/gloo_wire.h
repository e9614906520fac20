// Messages over Gloo's connections, for processes that MPI did not start: the launcher is torchrun, or
// shardscope-train itself (run.processes).
//
// Gloo moves data on a thread of its own, and reports the end of a message only to a thread that waits for
// it. So one thread waits for each stream of messages (one rank, one tag, one direction) while any of them
// are under way.
#pragma once

#include <memory>

#include "trainer/comm/gloo_connect.h"
#include "trainer/comm/wire.h"

namespace shardscope::trainer::comm {

// Collective among the world's processes. Throws WorldError.
std::unique_ptr<Wire> make_gloo_wire(world::World& world);
std::unique_ptr<Wire> make_gloo_wire(const WirePeers& peers, double timeout_s = 60);

}  // namespace shardscope::trainer::comm
