// Which unit of a run of ours gathers each module. Inside the room only.
#pragma once

#include <cstdint>
#include <vector>

namespace shardscope::traces {

struct Trace;

// By module id: the unit that gathers it, its own or its nearest ancestor's, as a place in Trace::units; -1
// none. Ids from the largest on are not there.
std::vector<std::int32_t> units_of_modules(const Trace& trace);

}  // namespace shardscope::traces
