// The other processes of a job in which each rank is a process.
#pragma once

#include <functional>
#include <memory>

#include "trainer/comm/wire.h"
#include "trainer/world/world.h"

namespace shardscope::trainer::executor {

struct Processes {
    world::World* world = nullptr;
    // Opens the wire that carries the bytes of collectives between processors; called at most once, by every
    // process at the same point.
    std::function<std::unique_ptr<comm::Wire>()> open_wire;
};

}  // namespace shardscope::trainer::executor
