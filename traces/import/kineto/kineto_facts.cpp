// The members around the events of a Chrome trace, and facts that are only known after the last event.
#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/import/kineto/kineto_rows.h"
#include "traces/import/kineto/scalar_values.h"
#include "traces/schema/json_text.h"
#include "traces/store/grouped.h"

namespace shardscope::traces::importer {

namespace {

constexpr std::size_t kLongestFact = 200;
constexpr int kRanksAtMost = 1 << 20;
constexpr std::int64_t kEpoch = 1'000'000'000'000'000'000;  // ns: later times count from 1970

using Json = nlohmann::json;

template <typename Integer>
Integer integer(const Json& object, const char* key) {
    const auto it = object.find(key);
    if (it == object.end() || !it->is_number_integer()) return 0;
    const auto value = it->get<std::int64_t>();
    return value < 0 || value > std::numeric_limits<Integer>::max() ? 0 : static_cast<Integer>(value);
}

std::string told(std::uint64_t count, std::string_view one, std::string_view many) {
    return store::counted(static_cast<std::int64_t>(count), one, many);
}

}  // namespace

void KinetoRows::metadata(std::string_view key, JsonScalar value) {
    if (key == "deviceProperties") {
        device_properties(value.text);
    } else if (key == "distributedInfo") {
        distributed_info(value.text);
    } else if (key == "shardscope" && value.kind == JsonKind::object && !any_event_) {
        ours(value.text);
    } else if (key == "baseTimeNanoseconds") {
        base_utc_ns_ = parse_integer(value.text);
    } else if (key == "host_name" || key == "hostname") {
        if (value.is_text()) host_ = value.text;
    } else if (value.kind == JsonKind::number || (value.is_text() && key.ends_with("version"))) {
        // Settings such as "record_shapes": 1, but not the names of files or runs.
        if (key != "schemaVersion" && value.text.size() < kLongestFact && key.size() < kLongestFact)
            sink_.add(
                schema::RunInfoRow{.key = fmt::format("profiler.{}", key), .value = std::string(value.text)});
    }
}

void KinetoRows::device_properties(std::string_view json) {
    const Json list = schema::parse_json(json);
    if (!list.is_array()) return;
    for (const Json& device : list) {
        if (!device.is_object()) continue;
        schema::GpuRow row;
        row.device = row.cuda_device = integer<int>(device, "id");
        row.name = schema::string_member(device, "name");
        row.memory = integer<std::int64_t>(device, "totalGlobalMem");
        row.multiprocessors = integer<int>(device, "numSms");
        row.compute_major = integer<int>(device, "computeMajor");
        row.compute_minor = integer<int>(device, "computeMinor");
        row.warp_threads = integer<int>(device, "warpSize");
        row.max_threads_per_block = integer<int>(device, "maxThreadsPerBlock");
        row.max_registers_per_block = integer<int>(device, "regsPerBlock");
        row.max_registers_per_multiprocessor = integer<int>(device, "regsPerMultiprocessor");
        row.max_shared_per_block = integer<std::int64_t>(device, "sharedMemPerBlock");
        row.max_shared_per_multiprocessor =
            std::max(integer<std::int64_t>(device, "sharedMemPerMultiprocessor"),
                     integer<std::int64_t>(device, "maxSharedMemoryPerMultiProcessor"));
        if (row.warp_threads > 0)
            row.max_warps_per_multiprocessor =
                integer<int>(device, "maxThreadsPerMultiprocessor") / row.warp_threads;
        gpus_.emplace(row.device, row);
    }
}

void KinetoRows::distributed_info(std::string_view json) {
    const Json info = schema::parse_json(json);
    if (!info.is_object()) return;
    for (const char* key : {"backend", "nccl_version"}) {
        if (const std::string value = schema::string_member(info, key); !value.empty())
            sink_.add(schema::RunInfoRow{.key = fmt::format("distributed.{}", key), .value = value});
    }
    const int ranks = integer<int>(info, "world_size");
    if (ranks > 0)
        sink_.add(schema::RunInfoRow{.key = "distributed.world_size", .value = std::to_string(ranks)});
    if (const auto rank = info.find("rank"); rank != info.end() && rank->is_number_integer() &&
                                             rank->get<std::int64_t>() >= 0 &&
                                             rank->get<std::int64_t>() < kRanksAtMost && !ours_) {
        facts_.rank = rank->get<int>();
        if (!any_event_) actors_.set_rank(*facts_.rank);
    }
}

// In a trace that we exported every rank is known, and time 0 is that of the capture.
void KinetoRows::ours(std::string_view json) {
    const auto known = read_our_metadata(json);
    if (!known) return;
    for (const schema::AnyRow& any : known->rows) std::visit([&](const auto& row) { sink_.add(row); }, any);
    if (!known->exported) return;
    ours_ = true;
    base_ns_ = 0;
    facts_.rank.reset();
    actors_.set_rank(request_.rank);
    for (const OurRank& rank : known->ranks) {
        actors_.know_rank(rank.row, rank.pid, rank.thread, rank.threads);
        for (const schema::StreamRow& row : rank.streams) sink_.add(row);
    }
    our_steps_ = known->steps;
    for (const OurStep& step : our_steps_) {
        const auto rank = std::find_if(known->ranks.begin(), known->ranks.end(),
                                       [&](const OurRank& r) { return r.row.rank == step.row.rank; });
        if (rank == known->ranks.end()) continue;
        schema::StepRow row = step.row;
        row.global_tid = actors_.thread_of(rank->pid, step.thread != 0 ? step.thread : rank->thread);
        sink_.add(row);
    }
    for (const OurMetric& metric : known->metrics) {
        schema::MetricRow row = metric.row;
        row.name = sink_.intern(metric.name);
        sink_.add(row);
    }
    if (!known->ended)
        note(schema::Severity::warning, "the run did not end: it was killed or was still running");
    if (known->dropped > 0)
        note(schema::Severity::warning, fmt::format("{} dropped while it was recorded",
                                                    told(known->dropped, "event was", "events were")));
}

void KinetoRows::note(schema::Severity severity, const std::string& text_of_it) {
    sink_.add(schema::DiagnosticRow{.time = 0, .severity = severity, .text = text_of_it});
}

FileFacts KinetoRows::finish() {
    collectives_.finish();
    const std::uint64_t unended = open_ranges_.finish(facts_.last_ns);
    if (unended > 0)
        note(schema::Severity::information, fmt::format("{} no end; the end of the trace is used instead",
                                                        told(unended, "range has", "ranges have")));
    if (open_ranges_.lonely_ends() > 0)
        note(schema::Severity::information,
             fmt::format("{} ignored", told(open_ranges_.lonely_ends(), "range end without a beginning was",
                                            "range ends without a beginning were")));
    if (no_time_ > 0)
        note(schema::Severity::warning,
             fmt::format("{} ignored", told(no_time_, "event without a readable time was",
                                            "events without a readable time were")));
    if (no_duration_ > 0)
        note(schema::Severity::warning, told(no_duration_, "event without a readable duration has length 0",
                                             "events without a readable duration have length 0"));
    if (actors_.surplus_threads() > 0)
        note(schema::Severity::warning,
             fmt::format("{} combined into one",
                         told(actors_.surplus_threads(), "thread beyond a trace's limit is",
                              "threads beyond a trace's limit are")));
    if (actors_.moved_devices() > 0)
        note(schema::Severity::information,
             fmt::format(
                 "{} on separate streams",
                 told(actors_.moved_devices(), "event ran on a device other than the rank's and is shown",
                      "events ran on a device other than the rank's and are shown")));
    if (many_processes_ && actors_.moved_devices() > 0)
        note(schema::Severity::warning,
             "several processes used several devices, but a file is read as one rank; to separate them, "
             "open each process's own file");
    actors_.write(sink_, gpus_, host_);
    facts_.rows_rank = actors_.rank();
    const std::int64_t utc = base_utc_ns_.value_or(0);
    if (utc != 0 || base_ns_ > kEpoch) __builtin_add_overflow(utc, base_ns_, &facts_.start_utc_ns);
    sink_.add(schema::RunInfoRow{.key = "import.format", .value = kineto_ || ours_ ? "kineto" : "chrome"});
    return facts_;
}

}  // namespace shardscope::traces::importer
