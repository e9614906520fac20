#include "trainer/lift/host_memory.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "traces/store/columns/memory_facts.h"

namespace shardscope::trainer::lift {

traces::MemoryEvents host_memory(const traces::Trace& from,
                                 const std::vector<traces::IntervalSet>& library_copies) {
    const traces::MemoryEvents& all = from.memory;
    const auto missed = from.strings.find(traces::kNotInTheTrace);
    std::map<std::pair<std::uint16_t, std::uint64_t>, std::size_t> live;
    std::vector<bool> kept(all.size(), true);
    for (std::size_t m = 0; m < all.size(); ++m) {
        if (missed == all.name[m]) {
            kept[m] = false;
            continue;
        }
        const std::pair key(all.rank[m], all.address[m]);
        const auto found = live.find(key);
        if (all.bytes[m] < 0) {
            if (found == live.end()) continue;
            kept[m] = kept[found->second];
            live.erase(found);
            continue;
        }
        if (found != live.end()) kept[found->second] = false;
        live[key] = m;
        kept[m] = traces::length_within(library_copies[all.rank[m]], {all.time[m], all.time[m] + 1}) == 0;
    }
    traces::MemoryEvents out;
    for (std::size_t m = 0; m < all.size(); ++m) {
        if (!kept[m]) continue;
        out.time.push_back(all.time[m]);
        out.bytes.push_back(all.bytes[m]);
        out.address.push_back(all.address[m]);
        out.unit.push_back(all.unit[m]);
        out.module.push_back(all.module[m]);
        out.name.push_back(all.name[m]);
        out.rank.push_back(all.rank[m]);
        out.category.push_back(all.category[m]);
        out.space.push_back(all.space[m] == traces::MemorySpace::host ? traces::MemorySpace::device
                                                                      : all.space[m]);
        out.phase.push_back(all.phase[m]);
    }
    return out;
}

}  // namespace shardscope::trainer::lift
