// From rows as they came to the sorted, linked columns of a Trace: who the ranks and threads are, which call
// launched which device event, which device event a collective is, how ranges nest.
#include "traces/store/build_columns.h"

#include <tuple>
#include <utility>

namespace shardscope::traces {

namespace {

// Modules and units in the order of their ids, each once (every part of a run describes them all).
template <typename Row>
void sort_unique(std::vector<Row>& rows) {
    std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.id < b.id; });
    rows.erase(std::unique(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.id == b.id; }),
               rows.end());
}

void build_flight(std::vector<FlightRow>& rows, Trace& trace) {
    std::stable_sort(rows.begin(), rows.end(), [](const FlightRow& a, const FlightRow& b) {
        return std::tie(a.rank, a.id) < std::tie(b.rank, b.id);
    });
    trace.flight = std::move(rows);
}

}  // namespace

void build_columns(PendingRows&& rows, Trace& trace) {
    const RankIndex ranks(rows, trace);
    std::stable_sort(rows.runtime.begin(), rows.runtime.end(), [](const RuntimeRow& a, const RuntimeRow& b) {
        return a.start != b.start ? a.start < b.start : a.end > b.end;
    });
    const auto order = sorted_order(rows.device.size(), [&](std::size_t a, std::size_t b) {
        return std::tie(rows.device[a].start, rows.device[a].end) <
               std::tie(rows.device[b].start, rows.device[b].end);
    });
    build_device(rows.device, order, rows.streams, ranks, trace);

    CorrelationIndex launches;
    for (std::size_t i = 0; i < rows.runtime.size(); ++i) {
        launches.add(rows.runtime[i].correlation, pid_of(rows.runtime[i].global_tid), i);
    }
    launches.sort();
    for (std::size_t i = 0; i < order.size(); ++i) {
        trace.device.launch[i] = launches.find(trace.device.correlation[i], rows.device[order[i]].global_pid);
    }
    build_collectives(rows.collectives, ranks, trace);

    ThreadIndex threads(rows, ranks, trace);
    threads.settle_by_launches(rows.runtime, trace.device);
    threads.finish(trace);
    build_runtime(rows.runtime, threads, trace);
    build_ranges(rows.ranges, threads, trace);
    build_marks(rows.marks, threads, trace);
    build_synchronizations(rows.synchronizations, ranks, launches, trace);
    build_launch_ranges(rows, order, trace);
    build_links(rows.links, threads, trace);
    build_memory(rows.memory, ranks, threads, rows.counters, trace);
    build_segments(rows.segments, ranks, trace);
    build_counters(rows.counters, ranks, trace);
    build_steps(rows, ranks, trace);
    build_flight(rows.flight, trace);
    sort_unique(trace.modules);
    sort_unique(trace.units);
}

}  // namespace shardscope::traces
