// Turns rows in order of arrival into the sorted, linked columns of a Trace: its ranks and threads, the call
// that launched each device event, the device event of each collective, the nesting of ranges.
#include "traces/store/columns/build_columns.h"

#include <algorithm>
#include <utility>

#include "traces/schema/sort_rows.h"

namespace shardscope::traces::store {

namespace {

// Modules and units in the order of their ids, each once (every part of a run describes them all).
template <typename Row>
void sort_unique(std::vector<Row>& rows) {
    schema::sort_rows(rows, [](const Row& a, const Row& b) { return a.id < b.id; });
    rows.erase(std::unique(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.id == b.id; }),
               rows.end());
}

}  // namespace

void build_columns(PendingRows&& rows, Trace& trace) {
    check_rows(rows.device.size(), "device events", trace);
    check_rows(rows.runtime.size(), "runtime calls", trace);
    check_rows(rows.ranges.size(), "ranges", trace);
    check_rows(rows.marks.size(), "marks", trace);
    check_rows(rows.memory.size(), "memory events", trace);
    check_rows(rows.collectives.size(), "collectives", trace);
    check_rows(rows.synchronizations.size(), "synchronizations", trace);
    check_rows(rows.counters.size(), "counter values", trace);
    check_rows(rows.samples.size(), "samples", trace);
    const RankLookup ranks(rows, trace);
    ThreadLookup threads(rows, ranks, trace);
    build_calls(rows.runtime, trace);
    std::vector<std::int64_t> process_of_thread;
    for (const SlotKey& thread : rows.threads.keys()) process_of_thread.push_back(pid_of(thread.a));
    const CorrelationIndex calls(trace.runtime.correlation, rows.runtime.thread, process_of_thread);
    build_device(rows.device, rows.streams, ranks, calls, trace);
    build_collectives(rows.collectives, ranks, trace);

    threads.settle_by_launches(rows.runtime.thread, trace.device);
    threads.finish(trace);
    trace.runtime.thread = threads(rows.runtime.thread);
    build_ranges(rows, threads, trace);
    build_marks(rows.marks, threads, trace);
    build_samples(rows.samples, threads, trace);
    build_synchronizations(rows.synchronizations, ranks, calls, trace);
    build_launch_ranges(rows, trace);
    build_links(rows.links, threads, trace);
    build_memory(rows, ranks, threads, trace);
    build_segments(rows.segments, ranks, trace);
    build_counters(rows.counters, ranks, trace);
    build_steps(rows, ranks, trace);
    put_kept_in_order(trace);
}

void put_kept_in_order(Trace& trace) {
    sort_unique(trace.modules);
    sort_unique(trace.units);
    Trace::each_kind([&]<typename Row>(Row*) { schema::put_in_order(trace.kept<Row>()); });
}

}  // namespace shardscope::traces::store
