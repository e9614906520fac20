// See flight_recorder.h.
#include "traces/import/flight/flight_recorder.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "traces/import/pytorch_memory/frames.h"
#include "traces/schema/dumped_groups.h"
#include "traces/schema/text.h"
#include "traces/store/error.h"
#include "traces/store/grouped.h"

namespace shardscope::traces::importer {
namespace {

// Times (ns since 1970) must be below this, so that sums do not overflow.
constexpr std::int64_t kMostTime = std::int64_t{1} << 62;
constexpr std::size_t kMostTensors = 4096, kMostDimensions = 64;

// PyTorch's scalar types as the dump names them, and their sizes in bytes.
constexpr std::pair<std::string_view, std::int64_t> kTypes[] = {
    {"Byte", 1},
    {"Char", 1},
    {"Bool", 1},
    {"Short", 2},
    {"UInt16", 2},
    {"Half", 2},
    {"BFloat16", 2},
    {"Int", 4},
    {"UInt32", 4},
    {"Float", 4},
    {"Long", 8},
    {"UInt64", 8},
    {"Double", 8},
    {"ComplexHalf", 4},
    {"ComplexFloat", 8},
    {"ComplexDouble", 16},
    {"Float8_e5m2", 1},
    {"Float8_e4m3fn", 1},
    {"Float8_e5m2fnuz", 1},
    {"Float8_e4m3fnuz", 1},
    {"Float8_e8m0fnu", 1},
};

std::optional<std::int64_t> bytes_of_type(std::string_view type) {
    for (const auto& [name, bytes] : kTypes) {
        if (name == type) return bytes;
    }
    return std::nullopt;
}

// "nccl:_all_gather_base", "nccl:send 0->1". The longer names come first.
schema::Operation operation_of_name(std::string_view name) {
    static constexpr std::pair<std::string_view, schema::Operation> kNames[] = {
        {"barrier", schema::Operation::barrier},
        {"all_gather", schema::Operation::all_gather},
        {"allgather", schema::Operation::all_gather},
        {"reduce_scatter", schema::Operation::reduce_scatter},
        {"all_reduce", schema::Operation::all_reduce},
        {"allreduce", schema::Operation::all_reduce},
        {"all_to_all", schema::Operation::all_to_all},
        {"alltoall", schema::Operation::all_to_all},
        {"broadcast", schema::Operation::broadcast},
        {"send", schema::Operation::send},
        {"recv", schema::Operation::recv},
        {"gather", schema::Operation::gather},
        {"scatter", schema::Operation::scatter},
        {"reduce", schema::Operation::reduce},
    };
    for (const auto& [part, operation] : kNames) {
        if (name.find(part) != std::string_view::npos) return operation;
    }
    return schema::Operation::other;
}

// An integer, or a string that contains one.
std::optional<std::int64_t> number(const Value& value) {
    return value.is_text() ? schema::number_of<std::int64_t>(value.text()) : value.integer();
}

// A name; a number is converted to its digits.
std::string name_of(const Value& value) {
    if (value.is_text()) return std::string(value.text());
    const auto whole = value.integer();
    return whole ? std::to_string(*whole) : std::string();
}

// The ranks of "[0, 1, 2]" or of a list.
std::vector<std::int64_t> rank_list(const Value& value) {
    std::vector<std::int64_t> ranks;
    for (std::size_t i = 0; i < value.size(); ++i) {
        if (const auto rank = number(value[i])) ranks.push_back(*rank);
    }
    const std::string_view text = value.text();
    const char* end = text.data() + text.size();
    for (const char* at = text.data(); at != end;) {
        std::int64_t rank = 0;
        const auto [stop, fault] = std::from_chars(at, end, rank);
        if (fault == std::errc()) ranks.push_back(rank);
        at = stop == at ? at + 1 : stop;
    }
    return ranks;
}

std::optional<std::int64_t> time_of(const Value& value) {
    const auto ns = value.integer();
    return ns && *ns > 0 && *ns < kMostTime ? ns : std::nullopt;
}

// The tensors of one side: their sizes in brackets and their total bytes.
struct Tensors {
    std::string sizes = "[";
    std::optional<std::int64_t> bytes;
    std::string type;
};

Tensors tensors_of(const Value& sizes, const Value& types) {
    Tensors result;
    result.type = types[0].text();
    bool known = sizes.is_list();
    std::int64_t total = 0;
    for (std::size_t t = 0; t < sizes.size() && t < kMostTensors; ++t) {
        const Value shape = sizes[t];
        if (t > 0) result.sizes += ", ";
        result.sizes += '[';
        std::int64_t elements = 1;
        for (std::size_t d = 0; d < shape.size() && d < kMostDimensions; ++d) {
            const std::int64_t extent = shape[d].integer().value_or(-1);
            result.sizes += fmt::format("{}{}", d > 0 ? ", " : "", extent);
            known = known && extent >= 0 && !__builtin_mul_overflow(elements, extent, &elements);
        }
        result.sizes += ']';
        const Value type = types[types.size() > t ? t : 0];
        const auto width = bytes_of_type(type.text());
        std::int64_t bytes = 0;
        known = known && width && !__builtin_mul_overflow(elements, *width, &bytes) &&
                !__builtin_add_overflow(total, bytes, &total);
    }
    result.sizes += ']';
    if (known) result.bytes = total;
    return result;
}

// Detects large lists or strings that many entries share, which no real dump does: 400 KiB of entries that
// share the sizes of 4096 tensors would become gigabytes of rows. The limit is the memory of the tree.
class Reading {
  public:
    explicit Reading(const Value& root) : most_(root.memory_of_tree()) {}
    bool too_much() const { return bytes_ > most_; }
    void text(const Value& value) { bytes_ += value.text().size(); }
    void list(const Value& value) { bytes_ += value.size() * sizeof(ValueRef) + value.text().size(); }
    void sizes(const Value& tensors) {
        list(tensors);
        for (std::size_t t = 0; t < tensors.size() && t < kMostTensors && !too_much(); ++t) list(tensors[t]);
    }

