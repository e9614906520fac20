#include "traces/status/run_status.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/schema/json_text.h"

namespace shardscope::traces::status {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 7> kRunStates = {"starting", "running", "waiting", "stopping",
                                                        "finished", "stopped", "failed"};
constexpr std::array<std::string_view, 5> kRankStates = {"starting", "running", "waiting", "silent", "ended"};
constexpr std::size_t kMostRanks = 1 << 20;

// --- writing ---------------------------------------------------------------------------------------------

// Three digits after the point are enough for seconds and percent.
double rounded(double value) {
    return std::round(value * 1000) / 1000;
}

void put(Json& json, const char* key, const std::string& text) {
    if (!text.empty()) json[key] = text;
}
void put(Json& json, const char* key, const std::optional<std::int64_t>& value) {
    if (value) json[key] = *value;
}
void put(Json& json, const char* key, const std::optional<double>& value) {
    if (value && std::isfinite(*value)) json[key] = *value;
}
void put_rounded(Json& json, const char* key, const std::optional<double>& value) {
    if (value && std::isfinite(*value)) json[key] = rounded(*value);
}

Json to_json(const RankStatus& rank) {
    Json json;
    json["rank"] = rank.rank;
    put(json, "host", rank.host);
    if (rank.pid > 0) json["pid"] = rank.pid;
    json["state"] = name(rank.state);
    if (rank.state == RankState::silent) put_rounded(json, "silent_s", rank.silent_s);
    put(json, "steps_done", rank.steps_done);
    put(json, "memory_bytes", rank.memory_bytes);
    put(json, "peak_bytes", rank.peak_bytes);
    put(json, "resident_bytes", rank.resident_bytes);
    put_rounded(json, "cores", rank.cores);
    put_rounded(json, "waits_percent", rank.waits_percent);
    if (rank.collective) {
        const CollectiveStatus& collective = *rank.collective;
        Json& own = json["collective"];
        own["operation"] = collective.operation;
        own["number"] = collective.number;
        own["group"] = collective.group;
        own["open"] = collective.open;
        put_rounded(own, "for_s", collective.for_s);
    }
    if (rank.range) {
        json["range"]["name"] = rank.range->name;
        put_rounded(json["range"], "for_s", rank.range->for_s);
    }
    return json;
}

// --- reading ---------------------------------------------------------------------------------------------

void take(const Json& json, const char* key, std::string& text) {
    const auto found = json.find(key);
    if (found != json.end() && found->is_string()) text = found->get<std::string>();
}
void take(const Json& json, const char* key, double& value) {
    const auto found = json.find(key);
    if (found != json.end() && found->is_number()) value = found->get<double>();
}
void take(const Json& json, const char* key, std::optional<double>& value) {
    const auto found = json.find(key);
    if (found != json.end() && found->is_number()) value = found->get<double>();
}
bool is_whole(const Json& value) {
    return value.is_number_integer() &&
           !(value.is_number_unsigned() &&
             value.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()});
}
void take(const Json& json, const char* key, std::int64_t& value) {
    const auto found = json.find(key);
    if (found != json.end() && is_whole(*found)) value = found->get<std::int64_t>();
}
void take(const Json& json, const char* key, std::optional<std::int64_t>& value) {
    const auto found = json.find(key);
    if (found != json.end() && is_whole(*found)) value = found->get<std::int64_t>();
}
int to_rank(std::int64_t number) {
    return static_cast<int>(std::clamp<std::int64_t>(number, -1, std::numeric_limits<int>::max()));
}

template <class State, std::size_t n>
State state_of(const Json& json, const std::array<std::string_view, n>& names, State otherwise) {
    std::string text;
    take(json, "state", text);
    const auto found = std::find(names.begin(), names.end(), text);
    return found == names.end() ? otherwise : static_cast<State>(found - names.begin());
}

RankStatus rank_of(const Json& json) {
    RankStatus rank;
    std::int64_t number = -1;
    take(json, "rank", number);
    rank.rank = to_rank(number);
    take(json, "host", rank.host);
    take(json, "pid", rank.pid);
    rank.state = state_of(json, kRankStates, RankState::running);
    take(json, "silent_s", rank.silent_s);
    take(json, "steps_done", rank.steps_done);
    take(json, "memory_bytes", rank.memory_bytes);
    take(json, "peak_bytes", rank.peak_bytes);
    take(json, "resident_bytes", rank.resident_bytes);
    take(json, "cores", rank.cores);
    take(json, "waits_percent", rank.waits_percent);
    if (const auto own = json.find("collective"); own != json.end() && own->is_object()) {
        CollectiveStatus& collective = rank.collective.emplace();
        take(*own, "operation", collective.operation);
        take(*own, "number", collective.number);
        take(*own, "group", collective.group);
        take(*own, "for_s", collective.for_s);
        const auto open = own->find("open");
        collective.open = open != own->end() && open->is_boolean() && open->get<bool>();
    }
    if (const auto own = json.find("range"); own != json.end() && own->is_object()) {
        RangeStatus& range = rank.range.emplace();
        take(*own, "name", range.name);
        take(*own, "for_s", range.for_s);
    }
    return rank;
}

}  // namespace

