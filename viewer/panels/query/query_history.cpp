// See query_history.h.
#include "viewer/panels/query/query_history.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "traces/schema/json_text.h"

namespace shardscope::viewer {

void QueryHistory::add(std::string sql) {
    if (sql.find_first_not_of(" \t\r\n") == std::string::npos) return;
    std::erase(entries_, sql);
    entries_.insert(entries_.begin(), std::move(sql));
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
    return array.empty() ? "" : traces::dump_json(array);
}

void QueryHistory::from_text(std::string_view text) {
    const auto array = traces::parse_json(text);
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
