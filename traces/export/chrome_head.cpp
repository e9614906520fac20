// What precedes the events: devices, the job, and what Kineto's format does not cover; and what follows them:
// the names of processes, threads and streams.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include <fmt/core.h>

#include "shardscope/version.h"
#include "traces/export/chrome_context.h"
#include "traces/export/table_scan.h"
#include "traces/schema/enums.h"
#include "traces/schema/schema.h"

namespace shardscope::traces::exports {

namespace {

constexpr int kLayout = 1;  // of the object "shardscope"

std::string json(std::string_view text) {
    std::string quoted;
    append_json(quoted, text);
    return quoted;
}

// Formats `items` as [a,b].
class JsonList {
  public:
    explicit JsonList(std::string& to, std::string_view open = "[") : to_(to) { to_ += open; }
    std::string& next() {
        if (!first_) to_ += ',';
        first_ = false;
        return to_;
    }

  private:
    std::string& to_;
    bool first_ = true;
};

void write_devices(ChromeContext& context) {
    std::string& out = context.out();
    out += ",\n\"deviceProperties\":";
    JsonList list(out);
    scan_table(
        context.database(), "TARGET_INFO_GPU",
        {"id", "name", "totalMemory", "computeMajor", "computeMinor", "smCount", "maxThreadsPerBlock",
         "maxRegistersPerBlock", "threadsPerWarp", "maxShmemPerBlock"},
        "ORDER BY id", [&](const store::Statement& row) {
            fmt::format_to(
                std::back_inserter(list.next()),
                "{{\"id\":{},\"name\":{},\"totalGlobalMem\":{},\"computeMajor\":{},\"computeMinor\":{},"
                "\"maxThreadsPerBlock\":{},\"regsPerBlock\":{},\"warpSize\":{},\"sharedMemPerBlock\":{},"
                "\"numSms\":{}}}",
                row.integer(0), json(row.text(1)), row.integer_or(2, 0), row.integer_or(3, 0),
                row.integer_or(4, 0), row.integer_or(6, 0), row.integer_or(7, 0), row.integer_or(8, 0),
                row.integer_or(9, 0), row.integer_or(5, 0));
        });
    out += ']';
}

// The job as in PyTorch's traces: a file of one rank contains its number, a file of several ranks only how
// many there are.
void write_job(ChromeContext& context) {
    const std::vector<ExportedRank>& ranks = context.ranks();
    if (ranks.empty()) return;
    std::int64_t world = 0;
    scan_table(context.database(), "SHARD_RUN", {"key", "value"},
               "WHERE key IN ('distributed.world_size', 'run.ranks')",
               [&](const store::Statement& row) { world = std::max<std::int64_t>(world, row.integer(1)); });
    world = std::max(world, ranks.back().rank + 1);
    fmt::format_to(std::back_inserter(context.out()),
                   ",\n\"distributedInfo\":{{\"backend\":\"nccl\",\"rank\":{},\"world_size\":{}}}",
                   ranks.front().rank, world);
}

void write_ranks(ChromeContext& context) {
    std::string& out = context.out();
    std::map<std::int64_t, std::string> threads, streams, device_names;
    std::map<std::int64_t, std::int64_t> device_memory;
    scan_table(
        context.database(), "SHARD_THREADS", {"globalTid", "rank"}, "", [&](const store::Statement& row) {
            std::string& list = threads[row.integer(1)];
            list += fmt::format("{}{}", list.empty() ? "" : ",", ChromeContext::tid_of(row.integer(0)));
        });
    scan_table(context.database(), "SHARD_STREAMS", {"rank", "streamId", "name"}, "",
               [&](const store::Statement& row) {
                   std::string& list = streams[row.integer(0)];
                   list +=
                       fmt::format("{}\"{}\":{}", list.empty() ? "" : ",", row.integer(1), json(row.text(2)));
               });
    scan_table(context.database(), "TARGET_INFO_GPU", {"id", "name", "totalMemory"}, "",
               [&](const store::Statement& row) {
                   device_names[row.integer(0)] = json(row.text(1));
                   device_memory[row.integer(0)] = row.integer_or(2, 0);
               });
    out += ",\n\"ranks\":";
    JsonList list(out);
    for (const ExportedRank& rank : context.ranks()) {
        const auto device_name = device_names.find(rank.device);
        std::string place;
        for (std::size_t axis = 0; axis < rank.place.size(); ++axis)
            place += fmt::format("\"{}\":{},", schema::kMeshAxes[axis].name, rank.place[axis]);
        fmt::format_to(
            std::back_inserter(list.next()),
            "\n{{\"rank\":{},\"device\":{},\"pid\":{},\"process\":{},\"thread\":{},\"threads\":[{}],"
            "\"host\":{},\"device_name\":{},\"device_memory\":{},{}\"local_rank\":{},\"cpus\":{},"
            "\"streams\":{{{}}}}}",
            rank.rank, rank.device, context.pid_of(rank.global_pid), rank.global_pid >> 24 & 0xFFFFFF,
            ChromeContext::tid_of(rank.global_tid), threads[rank.rank], json(rank.host),
            device_name != device_names.end() ? device_name->second : "\"\"", device_memory[rank.device],
            place, rank.local_rank, json(rank.cpus), streams[rank.rank]);
    }
    out += ']';
}

// Writes a list of objects from a table. `format` writes one row, without its braces.
template <typename Format>
void write_list(ChromeContext& context, std::string_view key, std::string_view table,
                std::initializer_list<std::string_view> columns, Format format) {
    std::string& out = context.out();
    fmt::format_to(std::back_inserter(out), ",\n\"{}\":", key);
    JsonList list(out);
    scan_table(context.database(), table, columns, "", [&](const store::Statement& row) {
        list.next() += '{';
        format(row, std::back_inserter(out));
        out += '}';
    });
    out += ']';
}

void write_groups(ChromeContext& context) {
    write_list(context, "groups", "SHARD_GROUPS", {"groupId", "axis", "ranks", "name", "description"},
               [](const store::Statement& row, auto to) {
                   fmt::format_to(to, "\"group\":{},\"axis\":{},\"ranks\":{},\"name\":{},\"description\":{}",
                                  row.integer(0), json(row.text(1)), json(row.text(2)), json(row.text(3)),
                                  json(row.text(4)));
               });
}

void write_schedule(ChromeContext& context) {
    write_list(
        context, "schedule", "SHARD_SCHEDULE",
        {"rank", "position", "stage", "kind", "microBatch", "withNext"},
        [](const store::Statement& row, auto to) {
            fmt::format_to(
                to,
                "\"rank\":{},\"position\":{},\"stage\":{},\"kind\":{},\"micro_batch\":{},\"with_next\":{}",
                row.integer(0), row.integer(1), row.integer(2), json(row.text(3)), row.integer_or(4, -1),
                row.integer(5) != 0);
        });
}

void write_hardware(ChromeContext& context) {
    const auto real = [](const store::Statement& row, int column) {
        return row.is_null(column) || !std::isfinite(row.real(column)) ? -1 : row.real(column);
    };
    write_list(context, "devices", "SHARD_DEVICES",
               {"host", "kind", "number", "name", "bus", "numa", "memory", "bandwidth", "powerLimit", "cpus",
                "visible"},
               [&](const store::Statement& row, auto to) {
                   fmt::format_to(to,
                                  "\"host\":{},\"kind\":{},\"number\":{},\"name\":{},\"bus\":{},\"numa\":{},"
                                  "\"memory_bytes\":{},\"bytes_per_second\":{},\"power_limit_watts\":{},"
                                  "\"cpus\":{},\"visible\":{}",
                                  json(row.text(0)), json(row.text(1)), row.integer(2), json(row.text(3)),
                                  json(row.text(4)), row.integer_or(5, -1), row.integer_or(6, -1),
                                  real(row, 7), real(row, 8), json(row.text(9)), row.integer(10) != 0);
               });
    write_list(context, "topology", "SHARD_TOPOLOGY",
               {"host", "fromDevice", "toHost", "toDevice", "link", "lanes", "bandwidth", "p2pRead",
                "p2pWrite", "p2pNvlink", "p2pAtomics", "source"},
               [&](const store::Statement& row, auto to) {
                   fmt::format_to(
                       to,
                       "\"host\":{},\"from\":{},\"to_host\":{},\"to\":{},\"link\":{},\"lanes\":{},"
                       "\"bytes_per_second\":{},\"read\":{},\"write\":{},\"nvlink\":{},\"atomics\":{},"
                       "\"source\":{}",
                       json(row.text(0)), json(row.text(1)), json(row.text(2)), json(row.text(3)),
                       json(row.text(4)), row.integer_or(5, -1), real(row, 6), json(row.text(7)),
                       json(row.text(8)), json(row.text(9)), json(row.text(10)), json(row.text(11)));
               });
}

void write_model(ChromeContext& context) {
    write_list(context, "modules", "SHARD_MODULES",
               {"id", "parent", "name", "className", "path", "unit", "parameters"},
               [](const store::Statement& row, auto to) {
                   fmt::format_to(to,
                                  "\"id\":{},\"parent\":{},\"name\":{},\"class\":{},\"path\":{},\"unit\":{},"
                                  "\"parameters\":{}",
                                  row.integer(0), row.integer_or(1, -1), json(row.text(2)), json(row.text(3)),
                                  json(row.text(4)), row.integer_or(5, -1), row.integer(6));
               });
    write_list(context, "units", "SHARD_UNITS",
               {"id", "module", "name", "elements", "paddedElements", "shardBytes", "bytes"},
               [](const store::Statement& row, auto to) {
                   fmt::format_to(
                       to,
                       "\"id\":{},\"module\":{},\"name\":{},\"elements\":{},\"padded_elements\":{},"
                       "\"shard_bytes\":{},\"bytes\":{}",
                       row.integer(0), row.integer_or(1, -1), json(row.text(2)), row.integer(3),
                       row.integer(4), row.integer(5), row.integer(6));
               });
}

void write_steps_and_losses(ChromeContext& context) {
    write_list(context, "steps", "SHARD_STEPS", {"rank", "step", "start", "end", "globalTid"},
               [](const store::Statement& row, auto to) {
                   fmt::format_to(to, "\"rank\":{},\"step\":{},\"start_ns\":{},\"end_ns\":{},\"thread\":{}",
                                  row.integer(0), row.integer(1), row.integer(2), row.integer(3),
                                  ChromeContext::tid_of(row.integer(4)));
               });
    std::string& out = context.out();
    out += ",\n\"losses\":";
    JsonList losses(out, "{");
    scan_table(context.database(), "SHARD_LOSSES", {"step", "loss"}, "WHERE loss NOT NULL",
               [&](const store::Statement& row) {
                   if (!std::isfinite(row.real(1))) return;  // JSON cannot express it
                   fmt::format_to(std::back_inserter(losses.next()), "\"{}\":{}", row.integer(0),
                                  row.real(1));
               });
    out += '}';
}

void write_metrics(ChromeContext& context) {
    std::string& out = context.out();
    out += ",\n\"metrics\":";
    JsonList list(out);
    scan_table(context.database(), "SHARD_METRICS", {"step", "sample", "time", "rank", "nameId", "value"},
               "WHERE value NOT NULL", [&](const store::Statement& row) {
                   if (!std::isfinite(row.real(5))) return;  // JSON cannot express it
                   fmt::format_to(std::back_inserter(list.next()),
                                  "{{\"step\":{},\"sample\":{},\"time_ns\":{},\"rank\":{},\"name\":{},"
                                  "\"value\":{}}}",
                                  row.integer_or(0, -1), row.integer_or(1, -1), row.integer(2),
                                  row.integer_or(3, -1), context.name(row.integer(4)), row.real(5));
               });
    out += ']';
}

// The measured clocks of the ranks' hosts, and the ranks' stops.
void write_processes(ChromeContext& context) {
    write_list(context, "clocks", "SHARD_CLOCKS", {"rank", "time", "offset", "uncertainty"},
               [](const store::Statement& row, auto to) {
                   fmt::format_to(to, "\"rank\":{},\"time_ns\":{},\"offset_ns\":{},\"uncertainty_ns\":{}",
                                  row.integer(0), row.integer(1), row.integer(2), row.integer(3));
               });
    write_list(context, "stops", "SHARD_STOPS", {"rank", "time", "firstRank", "lost", "reason", "waiting"},
               [](const store::Statement& row, auto to) {
                   fmt::format_to(to,
                                  "\"rank\":{},\"time_ns\":{},\"first_rank\":{},\"lost\":{},\"reason\":{},"
                                  "\"waiting\":{}",
                                  row.integer(0), row.integer(1), row.integer_or(2, -1), row.integer(3) != 0,
                                  json(row.text(4)), json(row.text(5)));
               });
}

void write_predictions(ChromeContext& context) {
    write_list(
        context, "predictions", "SHARD_PREDICTION",
        {"rank", "peakBytes", "moment", schema::kMemoryCategoryNames[0], schema::kMemoryCategoryNames[1],
         schema::kMemoryCategoryNames[2], schema::kMemoryCategoryNames[3], schema::kMemoryCategoryNames[4],
         schema::kMemoryCategoryNames[5], schema::kMemoryCategoryNames[6], schema::kMemoryCategoryNames[7]},
        [](const store::Statement& row, auto to) {
            fmt::format_to(to, "\"rank\":{},\"peak_bytes\":{},\"where\":{},\"at_peak\":{{", row.integer(0),
                           row.integer(1), json(row.text(2)));
            for (int c = 0; c < schema::kMemoryCategories; ++c) {
                fmt::format_to(to, "{}\"{}\":{}", c > 0 ? "," : "",
                               schema::kMemoryCategoryNames[static_cast<std::size_t>(c)], row.integer(3 + c));
            }
            fmt::format_to(to, "}}");
        });
    write_list(context, "prediction_parts", "SHARD_PREDICTION_PARTS", {"rank", "part", "id", "name", "bytes"},
               [](const store::Statement& row, auto to) {
                   const std::int64_t part = row.integer(1);
                   const bool known = part >= 0 && part < schema::kPredictionParts;
                   fmt::format_to(to, "\"rank\":{},\"part\":\"{}\",\"id\":{},\"name\":{},\"bytes\":{}",
                                  row.integer(0),
                                  known ? schema::kPredictionPartNames[static_cast<std::size_t>(part)] : "",
                                  row.integer_or(2, -1), json(row.text(3)), row.integer(4));
               });
}

void write_ours(ChromeContext& context) {
    std::string& out = context.out();
    std::int64_t ended = 1, dropped = 0;
    scan_table(context.database(), "SHARD_STATE", {"ended", "dropped"}, "", [&](const store::Statement& row) {
        ended = row.integer(0);
        dropped = row.integer(1);
    });
    fmt::format_to(
        std::back_inserter(out),
        ",\n\"shardscope\":{{\"version\":{},\"schema\":{},\"tool\":\"{}\",\"ended\":{},\"dropped\":{},"
        "\n\"configuration\":",
        kLayout, schema::kSchemaVersion, kVersion, ended != 0, dropped);
    JsonList configuration(out, "{");
    scan_table(context.database(), "SHARD_RUN", {"key", "value"}, "", [&](const store::Statement& row) {
        configuration.next() += json(row.text(0)) + ":" + json(row.text(1));
    });
    out += '}';
    write_ranks(context);
    write_groups(context);
    write_schedule(context);
    write_hardware(context);
    write_model(context);
    write_steps_and_losses(context);
    write_metrics(context);
    write_processes(context);
    write_predictions(context);
    write_list(context, "segments", "SHARD_SEGMENTS", {"rank", "time", "address", "bytes", "streamId"},
               [](const store::Statement& row, auto to) {
                   fmt::format_to(to, "\"rank\":{},\"time_ns\":{},\"address\":{},\"bytes\":{},\"stream\":{}",
                                  row.integer(0), row.integer(1), static_cast<std::uint64_t>(row.integer(2)),
                                  row.integer(3), row.integer_or(4, -1));
               });
    out += '}';
}

void write_name(ChromeContext& context, std::string_view kind, std::int64_t pid, std::int64_t tid,
                std::string_view arguments) {
    context.begin("M", "", fmt::format("\"{}\"", kind));
    context.place(pid, tid, 0);
    context.out() += fmt::format(",\"args\":{{{}}}", arguments);
    context.end();
}

}  // namespace

void write_head(ChromeContext& context, std::int64_t start_utc_ns) {
    context.out() += "{\"schemaVersion\":1";
    write_devices(context);
    write_job(context);
    fmt::format_to(std::back_inserter(context.out()),
                   ",\n\"displayTimeUnit\":\"ms\",\n\"baseTimeNanoseconds\":{}", start_utc_ns);
    write_ours(context);
    context.out() += ",\n\"traceEvents\":[";
}

void write_names(ChromeContext& context) {
    std::map<std::int64_t, std::string> process_names;
    scan_table(context.database(), "PROCESSES", {"globalPid", "name"}, "",
               [&](const store::Statement& row) { process_names[row.integer(0)] = row.text(1); });
    for (const auto& [global_pid, name] : process_names) context.pid_of(global_pid);
    std::int64_t order = 0;
    for (const std::int64_t global_pid : std::set<std::int64_t>(context.processes())) {
        const std::int64_t pid = context.pid_of(global_pid);
        std::string name = process_names[global_pid];
        if (name.empty()) name = fmt::format("process {}", pid);
        write_name(context, "process_name", pid, 0, "\"name\":" + json(name));
        write_name(context, "process_labels", pid, 0, "\"labels\":\"CPU\"");
        write_name(context, "process_sort_index", pid, 0, fmt::format("\"sort_index\":{}", order++));
    }
    for (const ExportedRank& rank : context.ranks()) {
        write_name(context, "process_name", rank.device, 0,
                   "\"name\":" + json(fmt::format("rank {}: device {}", rank.rank, rank.device)));
        write_name(context, "process_labels", rank.device, 0,
                   fmt::format("\"labels\":\"GPU {}\"", rank.device));
        constexpr std::int64_t kAfterProcesses = 5'000'000;  // as Kineto sorts them
        write_name(context, "process_sort_index", rank.device, 0,
                   fmt::format("\"sort_index\":{}", kAfterProcesses + rank.rank));
    }
    scan_table(context.database(), "ThreadNames", {"nameId", "globalTid"}, "",
               [&](const store::Statement& row) {
                   const std::string& name = context.name(row.integer(0));
                   if (name == "\"\"") return;
                   write_name(context, "thread_name", context.pid_of_thread(row.integer(1)),
                              ChromeContext::tid_of(row.integer(1)), "\"name\":" + name);
               });
    scan_table(context.database(), "SHARD_STREAMS", {"rank", "streamId", "name"}, "",
               [&](const store::Statement& row) {
                   const ExportedRank* rank = context.rank(row.integer(0));
                   if (rank == nullptr) return;
                   const std::string name(row.text(2));
                   write_name(context, "thread_name", rank->device, row.integer(1),
                              "\"name\":" + json(fmt::format("stream {}{}{}", row.integer(1),
                                                             name.empty() ? "" : " ", name)));
               });
}

}  // namespace shardscope::traces::exports
