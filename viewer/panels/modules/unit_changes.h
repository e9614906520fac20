// What a module's sharding could be instead: as a unit of its own, or merged into the unit around it; the
// same for every module of its class. Pure; no Dear ImGui.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "traces/store/columns/trace.h"

namespace shardscope::viewer::panels {

struct UnitChange {
    std::string id;       // for scripts: "unit", "merge", "class_unit"
    std::string label;    // of a button: "What if Linear_3 were a unit"
    std::string changes;  // model/trials.h: "fsdp.wrap = path:net.0,net.6"
};

// `module`: ModuleRow::id, -1 if the trace has no such rows; `name`: "Linear_3". Empty if the trace has no
// units, or the module has nothing to shard; `why` then says so in a sentence.
std::vector<UnitChange> unit_changes(const traces::store::Trace& trace, int module, std::string_view name,
                                     std::string& why);

}  // namespace shardscope::viewer::panels
