// From rows as they came to the sorted, linked columns of a Trace: who the ranks and threads are, which call
// launched which device event, which device event a collective is, how ranges nest.
#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>

#include <fmt/format.h>

#include "traces/store/error.h"
#include "traces/store/names.h"
#include "traces/store/nesting.h"
#include "traces/store/pending_rows.h"

namespace shardscope::traces {

namespace {

constexpr std::size_t kMaxIndex = std::numeric_limits<std::uint16_t>::max();

std::int64_t pid_of(std::int64_t global_tid) {
    return global_tid & ~std::int64_t{0xFFFFFF};
}

void check_size(std::size_t size, const char* what, const Trace& trace) {
    if (size <= kMaxIndex) return;
    throw StoreError(fmt::format("{} has {} {}, more than the {} that a trace can hold; open a part of it",
                                 trace.path.empty() ? "the trace" : trace.path, size, what, kMaxIndex));
}

// Numbers of rows in the order of `less`, ties in the order in which they came.
template <typename Less>
std::vector<std::size_t> sorted_order(std::size_t size, Less less) {
    std::vector<std::size_t> order(size);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), less);
    return order;
}

// Ranks by number and by device. Rows may speak of ranks that nobody described: those are made up.
class RankIndex {
  public:
    RankIndex(const PendingRows& rows, Trace& trace) {
        for (const RankRow& r : rows.ranks) {
            ranks_.try_emplace(r.rank, Rank{.number = r.rank,
                                            .device = r.device,
                                            .global_pid = r.global_pid,
                                            .global_tid = r.global_tid,
                                            .host = r.host,
                                            .device_name = r.device_name});
        }
        const auto make_up = [this](int number, int device) {
            ranks_.try_emplace(number, Rank{.number = number,
                                            .device = device,
                                            .global_pid = 0,
                                            .global_tid = 0,
                                            .host = {},
                                            .device_name = {}});
        };
        for (const auto& r : rows.collectives) make_up(r.rank, r.rank);
        for (const auto& r : rows.memory) make_up(r.rank, r.rank);
        for (const auto& r : rows.counters) {
            if (r.rank >= 0) make_up(r.rank, r.rank);
        }
        for (const auto& r : rows.steps) make_up(r.rank, r.rank);
        for (const auto& r : rows.streams) make_up(r.rank, r.rank);
        for (const auto& r : rows.threads) {
            if (r.rank >= 0) make_up(r.rank, r.rank);
        }
        std::set<int> devices;
        for (const auto& [number, rank] : ranks_) devices.insert(rank.device);
        int unused = 0;
        for (const auto& e : rows.device) {
            if (!devices.insert(e.device).second) continue;
            while (ranks_.contains(unused)) ++unused;
            make_up(ranks_.contains(e.device) ? unused : e.device, e.device);
        }
        check_size(ranks_.size(), "ranks", trace);
        for (auto& [number, rank] : ranks_) {
            const auto index = static_cast<std::uint16_t>(trace.ranks.size());
            by_number_.emplace(number, index);
            by_device_.emplace(rank.device, index);
            if (rank.global_pid != 0) by_pid_.emplace(rank.global_pid, index);
            trace.ranks.push_back(std::move(rank));
        }
        ranks_.clear();
    }

    std::uint16_t of_number(int number) const { return by_number_.at(number); }

    std::uint16_t of_device(int device, std::int64_t pid, const Trace& trace) const {
        const auto [first, last] = by_device_.equal_range(device);
        for (auto it = first; it != last; ++it) {
            if (trace.ranks[it->second].global_pid == pid) return it->second;
        }
        return first->second;
    }
    bool knows_device(int device) const { return by_device_.contains(device); }

    // The rank of a process that has only one, else -1.
    int of_pid(std::int64_t pid) const {
        return by_pid_.count(pid) == 1 ? static_cast<int>(by_pid_.find(pid)->second) : -1;
    }

  private:
    std::map<int, Rank> ranks_;
    std::unordered_map<int, std::uint16_t> by_number_;
    std::multimap<int, std::uint16_t> by_device_;
    std::multimap<std::int64_t, std::uint16_t> by_pid_;
};

