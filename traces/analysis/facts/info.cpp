// See info.h.
#include "traces/analysis/facts/info.h"

#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>

#include <fmt/chrono.h>
#include <fmt/core.h>

#include "traces/analysis/base/step_windows.h"
#include "traces/schema/sort_rows.h"
#include "traces/store/columns/memory_facts.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {

namespace {

// The selected host time of each rank.
class HostSelection {
  public:
    HostSelection(const store::Trace& trace, const TraceSteps& steps, const Selection& selection)
        : ranks_(selected_host_times(trace, steps, selection)),
          all_ranks_(!selection.rank),
          any_(selected_time(selection)) {}
    bool has_rank(store::RankIndex rank) const { return rank.known() ? !time_of(rank).empty() : all_ranks_; }
    // What belongs to no rank is selected if all ranks are, and the time is in the range.
    bool has(store::RankIndex rank, std::int64_t time) const {
        if (!rank.known()) return all_ranks_ && time >= any_.start && time < any_.end;
        const IntervalSet& set = time_of(rank);
        const auto at =
            std::partition_point(set.begin(), set.end(), [time](const Interval& i) { return i.end <= time; });
        return at != set.end() && at->start <= time;
    }

  private:
    const IntervalSet& time_of(store::RankIndex rank) const {
        static const IntervalSet kNoRows;
        return rank.at() < ranks_.size() ? ranks_[rank.at()] : kNoRows;
    }
    std::vector<IntervalSet> ranks_;
    bool all_ranks_;
    Interval any_;
};

}  // namespace

std::vector<bool> recorded_memory_events(const store::Trace& trace) {
    const store::MemoryEvents& memory = trace.memory;
    std::vector<bool> recorded(memory.size(), true);
    const auto before = trace.strings.find(store::kBeforeTheTrace),
               missed = trace.strings.find(store::kNotInTheTrace);
    for (std::size_t i = 0; i < memory.size(); ++i) {
        recorded[i] = memory.address[i] != 0 || (memory.name[i] != before && memory.name[i] != missed);
    }
    return recorded;
}

std::vector<std::pair<std::string, std::int64_t>> row_counts(const store::Trace& trace,
                                                             const Selection& selection) {
    std::vector<std::pair<std::string, std::int64_t>> counts = trace_info(trace).counts;
    const bool all = !selection.rank && !selection.first_step && !selection.last_step && !selection.from_ns &&
                     !selection.to_ns;
    if (all) return counts;
    const TraceSteps steps = find_steps(trace);
    const HostSelection host(trace, steps, selection);
    const std::vector<bool> selected = selected_events(trace, steps, selection);

    std::array<std::int64_t, store::kDeviceKinds> kinds{};
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
    set("kernels", kinds[static_cast<std::size_t>(store::DeviceKind::kernel)]);
    set("communication", kinds[static_cast<std::size_t>(store::DeviceKind::communication)]);
    set("memcpys", kinds[static_cast<std::size_t>(store::DeviceKind::memcpy)]);
    set("memsets", kinds[static_cast<std::size_t>(store::DeviceKind::memset)]);
    set("collectives", collectives);
    set("runtime_calls", count_if(trace.runtime.size(), [&](std::size_t i) {
            return host.has(thread_rank(trace.runtime.thread[i]), trace.runtime.start[i]);
        }));
    set("ranges", count_if(trace.ranges.size(), [&](std::size_t i) {
            return host.has(thread_rank(trace.ranges.thread[i]), trace.ranges.start[i]);
        }));
    const std::vector<bool> recorded = recorded_memory_events(trace);
    set("memory_events", count_if(trace.memory.size(), [&](std::size_t i) {
            return recorded[i] && host.has(store::RankIndex(trace.memory.rank[i]), trace.memory.time[i]);
        }));
    set("marks", count_if(trace.marks.size(), [&](std::size_t i) {
            return host.has(thread_rank(trace.marks.thread[i]), trace.marks.time[i]);
        }));
    set("counter_values", count_if(trace.counters.size(), [&](std::size_t i) {
            return host.has(store::RankIndex(trace.counters.rank[i]), trace.counters.time[i]);
        }));
    set("samples", count_if(trace.samples.size(), [&](std::size_t i) {
            return host.has(thread_rank(trace.samples.thread[i]), trace.samples.time[i]);
        }));
    set("metric_values", count_if(trace.metrics.size(), [&](std::size_t i) {
            return host.has(trace.rank_of_number(trace.metrics[i].rank), trace.metrics[i].time);
        }));
    std::unordered_map<std::int64_t, store::RankIndex> rank_of_thread;
    for (const store::HostThread& thread : trace.threads)
        rank_of_thread.emplace(thread.global_tid, thread.rank);
    set("profiler_overheads", count_if(trace.profiler_overheads.size(), [&](std::size_t i) {
            const schema::ProfilerOverheadRow& row = trace.profiler_overheads[i];
            const auto thread = rank_of_thread.find(row.global_tid);
            return host.has(thread != rank_of_thread.end() ? thread->second : store::RankIndex(), row.start);
        }));
    set("steps", count_if(trace.steps.size(), [&](std::size_t i) {
            const store::Step& step = trace.steps[i];
            return selection.has_step(step.number) && host.has(step.rank, step.start);
        }));
    set("streams",
        count_if(trace.streams.size(), [&](std::size_t i) { return host.has_rank(trace.streams[i].rank); }));
    set("threads",
        count_if(trace.threads.size(), [&](std::size_t i) { return host.has_rank(trace.threads[i].rank); }));
    return counts;
}

