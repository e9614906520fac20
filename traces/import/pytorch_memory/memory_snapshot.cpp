// See memory_snapshot.h.
#include "traces/import/pytorch_memory/memory_snapshot.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "traces/import/pytorch_memory/frames.h"
#include "traces/import/pytorch_memory/snapshot_rows.h"
#include "traces/import/pytorch_memory/snapshot_values.h"
#include "traces/store/columns/memory_facts.h"
#include "traces/store/columns/names.h"
#include "traces/store/grouped.h"

namespace shardscope::traces::importer {
namespace {

constexpr std::string_view kSettingPrefix = "allocator.";

// Writes the settings of the allocator as the run's configuration; a setting by size has a key for each size
// where it is not 0.
void write_settings(const Value& settings, const std::string& prefix, store::EventSink& sink) {
    for (std::size_t i = 0; i < settings.size() && i < 100; ++i) {
        const std::string key = prefix + std::string(settings.key(i).text());
        const Value value = settings.value(i);
        if (value.is_text() && !value.text().empty())
            sink.add(schema::RunInfoRow{key, std::string(value.text())});
        if (value.kind() == ValueKind::boolean)
            sink.add(schema::RunInfoRow{key, value.integer() == 1 ? "true" : "false"});
        const bool by_size = prefix != kSettingPrefix;
        if (value.kind() == ValueKind::integer && value.integer() && !(by_size && *value.integer() == 0))
            sink.add(schema::RunInfoRow{key, std::to_string(*value.integer())});
        if (value.kind() == ValueKind::real)
            sink.add(schema::RunInfoRow{key, fmt::format("{}", *value.real())});
        if (value.is_dictionary() && !by_size) write_settings(value, key + ".", sink);
    }
}

// If a file is one of several, only one of its devices can be its rank's: the one with the most history.
void keep_busiest(std::vector<SnapshotDevice>& devices, store::EventSink& sink) {
    const auto busiest = std::max_element(devices.begin(), devices.end(), [](const auto& a, const auto& b) {
        return std::pair(a.events.size(), a.live.size()) < std::pair(b.events.size(), b.live.size());
    });
    std::swap(devices.front(), *busiest);
    for (std::size_t i = 1; i < devices.size(); ++i) {
        sink.add(schema::DiagnosticRow{
            0, schema::Severity::warning,
            fmt::format(
                "device {} of a snapshot was ignored ({}): with several files, each is one rank;"
                " open it alone to see it",
                devices[i].number,
                store::counted(static_cast<std::int64_t>(devices[i].events.size()), "event", "events"))});
    }
    devices.resize(1);
}

void tell_doubts(const SnapshotDevice& device, bool cut, store::EventSink& sink) {
    const auto tell = [&](schema::Severity severity, const std::string& text) {
        sink.add(schema::DiagnosticRow{0, severity, fmt::format("device {}: {}", device.number, text)});
    };
    if (device.skipped > 0) {
        tell(schema::Severity::warning,
             fmt::format("{} ignored",
                         store::counted(device.skipped, "entry of the snapshot could not be read and was",
                                        "entries of the snapshot could not be read and were")));
    }
    if (device.events.empty()) {
        tell(schema::Severity::information,
             "the snapshot has no history and shows one moment; record with "
             "torch.cuda.memory._record_memory_history()");
    } else if (!device.timed) {
        tell(schema::Severity::information, "the snapshot has no times; each event is shown as 1 µs");
    }
    if (cut) {
        tell(
            schema::Severity::warning,
            "the snapshot was cut off: what was allocated before its first event is unknown and not counted");
    }
}

}  // namespace

bool is_memory_snapshot(const Value& root) {
    if (root.is_dictionary()) return root["segments"].is_list() || root["device_traces"].is_list();
    return root.is_list() && root[0].is_dictionary() && root[0]["total_size"].integer().has_value();
}

FileFacts read_memory_snapshot(const Value& root, bool cut, const std::string& path, store::EventSink& sink,
                               const FileRequest& request) {
    if (shares_rows(root)) {
        throw store::StoreError(
            fmt::format("{}: several segments or devices share one list of blocks or events, which no "
                        "valid memory snapshot does; record it again",
                        path));
    }
    std::vector<SnapshotDevice> devices = snapshot_devices(root);
    if (devices.empty()) {
        throw store::StoreError(fmt::format(
            "{}: the memory snapshot contains no segments and no events; take it while the program "
            "has device memory allocated",
            path));
    }
    sink.add(schema::RunInfoRow{"import.format", "pytorch_memory_snapshot"});
    sink.add(
        schema::RunInfoRow{std::string(store::kMemoryCountedKey), std::string(store::kMemoryCountedActive)});
    write_settings(root["allocator_settings"], std::string(kSettingPrefix), sink);
    if (request.one_of_several && devices.size() > 1) keep_busiest(devices, sink);

    std::optional<std::int64_t> start_us;
    bool timed = false;
    for (const SnapshotDevice& device : devices) {
        for (const auto first :
             {device.events.empty() ? std::nullopt : std::optional(device.events[0].time_us),
              device.annotations.first_us()}) {
            if (first && (!start_us || *first < *start_us)) start_us = first;
        }
        timed = timed || (device.timed && !device.events.empty());
    }
    FileFacts facts;
    facts.rows_rank = request.rank;
    facts.partial = cut;
    if (timed) facts.start_utc_ns = *start_us * 1000;
    Frames frames(sink);
    for (const SnapshotDevice& device : devices) {
        const int rank = devices.size() == 1 ? request.rank : device.number;
        const std::int64_t pid = rank + 1, thread = schema::global_tid(pid, pid);
        sink.add(schema::RankRow{.rank = rank,
                                 .device = rank,
                                 .global_pid = schema::global_pid(pid),
                                 .global_tid = thread,
                                 .host = {},
                                 .device_name = fmt::format("device {}", device.number)});
        sink.add(schema::ThreadRow{.global_tid = thread, .name = "annotations", .rank = rank});
        tell_doubts(device, cut, sink);
        const std::int64_t last = write_snapshot_rows(device, rank, start_us.value_or(0), cut, sink, frames);
        facts.last_ns = std::max(facts.last_ns, last);
    }
    return facts;
}

}  // namespace shardscope::traces::importer
