#include "traces/schema/json_text.h"

#include <nlohmann/json.hpp>

namespace shardscope::traces::schema {

namespace {

template <class Json>
Json parsed(std::string_view text, BadJson bad) {
    return Json::parse(text.data(), text.data() + text.size(), nullptr, bad == BadJson::throws);
}

template <class Json>
std::string dumped(const Json& value, int indent) {
    return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

bool is_json(std::string_view text) {
    return nlohmann::json::accept(text.data(), text.data() + text.size());
}

nlohmann::json parse_json(std::string_view text, BadJson bad) {
    return parsed<nlohmann::json>(text, bad);
}

nlohmann::ordered_json parse_ordered_json(std::string_view text, BadJson bad) {
    return parsed<nlohmann::ordered_json>(text, bad);
}

std::string dump_json(const nlohmann::json& value, int indent) {
    return dumped(value, indent);
}

std::string dump_json(const nlohmann::ordered_json& value, int indent) {
    return dumped(value, indent);
}

std::string string_member(const nlohmann::json& object, const char* key) {
    const auto it = object.find(key);
    return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

std::optional<std::vector<std::pair<std::string, std::string>>> json_members(std::string_view text) {
    const auto json = parse_ordered_json(text);
    if (!json.is_object()) return std::nullopt;
    std::vector<std::pair<std::string, std::string>> members;
    for (const auto& [key, value] : json.items())
        members.emplace_back(key, value.is_string() ? value.get<std::string>() : dump_json(value));
    return members;
}

std::string object_in_one_line(std::string_view text) {
    const auto json = parse_json(text);
    return json.is_object() && !json.empty() ? dump_json(json) : std::string();
}

std::optional<std::vector<std::string>> json_strings(std::string_view text) {
    const auto json = parse_json(text);
    if (!json.is_array()) return std::nullopt;
    std::vector<std::string> strings;
    for (const auto& value : json) {
        if (!value.is_string()) return std::nullopt;
        strings.push_back(value.get<std::string>());
    }
    return strings;
}

std::string dump_strings(const std::vector<std::string>& strings) {
    return dump_json(nlohmann::json(strings));
}

}  // namespace shardscope::traces::schema
