#include "traces/schema/json_text.h"

#include <nlohmann/json.hpp>

namespace shardscope::traces {

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

}  // namespace shardscope::traces
