// Kernels, memcpys and memsets with the flows from their launches, and waits for devices.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <optional>
#include <vector>

#include <fmt/core.h>

#include "traces/export/chrome_context.h"
#include "traces/export/table_scan.h"
#include "traces/schema/communication_kernels.h"
#include "traces/schema/enums.h"
#include "traces/schema/memory_kinds.h"
#include "traces/store/columns/names.h"

namespace shardscope::traces::exports {

namespace {

// What PyTorch's process groups call the operations, by Operation.
constexpr std::array<std::string_view, schema::kOperations> kProcessGroupNames = {"_allgather_base",
                                                                                  "_reduce_scatter_base",
                                                                                  "allreduce",
                                                                                  "broadcast",
                                                                                  "barrier",
                                                                                  "reduce",
                                                                                  "all_to_all",
                                                                                  "gather",
                                                                                  "scatter",
                                                                                  "send",
                                                                                  "recv",
                                                                                  "other"};

// Reads SHARD_DEVICE_DETAILS in step with a table of device events, both in order of start.
class Details {
  public:
    explicit Details(ChromeContext& context)
        : rows_(context.database(),
                context.database().has_table("SHARD_DEVICE_DETAILS")
                    ? "SELECT start, deviceId, streamId, correlationId, externalId, blocksPerSm, occupancy "
                      "FROM SHARD_DEVICE_DETAILS t " +
                          context.ordered_by("SHARD_DEVICE_DETAILS", "start")
                    : std::string("SELECT 0 WHERE 0")) {
        advance();
    }

    struct Detail {
        std::int64_t start = 0, device = 0, stream = 0, correlation = 0;
        std::optional<std::int64_t> external;
        std::optional<double> blocks_per_sm, occupancy;
    };
    const Detail* find(std::int64_t start, std::int64_t device, std::int64_t stream,
                       std::int64_t correlation) {
        if (same_start_.empty() || same_start_.front().start < start) {
            while (next_ && next_->start < start) advance();
            same_start_.clear();
            for (; next_ && next_->start == start; advance()) same_start_.push_back(*next_);
        }
        for (const Detail& d : same_start_) {
            if (d.start == start && d.device == device && d.stream == stream && d.correlation == correlation)
                return &d;
        }
        return nullptr;
    }

  private:
    void advance() {
        next_.reset();
        if (!rows_.step()) return;
        next_ = Detail{.start = rows_.integer(0),
                       .device = rows_.integer(1),
                       .stream = rows_.integer(2),
                       .correlation = rows_.integer(3)};
        if (!rows_.is_null(4)) next_->external = rows_.integer(4);
        if (!rows_.is_null(5)) next_->blocks_per_sm = rows_.real(5);
        if (!rows_.is_null(6)) next_->occupancy = rows_.real(6);
    }

    store::Statement rows_;
    std::optional<Detail> next_;
    std::vector<Detail> same_start_;
};

// The columns that all device tables have; each table's own follow.
enum Common {
    kRow,
    kStart,
    kEnd,
    kDevice,
    kStream,
    kCorrelation,
    kContext,
    kGraphNode,
    kCallStart,
    kCallTid,
    kOwn
};

class DeviceTable {
  public:
    DeviceTable(ChromeContext& context, std::string_view table)
        : context_(context), table_(table), details_(context) {}

    // `take(row)` writes what is specific to the table: begin(), then args without the closing brace.
    template <typename Take>
    void write(std::initializer_list<std::string_view> columns, std::string_view joins,
               std::string_view joined_columns, Take take) {
        store::Database& database = context_.database();
        if (!database.has_table(table_)) return;
        // A graph launch has many rows, and a runtime call may contain a driver call: the first call is used.
        const std::string order = context_.ordered_by(table_, "start");
        store::Statement row(
            database,
            fmt::format(
                "SELECT t.rowid, {}, c.start, c.globalTid, {}{} FROM \"{}\" t "
                "LEFT JOIN CUPTI_ACTIVITY_KIND_RUNTIME c ON c.correlationId = t.correlationId AND "
                "t.correlationId <> 0 {} {}",
                columns_or_null(
                    database, table_, "t",
                    {"start", "end", "deviceId", "streamId", "correlationId", "contextId", "graphNodeId"}),
                columns_or_null(database, table_, "t", columns), joined_columns, table_, joins, order));
        std::int64_t last = -1;
        while (row.step()) {
            if (row.integer(kRow) == last) continue;
            last = row.integer(kRow);
            write_event(row, take);
            write_flow(row);
        }
    }

