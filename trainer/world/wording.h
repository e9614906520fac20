// How messages call ranks, processes and times.
#pragma once

#include <string>
#include <vector>

#include "trainer/world/world.h"

namespace shardscope::trainer::world {

// "rank 2", "ranks 2 and 5", "ranks 2, 5-9 and 12"; of increasing numbers.
std::string ranks_text(const std::vector<int>& ranks);

std::string process_text(const Member& member);  // "process 4711 on host b"
std::string seconds_text(double seconds);        // "30 s", "0.5 s"

// How a process's end appears to others, as Failure::reason.
std::string ended_text(const Member& member);
std::string silent_text(const Member& member, double seconds);

}  // namespace shardscope::trainer::world
