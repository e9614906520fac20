// Data common to all steps' graphs of a trace; see step_graph.h.
#include <span>

#include "traces/analysis/communication/matching.h"
#include "traces/analysis/path/step_graph.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

// Whether the parts, sorted by rank, are one each of several ranks. With two parts of one rank it is unknown
// which rank came last.
bool of_several_ranks(std::span<const Communication> parts) {
    for (std::size_t i = 1; i < parts.size(); ++i) {
        if (parts[i].rank == parts[i - 1].rank) return false;
    }
    return parts.size() > 1;
}

}  // namespace

GraphSources::GraphSources(const store::Trace& t, const TraceSteps& s) : trace(t), steps(s), roles(t) {
    const store::DeviceEvents& device = trace.device;
    const store::RuntimeCalls& runtime = trace.runtime;

    // Collectives and their counterparts.
    joined_of.assign(device.size(), -1);
    const Communications communications = match_communications(trace);
    for (const CollectiveMatch& match : communications.matches) {
        if (match.unmatched || !of_several_ranks(communications.of(match))) continue;
        JoinedCollective all;
        bool first = true;
        for (const Communication& part : communications.of(match)) {
            if (part.event < 0) continue;
            const auto event = static_cast<std::size_t>(part.event);
            const std::int64_t start = device.start[event], end = device.end[event];
            joined_of[event] = static_cast<std::int32_t>(joined.size());
            all.last_start = first ? start : std::max(all.last_start, start);
            if (first || end - start < all.transfer) {
                all.transfer = end - start;
                all.shortest_rank = part.rank;
            }
            all.first_end = first ? end : std::min(all.first_end, end);
            first = false;
        }
        if (!first) joined.push_back(all);
    }

    // Groups device events by step.
    events.resize(trace.ranks.size());
    calls.resize(trace.ranks.size());
    for (std::size_t r = 0; r < events.size(); ++r) {
        events[r].resize(steps.ranks[r].steps.size());
        calls[r].resize(steps.ranks[r].steps.size());
    }
    std::vector<bool> launches(trace.threads.size(), false), rank_launches(trace.ranks.size(), false);
    for (std::size_t i = 0; i < device.size(); ++i) {
        if (device.launch[i] >= 0) {
            const std::uint16_t thread = runtime.thread[static_cast<std::size_t>(device.launch[i])];
            launches[thread] = true;
            const store::RankIndex rank = trace.threads[thread].rank;
            if (rank.known()) rank_launches[rank.at()] = true;
        }
        const std::int32_t step = steps.event[i];
        if (step >= 0) {
            events[device.rank[i]][static_cast<std::size_t>(step)].push_back(static_cast<std::uint32_t>(i));
        }
    }

    for (std::size_t i = 0; i < runtime.size(); ++i) {
        const std::uint16_t thread = runtime.thread[i];
        const store::RankIndex rank = trace.threads[thread].rank;
        if (!rank.known()) continue;
        const std::size_t r = rank.at();
        if (!launches[thread] && rank_launches[r]) continue;
        const int step = trace.steps.empty() ? 0 : steps.ranks[r].step_at(runtime.start[i]);
        if (step < 0 || calls[r].empty()) continue;
        calls[r][static_cast<std::size_t>(step)].push_back(static_cast<std::uint32_t>(i));
    }
}

}  // namespace shardscope::traces::analysis
