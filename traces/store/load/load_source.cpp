#include "traces/store/load/load_source.h"

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

LoadSource::LoadSource(Database& database, ColumnSink& into, LoadProgress* progress)
    : db(database), sink(into), ours(database.has_table("SHARD_STATE")), progress_(progress) {
    receiver_.source = this;
    const int code = sqlite3_create_function_v2(
        db.handle(), kReceive, -1, SQLITE_UTF8 | SQLITE_DIRECTONLY, &receiver_, nullptr, &LoadSource::receive,
        [](sqlite3_context*) {}, nullptr);
    if (code != SQLITE_OK) db.fail(code, "preparing to read it");
    file_rows_ = db.integer("PRAGMA page_count") * db.integer("PRAGMA page_size") / kBytesOfARow;
    for (const char* table : kBigTables) total_ += rows_at_most(table);
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
    Statement statement(db, fmt::format("SELECT {}({}) FROM {} NOT INDEXED", kReceive, values(table, columns),
                                        quoted_name(table)));
    try {
        statement.step();
    } catch (const StoreError&) {
        if (receiver_.failure) std::rethrow_exception(receiver_.failure);
        throw;
    }
}

void LoadSource::report() const {
    if (progress_ == nullptr) return;
    if (progress_->cancel) throw StoreError(fmt::format("{}: loading was cancelled", db.path()));
    if (total_ > 0) {
        const double share = std::min(1.0, static_cast<double>(rows_) / static_cast<double>(total_));
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
