// One scan for each table. Ranks come from SHARD_RANKS; an export of Nsight Systems has none, so there each
// pair of device and process that did something becomes a rank.
#include "traces/store/load_tables.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "traces/schema/enums.h"
#include "traces/store/names.h"

namespace shardscope::traces {

namespace {

constexpr std::int64_t kNotApplicable = 4294967295;  // Nsight's "no stream", "no event"
constexpr std::int64_t kPidMask = ~std::int64_t{0xFFFFFF};
constexpr std::int64_t kRowsBetweenLooks = 4096;  // at the cancel flag
constexpr double kShareOfReading = 0.9;           // of the whole load; the rest is sorting and linking

constexpr const char* kDeviceTables[] = {"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY",
                                         "CUPTI_ACTIVITY_KIND_MEMSET"};
constexpr const char* kBigTables[] = {"StringIds",
                                      "CUPTI_ACTIVITY_KIND_KERNEL",
                                      "CUPTI_ACTIVITY_KIND_MEMCPY",
                                      "CUPTI_ACTIVITY_KIND_MEMSET",
                                      "CUPTI_ACTIVITY_KIND_RUNTIME",
                                      "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
                                      "NVTX_EVENTS",
                                      "SHARD_COLLECTIVES",
                                      "SHARD_MEMORY",
                                      "SHARD_COUNTERS"};

int narrow(std::int64_t value) {
    return static_cast<int>(
        std::clamp<std::int64_t>(value, std::numeric_limits<int>::min(), std::numeric_limits<int>::max()));
}

// A damaged or newer value of an enum becomes `otherwise`.
template <typename Enum>
Enum to_enum(std::int64_t value, int count, Enum otherwise) {
    return value >= 0 && value < count ? static_cast<Enum>(value) : otherwise;
}

class TableLoader {
  public:
    TableLoader(Database& database, ColumnSink& sink, LoadProgress* progress)
        : db_(database), sink_(sink), progress_(progress), ours_(database.has_table("SHARD_STATE")) {
        for (const char* table : kBigTables) {
            if (!is_table(table)) continue;
            total_ += db_.integer(fmt::format("SELECT max(rowid) FROM \"{}\"", table));
        }
    }

    void load() {
        load_strings();
        load_facts();
        load_ranks();
        load_threads();
        load_model();
        load_steps();
        load_device_events();
        load_host_events();
        load_memory();
    }

  private:
    bool is_table(const char* name) {
        Statement statement(db_, "SELECT 1 FROM sqlite_master WHERE name = ?1 AND type = 'table'");
        statement.bind(1, std::string_view(name));
        return statement.step();
    }

    // Calls `take` for each row; columns that the table lacks are NULL.
    template <typename Take>
    void scan(std::string_view table, std::initializer_list<std::string_view> columns, Take take) {
        if (!db_.has_table(table)) return;
        std::string sql;
        for (const auto column : columns) {
            sql += sql.empty() ? "SELECT " : ", ";
            sql += db_.has_column(table, column) ? fmt::format("\"{}\"", column) : std::string("NULL");
        }
        Statement statement(db_, fmt::format("{} FROM \"{}\"", sql, table));
        while (statement.step()) {
            if (++rows_ % kRowsBetweenLooks == 0) report();
            take(statement);
        }
    }

    void report() {
        if (progress_ == nullptr) return;
        if (progress_->cancel) throw StoreError(fmt::format("{}: loading was cancelled", db_.path()));
        if (total_ > 0) {
            const double share = std::min(1.0, static_cast<double>(rows_) / static_cast<double>(total_));
            progress_->fraction = kShareOfReading * share;
        }
    }

    StringId string(const Statement& row, int column) const {
        if (row.is_null(column)) return StringId::empty;
        const auto it = strings_.find(row.integer(column));
        return it != strings_.end() ? it->second : StringId::empty;
    }

    void load_strings() {
        scan("StringIds", {"id", "value"},
             [&](const Statement& r) { strings_.emplace(r.integer(0), sink_.intern(r.text(1))); });
    }

