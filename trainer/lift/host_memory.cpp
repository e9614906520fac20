#include "trainer/lift/host_memory.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "traces/store/columns/memory_facts.h"

namespace shardscope::trainer::lift {

traces::store::MemoryEvents host_memory(const traces::store::Trace& from,
                                        const std::vector<traces::analysis::IntervalSet>& library_copies,
                                        const std::vector<traces::analysis::IntervalSet>& fsdp_collectives) {
    const traces::store::MemoryEvents& all = from.memory;
    const auto inside = [&](const std::vector<traces::analysis::IntervalSet>& sets, std::size_t m) {
        return traces::analysis::length_within(sets[all.rank[m]], {all.time[m], all.time[m] + 1}) > 0;
    };
    const auto missed = from.strings.find(traces::store::kNotInTheTrace);
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
        kept[m] = !inside(library_copies, m);
    }
    for (const auto& [place, m] : live) kept[m] = kept[m] && !inside(fsdp_collectives, m);
    traces::store::MemoryEvents out;
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
        out.space.push_back(all.space[m] == traces::schema::MemorySpace::host
                                ? traces::schema::MemorySpace::device
                                : all.space[m]);
        out.phase.push_back(all.phase[m]);
    }
    return out;
}

}  // namespace shardscope::trainer::lift
