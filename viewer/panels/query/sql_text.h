// SQL as a list of coloured pieces, and what can be completed at a place in it. Pure; any thread. Places are
// byte offsets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "traces/query/database_schema.h"

namespace shardscope::viewer::panels {

using Schema = std::vector<traces::query::SchemaObject>;

enum class SqlKind : std::uint8_t { plain, keyword, name, quoted_name, text, number, comment, parameter };

struct SqlToken {
    SqlKind kind = SqlKind::plain;
    std::size_t from = 0, to = 0;
    bool known = false;  // names: a table, a view or a column of the schema; a function is not one
};

// A name as it stands in SQL: quoted where it has to be.
std::string sql_name(const std::string& name);

// The tokens without the blanks between them, by place. A text or comment without an end reaches to the end
// of the SQL.
std::vector<SqlToken> sql_tokens(std::string_view sql);
// Sets SqlToken::known.
void mark_known(std::string_view sql, std::vector<SqlToken>& tokens, const Schema& schema);
// The token at this place or, at the end of the SQL or on a blank, the previous one; nullptr if there is
// none.
const SqlToken* token_at(const std::vector<SqlToken>& tokens, std::size_t offset);

struct Completion {
    std::string insert;   // quoted where SQL needs it
    std::string of;       // "view", "table", or the table of a column
    std::string type;     // a column's unit or type
    std::string meaning;  // from the schema
};
struct Completions {
    std::size_t from = 0, to = 0;  // what the choice replaces: the word that ends at the cursor
    std::vector<Completion> items;
};

// What the word that ends at `cursor` can become: after FROM and JOIN tables, after "name." the columns of
// that table (or of the table with that alias), elsewhere the columns of the statement's tables (if it names
// none: of the views), then tables. Empty inside texts, comments and numbers. Names that begin with the word
// come before names that contain it.
Completions complete_sql(std::string_view sql, std::size_t cursor, const Schema& schema);

}  // namespace shardscope::viewer::panels
