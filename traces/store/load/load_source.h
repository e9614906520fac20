// Scans the tables of a trace database for the loader: each table once, in the order of its rows; columns
// that a table or an older schema lacks are NULL. Internal to the store.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <sqlite3.h>

#include "traces/schema/enums.h"
#include "traces/schema/row_access.h"
#include "traces/store/columns/column_sink.h"
#include "traces/store/columns/pending_rows.h"
#include "traces/store/load/load_tables.h"
#include "traces/store/load/loader.h"
#include "traces/store/sqlite/sqlite.h"

namespace shardscope::traces::store {

inline constexpr const char* kDeviceTables[] = {"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY",
                                                "CUPTI_ACTIVITY_KIND_MEMSET"};

inline int narrow(std::int64_t value) {
    return static_cast<int>(
        std::clamp<std::int64_t>(value, std::numeric_limits<int>::min(), std::numeric_limits<int>::max()));
}

// A damaged or newer value of an enum becomes `otherwise`.
template <typename Enum>
Enum to_enum(std::int64_t value, int count, Enum otherwise) {
    return value >= 0 && value < count ? static_cast<Enum>(value) : otherwise;
}

// One row of a large table, as SQLite passes it to a function: without the checks and locks of each
// sqlite3_column_..., which cost more than the value.
class FastRow {
  public:
    explicit FastRow(sqlite3_value** values) : values_(values) {}
    sqlite3_value* value(int column) const { return values_[column]; }
    std::int64_t integer(int column) const { return sqlite3_value_int64(values_[column]); }
    double real(int column) const { return sqlite3_value_double(values_[column]); }
    int type(int column) const { return sqlite3_value_type(values_[column]); }
    bool is_null(int column) const { return type(column) == SQLITE_NULL; }
    // NULL reads as 0, so that only a 0 needs a second check.
    std::int64_t integer_or(int column, std::int64_t otherwise) const {
        const std::int64_t value = integer(column);
        return value != 0 || !is_null(column) ? value : otherwise;
    }
    std::string_view text(int column) const {
        const auto* data = reinterpret_cast<const char*>(sqlite3_value_text(values_[column]));
        const int size = sqlite3_value_bytes(values_[column]);
        return data != nullptr ? std::string_view(data, static_cast<std::size_t>(size)) : std::string_view();
    }

  private:
    sqlite3_value** values_;
};

// A range of a table's row ids, both ends included.
struct RowIds {
    std::int64_t first = 0, last = 0;
};

class LoadSource final : public schema::LoadedStrings {
  public:
    LoadSource(Database& database, ColumnSink& into, LoadProgress* progress, const TableParts& parts);
    // For another thread: reads only these rows of one table, on a connection of its own, into a sink of its
    // own, which gets the strings of `whole` first.
    LoadSource(Database& database, ColumnSink& into, const LoadSource& whole, std::string_view table,
               RowIds ids);
    ~LoadSource() override;
    LoadSource(const LoadSource&) = delete;
    LoadSource& operator=(const LoadSource&) = delete;

    // has_plain_table(), called once per table.
    bool has(std::string_view table);
    bool has(std::string_view table, std::string_view column);
    // Ranges of row ids that share out a large table's rows; fewer than two: it is to be read as a whole.
    std::vector<RowIds> parts_of(std::string_view table);
    // From now on reads only these rows of the table, one of so many parts; nullopt: all again.
    void set_part(std::string_view table, std::optional<RowIds> ids, std::size_t parts = 1);
    Database open_again() const;
    // An upper bound on the rows, for reserving memory and for progress; at most what the file could hold.
    std::int64_t rows_at_most(std::string_view table);

    // Calls `take` with a Statement for each row.
    template <typename Take>
    void scan(std::string_view table, const std::vector<std::string_view>& columns, Take take) {
        if (!has(table)) return;
        Statement statement(
            db, "SELECT " + values(table, columns) + " FROM " + quoted_name(table) + " NOT INDEXED");
        while (statement.step()) {
            count_row();
            take(statement);
        }
    }
    // The same with a FastRow, for tables with many rows. A column "a|b" is the first of the two that is not
    // NULL. `take` must not call scan_fast().
    template <typename Take>
    void scan_fast(std::string_view table, const std::vector<std::string_view>& columns, Take take) {
        if (!has(table)) return;
        receiver_.self = &take;
        receiver_.call = [](void* self, const FastRow& row) { (*static_cast<Take*>(self))(row); };
        run_fast(table, columns);
    }

