// See blocking_calls.h.
#include "traces/analysis/path/blocking_calls.h"

#include <algorithm>
#include <string_view>

#include "traces/store/columns/trace.h"

namespace shardscope::traces {

BlockingCalls::BlockingCalls(const Trace& trace, std::span<const std::int32_t> left_out)
    : trace_(trace), by_thread_(trace.threads.size()) {
    std::vector<std::int8_t> blocking(trace.strings.size(), -1);
    std::vector<bool> no(trace.ranges.size(), false);
    for (const std::int32_t range : left_out) no[static_cast<std::size_t>(range)] = true;
    const RuntimeCalls& calls = trace.runtime;
    for (std::size_t i = 0; i < calls.size(); ++i) {
        std::int8_t& known = blocking[static_cast<std::size_t>(calls.name[i])];
        if (known < 0) known = trace.strings[calls.name[i]].find("Synchronize") != std::string_view::npos;
        if (known == 0) continue;
        const std::int32_t range = calls.range[i];
        if (range >= 0 && no[static_cast<std::size_t>(range)]) continue;
        by_thread_[calls.thread[i]].push_back(static_cast<std::int32_t>(i));
    }
}

std::int64_t BlockingCalls::since(std::uint16_t thread, std::int64_t time) const {
    const std::vector<std::int32_t>& calls = by_thread_[thread];
    const auto after = std::partition_point(calls.begin(), calls.end(), [&](std::int32_t call) {
        return trace_.runtime.start[static_cast<std::size_t>(call)] <= time;
    });
    if (after == calls.begin()) return time;
    const auto call = static_cast<std::size_t>(*(after - 1));
    return trace_.runtime.end[call] >= time ? trace_.runtime.start[call] : time;
}

}  // namespace shardscope::traces
