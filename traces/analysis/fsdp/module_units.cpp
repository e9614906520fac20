// See module_units.h.
#include "traces/analysis/fsdp/module_units.h"

#include <algorithm>
#include <unordered_map>

#include "traces/store/columns/trace.h"

namespace shardscope::traces {

std::vector<std::int32_t> units_of_modules(const Trace& trace) {
    std::int32_t size = 0;
    for (const ModuleRow& module : trace.modules) size = std::max(size, module.id + 1);
    std::vector<std::int32_t> unit(static_cast<std::size_t>(size), -1), parent(unit);
    std::unordered_map<int, std::int32_t> place;
    for (std::size_t u = 0; u < trace.units.size(); ++u)
        place.emplace(trace.units[u].id, static_cast<std::int32_t>(u));
    const auto known = [&](int module) { return module >= 0 && module < size; };
    for (const ModuleRow& module : trace.modules) {
        if (!known(module.id)) continue;
        if (known(module.parent)) parent[static_cast<std::size_t>(module.id)] = module.parent;
        if (const auto it = place.find(module.unit); module.unit >= 0 && it != place.end())
            unit[static_cast<std::size_t>(module.id)] = it->second;
    }
    for (std::size_t u = 0; u < trace.units.size(); ++u) {
        if (known(trace.units[u].module))
            unit[static_cast<std::size_t>(trace.units[u].module)] = static_cast<std::int32_t>(u);
    }
    std::vector<std::int32_t> result(unit);
    for (std::size_t m = 0; m < unit.size(); ++m) {
        std::int32_t at = static_cast<std::int32_t>(m);
        for (std::int32_t levels = 0; at >= 0 && levels <= size; ++levels) {  // damaged trees may have cycles
            if (unit[static_cast<std::size_t>(at)] >= 0) break;
            at = parent[static_cast<std::size_t>(at)];
        }
        result[m] = at >= 0 ? unit[static_cast<std::size_t>(at)] : -1;
    }
    return result;
}

}  // namespace shardscope::traces
