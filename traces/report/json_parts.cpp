#include "traces/report/json_parts.h"

#include <nlohmann/json.hpp>

namespace shardscope::traces {

std::string json_line(const nlohmann::ordered_json& json) {
    return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace shardscope::traces