namespace {

// "2026-03-01T12:34:56.789Z"; "" if not recorded.
std::string iso_8601(std::int64_t utc_ns) {
    if (utc_ns <= 0) return {};
    const std::int64_t seconds = utc_ns / 1'000'000'000;
    const std::int64_t milliseconds = utc_ns % 1'000'000'000 / 1'000'000;
    return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(static_cast<std::time_t>(seconds)),
                       milliseconds);
}

// The devices' names without repetition, in rank order.
std::string device_names(const store::Trace& trace) {
    std::string names;
    std::set<std::string_view> seen;
    for (const store::Rank& rank : trace.ranks) {
        if (rank.device_name.empty() || !seen.insert(rank.device_name).second) continue;
        if (!names.empty()) names += ", ";
        names += rank.device_name;
    }
    return names;
}

// For the trainer's devices that are not GPUs; its configuration names them.
std::string device_note(const store::Trace& trace) {
    const std::string_view device = trace.config_value("run.device");
    if (device == "cpu") {
        return "The device is the trainer's own on the processor. Its kernels, streams, runtime calls and "
               "collectives have "
               "the names that CUDA and NCCL give such work; no CUDA or NCCL code ran.";
    }
    if (device == "sim") {
        return "The device is simulated. Its kernels, streams, runtime calls and collectives have the names "
               "that CUDA and "
               "NCCL give such work, and the times that a cost model gives them; nothing ran.";
    }
    return {};
}

// Number of steps of the run: the most that any rank has.
std::int64_t steps_of_run(const store::Trace& trace) {
    std::vector<std::int64_t> counts(trace.ranks.size(), 0);
    std::int64_t most = 0;
    for (const store::Step& step : trace.steps) most = std::max(most, ++counts[step.rank.at()]);
    return most;
}

}  // namespace

TraceInfo trace_info(const store::Trace& trace) {
    TraceInfo info;
    info.file = trace.path;
    info.schema_version = trace.schema_version;
    info.ended = trace.ended;
    info.dropped = trace.dropped;
    info.started_utc = iso_8601(trace.start_utc_ns);
    info.duration_ms = static_cast<double>(trace.last_ns - trace.first_ns) * 1e-6;
    info.ranks = static_cast<int>(trace.ranks.size());
    info.steps = steps_of_run(trace);
    info.device = device_names(trace);
    info.device_note = device_note(trace);
    info.hosts = hosts_of(trace);
    info.stopped = stop_report(trace);
    info.config = trace.config;

    std::array<std::int64_t, store::kDeviceKinds> kinds{};
    for (const store::DeviceKind kind : trace.device.kind) ++kinds[static_cast<std::size_t>(kind)];
    const auto rows = [](const auto& columns) { return static_cast<std::int64_t>(columns.size()); };
    const std::vector<bool> recorded = recorded_memory_events(trace);
    info.counts = {
        {"kernels", kinds[static_cast<std::size_t>(store::DeviceKind::kernel)]},
        {"communication", kinds[static_cast<std::size_t>(store::DeviceKind::communication)]},
        {"memcpys", kinds[static_cast<std::size_t>(store::DeviceKind::memcpy)]},
        {"memsets", kinds[static_cast<std::size_t>(store::DeviceKind::memset)]},
        {"collectives", rows(trace.collectives)},
        {"runtime_calls", rows(trace.runtime)},
        {"ranges", rows(trace.ranges)},
        {"memory_events", std::count(recorded.begin(), recorded.end(), true)},
        {"marks", rows(trace.marks)},
        {"counter_values", rows(trace.counters)},
        {"samples", rows(trace.samples)},
        {"metric_values", rows(trace.metrics)},
        {"profiler_overheads", rows(trace.profiler_overheads)},
        {"steps", rows(trace.steps)},
        {"modules", rows(trace.modules)},
        {"units", rows(trace.units)},
        {"streams", rows(trace.streams)},
        {"threads", rows(trace.threads)},
        {"diagnostics", rows(trace.diagnostics)},
        {"invalid_events", trace.invalid_events},
    };
    for (const schema::DiagnosticRow& row : trace.diagnostics) {
        info.noted.push_back({static_cast<double>(row.time) * 1e-6, row.text});
    }
    schema::sort_rows(info.noted, [](const auto& a, const auto& b) { return a.time_ms < b.time_ms; });
    return info;
}

}  // namespace shardscope::traces::analysis