    void load_facts() {
        sink_.set_ended(!ours_);
        scan("SHARD_STATE", {"ended", "dropped"}, [&](const Statement& r) {
            sink_.set_ended(r.integer(0) != 0);
            sink_.set_dropped(r.integer(1));
        });
        scan("TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"},
             [&](const Statement& r) { sink_.set_start_utc_ns(r.integer(0)); });
        scan("SHARD_RUN", {"key", "value"}, [&](const Statement& r) {
            sink_.add(RunInfoRow{std::string(r.text(0)), std::string(r.text(1))});
        });
        scan("DIAGNOSTIC_EVENT", {"timestamp", "severity", "text"}, [&](const Statement& r) {
            const auto severity = r.integer(1) >= 1 && r.integer(1) <= 3 ? r.integer(1) : 1;
            sink_.add(DiagnosticRow{r.integer(0), static_cast<Severity>(severity), std::string(r.text(2))});
        });
    }

    void load_ranks() {
        std::map<int, std::pair<std::string, std::int64_t>> devices;  // name, memory
        scan("TARGET_INFO_GPU", {"id", "name", "totalMemory"}, [&](const Statement& r) {
            devices[narrow(r.integer(0))] = {std::string(r.text(1)), r.integer(2)};
        });
        scan("SHARD_RANKS",
             {"rank", "deviceId", "globalPid", "globalTid", "host", "data", "shard", "tensor", "pipeline"},
             [&](const Statement& r) {
                 RankRow row{.rank = narrow(r.integer(0)), .device = narrow(r.integer(1))};
                 row.global_pid = r.integer(2);
                 row.global_tid = r.integer(3);
                 row.host = r.text(4);
                 row.data = narrow(r.integer(5));
                 row.shard = narrow(r.integer(6));
                 row.tensor = narrow(r.integer(7));
                 row.pipeline = narrow(r.integer(8));
                 ranks_.push_back(std::move(row));
             });
        if (ranks_.empty()) make_up_ranks();
        for (RankRow& row : ranks_) {
            if (const auto it = devices.find(row.device); it != devices.end()) {
                std::tie(row.device_name, row.device_memory) = it->second;
            }
            sink_.add(row);
        }
    }

    void make_up_ranks() {
        std::set<std::pair<std::int64_t, std::int64_t>> pairs;  // (device, process)
        for (const char* table : kDeviceTables) {
            if (!db_.has_column(table, "deviceId") || !db_.has_column(table, "globalPid")) continue;
            Statement distinct(db_, fmt::format("SELECT DISTINCT deviceId, globalPid FROM {}", table));
            while (distinct.step()) pairs.emplace(distinct.integer(0), distinct.integer(1));
        }
        if (pairs.empty()) {  // no device did anything: each process is a rank with a device of its own
            std::set<std::int64_t> pids;
            for (const char* table : {"CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"}) {
                if (!db_.has_column(table, "globalTid")) continue;
                Statement distinct(
                    db_, fmt::format("SELECT DISTINCT globalTid FROM {} WHERE globalTid NOT NULL", table));
                while (distinct.step()) pids.insert(distinct.integer(0) & kPidMask);
            }
            for (const std::int64_t pid : pids) pairs.emplace(static_cast<std::int64_t>(pairs.size()), pid);
        }
        std::string host;
        scan("TARGET_INFO_SYSTEM_ENV", {"name", "value"}, [&](const Statement& r) {
            if (r.text(0) == "Hostname") host = r.text(1);
        });
        for (const auto& [device, pid] : pairs) {
            RankRow row{.rank = static_cast<int>(ranks_.size()), .device = narrow(device), .global_pid = pid};
            row.host = host;
            ranks_.push_back(std::move(row));
        }
    }

    void load_threads() {
        std::unordered_map<std::int64_t, int> rank_of;
        scan("SHARD_THREADS", {"globalTid", "rank"},
             [&](const Statement& r) { rank_of[r.integer(0)] = narrow(r.integer(1)); });
        scan("ThreadNames", {"nameId", "globalTid"}, [&](const Statement& r) {
            const auto it = rank_of.find(r.integer(1));
            sink_.add(ThreadRow{.global_tid = r.integer(1),
                                .name = std::string(sink_.text(string(r, 0))),
                                .rank = it != rank_of.end() ? it->second : -1});
            if (it != rank_of.end()) rank_of.erase(it);
        });
        for (const auto& [tid, rank] : rank_of)
            sink_.add(ThreadRow{.global_tid = tid, .name = {}, .rank = rank});
        scan("SHARD_STREAMS", {"rank", "streamId", "name"}, [&](const Statement& r) {
            sink_.add(StreamRow{narrow(r.integer(0)), narrow(r.integer(1)), std::string(r.text(2))});
        });
    }

