#include "traces/store/sqlite/row_insert.h"

#include <memory>
#include <utility>

#include <fmt/core.h>
#include <sqlite3.h>

#include "traces/schema/row_access.h"

namespace shardscope::traces::store {

namespace {

struct FeedTable : sqlite3_vtab {
    const RowFeed* feed = nullptr;
};

struct FeedCursor : sqlite3_vtab_cursor {
    const std::byte* row = nullptr;
    const std::byte* end = nullptr;
    const RowFeed::Get* columns = nullptr;
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
    info->estimatedCost = 1;  // there is only one way: a scan from first to last
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
    cursor->columns[index](schema::SqlValue(context), cursor->row);
    return SQLITE_OK;
}

int row_id(sqlite3_vtab_cursor* base, sqlite3_int64* id) {
    *id = static_cast<const FeedCursor*>(base)->number;
    return SQLITE_OK;
}

// Without xCreate: the table exists under the module's name and needs no CREATE statement.
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

std::string insert_sql(std::string_view table, std::string_view verb, std::string_view feed, bool all) {
    // All columns of the table in its order: SQLite then builds the record directly from the values that it
    // has read.
    std::string values;
    for (const schema::SchemaColumn& column : schema::find_table(table)->columns) {
        const schema::ColumnAccess& access = column.access;
        values += values.empty() ? "" : ", ";
        if (access.get != nullptr && (all || !access.rare)) {
            fmt::format_to(std::back_inserter(values), "\"{}\"", column.name);
        } else {
            values += access.constant.empty() ? "NULL" : access.constant;
        }
    }
    return fmt::format("{} INTO \"{}\" SELECT {} FROM \"{}\"", verb, table, values, feed);
}

RowFeed::RowFeed(Database& database, std::string name, std::span<const schema::SchemaColumn> columns,
                 std::size_t row_size)
    : database_(database), name_(std::move(name)), row_size_(row_size) {
    for (const schema::SchemaColumn& column : columns) {
        if (column.access.get == nullptr) continue;
        fmt::format_to(std::back_inserter(declaration_), "{}\"{}\"",
                       columns_.empty() ? "CREATE TABLE x (" : ", ", column.name);
        columns_.push_back(column.access.get);
    }
    declaration_ += ')';
    const int code = sqlite3_create_module_v2(database.handle(), name_.c_str(), &kModule, this, nullptr);
    if (code != SQLITE_OK) database.fail(code, "preparing to write it");
}

RowFeed::~RowFeed() {
    sqlite3_create_module_v2(database_.handle(), name_.c_str(), nullptr, nullptr, nullptr);
}

void RowFeed::run(Statement& statement, const void* rows, std::size_t count) {
    begin_ = static_cast<const std::byte*>(rows);
    end_ = begin_ + count * row_size_;
    try {
        statement.run();
    } catch (const StoreError&) {
        statement.reset();  // its cursor releases the rows
        throw;
    }
}

}  // namespace shardscope::traces::store
