// See advice_place.h. Each rule is shown by the largest of the events or ranges that it sums up.
#include "traces/analysis/advice/advice_place.h"

#include <algorithm>

#include "traces/analysis/base/intervals.h"
#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/communication/host_collectives.h"
#include "traces/analysis/communication/matching.h"
#include "traces/analysis/fsdp/unit_collectives.h"
#include "traces/analysis/fsdp/unit_ranges.h"
#include "traces/analysis/memory/memory.h"
#include "traces/analysis/path/critical_path.h"
#include "traces/analysis/time/idle.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

using Place = std::optional<AdvicePlace>;

// Keeps the longer of the two places.
void keep_longer(Place& best, std::int64_t& longest, std::int64_t length, AdvicePlace place) {
    if (length <= longest) return;
    longest = length;
    best = std::move(place);
}

AdvicePlace place_of_event(const store::Trace& trace, std::size_t event, std::string_view what) {
    const store::DeviceEvents& device = trace.device;
    return {store::RankIndex(device.rank[event]),
            device.start[event],
            device.end[event],
            static_cast<std::int32_t>(event),
            -1,
            std::string(what)};
}

bool moves_parameters(const store::Trace& trace, std::size_t event) {
    const std::int32_t at = trace.device.collective[event];
    return at >= 0 &&
           trace.collectives.operation[static_cast<std::size_t>(at)] == schema::Operation::all_gather;
}

// Of the collectives that `accept` selects, the one with the most exposed time: no compute of its rank runs
// at the same time.
template <typename Accept>
Place exposed_collective(const store::Trace& trace, const Selection& selection, std::string_view what,
                         Accept accept) {
    const store::DeviceEvents& device = trace.device;
    const std::vector<bool> counts = selected_events(trace, find_steps(trace), selection);
    std::vector<IntervalSet> compute(trace.ranks.size());
    for (std::size_t i = 0; i < device.size(); ++i) {
        if (device.kind[i] == store::DeviceKind::kernel)
            append_merged(compute[device.rank[i]], {device.start[i], device.end[i]});
    }
    Place best;
    std::int64_t longest = 0;
    for (std::size_t i = 0; i < device.size(); ++i) {
        if (device.kind[i] != store::DeviceKind::communication || !counts[i]) continue;
        if (device.end[i] - device.start[i] <= longest || !accept(i)) continue;
        const Interval window{device.start[i], device.end[i]};
        keep_longer(best, longest, window.length() - length_within(compute[device.rank[i]], window),
                    place_of_event(trace, i, what));
    }
    return best;
}

Place longest_gap(const store::Trace& trace, const Selection& selection, std::optional<GapKind> kind,
                  std::string_view what) {
    Place best;
    std::int64_t longest = 0;
    const IdleDetails idle = idle_details(trace, selection, 1);
    const std::vector<store::RankIndex> ranks = selected_ranks(trace, selection);
    for (std::size_t r = 0; r < idle.ranks.size(); ++r) {
        for (const IdleGap& gap : idle.ranks[r].streams.front().gaps) {
            if (kind && gap.kind != *kind) continue;
            keep_longer(best, longest, gap.length(),
                        {ranks[r], gap.from, gap.to, gap.event, -1, std::string(what)});
            break;  // gaps are sorted longest first
        }
    }
    return best;
}

Place longest_piece(const store::Trace& trace, const Selection& selection, PathKind kind,
                    std::string_view what) {
    Place best;
    std::int64_t longest = 0;
    const CriticalPathReport path = critical_path(trace, selection, {}, true);
    for (const RankPath& rank : path.ranks) {
        for (const PathPiece& piece : rank.pieces) {
            if (piece.kind != kind) continue;
            keep_longer(best, longest, piece.to - piece.from,
                        {piece.rank, piece.from, piece.to, piece.event, piece.range, std::string(what)});
        }
    }
    return best;
}

Place longest_load(const store::Trace& trace, const Selection& selection) {
    Place best;
    std::int64_t longest = 0;
    const TraceSteps steps = find_steps(trace);
    const std::vector<IntervalSet> selected = selected_host_times(trace, steps, selection);
    const store::HostRanges& ranges = trace.ranges;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        const store::RankIndex rank = trace.threads[ranges.thread[i]].rank;
        if (ranges.kind[i] != store::RangeKind::data_loader || !rank.known()) continue;
        if (!holds(selected[rank.at()], ranges.start[i])) continue;
        keep_longer(best, longest, ranges.end[i] - ranges.start[i],
                    {rank, ranges.start[i], ranges.end[i], -1, static_cast<std::int32_t>(i),
                     "the longest loading of a batch"});
    }
    return best;
}