    void load_model() {
        scan("SHARD_MODULES", {"id", "parent", "name", "className", "path", "unit", "parameters"},
             [&](const Statement& r) {
                 modules_.insert(r.integer(0));
                 sink_.add(ModuleRow{.id = narrow(r.integer(0)),
                                     .parent = narrow(r.integer_or(1, -1)),
                                     .name = std::string(r.text(2)),
                                     .class_name = std::string(r.text(3)),
                                     .path = std::string(r.text(4)),
                                     .unit = narrow(r.integer_or(5, -1)),
                                     .parameters = r.integer(6)});
             });
        scan("SHARD_UNITS", {"id", "module", "name", "elements", "paddedElements", "shardBytes", "bytes"},
             [&](const Statement& r) {
                 sink_.add(UnitRow{.id = narrow(r.integer(0)),
                                   .module = narrow(r.integer_or(1, -1)),
                                   .name = std::string(r.text(2)),
                                   .elements = r.integer(3),
                                   .padded_elements = r.integer(4),
                                   .shard_bytes = r.integer(5),
                                   .bytes = r.integer(6)});
             });
        scan("SHARD_PREDICTION",
             {"rank", "peakBytes", "moment", kMemoryCategoryNames[0], kMemoryCategoryNames[1],
              kMemoryCategoryNames[2], kMemoryCategoryNames[3], kMemoryCategoryNames[4],
              kMemoryCategoryNames[5], kMemoryCategoryNames[6], kMemoryCategoryNames[7]},
             [&](const Statement& r) {
                 PredictionRow row{.rank = narrow(r.integer(0)), .peak_bytes = r.integer(1)};
                 row.where = r.text(2);
                 for (int c = 0; c < kMemoryCategories; ++c) row.at_peak[c] = r.integer(3 + c);
                 sink_.add(row);
             });
        scan("SHARD_PREDICTION_PARTS", {"rank", "part", "id", "name", "bytes"}, [&](const Statement& r) {
            const std::int64_t part = r.integer_or(1, -1);
            if (part < 0 || part >= kPredictionParts) return;  // of a kind that is not known here
            sink_.add(PredictionPartRow{.rank = narrow(r.integer(0)),
                                        .kind = static_cast<PredictionPart>(part),
                                        .id = r.integer_or(2, -1),
                                        .bytes = r.integer(4),
                                        .name = std::string(r.text(3))});
        });
    }

    void load_steps() {
        scan("SHARD_STEPS", {"rank", "step", "start", "end", "globalTid"}, [&](const Statement& r) {
            sink_.add(StepRow{narrow(r.integer(0)), r.integer(1), r.integer(2), r.integer(3), r.integer(4)});
        });
        scan("SHARD_LOSSES", {"step", "loss"}, [&](const Statement& r) {
            const double loss = r.is_null(1) ? std::numeric_limits<double>::quiet_NaN() : r.real(1);
            sink_.add(LossRow{r.integer(0), loss});
        });
    }

    // What the device tables have no column for, found again by the event's start, device, stream and launch.
    struct Detail {
        std::int64_t start = 0, device = 0, stream = 0, correlation = 0, external_id = 0;
        float blocks_per_sm = -1, occupancy = -1;
        auto place() const { return std::tie(start, device, stream, correlation); }
    };

    void load_details() {
        scan("SHARD_DEVICE_DETAILS",
             {"start", "deviceId", "streamId", "correlationId", "externalId", "blocksPerSm", "occupancy"},
             [&](const Statement& r) {
                 details_.push_back({r.integer(0), r.integer(1), r.integer(2), r.integer(3), r.integer(4),
                                     static_cast<float>(r.is_null(5) ? -1 : r.real(5)),
                                     static_cast<float>(r.is_null(6) ? -1 : r.real(6))});
             });
        std::stable_sort(details_.begin(), details_.end(),
                         [](const Detail& a, const Detail& b) { return a.place() < b.place(); });
    }

