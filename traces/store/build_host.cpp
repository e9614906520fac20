// What host threads did: runtime calls, ranges, marks, steps.
#include <tuple>
#include <unordered_map>
#include <utility>

#include "traces/store/build_columns.h"
#include "traces/store/names.h"
#include "traces/store/nesting.h"

namespace shardscope::traces {

void build_runtime(const std::vector<RuntimeRow>& rows, const ThreadIndex& threads, Trace& trace) {
    RuntimeCalls& c = trace.runtime;
    for (const RuntimeRow& r : rows) {
        c.start.push_back(r.start);
        c.end.push_back(r.end);
        c.correlation.push_back(r.correlation);
        c.name.push_back(r.name);
        c.thread.push_back(threads[r.global_tid]);
    }
}

void build_ranges(std::vector<RangeRow>& rows, const ThreadIndex& threads, Trace& trace) {
    std::stable_sort(rows.begin(), rows.end(), [](const RangeRow& a, const RangeRow& b) {
        return a.start != b.start ? a.start < b.start : *a.end > *b.end;
    });
    HostRanges& h = trace.ranges;
    for (const RangeRow& r : rows) {
        h.start.push_back(r.start);
        h.end.push_back(*r.end);
        h.name.push_back(r.text);
        h.module.push_back(r.module);
        h.thread.push_back(threads[r.global_tid]);
        h.kind.push_back(range_kind(trace.strings[r.text], trace.strings[r.domain], r.module >= 0));
    }
    const bool detailed =
        std::any_of(rows.begin(), rows.end(), [](const RangeRow& r) { return r.detail != StringId::empty; });
    if (detailed) {
        for (const RangeRow& r : rows) h.detail.push_back(r.detail);
    }
    RuntimeCalls& c = trace.runtime;
    Nesting nesting = nest(h.start, h.end, h.thread, c.start, c.thread);
    h.parent = std::move(nesting.parent);
    h.depth = std::move(nesting.depth);
    c.range = std::move(nesting.innermost);
}

void build_marks(std::vector<RangeRow>& rows, const ThreadIndex& threads, Trace& trace) {
    std::stable_sort(rows.begin(), rows.end(),
                     [](const RangeRow& a, const RangeRow& b) { return a.start < b.start; });
    for (const RangeRow& r : rows) {
        trace.marks.time.push_back(r.start);
        trace.marks.name.push_back(r.text);
        trace.marks.thread.push_back(threads[r.global_tid]);
    }
}

void build_steps(const PendingRows& rows, const RankIndex& ranks, Trace& trace) {
    for (const StepRow& s : rows.steps) {
        trace.steps.push_back(
            {.rank = ranks.of_number(s.rank), .number = s.step, .start = s.start, .end = s.end, .loss = {}});
    }
    if (rows.steps.empty()) {
        for (std::size_t i = 0; i < trace.ranges.size(); ++i) {
            if (trace.ranges.kind[i] != RangeKind::step) continue;
            const int rank = trace.threads[trace.ranges.thread[i]].rank;
            const auto number = profiler_step(trace.strings[trace.ranges.name[i]]);
            if (rank < 0 || !number) continue;
            trace.steps.push_back({.rank = rank,
                                   .number = *number,
                                   .start = trace.ranges.start[i],
                                   .end = trace.ranges.end[i],
                                   .loss = {}});
        }
    }
    std::stable_sort(trace.steps.begin(), trace.steps.end(), [](const Step& a, const Step& b) {
        return std::tie(a.rank, a.start) < std::tie(b.rank, b.start);
    });
    std::unordered_map<std::int64_t, double> losses;
    for (const LossRow& l : rows.losses) losses[l.step] = l.loss;
    for (Step& s : trace.steps) {
        if (const auto it = losses.find(s.number); it != losses.end()) s.loss = it->second;
    }
}

}  // namespace shardscope::traces
