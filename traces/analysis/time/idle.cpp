// See idle.h; how a stream is followed: stream_walk.h.
#include "traces/analysis/time/idle.h"

#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/time/stream_walk.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces {

IdleReport idle_report(const Trace& trace, const Selection& selection, std::int64_t kernel_wait_ns) {
    const DeviceEvents& device = trace.device;
    const std::vector<bool> counts = selected_events(trace, find_steps(trace), selection);
    const EventsByStream streams = events_by_stream(trace);
    const std::int64_t from = selected_time(selection).start;
    std::vector<StreamWalk> devices(trace.ranks.size(), StreamWalk(trace, from, kernel_wait_ns));
    for (std::size_t i = 0; i < device.size(); ++i) devices[device.rank[i]].add(i, counts[i]);
    IdleReport report{.kernel_wait_ns = kernel_wait_ns, .ranks = {}};
    for (const int r : selected_ranks(trace, selection)) {
        RankIdle rank;
        rank.rank = trace.ranks[static_cast<std::size_t>(r)].number;
        rank.device = devices[static_cast<std::size_t>(r)].finish();
        for (std::size_t s = 0; s < trace.streams.size(); ++s) {
            if (trace.streams[s].rank != r) continue;
            StreamWalk walk(trace, from, kernel_wait_ns);
            for (std::size_t e = streams.first[s]; e < streams.first[s + 1]; ++e) {
                walk.add(streams.events[e], counts[streams.events[e]]);
            }
            StreamIdle idle = walk.finish();
            if (idle.events == 0) continue;
            idle.stream = trace.streams[s].id;
            idle.name = trace.streams[s].name;
            rank.streams.push_back(idle);
        }
        report.ranks.push_back(std::move(rank));
    }
    return report;
}

}  // namespace shardscope::traces
