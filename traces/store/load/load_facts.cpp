// What a trace says of itself and of who took part. Ranks come from SHARD_RANKS; an export of Nsight Systems
// has none, so there each process that did something becomes a rank, whatever devices it uses.
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <fmt/core.h>

#include "traces/schema/enums.h"
#include "traces/store/columns/device_streams.h"
#include "traces/store/load/load_source.h"

namespace shardscope::traces {

namespace {

// Text of the first of several tables that has the column.
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

// What an export says of its making: the table's name changed with schema 3.
void load_export(LoadSource& source) {
    for (const auto& [key, name] : {std::pair("nsight.schema_version", "EXPORT_SCHEMA_VERSION"),
                                    std::pair("nsight.product_version", "EXPORT_PRODUCT_VERSION")}) {
        std::string text = first_text(source, {"META_DATA_EXPORT", "EXPORT_META_DATA"}, name);
        if (!text.empty()) source.sink.add(RunInfoRow{key, std::move(text)});
    }
}

// Each process that used a device; where none did, each process, with a device of its own.
void make_up_ranks(LoadSource& source) {
    const PendingRows& rows = source.sink.pending();
    std::set<DeviceOfProcess> pairs;
    for (const SlotKey& lane : rows.device.lanes.keys()) {
        pairs.emplace(PendingDevice::device_of(lane), lane.a);
    }
    if (pairs.empty()) {
        std::set<std::int64_t> pids;
        for (const SlotKey& thread : rows.threads.keys()) pids.insert(thread.a & kPidMask);
        for (const std::int64_t pid : pids) pairs.emplace(static_cast<std::int64_t>(pairs.size()), pid);
    }
    const std::string host = first_text(source, {"TARGET_INFO_SYSTEM_ENV"}, "Hostname");
    for (const auto& [device, pid] : ranks_of_processes(pairs)) {
        RankRow row{
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
    source.scan("SHARD_RUN", {"key", "value"}, [&](const Statement& r) {
        if (r.text(0) == "import.format" && r.text(1) != "nsight") source.reads_names = false;
        source.sink.add(RunInfoRow{std::string(r.text(0)), std::string(r.text(1))});
    });
    source.scan("DIAGNOSTIC_EVENT", {"timestamp", "severity", "text"}, [&](const Statement& r) {
        const auto severity = r.integer(1) >= 1 && r.integer(1) <= 3 ? r.integer(1) : 1;
        source.sink.add(DiagnosticRow{r.integer(0), static_cast<Severity>(severity), std::string(r.text(2))});
    });
}

void load_ranks(LoadSource& source) {
    source.scan("SHARD_RANKS",
                {"rank", "deviceId", "globalPid", "globalTid", "host", "data", "shard", "tensor", "pipeline",
                 "localRank", "cpus"},
                [&](const Statement& r) {
                    RankRow row{.rank = narrow(r.integer(0)), .device = narrow(r.integer(1))};
                    row.global_pid = r.integer(2);
                    row.global_tid = r.integer(3);
                    row.host = r.text(4);
                    row.data = narrow(r.integer(5));
                    row.shard = narrow(r.integer(6));
                    row.tensor = narrow(r.integer(7));
                    row.pipeline = narrow(r.integer(8));
                    row.local_rank = narrow(r.integer_or(9, -1));
                    row.cpus = r.text(10);
                    source.ranks.push_back(std::move(row));
                });
    if (source.ranks.empty()) make_up_ranks(source);
    std::map<int, std::pair<std::string, std::int64_t>> devices;            // name, memory
    for (const auto table : {"TARGET_INFO_CUDA_GPU", "TARGET_INFO_GPU"}) {  // the older name first
        source.scan(table, {"id", "name", "totalMemory"}, [&](const Statement& r) {
            devices[narrow(r.integer(0))] = {std::string(r.text(1)), r.integer(2)};
        });
    }
    for (RankRow& row : source.ranks) {
        if (const auto it = devices.find(row.device); it != devices.end()) {
            std::tie(row.device_name, row.device_memory) = it->second;
        }
        source.sink.add(row);
    }
}

void load_clocks(LoadSource& source) {
    source.scan("SHARD_CLOCKS", {"rank", "time", "offset", "uncertainty"}, [&](const Statement& r) {
        source.sink.add(ClockRow{narrow(r.integer(0)), r.integer(1), r.integer(2), r.integer(3)});
    });
    source.scan("SHARD_STOPS", {"rank", "time", "firstRank", "lost", "reason", "waiting"},
                [&](const Statement& r) {
                    source.sink.add(StopRow{.rank = narrow(r.integer(0)),
                                            .at_ns = r.integer(1),
                                            .first_rank = narrow(r.integer_or(2, -1)),
                                            .lost = r.integer(3) != 0,
                                            .reason = std::string(r.text(4)),
                                            .waiting = std::string(r.text(5))});
                });
}

void load_threads(LoadSource& source) {
    std::unordered_map<std::int64_t, int> rank_of;
    source.scan("SHARD_THREADS", {"globalTid", "rank"},
                [&](const Statement& r) { rank_of[r.integer(0)] = narrow(r.integer(1)); });
    source.scan("ThreadNames", {"nameId", "globalTid"}, [&](const Statement& r) {
        const auto it = rank_of.find(r.integer(1));
        source.sink.add(ThreadRow{.global_tid = r.integer(1),
                                  .name = std::string(source.sink.text(source.string(r, 0))),
                                  .rank = it != rank_of.end() ? it->second : -1});
        if (it != rank_of.end()) rank_of.erase(it);
    });
    for (const auto& [tid, rank] : rank_of)
        source.sink.add(ThreadRow{.global_tid = tid, .name = {}, .rank = rank});
    source.scan("SHARD_STREAMS", {"rank", "streamId", "name"}, [&](const Statement& r) {
        source.sink.add(StreamRow{narrow(r.integer(0)), narrow(r.integer(1)), std::string(r.text(2))});
    });
}

void load_model(LoadSource& source) {
    source.scan("SHARD_MODULES", {"id", "parent", "name", "className", "path", "unit", "parameters"},
                [&](const Statement& r) {
                    source.modules.insert(r.integer(0));
                    source.sink.add(ModuleRow{.id = narrow(r.integer(0)),
                                              .parent = narrow(r.integer_or(1, -1)),
                                              .name = std::string(r.text(2)),
                                              .class_name = std::string(r.text(3)),
                                              .path = std::string(r.text(4)),
                                              .unit = narrow(r.integer_or(5, -1)),
                                              .parameters = r.integer(6)});
                });
    source.scan("SHARD_UNITS", {"id", "module", "name", "elements", "paddedElements", "shardBytes", "bytes"},
                [&](const Statement& r) {
                    source.sink.add(UnitRow{.id = narrow(r.integer(0)),
                                            .module = narrow(r.integer_or(1, -1)),
                                            .name = std::string(r.text(2)),
                                            .elements = r.integer(3),
                                            .padded_elements = r.integer(4),
                                            .shard_bytes = r.integer(5),
                                            .bytes = r.integer(6)});
                });
    source.scan("SHARD_PREDICTION",
                {"rank", "peakBytes", "moment", kMemoryCategoryNames[0], kMemoryCategoryNames[1],
                 kMemoryCategoryNames[2], kMemoryCategoryNames[3], kMemoryCategoryNames[4],
                 kMemoryCategoryNames[5], kMemoryCategoryNames[6], kMemoryCategoryNames[7]},
                [&](const Statement& r) {
                    PredictionRow row{.rank = narrow(r.integer(0)), .peak_bytes = r.integer(1)};
                    row.where = r.text(2);
                    for (int c = 0; c < kMemoryCategories; ++c) row.at_peak[c] = r.integer(3 + c);
                    source.sink.add(row);
                });
    source.scan("SHARD_PREDICTION_PARTS", {"rank", "part", "id", "name", "bytes"}, [&](const Statement& r) {
        const std::int64_t part = r.integer_or(1, -1);
        if (part < 0 || part >= kPredictionParts) return;  // of a kind that is not known here
        source.sink.add(PredictionPartRow{.rank = narrow(r.integer(0)),
                                          .kind = static_cast<PredictionPart>(part),
                                          .id = r.integer_or(2, -1),
                                          .bytes = r.integer(4),
                                          .name = std::string(r.text(3))});
    });
    if (!source.modules.empty()) source.reads_names = false;  // its ranges name them by id
}

void load_steps(LoadSource& source) {
    source.scan("SHARD_STEPS", {"rank", "step", "start", "end", "globalTid"}, [&](const Statement& r) {
        source.sink.add(
            StepRow{narrow(r.integer(0)), r.integer(1), r.integer(2), r.integer(3), r.integer(4)});
    });
    source.scan("SHARD_LOSSES", {"step", "loss"}, [&](const Statement& r) {
        const double loss = r.is_null(1) ? std::numeric_limits<double>::quiet_NaN() : r.real(1);
        source.sink.add(LossRow{r.integer(0), loss});
    });
}

}  // namespace shardscope::traces
