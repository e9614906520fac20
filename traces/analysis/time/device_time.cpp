// See device_time.h.
#include "traces/analysis/time/device_time.h"

#include <algorithm>

#include "traces/analysis/base/step_windows.h"
#include "traces/schema/memory_kinds.h"

namespace shardscope::traces::analysis {

std::vector<KindUnions> device_unions(const store::Trace& trace) {
    std::vector<KindUnions> ranks(trace.ranks.size());
    const store::DeviceEvents& device = trace.device;
    for (std::size_t i = 0; i < device.size(); ++i) {
        if (schema::is_of_file(device.copy_kind[i])) continue;
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

std::vector<IntervalSet> device_presence(const store::Trace& trace) {
    std::vector<IntervalSet> ranks(trace.ranks.size());
    const store::DeviceEvents& device = trace.device;
    for (std::size_t i = 0; i < device.size(); ++i) {
        if (schema::is_of_file(device.copy_kind[i])) continue;
        IntervalSet& set = ranks[device.rank[i]];
        if (!set.empty() && device.start[i] <= set.back().end) {
            set.back().end = std::max(set.back().end, device.end[i]);
        } else {
            set.push_back({device.start[i], device.end[i]});
        }
    }
    return ranks;
}

std::vector<Interval> active_times(const IntervalSet& presence, std::span<const Interval> windows) {
    const auto before = [](const Interval& event, std::int64_t time) {
        return event.start < time && event.end <= time;
    };
    std::vector<Interval> times;
    times.reserve(windows.size());
    auto first = presence.begin();
    for (const Interval& window : windows) {
        while (first != presence.end() && before(*first, window.start)) ++first;
        const auto after = std::partition_point(first, presence.end(),
                                                [&](const Interval& i) { return i.start < window.end; });
        if (first == after) {
            times.push_back({window.start, window.start});
            continue;
        }
        times.push_back({std::max(first->start, window.start), std::min((after - 1)->end, window.end)});
    }
    return times;
}

std::vector<std::uint32_t> named_events(const store::Trace& trace, const Selection& selection,
                                        std::string_view name,
                                        std::initializer_list<store::DeviceKind> kinds) {
    const std::vector<bool> counts = selected_events(trace, find_steps(trace), selection);
    const auto wanted = trace.strings.find(name);
    std::vector<std::uint32_t> events;
    if (!wanted) return events;
    for (std::size_t i = 0; i < trace.device.size(); ++i) {
        if (counts[i] && trace.device.name[i] == *wanted &&
            std::find(kinds.begin(), kinds.end(), trace.device.kind[i]) != kinds.end())
            events.push_back(static_cast<std::uint32_t>(i));
    }
    return events;
}

}  // namespace shardscope::traces::analysis
