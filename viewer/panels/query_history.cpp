// See query_history.h.
#include "viewer/panels/query_history.h"

#include <nlohmann/json.hpp>

namespace shardscope::viewer {

void QueryHistory::add(const std::string& sql) {
    if (sql.find_first_not_of(" \t\r\n") == std::string::npos) return;
    const std::string kept = sql;  // `sql` may be an entry
    std::erase(entries_, kept);
    entries_.insert(entries_.begin(), kept);
    if (entries_.size() > kMost) entries_.pop_back();
}

std::string QueryHistory::to_text() const {
    nlohmann::json array = nlohmann::json::array();
    std::size_t bytes = 0;
    for (const std::string& sql : entries_) {
        bytes += sql.size();
        if (bytes > kMostBytes) break;
        array.push_back(sql);
    }
    return array.empty() ? "" : array.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void QueryHistory::from_text(std::string_view text) {
    const auto array = nlohmann::json::parse(text, nullptr, false);
    if (!array.is_array()) return;
    std::vector<std::string> read;
    for (const auto& sql : array) {
        if (!sql.is_string()) return;
        if (read.size() < kMost) read.push_back(sql.get<std::string>());
    }
    entries_.clear();
    for (auto sql = read.rbegin(); sql != read.rend(); ++sql) add(*sql);
}

}  // namespace shardscope::viewer
