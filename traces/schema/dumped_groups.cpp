#include "traces/schema/dumped_groups.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "traces/schema/json_text.h"

namespace shardscope::traces::schema {

namespace {

std::optional<std::int64_t> sequence_number(const nlohmann::json& group, const char* key) {
    const auto at = group.find(key);
    if (at == group.end() || !at->is_number_integer()) return std::nullopt;
    return at->get<std::int64_t>();
}

}  // namespace

std::string to_json(const DumpedGroups& groups) {
    nlohmann::json json = nlohmann::json::object();
    for (const auto& [name, group] : groups) {
        nlohmann::json one = nlohmann::json::object();
        if (!group.description.empty()) one["description"] = group.description;
        if (!group.ranks.empty()) one["ranks"] = group.ranks;
        if (group.enqueued) one["enqueued"] = *group.enqueued;
        if (group.started) one["started"] = *group.started;
        if (group.completed) one["completed"] = *group.completed;
        json[name] = std::move(one);
    }
    return dump_json(json);
}

DumpedGroups parse_dumped_groups(std::string_view text) {
    DumpedGroups groups;
    const nlohmann::json json = parse_json(text);
    if (!json.is_object()) return groups;
    for (const auto& [name, value] : json.items()) {
        if (!value.is_object()) continue;
        DumpedGroup& group = groups[name];
        if (value.contains("description") && value["description"].is_string())
            group.description = value["description"].get<std::string>();
        group.enqueued = sequence_number(value, "enqueued");
        group.started = sequence_number(value, "started");
        group.completed = sequence_number(value, "completed");
        if (!value.contains("ranks") || !value["ranks"].is_array()) continue;
        for (const nlohmann::json& rank : value["ranks"]) {
            if (rank.is_number_integer()) group.ranks.push_back(rank.get<std::int64_t>());
        }
    }
    return groups;
}

}  // namespace shardscope::traces::schema