    // Null where there is none.
    template <typename Row>
    const Detail* detail_of(const Row& row) const {
        if (details_.empty()) return nullptr;
        const Detail sought = {
            .start = row.start, .device = row.device, .stream = row.stream, .correlation = row.correlation};
        const auto it =
            std::lower_bound(details_.begin(), details_.end(), sought,
                             [](const Detail& a, const Detail& b) { return a.place() < b.place(); });
        return it != details_.end() && it->place() == sought.place() ? &*it : nullptr;
    }

    template <typename Row>
    void add_with_external_id(Row row) {
        if (const Detail* detail = detail_of(row)) row.external_id = detail->external_id;
        sink_.add(row);
    }

    void load_device_events() {
        load_details();
        scan(kDeviceTables[0],
             {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "shortName",
              "demangledName"},
             [&](const Statement& r) {
                 KernelRow row{.start = r.integer(0), .end = r.integer(1)};
                 row.device = narrow(r.integer(2));
                 row.stream = narrow(r.integer(3));
                 row.correlation = r.integer(4);
                 row.global_pid = r.integer(5);
                 row.short_name = string(r, 6);
                 row.demangled_name = string(r, 7);
                 if (const Detail* detail = detail_of(row)) {
                     row.external_id = detail->external_id;
                     row.blocks_per_sm = detail->blocks_per_sm;
                     row.occupancy = detail->occupancy;
                 }
                 sink_.add(row);
             });
        scan(kDeviceTables[1],
             {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "bytes", "copyKind",
              "srcKind", "dstKind"},
             [&](const Statement& r) {
                 add_with_external_id(MemcpyRow{.start = r.integer(0),
                                                .end = r.integer(1),
                                                .device = narrow(r.integer(2)),
                                                .stream = narrow(r.integer(3)),
                                                .correlation = r.integer(4),
                                                .global_pid = r.integer(5),
                                                .bytes = r.integer(6),
                                                .copy_kind = narrow(r.integer(7)),
                                                .src_kind = narrow(r.integer(8)),
                                                .dst_kind = narrow(r.integer(9))});
             });
        scan(kDeviceTables[2],
             {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "bytes", "value",
              "memKind"},
             [&](const Statement& r) {
                 add_with_external_id(MemsetRow{.start = r.integer(0),
                                                .end = r.integer(1),
                                                .device = narrow(r.integer(2)),
                                                .stream = narrow(r.integer(3)),
                                                .correlation = r.integer(4),
                                                .global_pid = r.integer(5),
                                                .bytes = r.integer(6),
                                                .value = narrow(r.integer(7)),
                                                .mem_kind = narrow(r.integer(8))});
             });
        scan("SHARD_COLLECTIVES",
             {"rank", "correlationId", "operation", "bytes", "padding", "groupId", "groupSize", "sequence",
              "unit", "phase"},
             [&](const Statement& r) {
                 sink_.add(CollectiveRow{.rank = narrow(r.integer(0)),
                                         .correlation = r.integer(1),
                                         .operation = to_enum(r.integer(2), kOperations, Operation::other),
                                         .bytes = r.integer(3),
                                         .padding = r.integer(4),
                                         .group = r.integer(5),
                                         .group_size = narrow(r.integer(6)),
                                         .sequence = r.integer(7),
                                         .unit = narrow(r.integer_or(8, -1)),
                                         .phase = to_enum(r.integer(9), kPhases, Phase::none)});
             });
    }

    void load_host_events() {
        scan("CUPTI_ACTIVITY_KIND_RUNTIME",
             {"start", "end", "globalTid", "correlationId", "nameId", "returnValue", "eventClass"},
             [&](const Statement& r) {
                 sink_.add(RuntimeRow{.start = r.integer(0),
                                      .end = r.integer(1),
                                      .global_tid = r.integer(2),
                                      .correlation = r.integer(3),
                                      .name = string(r, 4),
                                      .return_value = narrow(r.integer(5)),
                                      .driver = r.integer(6) == 1});
             });
        scan("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
             {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "syncType", "eventId"},
             [&](const Statement& r) {
                 SynchronizationRow row{
                     .start = r.integer(0), .end = r.integer(1), .device = narrow(r.integer(2))};
                 row.stream = r.integer(3) == kNotApplicable ? -1 : narrow(r.integer(3));
                 row.correlation = r.integer(4);
                 row.global_pid = r.integer(5);
                 row.sync_type = narrow(r.integer(6));
                 row.event_id = r.integer(7) == kNotApplicable ? -1 : r.integer(7);
                 sink_.add(row);
             });
        load_ranges();
    }