// Finds rows by correlation id. Ids are unique in our files, but only within a process in Nsight's.
class CorrelationIndex {
  public:
    void add(std::int64_t correlation, std::int64_t pid, std::size_t index) {
        if (correlation != 0) entries_.push_back({correlation, pid, static_cast<std::int32_t>(index)});
    }
    void sort() {
        std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
            return std::tie(a.correlation, a.index) < std::tie(b.correlation, b.index);
        });
    }
    // The first row of `correlation` in that process (0: of any) for which `accept` holds, else -1.
    template <typename Accept>
    std::int32_t find(std::int64_t correlation, std::int64_t pid, Accept accept) const {
        if (correlation == 0) return -1;
        auto it = std::lower_bound(entries_.begin(), entries_.end(), correlation,
                                   [](const Entry& e, std::int64_t c) { return e.correlation < c; });
        for (; it != entries_.end() && it->correlation == correlation; ++it) {
            if ((pid == 0 || it->pid == 0 || it->pid == pid) && accept(it->index)) return it->index;
        }
        return -1;
    }

  private:
    struct Entry {
        std::int64_t correlation, pid;
        std::int32_t index;
    };
    std::vector<Entry> entries_;
};

// Device events, without their launches and collectives.
void build_device(const std::vector<PendingDeviceEvent>& rows, const std::vector<std::size_t>& order,
                  const std::vector<StreamRow>& stream_rows, const RankIndex& ranks, Trace& trace) {
    std::map<std::pair<std::uint16_t, int>, std::string> streams;
    for (const StreamRow& s : stream_rows) streams[{ranks.of_number(s.rank), s.stream}] = s.name;
    std::vector<std::uint16_t> rank_of_row(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
        rank_of_row[i] = ranks.of_device(rows[i].device, rows[i].global_pid, trace);
        streams.try_emplace({rank_of_row[i], rows[i].stream});
    }
    check_size(streams.size(), "streams", trace);
    std::map<std::pair<std::uint16_t, int>, std::uint16_t> stream_index;
    for (auto& [key, name] : streams) {
        stream_index.emplace(key, static_cast<std::uint16_t>(trace.streams.size()));
        trace.streams.push_back({.rank = key.first, .id = key.second, .name = std::move(name)});
    }

    DeviceEvents& d = trace.device;
    for (const std::size_t i : order) {
        const PendingDeviceEvent& e = rows[i];
        d.start.push_back(e.start);
        d.end.push_back(e.end);
        d.correlation.push_back(e.correlation);
        d.bytes.push_back(e.bytes);
        d.name.push_back(e.name);
        d.rank.push_back(rank_of_row[i]);
        d.stream.push_back(stream_index.at({rank_of_row[i], e.stream}));
        d.kind.push_back(e.kind);
        d.copy_kind.push_back(e.copy_kind);
    }
    d.launch.assign(rows.size(), -1);
    d.collective.assign(rows.size(), -1);
}

void build_collectives(const std::vector<CollectiveRow>& rows, const RankIndex& ranks, Trace& trace) {
    if (rows.empty()) return;
    CorrelationIndex events;
    for (std::size_t i = 0; i < trace.device.size(); ++i) events.add(trace.device.correlation[i], 0, i);
    events.sort();

    Collectives& c = trace.collectives;
    for (const CollectiveRow& row : rows) {
        const std::uint16_t rank = ranks.of_number(row.rank);
        const auto index = static_cast<std::int32_t>(c.size());
        const std::int32_t event = events.find(row.correlation, 0, [&](std::int32_t e) {
            const auto i = static_cast<std::size_t>(e);
            return trace.device.rank[i] == rank && trace.device.collective[i] < 0;
        });
        c.correlation.push_back(row.correlation);
        c.bytes.push_back(row.bytes);
        c.padding.push_back(row.padding);
        c.group.push_back(row.group);
        c.sequence.push_back(row.sequence);
        c.group_size.push_back(row.group_size);
        c.unit.push_back(row.unit);
        c.event.push_back(event);
        c.rank.push_back(rank);
        c.operation.push_back(row.operation);
        c.phase.push_back(row.phase);
        if (event < 0) continue;
        const auto i = static_cast<std::size_t>(event);
        trace.device.kind[i] = DeviceKind::communication;
        trace.device.collective[i] = index;
        trace.device.bytes[i] = row.bytes;
    }
}