std::string_view name(RunState state) {
    return kRunStates[static_cast<std::size_t>(state)];
}

std::string_view name(RankState state) {
    return kRankStates[static_cast<std::size_t>(state)];
}

std::string to_line(const RunStatus& status) {
    Json json;
    json["shardscope_status"] = kLineVersion;
    put(json, "tool", status.tool);
    put(json, "run", status.run);
    put(json, "trace", status.trace);
    put(json, "host", status.host);
    if (status.pid > 0) json["pid"] = status.pid;
    json["number"] = status.number;
    put_rounded(json, "time_s", status.time_s);
    json["state"] = name(status.state);
    put(json, "reason", status.reason);
    put(json, "steps_done", status.steps_done);
    put(json, "steps", status.steps);
    put_rounded(json, "epoch", status.epoch);
    put(json, "epochs", status.epochs);
    put(json, "loss", status.loss);
    put(json, "step_s", status.step_s);
    put_rounded(json, "rate", status.rate);
    put(json, "items", status.items);
    put_rounded(json, "left_s", status.left_s);
    if (status.slowest_rank) json["slowest_rank"] = *status.slowest_rank;
    put(json, "processes", status.processes);
    put(json, "events", status.events);
    put(json, "dropped_events", status.dropped_events);
    Json& ranks = json["ranks"] = Json::array();
    for (const RankStatus& rank : status.ranks) ranks.push_back(to_json(rank));
    return schema::dump_json(json) + "\n";
}

RunStatus from_line(std::string_view line) {
    const Json json = schema::parse_ordered_json(line);
    if (!json.is_object() || !json.contains("shardscope_status"))
        throw StatusError("what answers is not a status server of Shardscope");
    std::int64_t version = 0;
    take(json, "shardscope_status", version);
    if (version != kLineVersion) {
        throw StatusError(
            fmt::format("the run's status has version {}, this tool knows version {}; use the run's own "
                        "version of shardscope-trace",
                        version, kLineVersion));
    }
    RunStatus status;
    take(json, "tool", status.tool);
    take(json, "run", status.run);
    take(json, "trace", status.trace);
    take(json, "host", status.host);
    take(json, "pid", status.pid);
    take(json, "number", status.number);
    take(json, "time_s", status.time_s);
    status.state = state_of(json, kRunStates, RunState::running);
    take(json, "reason", status.reason);
    take(json, "steps_done", status.steps_done);
    take(json, "steps", status.steps);
    take(json, "epoch", status.epoch);
    take(json, "epochs", status.epochs);
    take(json, "loss", status.loss);
    take(json, "step_s", status.step_s);
    take(json, "rate", status.rate);
    take(json, "items", status.items);
    take(json, "left_s", status.left_s);
    std::optional<std::int64_t> slowest;
    take(json, "slowest_rank", slowest);
    if (slowest) status.slowest_rank = to_rank(*slowest);
    take(json, "processes", status.processes);
    take(json, "events", status.events);
    take(json, "dropped_events", status.dropped_events);
    if (const auto ranks = json.find("ranks"); ranks != json.end() && ranks->is_array()) {
        for (const Json& rank : *ranks) {
            if (status.ranks.size() == kMostRanks) break;
            if (rank.is_object()) status.ranks.push_back(rank_of(rank));
        }
    }
    return status;
}

std::optional<std::string> refusal_of(std::string_view line) {
    const Json json = schema::parse_ordered_json(line);
    if (!json.is_object() || json.contains("shardscope_status")) return std::nullopt;
    const auto error = json.find("error");
    if (error == json.end() || !error->is_string()) return std::nullopt;
    return error->get<std::string>();
}

std::string refusal_line(std::string_view reason) {
    Json json;
    json["error"] = std::string(reason);
    return schema::dump_json(json) + "\n";
}

}  // namespace shardscope::traces::status
