// Helpers that the JSON texts of the results share. Internal to traces/report.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace shardscope::traces {

// One line that ends with a newline; bytes that are not UTF-8 become U+FFFD.
std::string json_line(const nlohmann::ordered_json& json);

// A sum of bytes, or a bandwidth: 0 means "not known" (a barrier, a kernel without metadata) and becomes
// null.
nlohmann::ordered_json known_or_null(std::int64_t value);
nlohmann::ordered_json known_or_null(double value);

// An object of texts.
nlohmann::ordered_json json_pairs(const std::vector<std::pair<std::string, std::string>>& all);

// {"ranks":[...]} as a line; `to_json` converts each rank.
template <typename Ranks, typename ToJson>
std::string ranks_line(const Ranks& ranks, ToJson to_json) {
    using Json = decltype(to_json(*ranks.begin()));
    Json all = Json::array(), json = Json::object();
    for (const auto& rank : ranks) all.push_back(to_json(rank));
    json["ranks"] = std::move(all);
    return json_line(json);
}

// Nanoseconds as microseconds, which JSON has.
constexpr double to_us(std::int64_t ns) {
    return static_cast<double>(ns) * 1e-3;
}
constexpr double to_us(double ns) {
    return ns * 1e-3;
}

}  // namespace shardscope::traces