// Host threads: everyone who did something, and the named threads of a rank.
class ThreadIndex {
  public:
    ThreadIndex(const PendingRows& rows, const RankIndex& ranks, Trace& trace) {
        for (const auto& r : rows.ranges) seen_.try_emplace(r.global_tid);
        for (const auto& r : rows.marks) seen_.try_emplace(r.global_tid);
        for (const auto& r : rows.runtime) seen_.try_emplace(r.global_tid);
        for (const auto& t : rows.threads) {
            if (t.rank < 0 && !seen_.contains(t.global_tid)) continue;
            HostThread& thread = seen_[t.global_tid];
            if (!t.name.empty()) thread.name = t.name;
            if (t.rank >= 0) thread.rank = ranks.of_number(t.rank);
        }
        for (const StepRow& s : rows.steps) settle(s.global_tid, ranks.of_number(s.rank));
        for (std::size_t r = 0; r < trace.ranks.size(); ++r)
            settle(trace.ranks[r].global_tid, static_cast<int>(r));
        for (auto& [tid, thread] : seen_) settle(tid, ranks.of_pid(pid_of(tid)));
    }

    // A thread that nothing else tells about belongs to the rank whose device it feeds most.
    void settle_by_launches(const std::vector<RuntimeRow>& runtime, const DeviceEvents& device) {
        std::map<std::int64_t, std::map<int, std::size_t>> votes;
        for (std::size_t e = 0; e < device.size(); ++e) {
            if (device.launch[e] < 0) continue;
            const std::int64_t tid = runtime[static_cast<std::size_t>(device.launch[e])].global_tid;
            if (seen_.at(tid).rank < 0) ++votes[tid][device.rank[e]];
        }
        for (const auto& [tid, by_rank] : votes) {
            const auto most =
                std::max_element(by_rank.begin(), by_rank.end(),
                                 [](const auto& a, const auto& b) { return a.second < b.second; });
            settle(tid, most->first);
        }
    }

    // Numbers the threads: by rank, those of no rank last, then by id.
    void finish(Trace& trace) {
        check_size(seen_.size(), "threads", trace);
        for (auto& [tid, thread] : seen_) {
            thread.global_tid = tid;
            trace.threads.push_back(std::move(thread));
        }
        std::stable_sort(trace.threads.begin(), trace.threads.end(),
                         [](const HostThread& a, const HostThread& b) {
                             return static_cast<unsigned>(a.rank) < static_cast<unsigned>(b.rank);
                         });
        for (std::size_t i = 0; i < trace.threads.size(); ++i) {
            index_.emplace(trace.threads[i].global_tid, static_cast<std::uint16_t>(i));
        }
    }
    std::uint16_t operator[](std::int64_t tid) const { return index_.at(tid); }

  private:
    void settle(std::int64_t tid, int rank) {
        const auto it = seen_.find(tid);
        if (it != seen_.end() && it->second.rank < 0) it->second.rank = rank;
    }
    std::map<std::int64_t, HostThread> seen_;
    std::unordered_map<std::int64_t, std::uint16_t> index_;
};

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
    RuntimeCalls& c = trace.runtime;
    Nesting nesting = nest(h.start, h.end, h.thread, c.start, c.thread);
    h.parent = std::move(nesting.parent);
    h.depth = std::move(nesting.depth);
    c.range = std::move(nesting.innermost);
}

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

void build_marks(std::vector<RangeRow>& rows, const ThreadIndex& threads, Trace& trace) {
    std::stable_sort(rows.begin(), rows.end(),
                     [](const RangeRow& a, const RangeRow& b) { return a.start < b.start; });
    for (const RangeRow& r : rows) {
        trace.marks.time.push_back(r.start);
        trace.marks.name.push_back(r.text);
        trace.marks.thread.push_back(threads[r.global_tid]);
    }
}

