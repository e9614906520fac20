// Parses the comment at the head of a query; see shipped_queries.h.
#include <algorithm>

#include "traces/query/shipped_queries.h"

namespace shardscope::traces::query {
namespace {

// Calls `line(text)` for each comment line at the head until `line` returns false.
template <typename Line>
void each_head_line(std::string_view sql, const Line& line) {
    while (sql.starts_with("--")) {
        const auto newline = sql.find('\n');
        std::string_view text = sql.substr(2, newline == std::string_view::npos ? newline : newline - 2);
        sql = newline == std::string_view::npos ? std::string_view() : sql.substr(newline + 1);
        if (text.starts_with(' ')) text.remove_prefix(1);
        if (!line(text)) return;
    }
}

}  // namespace

std::string question_of(std::string_view sql) {
    std::string text;
    each_head_line(sql, [&](std::string_view line) {
        if (line.starts_with(':')) return false;  // a parameter
        text += (text.empty() ? "" : " ") + std::string(line);
        return true;
    });
    const auto end = text.find('?');
    return end == std::string::npos ? text : text.substr(0, end + 1);
}

std::string parameters_of(std::string_view sql) {
    std::string text;
    each_head_line(sql, [&](std::string_view line) {
        if (!line.starts_with(':')) return true;
        std::string one(line.substr(1));
        one.erase(std::remove(one.begin(), one.end(), ' '), one.end());
        text += (text.empty() ? "" : " ") + one;
        return true;
    });
    return text;
}

}  // namespace shardscope::traces::query
