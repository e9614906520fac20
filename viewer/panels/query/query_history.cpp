// See query_history.h.
#include "viewer/panels/query/query_history.h"

#include <algorithm>
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

namespace {

bool is_blank(std::string_view text) {
    return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

}  // namespace

std::string SavedQueries::refusal(std::string_view name, std::string_view sql) {
    if (is_blank(name)) return "A query is saved under a name; give it one.";
    if (is_blank(sql)) return "There is no SQL to save; write it first.";
    if (sql.size() > kMostBytes) return "The SQL is longer than 64 KiB, which is the most that is saved.";
    return {};
}

bool SavedQueries::has(std::string_view name) const {
    return std::any_of(entries_.begin(), entries_.end(), [&](const SavedQuery& q) { return q.name == name; });
}

bool SavedQueries::save(const std::string& name, const std::string& sql) {
    if (!has(name) && entries_.size() >= kMost) return false;
    remove(name);
    const auto at =
        std::find_if(entries_.begin(), entries_.end(), [&](const SavedQuery& q) { return q.name > name; });
    entries_.insert(at, {name, sql});
    return true;
}

void SavedQueries::remove(std::string_view name) {
    std::erase_if(entries_, [&](const SavedQuery& q) { return q.name == name; });
}

std::string SavedQueries::to_text() const {
    std::vector<std::string> texts;
    for (const SavedQuery& query : entries_) texts.insert(texts.end(), {query.name, query.sql});
    return traces::schema::dump_strings(texts);
}

void SavedQueries::from_text(std::string_view text) {
    const auto read = traces::schema::json_strings(text);
    if (!read || read->size() % 2 != 0) return;
    entries_.clear();
    for (std::size_t i = 0; i < read->size(); i += 2) {
        const std::string &name = (*read)[i], &sql = (*read)[i + 1];
        if (refusal(name, sql).empty()) save(name, sql);
    }
}

}  // namespace shardscope::viewer::panels