  private:
    template <typename Take>
    void write_event(const store::Statement& row, Take take) {
        take(row);  // begins the event
        context_.place(row.integer(kDevice), row.integer(kStream), row.integer(kStart));
        context_.duration(row.integer(kStart), row.integer(kEnd));
        const auto to = std::back_inserter(context_.out());
        fmt::format_to(to, ",\"args\":{{\"device\":{},\"context\":{},\"stream\":{},\"correlation\":{}",
                       row.integer(kDevice), row.integer(kContext), row.integer(kStream),
                       row.integer(kCorrelation));
        const Details::Detail* detail = details_.find(row.integer(kStart), row.integer(kDevice),
                                                      row.integer(kStream), row.integer(kCorrelation));
        if (detail != nullptr) {
            if (detail->external) fmt::format_to(to, ",\"External id\":{}", *detail->external);
            number("blocks per SM", detail->blocks_per_sm);
            number("est. achieved occupancy %", detail->occupancy);
        }
        if (!row.is_null(kGraphNode)) fmt::format_to(to, ",\"graph node id\":{}", row.integer(kGraphNode));
        own_arguments(row);
        context_.out() += '}';
        context_.end();
    }

    // The values are stored with the precision of a float. JSON has no infinity.
    void number(std::string_view key, const std::optional<double>& value) {
        if (value && std::isfinite(*value))
            fmt::format_to(std::back_inserter(context_.out()), ",\"{}\":{}", key, static_cast<float>(*value));
    }

    void write_flow(const store::Statement& row) {
        if (row.is_null(kCallStart)) return;
        const auto flow = [&](std::string_view phase, std::int64_t pid, std::int64_t tid, std::int64_t time) {
            context_.begin(phase, "ac2g", "\"ac2g\"");
            fmt::format_to(std::back_inserter(context_.out()), ",\"id\":{}", row.integer(kCorrelation));
            context_.place(pid, tid, time);
            if (phase == "f") context_.out() += ",\"bp\":\"e\"";
            context_.end();
        };
        // A launch of several rows gets one flow start only.
        if (row.integer(kCorrelation) != last_flow_) {
            flow("s", context_.pid_of_thread(row.integer(kCallTid)),
                 ChromeContext::tid_of(row.integer(kCallTid)), row.integer(kCallStart));
        }
        last_flow_ = row.integer(kCorrelation);
        flow("f", row.integer(kDevice), row.integer(kStream), row.integer(kStart));
    }

  public:
    std::function<void(const store::Statement&)> own_arguments;