  private:
    std::size_t bytes_ = 0;
    const std::size_t most_;
};

bool shares_lists(const Value& root, const Value& entries) {
    Reading reading(root);
    for (std::size_t i = 0; i < entries.size() && !reading.too_much(); ++i) {
        reading.list(entries[i]);
        if (reading.too_much()) break;  // each lookup in a dictionary searches all of it
        const Value entry = entries[i], group = entry["process_group"];
        for (const Value& text :
             {group, group[0], group[1], entry["pg_name"], entry["pg_id"], entry["profiling_name"],
              entry["input_dtypes"][0], entry["output_dtypes"][0]})
            reading.text(text);
        reading.sizes(entry["input_sizes"]);
        reading.sizes(entry["output_sizes"]);
    }
    for (const char* key : {"pg_config", "pg_status"}) {
        const Value groups = root[key];
        for (std::size_t i = 0; i < groups.size() && !reading.too_much(); ++i) {
            reading.list(groups.value(i));
            if (reading.too_much()) break;
            reading.text(groups.key(i));
            reading.text(groups.value(i)["desc"]);
            reading.list(groups.value(i)["ranks"]);
        }
    }
    return reading.too_much();
}

class Dump {
  public:
    Dump(const Value& root, store::EventSink& sink, int rank)
        : root_(root),
          entries_(root.is_list() ? root : root["entries"]),
          sink_(sink),
          frames_(sink),
          rank_(rank) {}

    FileFacts write() {
        read_groups();
        std::optional<std::int64_t> first;
        for (std::size_t i = 0; i < entries_.size(); ++i) {
            const auto created = time_of(entries_[i]["time_created_ns"]);
            if (created && (!first || *created < *first)) first = created;
        }
        start_ns_ = first.value_or(0);
        for (std::size_t i = 0; i < entries_.size(); ++i) write_entry(entries_[i], i);
        read_status();
        write_groups();
        facts_.rows_rank = rank_;
        facts_.start_utc_ns = start_ns_;
        return facts_;
    }

  private:
    void read_groups() {
        const Value config = root_["pg_config"];
        for (std::size_t i = 0; i < config.size(); ++i) {
            const Value value = config.value(i);
            schema::DumpedGroup& group = groups_[name_of(config.key(i))];
            group.description = value["desc"].text();
            group.ranks = rank_list(value["ranks"]);
        }
    }

    // The state of each group; its key is the entries' pg_id, which is not always the group's name.
    void read_status() {
        const Value status = root_["pg_status"];
        for (std::size_t i = 0; i < status.size(); ++i) {
            const std::string id = name_of(status.key(i));
            const auto named = names_.find(id);
            const auto group = groups_.find(named == names_.end() ? id : named->second);
            if (group == groups_.end()) continue;
            const Value value = status.value(i);
            group->second.enqueued = number(value["last_enqueued_collective"]);
            group->second.started = number(value["last_started_collective"]);
            group->second.completed = number(value["last_completed_collective"]);
        }
    }