    void load_ranges() {
        // Domain numbers count within a process.
        std::map<std::pair<std::int64_t, std::int64_t>, StringId> domains;
        const auto key = [](std::int64_t tid, std::int64_t domain) {
            return std::pair(tid & kPidMask, domain);
        };
        const auto text = [&](const Statement& r, int id_column, int text_column) {
            const StringId registered = string(r, id_column);
            return registered != StringId::empty ? registered : sink_.intern(r.text(text_column));
        };
        scan("NVTX_EVENTS", {"eventType", "globalTid", "domainId", "textId", "text"},
             [&](const Statement& r) {
                 if (r.integer(0) == kNvtxDomainCreate)
                     domains[key(r.integer(1), r.integer(2))] = text(r, 3, 4);
             });
        scan("NVTX_EVENTS",
             {"start", "end", "eventType", "globalTid", "domainId", "textId", "text", "color", "int64Value",
              "uint64Value", "jsonTextId", "jsonText"},
             [&](const Statement& r) {
                 const auto type = r.integer(2);
                 if (type != kNvtxPushPop && type != kNvtxStartEnd && type != kNvtxMark) return;
                 RangeRow row{.start = r.integer(0)};
                 if (!r.is_null(1)) row.end = r.integer(1);
                 row.event_type = narrow(type);
                 row.global_tid = r.integer(3);
                 if (const auto it = domains.find(key(r.integer(3), r.integer(4))); it != domains.end()) {
                     row.domain = it->second;
                 }
                 row.text = text(r, 5, 6);
                 if (!r.is_null(7)) row.color = static_cast<std::uint32_t>(r.integer(7));
                 // A payload that names no module is the program's own.
                 if (modules_.contains(r.integer_or(8, -1))) row.module = narrow(r.integer(8));
                 // In the domains of Kineto's operators that payload is the operator's id.
                 const std::string_view domain = sink_.text(row.domain);
                 if (domain == kOperatorDomain || domain == kAnnotationDomain) row.external_id = r.integer(9);
                 row.detail = text(r, 10, 11);
                 sink_.add(row);
             });
        scan("SHARD_LINKS", {"kind", "fromTid", "fromTime", "toTid", "toTime"}, [&](const Statement& r) {
            if (r.integer(0) < 0 || r.integer(0) >= kLinkKinds) return;  // of a kind that is not known here
            sink_.add(LinkRow{.kind = static_cast<LinkKind>(r.integer(0)),
                              .from_tid = r.integer(1),
                              .from_time = r.integer(2),
                              .to_tid = r.integer(3),
                              .to_time = r.integer(4)});
        });
    }

    void load_memory() {
        scan("SHARD_MEMORY",
             {"time", "rank", "address", "bytes", "category", "space", "phase", "unit", "module", "streamId",
              "nameId", "globalTid", "total", "reserved", "annotationId", "stackId"},
             [&](const Statement& r) {
                 sink_.add(
                     MemoryRow{.time = r.integer(0),
                               .rank = narrow(r.integer(1)),
                               .address = static_cast<std::uint64_t>(r.integer(2)),
                               .bytes = r.integer(3),
                               .category = to_enum(r.integer(4), kMemoryCategories, MemoryCategory::other),
                               .space = to_enum(r.integer(5), kMemorySpaces, MemorySpace::host),
                               .phase = to_enum(r.integer(6), kPhases, Phase::none),
                               .unit = narrow(r.integer_or(7, -1)),
                               .module = narrow(r.integer_or(8, -1)),
                               .stream = narrow(r.integer_or(9, -1)),
                               .name = string(r, 10),
                               .global_tid = r.integer(11),
                               .total = r.integer_or(12, -1),
                               .reserved = r.integer_or(13, -1),
                               .annotation = string(r, 14),
                               .stack = string(r, 15)});
             });
        scan("SHARD_SEGMENTS", {"time", "rank", "address", "bytes", "streamId"}, [&](const Statement& r) {
            sink_.add(SegmentRow{.time = r.integer(0),
                                 .rank = narrow(r.integer(1)),
                                 .address = static_cast<std::uint64_t>(r.integer(2)),
                                 .bytes = r.integer(3),
                                 .stream = narrow(r.integer_or(4, -1))});
        });
        load_flight();
        scan("SHARD_COUNTERS", {"time", "rank", "nameId", "value"}, [&](const Statement& r) {
            sink_.add(CounterRow{r.integer(0), narrow(r.integer(1)), string(r, 2), r.real(3)});
        });
        // What CUDA allocated in a program that knows no categories. Where there are any, these tell the same
        // again.
        if (!db_.has_table("SHARD_MEMORY") ||
            db_.integer("SELECT count(*) FROM (SELECT 1 FROM SHARD_MEMORY LIMIT 1)") == 0) {
            load_cuda_memory();
        }
    }

