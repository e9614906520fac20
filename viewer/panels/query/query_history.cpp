// See query_history.h.
#include "viewer/panels/query/query_history.h"

#include <utility>

#include "traces/schema/json_text.h"

namespace shardscope::viewer::panels {

void QueryHistory::add(std::string sql) {
    if (sql.find_first_not_of(" \t\r\n") == std::string::npos) return;
    std::erase(entries_, sql);
    entries_.insert(entries_.begin(), std::move(sql));
    if (entries_.size() > kMost) entries_.pop_back();
}

std::string QueryHistory::to_text() const {
    std::vector<std::string> kept;
    std::size_t bytes = 0;
    for (const std::string& sql : entries_) {
        bytes += sql.size();
        if (bytes > kMostBytes) break;
        kept.push_back(sql);
    }
    return kept.empty() ? "" : traces::schema::dump_strings(kept);
}

void QueryHistory::from_text(std::string_view text) {
    auto read = traces::schema::json_strings(text);
    if (!read) return;
    if (read->size() > kMost) read->resize(kMost);
    entries_.clear();
    for (auto sql = read->rbegin(); sql != read->rend(); ++sql) add(*sql);
}

}  // namespace shardscope::viewer::panels
