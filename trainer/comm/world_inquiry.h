// Asks and answers over the World's connections: the question goes to rank 0, which passes it and every
// answer on to all.
#pragma once

#include <memory>

#include "trainer/comm/inquiry.h"

namespace shardscope::trainer {

class World;

// The World outlives it.
std::unique_ptr<Inquiry> make_world_inquiry(World& world);

}  // namespace shardscope::trainer