    void write_entry(const Value& entry, std::size_t index) {
        if (!entry.is_dictionary()) {
            ++skipped_;
            return;
        }
        const Value process_group = entry["process_group"];
        std::string name = name_of(process_group.is_list() ? process_group[0] : process_group);
        if (name.empty()) name = name_of(entry["pg_name"]);
        if (name.empty()) name = name_of(entry["pg_id"]);
        schema::DumpedGroup& group = groups_[name];
        if (group.description.empty()) group.description = process_group[1].text();
        names_.emplace(name_of(entry["pg_id"]), name);

        schema::FlightRow row;
        row.rank = rank_;
        row.id = number(entry["record_id"])
                     .value_or(number(entry["id"]).value_or(static_cast<std::int64_t>(index)));
        row.group = sink_.intern(name);
        row.group_description = sink_.intern(group.description);
        row.group_size = static_cast<std::int64_t>(group.ranks.size());
        row.name = sink_.intern(entry["profiling_name"].text());
        row.operation = operation_of_name(entry["profiling_name"].text());
        const Value p2p = entry["is_p2p"];
        row.point_to_point = p2p.is_none() ? is_point_to_point(row.operation) : p2p.integer() == 1;
        // Before version 2.1, collectives and point-to-point operations shared one counter.
        const Value sequence = entry[row.point_to_point ? "p2p_seq_id" : "collective_seq_id"];
        row.sequence = number(sequence).value_or(number(entry["seq_id"]).value_or(-1));
        const Tensors in = tensors_of(entry["input_sizes"], entry["input_dtypes"]);
        const Tensors out = tensors_of(entry["output_sizes"], entry["output_dtypes"]);
        row.input_bytes = in.bytes.value_or(-1);
        row.output_bytes = out.bytes.value_or(-1);
        row.sizes = sink_.intern(in.sizes + " -> " + out.sizes);
        row.data_type =
            sink_.intern(in.type == out.type || out.type.empty() ? in.type : in.type + " -> " + out.type);
        row.timeout_ms = number(entry["timeout_ms"]).value_or(-1);
        row.stack = frames_.stack(entry["frames"]);
        write_times(entry, row);
        sink_.add(row);
    }

    void write_times(const Value& entry, schema::FlightRow& row) {
        const std::string_view state = entry["state"].text();
        row.created = time_of(entry["time_created_ns"]).value_or(start_ns_) - start_ns_;
        facts_.last_ns = std::max(facts_.last_ns, row.created);
        const auto since = [&](const char* key) {
            std::optional<std::int64_t> time = time_of(entry[key]);
            if (time) {
                *time -= start_ns_;
                facts_.last_ns = std::max(facts_.last_ns, *time);
            }
            return time;
        };
        row.started = since("time_discovered_started_ns");
        row.completed = since("time_discovered_completed_ns");
        if (state == "completed" || (state.empty() && row.completed)) {
            row.state = schema::FlightState::completed;
        } else if (state == "started" || (state.empty() && row.started)) {
            row.state = schema::FlightState::started;
        }
    }

    void write_groups() {
        sink_.add(schema::RunInfoRow{fmt::format("flight_recorder.rank{}.groups", rank_), to_json(groups_)});
        if (skipped_ > 0) {
            sink_.add(schema::DiagnosticRow{
                0, schema::Severity::warning,
                fmt::format("rank {}: {} of the flight recorder could not be read and {} ignored", rank_,
                            store::counted(skipped_, "entry", "entries"), skipped_ == 1 ? "was" : "were")});
        }
    }

    Value root_, entries_;
    store::EventSink& sink_;
    Frames frames_;
    int rank_;
    std::int64_t start_ns_ = 0, skipped_ = 0;
    schema::DumpedGroups groups_;
    std::map<std::string, std::string> names_;  // of groups, by the entries' pg_id
    FileFacts facts_;
};

}  // namespace

bool is_flight_dump(const Value& root) {
    if (root.is_dictionary()) {
        return root["entries"].is_list() || (root["pg_config"].is_dictionary() && !root["version"].is_none());
    }
    return root.is_list() && root[0]["profiling_name"].is_text();
}

FileFacts read_flight_dump(const Value& root, const std::string& path, store::EventSink& sink,
                           const FileRequest& request) {
    if (shares_lists(root, root.is_list() ? root : root["entries"])) {
        throw store::StoreError(
            fmt::format("{}: many collectives or groups share one list of sizes, ranks or text, which no "
                        "valid dump of the flight recorder does; dump it again",
                        path));
    }
    const Value version = root["version"];
    if (const std::string_view text = version.text();
        !text.empty() && !text.starts_with("1.") && !text.starts_with("2.") && text != "1" && text != "2") {
        sink.add(
            schema::DiagnosticRow{0, schema::Severity::warning,
                                  fmt::format("{}: the flight recorder's dump is of version {}, and only 1.x "
                                              "and 2.x are known; fields with the same names were read",
                                              path, text)});
    }
    const std::int64_t pid = request.rank + 1;
    sink.add(schema::RunInfoRow{"import.format", "pytorch_flight_recorder"});
    if (!version.text().empty())
        sink.add(schema::RunInfoRow{"flight_recorder.version", std::string(version.text())});
    sink.add(schema::RankRow{.rank = request.rank,
                             .device = request.rank,
                             .global_pid = schema::global_pid(pid),
                             .global_tid = schema::global_tid(pid, pid),
                             .host = std::string(root["host_name"].text()),
                             .device_name = {}});
    FileFacts facts = Dump(root, sink, request.rank).write();
    if (const auto rank = number(root["rank"]);
        rank && *rank >= 0 && *rank <= std::numeric_limits<int>::max())
        facts.rank = static_cast<int>(*rank);
    return facts;
}

}  // namespace shardscope::traces::importer