// Those of devices on which nothing ran belong to no rank and are left out.
void build_synchronizations(std::vector<SynchronizationRow>& rows, const RankIndex& ranks,
                            const CorrelationIndex& calls, Trace& trace) {
    std::erase_if(rows, [&](const SynchronizationRow& r) { return !ranks.knows_device(r.device); });
    std::stable_sort(rows.begin(), rows.end(), [](const SynchronizationRow& a, const SynchronizationRow& b) {
        return std::tie(a.start, a.end) < std::tie(b.start, b.end);
    });
    std::map<std::pair<int, int>, std::int32_t> streams;
    for (std::size_t i = 0; i < trace.streams.size(); ++i) {
        streams.emplace(std::pair(trace.streams[i].rank, trace.streams[i].id), static_cast<std::int32_t>(i));
    }
    Synchronizations& s = trace.synchronizations;
    for (const SynchronizationRow& r : rows) {
        const std::uint16_t rank = ranks.of_device(r.device, r.global_pid, trace);
        const auto stream = streams.find({rank, r.stream});
        s.start.push_back(r.start);
        s.end.push_back(r.end);
        s.call.push_back(calls.find(r.correlation, r.global_pid, [](std::int32_t) { return true; }));
        s.stream.push_back(r.stream >= 0 && stream != streams.end() ? stream->second : -1);
        s.rank.push_back(rank);
        s.type.push_back(static_cast<std::uint8_t>(std::clamp(r.sync_type, 0, 255)));
    }
}

void build_memory(std::vector<MemoryRow>& rows, const RankIndex& ranks, Trace& trace) {
    std::stable_sort(rows.begin(), rows.end(),
                     [](const MemoryRow& a, const MemoryRow& b) { return a.time < b.time; });
    MemoryEvents& m = trace.memory;
    for (const MemoryRow& r : rows) {
        m.time.push_back(r.time);
        m.bytes.push_back(r.bytes);
        m.address.push_back(r.address);
        m.unit.push_back(r.unit);
        m.module.push_back(r.module);
        m.name.push_back(r.name);
        m.rank.push_back(ranks.of_number(r.rank));
        m.category.push_back(r.category);
        m.space.push_back(r.space);
        m.phase.push_back(r.phase);
    }
}

void build_counters(std::vector<CounterRow>& rows, const RankIndex& ranks, Trace& trace) {
    std::stable_sort(rows.begin(), rows.end(),
                     [](const CounterRow& a, const CounterRow& b) { return a.time < b.time; });
    for (const CounterRow& r : rows) {
        trace.counters.time.push_back(r.time);
        trace.counters.value.push_back(r.value);
        trace.counters.name.push_back(r.name);
        trace.counters.rank.push_back(r.rank >= 0 ? ranks.of_number(r.rank) : kNoRank);
    }
}

// Steps as recorded; where nobody recorded any, the ranges "ProfilerStep#N" are the steps.
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

// Modules and units in the order of their ids, each once (every part of a run describes them all).
template <typename Row>
void sort_unique(std::vector<Row>& rows) {
    std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.id < b.id; });
    rows.erase(std::unique(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.id == b.id; }),
               rows.end());
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
        trace.device.launch[i] = launches.find(trace.device.correlation[i], rows.device[order[i]].global_pid,
                                               [](std::int32_t) { return true; });
    }
    build_collectives(rows.collectives, ranks, trace);

    ThreadIndex threads(rows, ranks, trace);
    threads.settle_by_launches(rows.runtime, trace.device);
    threads.finish(trace);
    build_runtime(rows.runtime, threads, trace);
    build_ranges(rows.ranges, threads, trace);
    build_marks(rows.marks, threads, trace);
    build_synchronizations(rows.synchronizations, ranks, launches, trace);
    build_memory(rows.memory, ranks, trace);
    build_counters(rows.counters, ranks, trace);
    build_steps(rows, ranks, trace);
    sort_unique(trace.modules);
    sort_unique(trace.units);
}

}  // namespace shardscope::traces
