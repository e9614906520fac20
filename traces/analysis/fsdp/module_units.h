// Which unit of a run of our own trainer gathers each module. Internal to the library.
#pragma once

#include <cstdint>
#include <vector>

namespace shardscope::traces {

struct Trace;

// By module id: the unit that gathers the module, its own or its nearest ancestor's, as an index into
// Trace::units; -1 none. Ids beyond the end have no unit.
std::vector<std::int32_t> units_of_modules(const Trace& trace);

}  // namespace shardscope::traces
