// See sql_text.h.
#include "viewer/panels/query/sql_text.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>

#include "traces/schema/text.h"
#include "traces/store/sqlite/query.h"

namespace shardscope::viewer::panels {
namespace {

using traces::query::SchemaItem;
using traces::query::SchemaObject;
using traces::schema::lower_case;

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
}
// Of a name without quotes; bytes of UTF-8 beyond ASCII are letters to SQL.
bool begins_name(char c) {
    return c == '_' || std::isalpha(static_cast<unsigned char>(c)) != 0 ||
           static_cast<unsigned char>(c) >= 0x80;
}
bool continues_name(char c) {
    return begins_name(c) || is_digit(c) || c == '$';
}

// The end of what begins with a quote; a doubled quote does not end it.
std::size_t end_of_quoted(std::string_view sql, std::size_t from, char end) {
    for (std::size_t at = from + 1; at < sql.size(); ++at) {
        if (sql[at] != end) continue;
        if (end == ']' || at + 1 >= sql.size() || sql[at + 1] != end) return at + 1;
        ++at;
    }
    return sql.size();
}

std::size_t end_while(std::string_view sql, std::size_t from, bool (*goes_on)(char)) {
    while (from < sql.size() && goes_on(sql[from])) ++from;
    return from;
}

std::size_t end_of_number(std::string_view sql, std::size_t from) {
    std::size_t at = from;
    while (at < sql.size() &&
           (continues_name(sql[at]) || sql[at] == '.' ||
            ((sql[at] == '+' || sql[at] == '-') && (sql[at - 1] | 0x20) == 'e' && at > from)))
        ++at;
    return at;
}

SqlToken next_token(std::string_view sql, std::size_t from) {
    const char c = sql[from], after = from + 1 < sql.size() ? sql[from + 1] : '\0';
    const auto token = [&](SqlKind kind, std::size_t to) { return SqlToken{kind, from, to}; };
    if (c == '-' && after == '-') return token(SqlKind::comment, std::min(sql.find('\n', from), sql.size()));
    if (c == '/' && after == '*') {
        const std::size_t end = sql.find("*/", from + 2);
        return token(SqlKind::comment, end == std::string_view::npos ? sql.size() : end + 2);
    }
    if (c == '\'') return token(SqlKind::text, end_of_quoted(sql, from, '\''));
    if ((c | 0x20) == 'x' && after == '\'') return token(SqlKind::text, end_of_quoted(sql, from + 1, '\''));
    if (c == '"' || c == '`') return token(SqlKind::quoted_name, end_of_quoted(sql, from, c));
    if (c == '[') return token(SqlKind::quoted_name, end_of_quoted(sql, from, ']'));
    if (is_digit(c) || (c == '.' && is_digit(after))) return token(SqlKind::number, end_of_number(sql, from));
    if ((c == ':' || c == '@' || c == '$') && continues_name(after))
        return token(SqlKind::parameter, end_while(sql, from + 1, continues_name));
    if (c == '?') return token(SqlKind::parameter, end_while(sql, from + 1, is_digit));
    if (begins_name(c)) {
        const std::size_t to = end_while(sql, from, continues_name);
        const bool keyword = traces::store::is_sql_keyword(sql.substr(from, to - from));
        return token(keyword ? SqlKind::keyword : SqlKind::name, to);
    }
    return token(SqlKind::plain, from + 1);
}

// The token's name in lower case, without its quotes.
std::string name_of(std::string_view sql, const SqlToken& token) {
    std::string_view text = sql.substr(token.from, token.to - token.from);
    if (token.kind == SqlKind::quoted_name && text.size() >= 2) text = text.substr(1, text.size() - 2);
    return lower_case(text);
}
bool is_name(const SqlToken& token) {
    return token.kind == SqlKind::name || token.kind == SqlKind::quoted_name;
}

// The tables of the statement around `cursor`, each under its name and its alias.
class StatementTables {
  public:
    StatementTables(std::string_view sql, const std::vector<SqlToken>& tokens, std::size_t cursor,
                    const Schema& schema)
        : sql_(sql) {
        for (const SchemaObject& object : schema) by_name_.try_emplace(lower_case(object.name), &object);
        std::size_t first = 0, last = tokens.size();
        for (std::size_t i = 0; i < tokens.size(); ++i) {
            if (sql[tokens[i].from] != ';' || tokens[i].kind != SqlKind::plain) continue;
            if (tokens[i].to <= cursor)
                first = i + 1;
            else
                last = std::min(last, i);
        }
        for (std::size_t i = first; i < last; ++i)
            if (is_name(tokens[i]) && follows_from(tokens, first, i)) add(tokens, i, last);
    }

    const std::vector<const SchemaObject*>& all() const { return all_; }
    const SchemaObject* find(const std::string& name) const {
        if (const auto alias = alias_.find(name); alias != alias_.end()) return alias->second;
        const auto known = by_name_.find(name);
        return known == by_name_.end() ? nullptr : known->second;
    }

