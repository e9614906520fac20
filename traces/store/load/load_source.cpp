#include "traces/store/load/load_source.h"

#include <algorithm>

#include <fmt/core.h>

#include "traces/store/sqlite/open.h"

namespace shardscope::traces::store {

namespace {

constexpr const char* kReceive = "shardscope_receive_row";  // the aggregate function
constexpr double kShareOfReading = 0.9;  // of the whole load; the rest is sorting and linking
constexpr std::int64_t kFewStrings = 1 << 16;
constexpr std::int64_t kBytesOfARow = 8;  // at least, including its cell pointer in the page

constexpr const char* kBigTables[] = {"StringIds",
                                      "CUPTI_ACTIVITY_KIND_KERNEL",
                                      "CUPTI_ACTIVITY_KIND_MEMCPY",
                                      "CUPTI_ACTIVITY_KIND_MEMSET",
                                      "CUPTI_ACTIVITY_KIND_RUNTIME",
                                      "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
                                      "NVTX_EVENTS",
                                      "SHARD_COLLECTIVES",
                                      "SHARD_MEMORY",
                                      "SHARD_COUNTERS"};

}  // namespace

LoadSource::LoadSource(Database& database, ColumnSink& into, LoadProgress* progress, const TableParts& parts)
    : db(database),
      sink(into),
      ours(database.has_table("SHARD_STATE")),
      progress_(progress),
      parts_(parts),
      is_part_(false) {
    receive_here();
    for (const char* table : kBigTables) total_ += rows_at_most(table);
}

LoadSource::LoadSource(Database& database, ColumnSink& into, const LoadSource& whole, std::string_view table,
                       RowIds ids)
    : db(database),
      sink(into),
      ours(whole.ours),
      reads_names(whole.reads_names),
      ranks(whole.ranks),
      modules(whole.modules),
      progress_(whole.progress_),
      is_part_(true),
      strings_(whole.strings_),
      far_strings_(whole.far_strings_) {
    receive_here();
    set_part(table, ids);
}

void LoadSource::receive_here() {
    receiver_.source = this;
    const int code = sqlite3_create_function_v2(
        db.handle(), kReceive, -1, SQLITE_UTF8 | SQLITE_DIRECTONLY, &receiver_, nullptr, &LoadSource::receive,
        [](sqlite3_context*) {}, nullptr);
    if (code != SQLITE_OK) db.fail(code, "preparing to read it");
    file_rows_ = db.integer("PRAGMA page_count") * db.integer("PRAGMA page_size") / kBytesOfARow;
}

LoadSource::~LoadSource() {
    sqlite3_create_function_v2(db.handle(), kReceive, -1, SQLITE_UTF8, nullptr, nullptr, nullptr, nullptr,
                               nullptr);
}

bool LoadSource::has(std::string_view table) {
    if (const auto it = known_tables_.find(std::string(table)); it != known_tables_.end()) return it->second;
    const bool there = has_plain_table(db, table);
    known_tables_.emplace(table, there);
    return there;
}

bool LoadSource::has(std::string_view table, std::string_view column) {
    return has(table) && db.has_column(table, column);
}

std::int64_t LoadSource::rows_at_most(std::string_view table) {
    if (!has(table)) return 0;
    if (is_part_ && part_ && part_of_ == table) return part_->last - part_->first + 1;
    Statement last(db, fmt::format("SELECT max(_rowid_) FROM {}", quoted_name(table)));
    return last.step() ? std::clamp<std::int64_t>(last.integer(0), 0, file_rows_) : 0;
}

std::string LoadSource::values(std::string_view table, const std::vector<std::string_view>& columns) {
    const auto one = [&](std::string_view column) {
        return db.has_column(table, column) ? quoted_name(column) : std::string("NULL");
    };
    std::string text;
    for (const auto column : columns) {
        if (!text.empty()) text += ", ";
        if (const auto bar = column.find('|'); bar != column.npos) {
            text += fmt::format("COALESCE({}, {})", one(column.substr(0, bar)), one(column.substr(bar + 1)));
        } else {
            text += one(column);
        }
    }
    return text;
}

void LoadSource::receive(sqlite3_context* context, int, sqlite3_value** values) {
    auto* receiver = static_cast<Receiver*>(sqlite3_user_data(context));
    try {
        receiver->source->count_row();
        receiver->call(receiver->self, FastRow(values));
    } catch (...) {  // SQLite is C: exceptions must not pass through it
        receiver->failure = std::current_exception();
        sqlite3_result_error(context, "stopped", -1);
    }
}

void LoadSource::run_fast(std::string_view table, const std::vector<std::string_view>& columns) {
    receiver_.failure = nullptr;
    // NOT INDEXED: an index could return the rows in another order.
    Statement statement(db, fmt::format("SELECT {}({}) FROM {} NOT INDEXED{}", kReceive,
                                        values(table, columns), quoted_name(table), where(table)));
    try {
        statement.step();
    } catch (const StoreError&) {
        if (receiver_.failure) std::rethrow_exception(receiver_.failure);
        throw;
    }
}

std::vector<RowIds> LoadSource::parts_of(std::string_view table) {
    const std::int64_t parts = std::min<std::int64_t>(parts_.threads, rows_at_most(table) / parts_.rows);
    // Each part gets all strings: with as many as that it would cost more than it saves.
    constexpr std::int64_t kRowsOfAString = 16;
    if (parts < 2 || static_cast<std::int64_t>(sink.strings()) > rows_at_most(table) / kRowsOfAString)
        return {};
    // Two queries: for both ends in one, SQLite would walk through the whole table.
    Statement ends(db, fmt::format("SELECT (SELECT min(_rowid_) FROM {0}), (SELECT max(_rowid_) FROM {0})",
                                   quoted_name(table)));
    // The row ids of a table of other programs may have gaps, so that their range says little.
    if (!ends.step() || ends.integer(0) < 0 || ends.integer(1) > file_rows_) return {};
    const std::int64_t first = ends.integer(0), rows = ends.integer(1) - first + 1;
    std::vector<RowIds> ids;
    ids.reserve(static_cast<std::size_t>(parts));
    for (std::int64_t p = 0; p < parts; ++p)
        ids.push_back({first + rows * p / parts, first + rows * (p + 1) / parts - 1});
    return ids;
}

void LoadSource::set_part(std::string_view table, std::optional<RowIds> ids, std::size_t parts) {
    part_of_ = table;
    part_ = ids;
    weight_ = static_cast<std::int64_t>(parts);
}

std::string LoadSource::where(std::string_view table) const {
    if (!part_ || part_of_ != table) return "";
    return fmt::format(" WHERE _rowid_ BETWEEN {} AND {}", part_->first, part_->last);
}

Database LoadSource::open_again() const {
    Database again(sqlite3_db_filename(db.handle(), "main"), Database::Mode::immutable);
    again.rename(db.path());
    again.execute("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA query_only = ON;");
    return again;
}

void LoadSource::report() {
    if (progress_ == nullptr) return;
    if (progress_->cancel) throw StoreError(fmt::format("{}: loading was cancelled", db.path()));
    if (total_ > 0 && !is_part_) {
        reported_ += (rows_ - counted_) * weight_;
        counted_ = rows_;
        const double share = std::min(1.0, static_cast<double>(reported_) / static_cast<double>(total_));
        progress_->fraction = kShareOfReading * share;
    }
}

void LoadSource::load_strings() {
    // Ids are usually consecutive: those below `near` index a vector, the rare others go into a map.
    const std::int64_t near = kFewStrings + 4 * rows_at_most("StringIds");
    scan("StringIds", {"id", "value"}, [&](const Statement& r) {
        const std::int64_t id = r.integer(0);
        const schema::StringId text = sink.intern(r.text(1));
        if (id < 0 || id >= near) {
            far_strings_.emplace(id, text);
            return;
        }
        const auto index = static_cast<std::size_t>(id);
        if (index >= strings_.size()) {
            strings_.resize(
                std::max(index + 1, std::min(2 * strings_.size(), static_cast<std::size_t>(near))),
                schema::StringId::empty);
        }
        strings_[index] = text;
    });
}

}  // namespace shardscope::traces::store
