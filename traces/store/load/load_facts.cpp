// Loads the facts of the run, its ranks, devices, threads and model. Ranks come from SHARD_RANKS; an export
// of Nsight Systems does not have it, so each active process becomes a rank, whatever devices it uses.
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <fmt/core.h>

#include "traces/schema/enums.h"
#include "traces/store/columns/device_streams.h"
#include "traces/store/load/load_source.h"

namespace shardscope::traces::store {

namespace {

// The text from the first of several tables that has the column.
std::string first_text(LoadSource& source, std::initializer_list<std::string_view> tables,
                       std::string_view name) {
    std::string text;
    for (const auto table : tables) {
        if (!text.empty()) break;
        source.scan(table, {"name", "value"}, [&](const Statement& r) {
            if (r.text(0) == name) text = r.text(1);
        });
    }
    return text;
}

// The versions that an export records; the table's name changed with schema 3.
void load_export(LoadSource& source) {
    for (const auto& [key, name] : {std::pair("nsight.schema_version", "EXPORT_SCHEMA_VERSION"),
                                    std::pair("nsight.product_version", "EXPORT_PRODUCT_VERSION")}) {
        std::string text = first_text(source, {"META_DATA_EXPORT", "EXPORT_META_DATA"}, name);
        if (!text.empty()) source.sink.add(schema::RunInfoRow{key, std::move(text)});
    }
}

// Makes a rank of each process that used a device; if none did, of each process, with a device of its own.
void make_up_ranks(LoadSource& source) {
    const PendingRows& rows = source.sink.pending();
    std::set<DeviceOfProcess> pairs;
    for (const SlotKey& lane : rows.device.lanes.keys()) {
        pairs.emplace(PendingDevice::device_of(lane), lane.a);
    }
    if (pairs.empty()) {
        std::set<std::int64_t> pids;
        for (const SlotKey& thread : rows.threads.keys()) pids.insert(thread.a & schema::kPidMask);
        for (const std::int64_t pid : pids) pairs.emplace(static_cast<std::int64_t>(pairs.size()), pid);
    }
    const std::string host = first_text(source, {"TARGET_INFO_SYSTEM_ENV"}, "Hostname");
    for (const auto& [device, pid] : ranks_of_processes(pairs)) {
        schema::RankRow row{
            .rank = static_cast<int>(source.ranks.size()), .device = narrow(device), .global_pid = pid};
        row.host = host;
        source.ranks.push_back(std::move(row));
    }
}

}  // namespace

void load_facts(LoadSource& source) {
    source.sink.set_ended(!source.ours);
    source.scan("SHARD_STATE", {"ended", "dropped"}, [&](const Statement& r) {
        source.sink.set_ended(r.integer(0) != 0);
        source.sink.set_dropped(r.integer(1));
    });
    source.scan("TARGET_INFO_SESSION_START_TIME", {"utcEpochNs", "systemClockNs"}, [&](const Statement& r) {
        source.sink.set_start_utc_ns(r.integer(0));
        source.sink.set_start_system_ns(r.integer(1));
    });
    if (!source.ours) load_export(source);
    source.scan_rows<schema::RunInfoRow>([&](const schema::RunInfoRow& row) {
        if (row.key == "import.format" && row.value != "nsight") source.reads_names = false;
        source.sink.add(row);
    });
    source.scan("DIAGNOSTIC_EVENT", {"timestamp", "severity", "text"}, [&](const Statement& r) {
        const auto severity = r.integer(1) >= 1 && r.integer(1) <= 3 ? r.integer(1) : 1;
        source.sink.add(schema::DiagnosticRow{r.integer(0), static_cast<schema::Severity>(severity),
                                              std::string(r.text(2))});
    });
}

void load_ranks(LoadSource& source) {
    source.scan_rows<schema::RankRow>([&](const schema::RankRow& row) { source.ranks.push_back(row); });
    if (source.ranks.empty()) make_up_ranks(source);
    std::map<int, std::pair<std::string, std::int64_t>> devices;            // name, memory
    for (const auto table : {"TARGET_INFO_CUDA_GPU", "TARGET_INFO_GPU"}) {  // the older name first
        source.scan(table, {"id", "name", "totalMemory"}, [&](const Statement& r) {
            devices[narrow(r.integer(0))] = {std::string(r.text(1)), r.integer(2)};
        });
    }
    for (schema::RankRow& row : source.ranks) {
        if (const auto it = devices.find(row.device); it != devices.end()) {
            std::tie(row.device_name, row.device_memory) = it->second;
        }
        source.sink.add(row);
    }
}

void load_threads(LoadSource& source) {
    std::unordered_map<std::int64_t, int> rank_of;
    source.scan("SHARD_THREADS", {"globalTid", "rank"},
                [&](const Statement& r) { rank_of[r.integer(0)] = narrow(r.integer(1)); });
    source.scan("ThreadNames", {"nameId", "globalTid"}, [&](const Statement& r) {
        const auto it = rank_of.find(r.integer(1));
        source.sink.add(schema::ThreadRow{.global_tid = r.integer(1),
                                          .name = std::string(source.sink.text(source.string(r, 0))),
                                          .rank = it != rank_of.end() ? it->second : -1});
        if (it != rank_of.end()) rank_of.erase(it);
    });
    for (const auto& [tid, rank] : rank_of)
        source.sink.add(schema::ThreadRow{.global_tid = tid, .name = {}, .rank = rank});
    source.add_rows<schema::StreamRow>();
}

void load_model(LoadSource& source) {
    source.scan_rows<schema::ModuleRow>([&](const schema::ModuleRow& row) {
        source.modules.insert(row.id);
        source.sink.add(row);
    });
    source.add_rows<schema::UnitRow>();
    source.add_rows<schema::PredictionRow>();
    source.scan("SHARD_PREDICTION_PARTS", {"rank", "part", "id", "name", "bytes"}, [&](const Statement& r) {
        const std::int64_t part = r.integer_or(1, -1);
        if (part < 0 || part >= schema::kPredictionParts) return;  // of an unknown kind
        source.sink.add(schema::PredictionPartRow{.rank = narrow(r.integer(0)),
                                                  .kind = static_cast<schema::PredictionPart>(part),
                                                  .id = r.integer_or(2, -1),
                                                  .bytes = r.integer(4),
                                                  .name = std::string(r.text(3))});
    });
    if (!source.modules.empty()) source.reads_names = false;  // its ranges refer to modules by id
}

}  // namespace shardscope::traces::store