    // Calls `take` with a Row for each row of its table; the schema maps columns to members.
    template <typename Row, typename Take>
    void scan_rows(Take take) {
        std::vector<std::string_view> names;
        std::vector<void (*)(const schema::LoadedCell&, void*)> setters;
        for (const schema::SchemaColumn& column : schema::find_table(Row::kTable)->columns) {
            if (column.access.set == nullptr) continue;
            names.push_back(column.name);
            setters.push_back(column.access.set);
        }
        scan_fast(Row::kTable, names, [&](const FastRow& values) {
            Row row;
            for (std::size_t i = 0; i < setters.size(); ++i)
                setters[i](schema::LoadedCell(values.value(static_cast<int>(i)), *this), &row);
            take(row);
        });
    }
    // The same, added to the sink.
    template <typename Row>
    void add_rows() {
        scan_rows<Row>([this](const Row& row) { sink.add(row); });
    }

    // The sink's id for a StringIds.id.
    schema::StringId string(std::int64_t id) const override {
        if (id >= 0 && id < static_cast<std::int64_t>(strings_.size())) {
            return strings_[static_cast<std::size_t>(id)];
        }
        const auto it = far_strings_.find(id);
        return it != far_strings_.end() ? it->second : schema::StringId::empty;
    }
    schema::StringId string(const Statement& row, int column) const {
        return row.is_null(column) ? schema::StringId::empty : string(row.integer(column));
    }
    // The same, but NULL or an absent column gives the empty string.
    schema::StringId string_or_empty(const FastRow& row, int column) const {
        const std::int64_t id = row.integer(column);
        return id != 0 || !row.is_null(column) ? string(id) : schema::StringId::empty;
    }
    // A column that holds either the id of a string or the text itself.
    schema::StringId id_or_text(const Statement& row, int column) {
        switch (row.type(column)) {
            case ValueType::integer:
                return string(row.integer(column));
            case ValueType::null:
                return schema::StringId::empty;
            default:
                return sink.intern(row.text(column));
        }
    }

    schema::StringId id_or_text(const FastRow& row, int column) {
        switch (row.type(column)) {
            case SQLITE_INTEGER:
                return string(row.integer(column));
            case SQLITE_NULL:
                return schema::StringId::empty;
            default:
                return sink.intern(row.text(column));
        }
    }

    void load_strings();

    Database& db;
    ColumnSink& sink;
    const bool ours;  // not another program's export
    // Ranges are a foreign program's NVTX, whose names may identify operators and modules (nvtx_names.h).
    bool reads_names = true;
    std::vector<schema::RankRow> ranks;        // as given to the sink
    std::unordered_set<std::int64_t> modules;  // SHARD_MODULES.id

  private:
    // Receives the rows of scan_fast(): the state of an aggregate function over all of a table's rows.
    struct Receiver {
        LoadSource* source = nullptr;
        void* self = nullptr;
        void (*call)(void* self, const FastRow& row) = nullptr;
        std::exception_ptr failure;
    };
    static void receive(sqlite3_context* context, int count, sqlite3_value** values);
    void receive_here();
    void run_fast(std::string_view table, const std::vector<std::string_view>& columns);
    std::string values(std::string_view table, const std::vector<std::string_view>& columns);
    void count_row() {
        if ((++rows_ & 0xFFF) == 0) report();
    }
    void report();
    std::string where(std::string_view table) const;  // the condition of a part

    LoadProgress* progress_;
    const TableParts parts_;
    const bool is_part_;
    std::string part_of_;  // the table
    std::optional<RowIds> part_;
    std::int64_t weight_ = 1;  // rows that one row stands for: those that other threads read meanwhile
    Receiver receiver_;
    std::vector<schema::StringId> strings_;                           // by StringIds.id
    std::unordered_map<std::int64_t, schema::StringId> far_strings_;  // ids that are far from the others
    std::unordered_map<std::string, bool> known_tables_;
    std::int64_t rows_ = 0, counted_ = 0;  // as far as reported
    std::int64_t reported_ = 0, total_ = 0, file_rows_ = 0;
};

// Reads a table by load(source) or, if it is large, on several threads, each a part by
// load() with a source of its own; the result is the same.
void load_in_parts(LoadSource& source, std::string_view table, const std::function<void(LoadSource&)>& load);

// The parts of load_tables().
void load_facts(LoadSource& source);
void load_ranks(LoadSource& source);  // and devices
void load_threads(LoadSource& source);
void load_model(LoadSource& source);
void load_device_events(LoadSource& source);
void load_host_events(LoadSource& source);
void load_memory(LoadSource& source);
// If no collectives are recorded: derives them from NCCL's own ranges.
void load_nccl_calls(LoadSource& source);

}  // namespace shardscope::traces::store
