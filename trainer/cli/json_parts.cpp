#include "trainer/cli/json_parts.h"

#include <nlohmann/json.hpp>

namespace shardscope::trainer::cli {

nlohmann::ordered_json settings_json(const std::vector<job::Override>& settings) {
    nlohmann::ordered_json json = nlohmann::ordered_json::object();
    for (const job::Override& setting : settings) json[setting.key] = setting.value;
    return json;
}

nlohmann::ordered_json categories_json(const plan::CategoryBytes& bytes) {
    nlohmann::ordered_json json = nlohmann::ordered_json::object();
    for (std::size_t c = 0; c < bytes.size(); ++c)
        json[std::string(traces::schema::kMemoryCategoryNames[c])] = bytes[c];
    return json;
}

}  // namespace shardscope::trainer::cli