  private:
    // Whether a table is named here: after FROM or JOIN, or after a comma behind another table.
    bool follows_from(const std::vector<SqlToken>& tokens, std::size_t first, std::size_t i) const {
        if (i == first) return false;
        const std::string before = name_of(sql_, tokens[i - 1]);
        if (before == "from" || before == "join") return true;
        return before == "," && i >= 2 && last_table_ && *last_table_ + 1 >= i - 1;
    }
    void add(const std::vector<SqlToken>& tokens, std::size_t i, std::size_t last) {
        last_table_ = i;
        const auto known = by_name_.find(name_of(sql_, tokens[i]));
        if (known == by_name_.end()) return;
        if (std::find(all_.begin(), all_.end(), known->second) == all_.end()) all_.push_back(known->second);
        std::size_t next = i + 1;
        if (next < last && name_of(sql_, tokens[next]) == "as") ++next;
        if (next < last && is_name(tokens[next])) {
            alias_[name_of(sql_, tokens[next])] = known->second;
            last_table_ = next;
        }
    }

    std::string_view sql_;
    std::map<std::string, const SchemaObject*> by_name_, alias_;
    std::vector<const SchemaObject*> all_;
    std::optional<std::size_t> last_table_;  // the token of the latest table or its alias
};

// Adds names that contain the word, each once.
class Collector {
  public:
    Collector(std::string_view word, std::vector<Completion>& found)
        : word_(lower_case(word)), found_(found) {}
    void columns(const SchemaObject& object) {
        for (const SchemaItem& c : object.columns)
            put(c.name, object.name, c.unit.empty() ? c.type : c.unit, c.meaning);
    }
    void tables(const Schema& schema) {
        for (const SchemaObject& o : schema) put(o.name, o.view ? "view" : "table", {}, o.meaning);
    }
    void put_beginnings_first() {
        std::stable_partition(found_.begin(), found_.end(),
                              [&](const Completion& c) { return lower_case(c.insert).starts_with(word_); });
    }

  private:
    void put(const std::string& name, const std::string& of, const std::string& type,
             const std::string& meaning) {
        if (!traces::schema::contains_but_for_case(name, word_) || !seen_.insert(name).second) return;
        found_.push_back({sql_name(name), of, type, meaning});
    }
    std::string word_;
    std::set<std::string> seen_;
    std::vector<Completion>& found_;
};

}  // namespace

std::string sql_name(const std::string& name) {
    const bool plain = !name.empty() && begins_name(name[0]) &&
                       std::all_of(name.begin(), name.end(), continues_name) &&
                       !traces::store::is_sql_keyword(name);
    if (plain) return name;
    std::string quoted = "\"";
    for (const char c : name) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
    return quoted + '"';
}

std::vector<SqlToken> sql_tokens(std::string_view sql) {
    std::vector<SqlToken> tokens;
    for (std::size_t at = 0; at < sql.size();) {
        if (is_blank(sql[at])) {
            ++at;
            continue;
        }
        tokens.push_back(next_token(sql, at));
        at = tokens.back().to;
    }
    return tokens;
}

void mark_known(std::string_view sql, std::vector<SqlToken>& tokens, const Schema& schema) {
    std::set<std::string> names;
    for (const SchemaObject& object : schema) {
        names.insert(lower_case(object.name));
        for (const SchemaItem& column : object.columns) names.insert(lower_case(column.name));
    }
    for (SqlToken& token : tokens) {
        const bool call = token.kind == SqlKind::name && token.to < sql.size() && sql[token.to] == '(';
        token.known = is_name(token) && !call && names.contains(name_of(sql, token));
    }
}

const SqlToken* token_at(const std::vector<SqlToken>& tokens, std::size_t offset) {
    const SqlToken* found = nullptr;
    for (const SqlToken& token : tokens) {
        if (found != nullptr && token.from > offset) break;
        found = &token;
    }
    return found;
}

Completions complete_sql(std::string_view sql, std::size_t cursor, const Schema& schema) {
    cursor = std::min(cursor, sql.size());
    Completions found{.from = cursor, .to = cursor};
    const std::vector<SqlToken> tokens = sql_tokens(sql);
    std::size_t before = 0;  // the number of tokens that end before the word
    while (before < tokens.size() && tokens[before].to < cursor) ++before;
    if (before < tokens.size() && tokens[before].from < cursor) {
        const SqlToken& token = tokens[before];
        const bool word = token.kind == SqlKind::name || token.kind == SqlKind::keyword;
        if (word) {
            found.from = token.from;
        } else if (token.kind == SqlKind::plain) {
            ++before;
        } else {
            return found;
        }
    }
    const std::string_view word = sql.substr(found.from, cursor - found.from);
    const StatementTables tables(sql, tokens, cursor, schema);
    Collector collector(word, found.items);
    const auto text = [&](std::size_t back) {
        return before >= back ? name_of(sql, tokens[before - back]) : std::string();
    };
    if (text(1) == "." && before >= 2) {
        if (const SchemaObject* object = tables.find(text(2)); object != nullptr) collector.columns(*object);
    } else if (text(1) == "from" || text(1) == "join") {
        collector.tables(schema);
    } else {
        for (const SchemaObject* object : tables.all()) collector.columns(*object);
        if (tables.all().empty()) {
            for (const SchemaObject& object : schema)
                if (object.view) collector.columns(object);
        }
        collector.tables(schema);
    }
    collector.put_beginnings_first();
    return found;
}

}  // namespace shardscope::viewer::panels
