// See device_time.h.
#include "traces/analysis/device_time.h"

namespace shardscope::traces {

std::vector<KindUnions> device_unions(const Trace& trace) {
    std::vector<KindUnions> ranks(trace.ranks.size());
    const DeviceEvents& device = trace.device;
    for (std::size_t i = 0; i < device.size(); ++i) {
        IntervalSet& set = ranks[device.rank[i]][static_cast<std::size_t>(device.kind[i])];
        append_merged(set, {device.start[i], device.end[i]});
    }
    return ranks;
}

IntervalSet busy(const KindUnions& unions) {
    std::vector<Interval> all;
    for (const IntervalSet& set : unions) all.insert(all.end(), set.begin(), set.end());
    return make_union(std::move(all));
}

}  // namespace shardscope::traces
