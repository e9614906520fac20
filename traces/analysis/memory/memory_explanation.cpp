// See memory_explanation.h.
#include "traces/analysis/memory/memory_explanation.h"

#include <algorithm>

#include "traces/analysis/memory/memory_curves.h"
#include "traces/analysis/memory/peak_search.h"
#include "traces/analysis/memory/prediction.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

// The times at which a rank's host threads requested more memory from the device, sorted.
class Growths {
  public:
    Growths(const store::Trace& trace, store::RankIndex rank) {
        const std::optional<schema::StringId> name = trace.strings.find("cudaMalloc");
        const store::RuntimeCalls& calls = trace.runtime;
        for (std::size_t i = 0; name && i < calls.size(); ++i) {
            if (calls.name[i] == *name && trace.threads[calls.thread[i]].rank == rank) {
                times_.push_back(calls.start[i]);
            }
        }
        // A snapshot has no calls: each segment counts as one, except those without a stream, which existed
        // before.
        const store::Segments& segments = trace.segments;
        const bool told = !times_.empty();
        for (std::size_t i = 0; !told && i < segments.size(); ++i) {
            if (segments.rank[i] == rank.value && segments.bytes[i] > 0 && segments.stream[i] >= 0)
                times_.push_back(segments.time[i]);
        }
        std::sort(times_.begin(), times_.end());
    }
    std::int64_t in(const Interval& time) const {
        if (time.end <= time.start) return 0;
        return std::lower_bound(times_.begin(), times_.end(), time.end) -
               std::lower_bound(times_.begin(), times_.end(), time.start);
    }

  private:
    std::vector<std::int64_t> times_;
};

template <typename Row>
std::string name_of(const std::vector<Row>& rows, int id) {
    const auto at = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.id == id; });
    return at != rows.end() ? at->name : std::string();
}

// All inputs for one rank; built once, queried for each part of the explanation.
class RankExplainer {
  public:
    RankExplainer(const store::Trace& trace, store::RankIndex rank, const RankSteps& steps,
                  const Selection& selection)
        : trace_(trace),
          rank_(rank),
          allocated_(trace, rank),
          active_(trace, rank, kActiveCounter),
          reserved_(trace, rank, kReservedCounter),
          growths_(trace, rank) {
        const IntervalSet time = selected_host_time(steps, selection);
        if (!time.empty()) time_ = {time.front().start, time.back().end};
        if (trace.steps.empty()) return;
        for (const StepWindow& step : steps.steps) {
            if (!selection.has_step(step.number)) continue;
            const Interval host = {std::max(step.host.start, time_.start),
                                   std::min(step.host.end, time_.end)};
            if (host.start < host.end) steps_.push_back({step.number, host});
        }
    }

    PeakMoment moment(const std::vector<std::uint32_t>& rows, const Peak& peak) const {
        PeakMoment moment;
        if (rows.empty()) return moment;
        for (const SelectedStep& step : steps_) {
            if (peak.time >= step.host.start && peak.time < step.host.end) moment.step = step.number;
        }
        if (peak.initial || peak.rows == 0) return moment;
        const store::MemoryEvents& memory = trace_.memory;
        const std::uint32_t row = rows[peak.rows - 1];
        moment.phase = memory.phase[row];
        moment.buffer = trace_.strings[memory.name[row]];
        moment.unit = name_of(trace_.units, memory.unit[row]);
        moment.module = name_of(trace_.modules, memory.module[row]);
        if (!memory.annotation.empty()) moment.annotation = trace_.strings[memory.annotation[row]];
        if (!memory.stack.empty()) moment.stack = trace_.strings[memory.stack[row]];
        moment.bytes = memory.bytes[row];
        return moment;
    }

