#include "traces/report/json_parts.h"

#include <nlohmann/json.hpp>

#include "traces/schema/json_text.h"

namespace shardscope::traces {

std::string json_line(const nlohmann::ordered_json& json) {
    return dump_json(json) + "\n";
}

nlohmann::ordered_json json_pairs(const std::vector<std::pair<std::string, std::string>>& all) {
    nlohmann::ordered_json json = nlohmann::ordered_json::object();
    for (const auto& [key, value] : all) json[key] = value;
    return json;
}

nlohmann::ordered_json known_or_null(std::int64_t value) {
    return value > 0 ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json known_or_null(double value) {
    return value > 0 ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

}  // namespace shardscope::traces
