// The other processes of a job whose ranks are a process each.
#pragma once

#include <functional>
#include <memory>

#include "trainer/comm/wire.h"
#include "trainer/world/world.h"

namespace shardscope::trainer {

struct Processes {
    World* world = nullptr;
    // What carries the bytes of collectives between processors; called once at most, by every process at the
    // same point.
    std::function<std::unique_ptr<Wire>()> open_wire;
};

}  // namespace shardscope::trainer