    void load_flight() {
        scan("SHARD_FLIGHT_RECORDS",
             {"rank", "id", "groupNameId", "groupDescriptionId", "groupSize", "sequence", "pointToPoint",
              "operation", "nameId", "inputBytes", "outputBytes", "dataTypeId", "sizesId", "state", "created",
              "started", "completed", "timeout", "stackId"},
             [&](const Statement& r) {
                 FlightRow row;
                 row.rank = narrow(r.integer(0));
                 row.id = r.integer(1);
                 row.group = string(r, 2);
                 row.group_description = string(r, 3);
                 row.group_size = r.integer(4);
                 row.sequence = r.integer(5);
                 row.point_to_point = r.integer(6) != 0;
                 row.operation = to_enum(r.integer(7), kOperations, Operation::other);
                 row.name = string(r, 8);
                 row.input_bytes = r.integer_or(9, -1);
                 row.output_bytes = r.integer_or(10, -1);
                 row.data_type = string(r, 11);
                 row.sizes = string(r, 12);
                 row.state = to_enum(r.integer(13), kFlightStates, FlightState::scheduled);
                 row.created = r.integer(14);
                 if (!r.is_null(15)) row.started = r.integer(15);
                 if (!r.is_null(16)) row.completed = r.integer(16);
                 row.timeout_ms = r.integer_or(17, -1);
                 row.stack = string(r, 18);
                 sink_.add(row);
             });
    }

    void load_cuda_memory() {
        std::map<std::pair<int, std::int64_t>, int> rank_of;
        for (const RankRow& rank : ranks_) rank_of[{rank.device, rank.global_pid}] = rank.rank;
        scan("CUDA_GPU_MEMORY_USAGE_EVENTS",
             {"start", "globalPid", "deviceId", "address", "bytes", "memKind", "memoryOperationType", "name"},
             [&](const Statement& r) {
                 const auto it = rank_of.find({narrow(r.integer(2)), r.integer(1)});
                 if (it == rank_of.end()) return;
                 const auto kind = r.integer_or(5, kMemKindDevice);
                 sink_.add(MemoryRow{
                     .time = r.integer(0),
                     .rank = it->second,
                     .address = static_cast<std::uint64_t>(r.integer(3)),
                     .bytes = r.integer(6) == 1 ? -r.integer(4) : r.integer(4),
                     .category = MemoryCategory::other,
                     .space = kind == kMemKindPageable ? MemorySpace::host
                              : kind == kMemKindPinned ? MemorySpace::pinned
                                                       : MemorySpace::device,
                     .name = r.type(7) == ValueType::integer ? string(r, 7) : sink_.intern(r.text(7))});
             });
    }

    Database& db_;
    ColumnSink& sink_;
    LoadProgress* progress_;
    const bool ours_;
    std::unordered_map<std::int64_t, StringId> strings_;  // StringIds.id -> the sink's
    std::vector<RankRow> ranks_;
    std::unordered_set<std::int64_t> modules_;  // SHARD_MODULES.id
    std::vector<Detail> details_;               // sorted by place
    std::int64_t rows_ = 0, total_ = 0;
};

}  // namespace

void load_tables(Database& database, ColumnSink& sink, LoadProgress* progress) {
    TableLoader(database, sink, progress).load();
}

}  // namespace shardscope::traces
