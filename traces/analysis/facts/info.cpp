// See info.h.
#include "traces/analysis/facts/info.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/chrono.h>
#include <fmt/core.h>

#include "traces/analysis/facts/row_counts.h"
#include "traces/schema/sort_rows.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces {
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
std::string device_names(const Trace& trace) {
    std::string names;
    std::set<std::string_view> seen;
    for (const Rank& rank : trace.ranks) {
        if (rank.device_name.empty() || !seen.insert(rank.device_name).second) continue;
        if (!names.empty()) names += ", ";
        names += rank.device_name;
    }
    return names;
}

// For the trainer's devices that are not GPUs; its configuration names them.
std::string device_note(const Trace& trace) {
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
std::int64_t steps_of_run(const Trace& trace) {
    std::vector<std::int64_t> counts(trace.ranks.size(), 0);
    std::int64_t most = 0;
    for (const Step& step : trace.steps) most = std::max(most, ++counts[static_cast<std::size_t>(step.rank)]);
    return most;
}

}  // namespace

TraceInfo trace_info(const Trace& trace) {
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

    std::array<std::int64_t, kDeviceKinds> kinds{};
    for (const DeviceKind kind : trace.device.kind) ++kinds[static_cast<std::size_t>(kind)];
    const auto rows = [](const auto& columns) { return static_cast<std::int64_t>(columns.size()); };
    const std::vector<bool> recorded = recorded_memory_events(trace);
    info.counts = {
        {"kernels", kinds[static_cast<std::size_t>(DeviceKind::kernel)]},
        {"communication", kinds[static_cast<std::size_t>(DeviceKind::communication)]},
        {"memcpys", kinds[static_cast<std::size_t>(DeviceKind::memcpy)]},
        {"memsets", kinds[static_cast<std::size_t>(DeviceKind::memset)]},
        {"collectives", rows(trace.collectives)},
        {"runtime_calls", rows(trace.runtime)},
        {"ranges", rows(trace.ranges)},
        {"memory_events", std::count(recorded.begin(), recorded.end(), true)},
        {"counter_values", rows(trace.counters)},
        {"steps", rows(trace.steps)},
        {"modules", rows(trace.modules)},
        {"units", rows(trace.units)},
        {"streams", rows(trace.streams)},
        {"threads", rows(trace.threads)},
        {"diagnostics", rows(trace.diagnostics)},
        {"invalid_events", trace.invalid_events},
    };
    for (const DiagnosticRow& row : trace.diagnostics) {
        info.noted.push_back({static_cast<double>(row.time) * 1e-6, row.text});
    }
    sort_rows(info.noted, [](const auto& a, const auto& b) { return a.time_ms < b.time_ms; });
    return info;
}

}  // namespace shardscope::traces
