// See memory_curves.h.
#include "traces/analysis/memory_curves.h"

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "traces/analysis/counter_curve.h"
#include "traces/store/trace.h"

namespace shardscope::traces {

ByteCurve allocated_curve(const Trace& trace, int rank_index, MemorySpace space) {
    const MemoryEvents& memory = trace.memory;
    ByteCurve curve;
    std::int64_t total = 0;
    for (std::size_t i = 0; i < memory.size(); ++i) {
        if (memory.rank[i] != rank_index || memory.space[i] != space) continue;
        total += memory.bytes[i];
        curve.time.push_back(memory.time[i]);
        curve.bytes.push_back(total);
    }
    return curve;
}

PoolCurves pool_curves(const Trace& trace, int rank_index) {
    PoolCurves curves;
    const std::array<std::pair<std::string_view, ByteCurve*>, 3> wanted = {
        {{kReservedCounter, &curves.reserved},
         {kActiveCounter, &curves.active},
         {kAllocatedCounter, &curves.allocated}}};
    const Counters& counters = trace.counters;
    for (const auto& [name, curve] : wanted) {
        const std::optional<StringId> id = trace.strings.find(name);
        for (std::size_t i = 0; id && i < counters.size(); ++i) {
            if (counters.rank[i] != rank_index || counters.name[i] != *id) continue;
            curve->time.push_back(counters.time[i]);
            curve->bytes.push_back(counter_bytes(counters.value[i]));
        }
    }
    return curves;
}

}  // namespace shardscope::traces
