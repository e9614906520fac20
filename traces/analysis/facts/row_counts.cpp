// See row_counts.h.
#include "traces/analysis/facts/row_counts.h"

#include <algorithm>
#include <array>

#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/facts/info.h"
#include "traces/store/columns/memory_facts.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces {
namespace {

// The selected host time of each rank.
class HostSelection {
  public:
    HostSelection(const Trace& trace, const TraceSteps& steps, const Selection& selection) {
        ranks_.resize(trace.ranks.size());
        for (const int r : selected_ranks(trace, selection)) {
            ranks_[static_cast<std::size_t>(r)] =
                selected_host_time(steps.ranks[static_cast<std::size_t>(r)], selection);
        }
        all_ranks_ = !selection.rank;
        any_ = selected_time(selection);
    }
    bool has_rank(int rank) const {
        return rank < 0 || rank == kNoRank ? all_ranks_ : !time_of(rank).empty();
    }
    // A rank below 0 or kNoRank belongs to no rank; only the range of time decides then.
    bool has(int rank, std::int64_t time) const {
        if (rank < 0 || rank == kNoRank) return all_ranks_ && time >= any_.start && time < any_.end;
        const IntervalSet& set = time_of(rank);
        const auto at =
            std::partition_point(set.begin(), set.end(), [time](const Interval& i) { return i.end <= time; });
        return at != set.end() && at->start <= time;
    }

  private:
    const IntervalSet& time_of(int rank) const {
        static const IntervalSet kNoRows;
        const auto at = static_cast<std::size_t>(rank);
        return at < ranks_.size() ? ranks_[at] : kNoRows;
    }
    std::vector<IntervalSet> ranks_;
    bool all_ranks_ = true;
    Interval any_;
};

}  // namespace

std::vector<bool> recorded_memory_events(const Trace& trace) {
    const MemoryEvents& memory = trace.memory;
    std::vector<bool> recorded(memory.size(), true);
    const auto before = trace.strings.find(kBeforeTheTrace), missed = trace.strings.find(kNotInTheTrace);
    for (std::size_t i = 0; i < memory.size(); ++i) {
        recorded[i] = memory.address[i] != 0 || (memory.name[i] != before && memory.name[i] != missed);
    }
    return recorded;
}

std::vector<std::pair<std::string, std::int64_t>> row_counts(const Trace& trace, const Selection& selection) {
    std::vector<std::pair<std::string, std::int64_t>> counts = trace_info(trace).counts;
    const bool all = !selection.rank && !selection.first_step && !selection.last_step && !selection.from_ns &&
                     !selection.to_ns;
    if (all) return counts;
    const TraceSteps steps = find_steps(trace);
    const HostSelection host(trace, steps, selection);
    const std::vector<bool> selected = selected_events(trace, steps, selection);

    std::array<std::int64_t, kDeviceKinds> kinds{};
    std::int64_t collectives = 0;
    for (std::size_t i = 0; i < selected.size(); ++i) {
        if (!selected[i]) continue;
        ++kinds[static_cast<std::size_t>(trace.device.kind[i])];
        collectives += trace.device.collective[i] >= 0 ? 1 : 0;
    }
    const auto set = [&](const char* name, std::int64_t count) {
        for (auto& [known, value] : counts) {
            if (known == name) value = count;
        }
    };
    const auto count_if = [](std::size_t size, const auto& counts_too) {
        std::int64_t count = 0;
        for (std::size_t i = 0; i < size; ++i) count += counts_too(i) ? 1 : 0;
        return count;
    };
    const auto thread_rank = [&](std::uint16_t thread) { return trace.threads[thread].rank; };
    set("kernels", kinds[static_cast<std::size_t>(DeviceKind::kernel)]);
    set("communication", kinds[static_cast<std::size_t>(DeviceKind::communication)]);
    set("memcpys", kinds[static_cast<std::size_t>(DeviceKind::memcpy)]);
    set("memsets", kinds[static_cast<std::size_t>(DeviceKind::memset)]);
    set("collectives", collectives);
    set("runtime_calls", count_if(trace.runtime.size(), [&](std::size_t i) {
            return host.has(thread_rank(trace.runtime.thread[i]), trace.runtime.start[i]);
        }));
    set("ranges", count_if(trace.ranges.size(), [&](std::size_t i) {
            return host.has(thread_rank(trace.ranges.thread[i]), trace.ranges.start[i]);
        }));
    const std::vector<bool> recorded = recorded_memory_events(trace);
    set("memory_events", count_if(trace.memory.size(), [&](std::size_t i) {
            return recorded[i] && host.has(trace.memory.rank[i], trace.memory.time[i]);
        }));
    set("counter_values", count_if(trace.counters.size(), [&](std::size_t i) {
            return host.has(trace.counters.rank[i], trace.counters.time[i]);
        }));
    set("steps", count_if(trace.steps.size(), [&](std::size_t i) {
            const Step& step = trace.steps[i];
            return selection.has_step(step.number) && host.has(step.rank, step.start);
        }));
    set("streams",
        count_if(trace.streams.size(), [&](std::size_t i) { return host.has_rank(trace.streams[i].rank); }));
    set("threads",
        count_if(trace.threads.size(), [&](std::size_t i) { return host.has_rank(trace.threads[i].rank); }));
    return counts;
}

}  // namespace shardscope::traces