    std::vector<StepMemory> steps() const {
        const RankPrediction prediction = prediction_of(trace_, rank_);
        std::vector<StepMemory> all;
        for (const SelectedStep& step : steps_) {
            StepMemory& row = all.emplace_back();
            row.step = step.number;
            row.peak_bytes = allocated_.most(step.host.start, step.host.end);
            if (!active_.empty()) row.active_bytes = counter_bytes(active_.most(step.host).value);
            if (!reserved_.empty()) row.reserved_bytes = counter_bytes(reserved_.most(step.host).value);
            row.predicted = prediction.of_step(step.number);
            row.growths = growths_.in(step.host);
        }
        return all;
    }

    // `range_start`: start of the time in which the allocated peak was searched; `rows`: the rank's.
    PoolMemory pool(const std::vector<std::uint32_t>& rows, const Peak& peak,
                    std::int64_t range_start) const {
        PoolMemory pool;
        pool.growths = growths_.in(time_);
        for (const SelectedStep& step : steps_) pool.growths_in_steps += growths_.in(step.host);
        if (const CounterCurve told(trace_, rank_, kAllocatedCounter); counts_active(trace_) && !told.empty())
            pool.allocated_peak_bytes = counter_bytes(told.most(time_).value);
        if (!active_.empty()) {
            const Interval after = {std::max(time_.start, range_start), time_.end};
            pool.active_peak_bytes = counter_bytes(active_.most(after).value);
        }
        if (reserved_.empty()) return pool;
        const CounterCurve::Extreme most = reserved_.most(time_);
        pool.reserved_peak_bytes = counter_bytes(most.value);
        // A recorder may note the growth after the allocation that caused it: the peak lasts until the next
        // row, which is a free.
        const std::int64_t peak_end =
            peak.rows < rows.size() ? trace_.memory.time[rows[peak.rows]] : time_.end;
        pool.reserved_at_peak = counter_bytes(reserved_.most({peak.time, peak_end}).value);
        pool.cached_at_peak = pool.reserved_at_peak - peak.total;
        for (const Interval& held : reserved_.when(most.value, time_)) {
            pool.allocated_at_reserved_peak =
                std::max(pool.allocated_at_reserved_peak, allocated_.most(held.start, held.end));
            if (active_.empty()) continue;
            pool.active_at_reserved_peak =
                std::max(pool.active_at_reserved_peak.value_or(0), counter_bytes(active_.most(held).value));
        }
        if (*pool.reserved_peak_bytes > 0) {
            const auto unused =
                static_cast<double>(*pool.reserved_peak_bytes - pool.allocated_at_reserved_peak);
            pool.fragmentation_percent = 100.0 * unused / static_cast<double>(*pool.reserved_peak_bytes);
        }
        return pool;
    }

  private:
    struct SelectedStep {
        std::int64_t number = 0;
        Interval host;
    };

    const store::Trace& trace_;
    store::RankIndex rank_;
    PeakIndex allocated_;
    CounterCurve active_, reserved_;
    Growths growths_;
    Interval time_;  // the selected time, from its first instant to its last
    std::vector<SelectedStep> steps_;
};

}  // namespace

MemoryExplanation explain_memory(const store::Trace& trace, const Selection& selection) {
    const TraceSteps steps = find_steps(trace);
    const auto rows = rows_by_rank(trace, schema::MemorySpace::device, steps, selection);
    MemoryReport report = memory_report(trace, selection);
    const std::vector<store::RankIndex> ranks = selected_ranks(trace, selection);
    MemoryExplanation explanation;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        const std::size_t at = ranks[i].at();
        const PeakRange range = peak_range(trace, rows[at], steps.ranks[at], selection);
        const Peak peak = find_peak(trace.memory, rows[at], range);
        const RankExplainer rank(trace, ranks[i], steps.ranks[at], selection);
        RankExplanation& result = explanation.ranks.emplace_back();
        result.memory = std::move(report.ranks[i]);
        result.moment = rank.moment(rows[at], peak);
        result.steps = rank.steps();
        result.pool = rank.pool(rows[at], peak, range.start);
    }
    return explanation;
}

}  // namespace shardscope::traces::analysis