Place longest_host_collective(const store::Trace& trace, const Selection& selection) {
    Place best;
    std::int64_t longest = 0;
    for (const auto& [c, in_step] :
         selected_host_collectives(trace, find_steps(trace), match_communications(trace), selection)) {
        if (!in_step || (selection.rank && trace.ranks[c.rank].number != *selection.rank)) continue;
        keep_longer(best, longest, c.end - c.start,
                    {store::RankIndex(c.rank), c.start, c.end, -1, c.range,
                     "the longest collective of a host thread"});
    }
    return best;
}

Place emptiest_kernel(const store::Trace& trace, const Selection& selection) {
    constexpr float kLowOccupancyPercent = 25;
    const store::DeviceEvents& device = trace.device;
    if (device.occupancy.empty()) return {};
    const std::vector<bool> counts = selected_events(trace, find_steps(trace), selection);
    Place best;
    std::int64_t longest = 0;
    for (std::size_t i = 0; i < device.size(); ++i) {
        const bool low = device.occupancy[i] >= 0 && device.occupancy[i] < kLowOccupancyPercent;
        if (device.kind[i] != store::DeviceKind::kernel || !low || !counts[i]) continue;
        keep_longer(
            best, longest, device.end[i] - device.start[i],
            place_of_event(trace, i, "the longest kernel that occupies less than a quarter of the device"));
    }
    return best;
}

// The highest peak, in the middle of a hundredth of the trace.
Place highest_peak(const store::Trace& trace, const Selection& selection) {
    const MemoryReport report = memory_report(trace, selection, space_in_use(trace));
    Place best;
    std::int64_t most = 0;
    const std::int64_t air = std::max<std::int64_t>((trace.last_ns - trace.first_ns) / 200, 500);
    for (const RankMemory& rank : report.ranks) {
        const store::RankIndex at = trace.rank_of_number(rank.rank);
        if (!at.known()) continue;
        keep_longer(
            best, most, rank.peak_bytes,
            {at, rank.peak_time_ns - air, rank.peak_time_ns + air, -1, -1, "the highest peak of memory"});
    }
    return best;
}

bool any_of(std::string_view rule, std::initializer_list<std::string_view> rules) {
    return std::find(rules.begin(), rules.end(), rule) != rules.end();
}

}  // namespace

std::optional<AdvicePlace> advice_place(const store::Trace& trace, const Selection& selection,
                                        std::string_view rule) {
    if (any_of(rule, {"prefetch-off", "prefetch-miss", "prefetch-mistarget", "limiter-stall",
                      "wasted-regather", "checkpoint-regather", "wrap-too-fine"})) {
        return exposed_collective(trace, selection, "the most exposed gather",
                                  [&](std::size_t event) { return moves_parameters(trace, event); });
    }
    if (any_of(rule, {"exposed-communication", "slow-link", "p2p-missing", "ring-over-slow-link",
                      "late-reduction", "padding"}))
        return exposed_collective(trace, selection, "the most exposed collective",
                                  [](std::size_t) { return true; });
    if (any_of(rule, {"straggler", "uneven-ranks"}))
        return longest_piece(trace, selection, PathKind::waiting, "the longest wait for another rank");
    if (any_of(rule, {"copies-on-path", "file-waits"}))
        return longest_piece(trace, selection, PathKind::memcpy, "the longest copy on the critical path");
    if (rule == "host-communication") return longest_host_collective(trace, selection);
    if (rule == "data-loader") return longest_load(trace, selection);
    if (rule == "host-bound")
        return longest_gap(trace, selection, GapKind::host_wait, "the longest wait for the host");
    if (rule == "idle-device") return longest_gap(trace, selection, {}, "the longest idle time");
    if (rule == "low-occupancy") return emptiest_kernel(trace, selection);
    if (any_of(rule,
               {"wrap-too-coarse", "activations-are-peak", "optimizer-is-peak", "gradient-double-buffer",
                "memory-near-limit", "untracked-memory", "fragmentation", "out-of-memory"})) {
        return highest_peak(trace, selection);
    }
    return {};  // a rule about the configuration has no place
}

std::optional<AdvicePlace> exposed_place(const store::Trace& trace, const Selection& selection,
                                         std::string_view unit, schema::Phase phase) {
    const UnitRanges ranges = find_units(trace);
    const UnitCollectives of_units(trace, ranges);
    return exposed_collective(trace, selection, "the most exposed collective of the unit",
                              [&](std::size_t event) {
                                  const auto known = of_units.of_event(event);
                                  return known && known->unit.known() && known->phase == phase &&
                                         ranges.names[known->unit.at()] == unit;
                              });
}

}  // namespace shardscope::traces::analysis
