#include "traces/store/sqlite/row_insert.h"

#include <memory>
#include <utility>

#include <fmt/core.h>
#include <sqlite3.h>

#include "traces/schema/schema.h"

namespace shardscope::traces {

namespace {

struct FeedTable : sqlite3_vtab {
    const RowFeed* feed = nullptr;
};

struct FeedCursor : sqlite3_vtab_cursor {
    const std::byte* row = nullptr;
    const std::byte* end = nullptr;
    const RowColumn* columns = nullptr;
    std::size_t row_size = 0;
    std::int64_t number = 0;
};

int connect(sqlite3* database, void* feed, int, const char* const*, sqlite3_vtab** table, char**) {
    const auto* rows = static_cast<const RowFeed*>(feed);
    const int code = sqlite3_declare_vtab(database, rows->declaration().c_str());
    if (code != SQLITE_OK) return code;
    auto made = std::make_unique<FeedTable>();
    made->feed = rows;
    *table = made.release();
    return SQLITE_OK;
}

int disconnect(sqlite3_vtab* table) {
    delete static_cast<FeedTable*>(table);
    return SQLITE_OK;
}

int best_index(sqlite3_vtab*, sqlite3_index_info* info) {
    info->estimatedCost = 1;  // there is one way: from the first to the last
    return SQLITE_OK;
}

int open(sqlite3_vtab*, sqlite3_vtab_cursor** cursor) {
    *cursor = std::make_unique<FeedCursor>().release();
    return SQLITE_OK;
}

int close(sqlite3_vtab_cursor* cursor) {
    delete static_cast<FeedCursor*>(cursor);
    return SQLITE_OK;
}

int rewind(sqlite3_vtab_cursor* base, int, const char*, int, sqlite3_value**) {
    auto* cursor = static_cast<FeedCursor*>(base);
    const RowFeed& feed = *static_cast<const FeedTable*>(base->pVtab)->feed;
    cursor->row = feed.begin();
    cursor->end = feed.end();
    cursor->columns = feed.columns().data();
    cursor->row_size = feed.row_size();
    cursor->number = 0;
    return SQLITE_OK;
}

int next(sqlite3_vtab_cursor* base) {
    auto* cursor = static_cast<FeedCursor*>(base);
    cursor->row += cursor->row_size;
    ++cursor->number;
    return SQLITE_OK;
}

int at_end(sqlite3_vtab_cursor* base) {
    const auto* cursor = static_cast<const FeedCursor*>(base);
    return cursor->row == cursor->end;
}

int column(sqlite3_vtab_cursor* base, sqlite3_context* context, int index) {
    const auto* cursor = static_cast<const FeedCursor*>(base);
    cursor->columns[index].get(SqlValue(context), cursor->row);
    return SQLITE_OK;
}

int row_id(sqlite3_vtab_cursor* base, sqlite3_int64* id) {
    *id = static_cast<const FeedCursor*>(base)->number;
    return SQLITE_OK;
}

// Without xCreate: it exists under the module's name and needs no CREATE statement.
constexpr sqlite3_module make_module() {
    sqlite3_module module{};
    module.xConnect = connect;
    module.xBestIndex = best_index;
    module.xDisconnect = disconnect;
    module.xOpen = open;
    module.xClose = close;
    module.xFilter = rewind;
    module.xNext = next;
    module.xEof = at_end;
    module.xColumn = column;
    module.xRowid = row_id;
    return module;
}
constexpr sqlite3_module kModule = make_module();

}  // namespace

void SqlValue::integer(std::int64_t value) const {
    sqlite3_result_int64(context_, value);
}
void SqlValue::real(double value) const {
    sqlite3_result_double(context_, value);
}
void SqlValue::text(std::string_view value) const {
    sqlite3_result_text64(context_, value.data() != nullptr ? value.data() : "", value.size(), SQLITE_STATIC,
                          SQLITE_UTF8);
}
void SqlValue::blob(std::string_view value) const {
    sqlite3_result_blob64(context_, value.data(), value.size(), SQLITE_STATIC);
}

std::string insert_sql(std::string_view table, std::span<const RowColumn> columns, std::string_view feed,
                       bool all) {
    // All columns of the table in its order: SQLite then builds the record from where the values were read.
    std::string values;
    for (const SchemaColumn& c : find_table(table)->columns) {
        const auto* given = std::find_if(columns.data(), columns.data() + columns.size(),
                                         [&](const RowColumn& column) { return column.name == c.name; });
        values += values.empty() ? "" : ", ";
        if (given == columns.data() + columns.size() || (given->rare && !all)) {
            values += "NULL";
        } else if (given->get == nullptr) {
            values += given->constant;
        } else {
            fmt::format_to(std::back_inserter(values), "\"{}\"", c.name);
        }
    }
    // OR FAIL: a row that is refused ends the whole transaction anyway, so that nothing needs to be kept to
    // undo this statement alone.
    return fmt::format("INSERT OR FAIL INTO \"{}\" SELECT {} FROM \"{}\"", table, values, feed);
}

RowFeed::RowFeed(Database& database, std::string name, std::span<const RowColumn> columns,
                 std::size_t row_size)
    : database_(database), name_(std::move(name)), row_size_(row_size) {
    for (const RowColumn& c : columns) {
        if (c.get != nullptr) columns_.push_back(c);
    }
    const int code = sqlite3_create_module_v2(database.handle(), name_.c_str(), &kModule, this, nullptr);
    if (code != SQLITE_OK) database.fail(code, "preparing to write it");
}

RowFeed::~RowFeed() {
    sqlite3_create_module_v2(database_.handle(), name_.c_str(), nullptr, nullptr, nullptr);
}

std::string RowFeed::declaration() const {
    std::string sql;
    for (const RowColumn& c : columns_) {
        fmt::format_to(std::back_inserter(sql), "{}\"{}\"", sql.empty() ? "CREATE TABLE x (" : ", ", c.name);
    }
    return sql + ")";
}

void RowFeed::run(Statement& statement, const void* rows, std::size_t count) {
    begin_ = static_cast<const std::byte*>(rows);
    end_ = begin_ + count * row_size_;
    try {
        statement.run();
    } catch (const StoreError&) {
        statement.reset();  // its cursor lets go of the rows
        throw;
    }
}

}  // namespace shardscope::traces
