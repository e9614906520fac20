// Allocations and frees, as the instants that PyTorch's profiler writes, counters, and samples of
// threads.
#include <array>
#include <cmath>
#include <iterator>
#include <map>

#include <fmt/core.h>

#include "traces/export/chrome_context.h"
#include "traces/export/table_scan.h"
#include "traces/schema/enums.h"
#include "traces/store/columns/device_streams.h"

namespace shardscope::traces::exports {

namespace {

// c10::DeviceType, as the events carry it.
constexpr int kCpu = 0, kCuda = 1;

struct Memory {
    enum {
        kTime,
        kRank,
        kAddress,
        kBytes,
        kCategory,
        kSpace,
        kPhase,
        kUnit,
        kModule,
        kStream,
        kName,
        kTid,
        kTotal,
        kReserved,
        kAnnotation,
        kStack
    };
};

template <std::size_t N>
std::string_view named(const std::array<std::string_view, N>& names, std::int64_t value,
                       std::size_t otherwise) {
    return names[value >= 0 && value < static_cast<std::int64_t>(N) ? static_cast<std::size_t>(value)
                                                                    : otherwise];
}

// Fields that the profiler's own events do not have; empty if none is known.
std::string ours(ChromeContext& context, const store::Statement& row) {
    std::string text;
    const auto add = [&](std::string_view key, std::string_view value) {
        fmt::format_to(std::back_inserter(text), "{}\"{}\":{}", text.empty() ? "" : ",", key, value);
    };
    const auto add_name = [&](std::string_view key, int column) {
        const std::string& name = context.name(row.integer_or(column, 0));
        if (name != "\"\"") add(key, name);
    };
    const auto add_id = [&](std::string_view key, int column) {
        if (!row.is_null(column)) add(key, std::to_string(row.integer(column)));
    };
    const auto category = named(schema::kMemoryCategoryNames, row.integer(Memory::kCategory),
                                schema::kMemoryCategoryNames.size() - 1);
    if (category != name(schema::MemoryCategory::other)) add("category", fmt::format("\"{}\"", category));
    // The other memory spaces follow from "Device Type".
    for (const schema::MemorySpace space : {schema::MemorySpace::pinned, schema::MemorySpace::disk}) {
        if (row.integer(Memory::kSpace) == static_cast<int>(space))
            add("space", fmt::format("\"{}\"", schema::name(space)));
    }
    if (const auto phase = named(schema::kPhaseNames, row.integer(Memory::kPhase), 0);
        phase != name(schema::Phase::none))
        add("phase", fmt::format("\"{}\"", phase));
    add_id("unit", Memory::kUnit);
    add_id("module", Memory::kModule);
    add_id("stream", Memory::kStream);
    add_name("name", Memory::kName);
    add_name("annotation", Memory::kAnnotation);
    add_name("stack", Memory::kStack);
    return text;
}

int place_of(const store::Statement& row) {
    return store::device_of_stream(static_cast<int>(row.integer_or(Memory::kStream, 0)));
}

void write_allocations(ChromeContext& context) {
    // By rank and the index of its device (device_streams.h); -1 for the host.
    std::map<std::pair<std::int64_t, int>, std::int64_t> live;
    scan_table(
        context.database(), "SHARD_MEMORY",
        {"time", "rank", "address", "bytes", "category", "space", "phase", "unit", "module", "streamId",
         "nameId", "globalTid", "total", "reserved", "annotationId", "stackId"},
        context.ordered_by("SHARD_MEMORY", "time"), [&](const store::Statement& row) {
            const bool on_device =
                row.integer(Memory::kSpace) == static_cast<int>(schema::MemorySpace::device);
            std::int64_t& total = live[{row.integer(Memory::kRank), on_device ? place_of(row) : -1}];
            total = row.is_null(Memory::kTotal) ? total + row.integer(Memory::kBytes)
                                                : row.integer(Memory::kTotal);
            const ExportedRank* rank = context.rank(row.integer(Memory::kRank));
            const std::int64_t tid = row.integer_or(Memory::kTid, rank != nullptr ? rank->global_tid : 0);
            context.begin("i", "cpu_instant_event", "\"[memory]\"");
            context.place(context.pid_of_thread(tid), ChromeContext::tid_of(tid), row.integer(Memory::kTime));
            const auto to = std::back_inserter(context.out());
            fmt::format_to(
                to,
                ",\"s\":\"t\",\"args\":{{\"Device Type\":{},\"Device Id\":{},\"Addr\":{},\"Bytes\":{},"
                "\"Total Allocated\":{}",
                on_device ? kCuda : kCpu, on_device && rank != nullptr ? rank->device : -1,
                static_cast<std::uint64_t>(row.integer(Memory::kAddress)), row.integer(Memory::kBytes),
                total);
            if (!row.is_null(Memory::kReserved))
                fmt::format_to(to, ",\"Total Reserved\":{}", row.integer(Memory::kReserved));
            if (const std::string more = ours(context, row); !more.empty())
                fmt::format_to(to, ",\"shardscope\":{{{}}}", more);
            context.out() += '}';
            context.end();
        });
}

void write_counters(ChromeContext& context) {
    scan_table(context.database(), "SHARD_COUNTERS", {"time", "rank", "nameId", "value", "hostId", "device"},
               context.ordered_by("SHARD_COUNTERS", "time"), [&](const store::Statement& row) {
                   if (row.is_null(3) || !std::isfinite(row.real(3))) return;  // not representable in JSON
                   const ExportedRank* rank = context.rank(row.integer(1));
                   context.begin("C", "", context.name(row.integer(2)));
                   context.place(rank != nullptr ? context.pid_of(rank->global_pid) : -1,
                                 rank != nullptr ? ChromeContext::tid_of(rank->global_tid) : 0,
                                 row.integer(0));
                   const auto to = std::back_inserter(context.out());
                   fmt::format_to(to, ",\"args\":{{\"value\":{}", row.real(3));
                   if (!row.is_null(4))
                       fmt::format_to(to, ",\"shardscope\":{{\"rank\":{},\"host\":{},\"device\":{}}}",
                                      row.integer(1), context.name(row.integer(4)), row.integer_or(5, -1));
                   context.out() += '}';
                   if (rank != nullptr) fmt::format_to(to, ",\"id\":{}", rank->rank);
                   context.end();
               });
}

void write_samples(ChromeContext& context) {
    scan_table(context.database(), "SHARD_SAMPLES",
               {"time", "globalTid", "eventId", "weight", "cpu", "stackId"},
               context.ordered_by("SHARD_SAMPLES", "time"), [&](const store::Statement& row) {
                   const std::int64_t tid = row.integer(1);
                   context.begin("P", "cpu_sample", context.name(row.integer(2)));
                   context.place(context.pid_of_thread(tid), ChromeContext::tid_of(tid), row.integer(0));
                   fmt::format_to(std::back_inserter(context.out()),
                                  ",\"args\":{{\"shardscope\":{{\"weight\":{},\"cpu\":{},\"stack\":{}}}}}",
                                  row.integer(3), row.integer_or(4, -1), context.name(row.integer(5)));
                   context.end();
               });
}

}  // namespace

void write_memory(ChromeContext& context) {
    write_allocations(context);
    write_counters(context);
    write_samples(context);
}

}  // namespace shardscope::traces::exports