  private:
    ChromeContext& context_;
    std::string_view table_;
    Details details_;
    std::int64_t last_flow_ = 0;
};

// --- kernels -----------------------------------------------------------------------------------------------

enum Kernel {
    kShortName = kOwn,
    kFullName,
    kGridX,
    kBlockX = kGridX + 3,
    kRegisters = kBlockX + 3,
    kStaticShared,
    kDynamicShared,
    kGraph,
    kOperation,
    kBytes,
    kPadding,
    kGroup,
    kGroupSize,
    kSequence,
    kUnit,
    kPhase,
};

std::string_view named(const std::array<std::string_view, schema::kOperations>& names,
                       std::int64_t operation) {
    return names[operation >= 0 && operation < schema::kOperations
                     ? static_cast<std::size_t>(operation)
                     : static_cast<std::size_t>(schema::Operation::other)];
}

// A collective in the form in which PyTorch describes it on its kernel, with elements of one byte.
void write_collective(std::string& out, const store::Statement& row) {
    const std::int64_t operation = row.integer(kOperation), bytes = row.integer(kBytes);
    const std::int64_t ranks = std::max<std::int64_t>(row.integer(kGroupSize), 1);
    const bool gathers = operation == static_cast<std::int64_t>(schema::Operation::all_gather);
    const bool scatters = operation == static_cast<std::int64_t>(schema::Operation::reduce_scatter);
    fmt::format_to(
        std::back_inserter(out),
        ",\"Collective name\":\"{}\",\"dtype\":\"Byte\",\"In msg nelems\":{},\"Out msg nelems\":{},"
        "\"Group size\":{},\"Process Group Name\":\"{}\",\"Seq\":{}",
        named(kProcessGroupNames, operation), gathers ? bytes / ranks : bytes,
        scatters ? bytes / ranks : bytes, row.integer(kGroupSize), row.integer(kGroup),
        row.integer(kSequence));
}

void write_our_collective(std::string& out, const store::Statement& row) {
    const auto to = std::back_inserter(out);
    fmt::format_to(
        to, "\"operation\":\"{}\",\"bytes\":{},\"padding\":{},\"group\":{},\"group_size\":{},\"sequence\":{}",
        named(schema::kOperationNames, row.integer(kOperation)), row.integer(kBytes), row.integer(kPadding),
        row.integer(kGroup), row.integer(kGroupSize), row.integer(kSequence));
    if (!row.is_null(kUnit)) fmt::format_to(to, ",\"unit\":{}", row.integer(kUnit));
    if (const std::int64_t phase = row.integer(kPhase); phase > 0 && phase < schema::kPhases)
        fmt::format_to(to, ",\"phase\":\"{}\"", schema::kPhaseNames[static_cast<std::size_t>(phase)]);
}

void write_kernels(ChromeContext& context) {
    DeviceTable table(context, "CUPTI_ACTIVITY_KIND_KERNEL");
    const auto full_name = [](const store::Statement& row) {
        return row.integer(row.is_null(kFullName) ? kShortName : kFullName);
    };
    table.own_arguments = [&](const store::Statement& row) {
        std::string& out = context.out();
        const auto to = std::back_inserter(out);
        fmt::format_to(to, ",\"grid\":[{},{},{}],\"block\":[{},{},{}]", row.integer(kGridX),
                       row.integer(kGridX + 1), row.integer(kGridX + 2), row.integer(kBlockX),
                       row.integer(kBlockX + 1), row.integer(kBlockX + 2));
        fmt::format_to(to, ",\"registers per thread\":{},\"shared memory\":{}", row.integer(kRegisters),
                       row.integer(kStaticShared) + row.integer(kDynamicShared));
        if (!row.is_null(kGraph)) fmt::format_to(to, ",\"graph id\":{}", row.integer(kGraph));
        const bool collective = !row.is_null(kOperation);
        if (collective) write_collective(out, row);
        const bool renamed = full_name(row) != row.integer(kShortName);
        if (!collective && !renamed) return;
        out += ",\"shardscope\":{";
        if (renamed) out += "\"short_name\":" + context.name(row.integer(kShortName));
        if (renamed && collective) out += ',';
        if (collective) write_our_collective(out, row);
        out += '}';
    };
    const bool collectives = context.database().has_table("SHARD_COLLECTIVES");
    if (collectives) {
        // A table with a key, because SQLite does not always index a subquery of a join.
        context.database().execute(fmt::format(
            "PRAGMA query_only = OFF;"
            "CREATE TEMP TABLE collective_of_kernel (kernel INTEGER PRIMARY KEY, collective INTEGER);"
            "INSERT INTO temp.collective_of_kernel SELECT kernel, collective FROM ({}) "
            "WHERE kernel IS NOT NULL;"
            "PRAGMA query_only = ON;",
            schema::collective_kernels_sql()));
    }
    table.write(
        {"shortName", "demangledName", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ",
         "registersPerThread", "staticSharedMemory", "dynamicSharedMemory", "graphId"},
        collectives ? "LEFT JOIN temp.collective_of_kernel w ON w.kernel = t.rowid "
                      "LEFT JOIN SHARD_COLLECTIVES o ON o.rowid = w.collective"
                    : "",
        collectives ? ", o.operation, o.bytes, o.padding, o.groupId, o.groupSize, o.sequence, o.unit, "
                      "o.phase"
                    : ", NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL",
        [&](const store::Statement& row) { context.begin("X", "kernel", context.name(full_name(row))); });
}

// --- memcpys and memsets -----------------------------------------------------------------------------------

std::string_view memory_kind(const store::Statement& row, int column) {
    const std::string_view name = schema::memory_kind_name(row.integer_or(column, -1));
    return name.empty() ? "Unknown" : name;
}

void write_memcpys(ChromeContext& context) {
    enum { kBytesColumn = kOwn, kCopyKind, kSource, kDestination, kSourceDevice, kDestinationDevice };
    DeviceTable table(context, "CUPTI_ACTIVITY_KIND_MEMCPY");
    table.own_arguments = [&](const store::Statement& row) {
        const auto to = std::back_inserter(context.out());
        fmt::format_to(to, ",\"bytes\":{}", row.integer(kBytesColumn));
        if (!row.is_null(kSourceDevice)) fmt::format_to(to, ",\"fromDevice\":{}", row.integer(kSourceDevice));
        if (!row.is_null(kDestinationDevice))
            fmt::format_to(to, ",\"toDevice\":{}", row.integer(kDestinationDevice));
        if (const std::int64_t ns = row.integer(kEnd) - row.integer(kStart); ns > 0) {
            fmt::format_to(to, ",\"memory bandwidth (GB/s)\":{:.6g}",
                           static_cast<double>(row.integer(kBytesColumn)) / static_cast<double>(ns));
        }
    };
    table.write({"bytes", "copyKind", "srcKind", "dstKind", "srcDeviceId", "dstDeviceId"}, "", "",
                [&](const store::Statement& row) {
                    const auto kind = row.integer_or(kCopyKind, 0);
                    context.begin("X", "gpu_memcpy",
                                  fmt::format("\"{} ({} -> {})\"", store::memcpy_name(static_cast<int>(kind)),
                                              memory_kind(row, kSource), memory_kind(row, kDestination)));
                });
}

void write_memsets(ChromeContext& context) {
    enum { kBytesColumn = kOwn, kMemoryKind };
    DeviceTable table(context, "CUPTI_ACTIVITY_KIND_MEMSET");
    table.own_arguments = [&](const store::Statement& row) {
        fmt::format_to(std::back_inserter(context.out()), ",\"bytes\":{}", row.integer(kBytesColumn));
    };
    table.write({"bytes", "memKind"}, "", "", [&](const store::Statement& row) {
        context.begin("X", "gpu_memset", fmt::format("\"Memset ({})\"", memory_kind(row, kMemoryKind)));
    });
}

}  // namespace

void write_device_events(ChromeContext& context) {
    write_kernels(context);
    write_memcpys(context);
    write_memsets(context);
}

void write_synchronizations(ChromeContext& context) {
    constexpr std::array<std::string_view, 5> kNames = {"Synchronization", "Event Sync", "Stream Wait Event",
                                                        "Stream Sync", "Context Sync"};
    scan_table(context.database(), "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
               {"start", "end", "deviceId", "streamId", "correlationId", "syncType", "eventId", "contextId"},
               context.ordered_by("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "start"),
               [&](const store::Statement& row) {
                   const std::int64_t type = row.integer(5);
                   const bool known = type > 0 && type < static_cast<std::int64_t>(kNames.size());
                   const std::string_view name = kNames[known ? static_cast<std::size_t>(type) : 0];
                   const std::int64_t stream = row.integer(3) == schema::kNotApplicable ? -1 : row.integer(3);
                   context.begin("X", "cuda_sync", fmt::format("\"{}\"", name));
                   context.place(row.integer(2), stream, row.integer(0));
                   context.duration(row.integer(0), row.integer(1));
                   const auto to = std::back_inserter(context.out());
                   fmt::format_to(to,
                                  ",\"args\":{{\"cuda_sync_kind\":\"{}\",\"device\":{},\"context\":{},"
                                  "\"stream\":{},\"correlation\":{}",
                                  name, row.integer(2), row.integer(7), stream, row.integer(4));
                   if (row.integer(6) != schema::kNotApplicable)
                       fmt::format_to(to, ",\"wait_on_cuda_event_id\":{}", row.integer(6));
                   context.out() += '}';
                   context.end();
               });
}

}  // namespace shardscope::traces::exports
