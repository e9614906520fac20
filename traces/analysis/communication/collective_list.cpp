// See collective_list.h.
#include "traces/analysis/communication/collective_list.h"

#include <algorithm>
#include <unordered_map>

#include "traces/analysis/base/intervals.h"
#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/communication/collectives.h"
#include "traces/analysis/communication/matching.h"
#include "traces/schema/sort_rows.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces {
namespace {

// The union of one rank's compute kernels, with the total length before each piece.
class ComputeTime {
  public:
    void add(Interval kernel) { append_merged(pieces_, kernel); }  // in order of start
    void finish() {
        before_.assign(1, 0);
        for (const Interval& piece : pieces_) before_.push_back(before_.back() + piece.length());
    }
    std::int64_t inside(Interval time) const { return up_to(time.end) - up_to(time.start); }

  private:
    std::int64_t up_to(std::int64_t time) const {
        const auto at =
            static_cast<std::size_t>(std::partition_point(pieces_.begin(), pieces_.end(),
                                                          [&](const Interval& p) { return p.start < time; }) -
                                     pieces_.begin());
        if (at == 0) return 0;
        return before_[at - 1] + std::min(time, pieces_[at - 1].end) - pieces_[at - 1].start;
    }
    IntervalSet pieces_;
    std::vector<std::int64_t> before_;
};

std::vector<ComputeTime> compute_of_ranks(const Trace& trace) {
    std::vector<ComputeTime> compute(trace.ranks.size());
    for (std::size_t i = 0; i < trace.device.size(); ++i) {
        if (trace.device.kind[i] == DeviceKind::kernel)
            compute[trace.device.rank[i]].add({trace.device.start[i], trace.device.end[i]});
    }
    for (ComputeTime& rank : compute) rank.finish();
    return compute;
}

}  // namespace

std::vector<CollectiveTimes> collective_list(const Trace& trace, const Selection& selection) {
    const TraceSteps steps = find_steps(trace);
    const std::vector<bool> selected = selected_events(trace, steps, selection);
    const Communications all = match_communications(trace);
    const std::vector<ComputeTime> compute = compute_of_ranks(trace);
    std::unordered_map<std::int64_t, std::int32_t> place_of_unit;
    for (std::size_t u = 0; u < trace.units.size(); ++u)
        place_of_unit.emplace(trace.units[u].id, static_cast<std::int32_t>(u));

    std::vector<CollectiveTimes> list;
    for (const CollectiveMatch& match : all.matches) {
        CollectiveTimes c;
        bool wanted = false;
        for (const Communication& part : all.of(match)) {
            const std::int64_t ns = duration(trace, part);
            if (ns < 0) continue;
            const auto event = static_cast<std::size_t>(part.event);
            wanted = wanted || selected[event];
            const std::int64_t hidden =
                compute[part.rank].inside({trace.device.start[event], trace.device.end[event]});
            c.overlapped_ns += hidden;
            c.exposed_ns += ns - hidden;
            c.waiting_ns += ns - match.transfer_ns;
            if (c.ranks == 0 || ns > c.longest_ns) {
                c.longest_ns = ns;
                c.event = part.event;
                c.start_ns = trace.device.start[event];
            }
            if (ns == match.transfer_ns && c.last_rank < 0) c.last_rank = trace.ranks[part.rank].number;
            ++c.ranks;
        }
        if (!wanted) continue;
        const Communication& first = all.of(match).front();
        c.operation = first.operation;
        c.transfer_ns = match.transfer_ns;
        if (c.ranks < 2) c.last_rank = -1;
        if (first.row >= 0) {
            const auto row = static_cast<std::size_t>(first.row);
            const Collectives& rows = trace.collectives;
            c.phase = rows.phase[row];
            c.group = rows.group[row];
            c.sequence = rows.sequence[row];
            c.bytes = rows.bytes[row];
            c.group_size = rows.group_size[row];
            if (const auto unit = place_of_unit.find(rows.unit[row]); unit != place_of_unit.end())
                c.unit = unit->second;
        }
        if (c.bytes > 0) {
            const auto bytes = static_cast<double>(c.bytes);
            c.algbw_gbps = gbps_or_unknown(bytes, c.transfer_ns);
            c.busbw_gbps = gbps_or_unknown(bytes * bus_factor(c.operation, c.group_size), c.transfer_ns);
        }
        list.push_back(c);
    }
    sort_rows(list, [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; });
    return list;
}

}  // namespace shardscope::traces
