#include "traces/merge/table_copy.h"

#include <algorithm>
#include <cstring>

#include <fmt/core.h>

#include "traces/merge/part.h"
#include "traces/schema/enums.h"

namespace shardscope::traces::merge {

namespace {

// The part's columns in the schema's order.
std::vector<std::string_view> present(store::Database& from, const schema::SchemaTable& table) {
    std::vector<std::string_view> names;
    for (const schema::SchemaColumn& column : table.columns) {
        if (from.has_column(table.name, column.name)) names.push_back(column.name);
    }
    return names;
}

bool must_have_value(const schema::SchemaColumn& column) {
    return column.type.find("NOT NULL") != std::string_view::npos;
}

// Whether the column holds only at the row's own time, and not for a state that is carried to another time.
bool holds_at_its_time(std::string_view table, std::string_view column) {
    return table == "SHARD_MEMORY" && (column == "total" || column == "reserved" || column == "globalTid");
}

std::string_view default_sql(const schema::SchemaColumn& column) {
    if (!must_have_value(column)) return "NULL";
    if (column.name == "tensorSizeMinusOneElements") return "'[]'";
    return column.type.starts_with("TEXT") ? "''" : "0";
}

std::string select_sql(const schema::SchemaTable& table, const std::vector<std::string_view>& names,
                       const std::string& where) {
    std::string columns;
    for (const auto name : names)
        fmt::format_to(std::back_inserter(columns), "{}\"{}\"", columns.empty() ? "" : ", ", name);
    return fmt::format("SELECT {} FROM main.\"{}\" {}", columns.empty() ? "NULL" : columns, table.name,
                       where);
}

std::string insert_sql(const schema::SchemaTable& table, const std::vector<std::string_view>& names) {
    std::string columns, values;
    for (const schema::SchemaColumn& column : table.columns) {
        const auto it = std::find(names.begin(), names.end(), column.name);
        const char* comma = columns.empty() ? "" : ", ";
        fmt::format_to(std::back_inserter(columns), "{}\"{}\"", comma, column.name);
        if (it != names.end()) {
            fmt::format_to(std::back_inserter(values), "{}?{}", comma, it - names.begin() + 1);
        } else {
            fmt::format_to(std::back_inserter(values), "{}{}", comma, default_sql(column));
        }
    }
    return fmt::format("INSERT OR IGNORE INTO \"{}\" ({}) VALUES ({})", table.name, columns, values);
}

}  // namespace

TableCopy::TableCopy(store::Database& from, store::Database& to, const schema::SchemaTable& table,
                     RowIds& ids, const std::string& where)
    : table_(table.name),
      ids_(ids),
      to_db_(to),
      names_(present(from, table)),
      from_(from, select_sql(table, names_, where)),
      to_(to, insert_sql(table, names_)) {
    for (const schema::SchemaColumn& column : table.columns) {
        const auto it = std::find(names_.begin(), names_.end(), column.name);
        if (it == names_.end()) continue;
        Column c{column_role(table.name, column), static_cast<int>(it - names_.begin())};
        if (must_have_value(column)) {
            c.absent = column.name == "tensorSizeMinusOneElements" ? Column::Absent::list
                       : column.type.starts_with("TEXT")           ? Column::Absent::text
                                                                   : Column::Absent::zero;
        }
        c.of_moment = holds_at_its_time(table.name, column.name);
        columns_.push_back(c);
        const auto remember = [&](schema::ColumnRole role, int& place) {
            if (c.role == role && place < 0) place = c.at;
        };
        remember(schema::ColumnRole::process, process_);
        remember(schema::ColumnRole::pid, pid_);
        remember(schema::ColumnRole::thread, thread_);
        remember(schema::ColumnRole::domain, domain_);
        remember(schema::ColumnRole::hardware, hardware_);
        remember(schema::ColumnRole::virtual_machine, machine_);
        if (column.name == "part") part_ = c.at;
    }
}

int TableCopy::place(std::string_view column) const {
    const auto it = std::find(names_.begin(), names_.end(), column);
    return it != names_.end() ? static_cast<int>(it - names_.begin()) : -1;
}

std::optional<std::int64_t> TableCopy::integer_at(int place) const {
    if (place < 0 || from_.is_null(place)) return std::nullopt;
    return from_.integer(place);
}

std::optional<std::int64_t> TableCopy::integer(std::string_view column) const {
    return integer_at(place(column));
}

void TableCopy::bind_absent(const Column& column) {
    const int index = column.at + 1;
    switch (column.absent) {
        case Column::Absent::null:
            return to_.bind_null(index);
        case Column::Absent::zero:
            return to_.bind(index, std::int64_t{0});
        case Column::Absent::text:
            return to_.bind(index, std::string_view());
        case Column::Absent::list:
            return to_.bind(index, std::string_view("[]"));
    }
}

std::int64_t TableCopy::row_domain() const {
    return ids_.domain(integer_at(domain_).value_or(0), integer_at(thread_).value_or(0));
}

// A binary payload names its schema in its second integer of 8 bytes.
void TableCopy::bind_payload(const Column& column) {
    const std::string_view bytes = from_.text(column.at);
    std::int64_t schema = 0;
    if (ids_.schemas.empty() || bytes.size() < 2 * sizeof schema)
        return to_.bind_value(column.at + 1, from_, column.at);
    blob_ = bytes;
    std::memcpy(&schema, blob_.data() + sizeof schema, sizeof schema);
    schema = ids_.schema(row_domain(), schema);
    std::memcpy(blob_.data() + sizeof schema, &schema, sizeof schema);
    to_.bind_blob(column.at + 1, blob_);
}

std::int64_t TableCopy::mapped(const Column& column, std::int64_t value) {
    switch (column.role) {
        case schema::ColumnRole::device: {
            const auto process = integer_at(process_);
            const std::int64_t pid = process ? pid_number(*process) : integer_at(pid_).value_or(-1);
            return ids_.map(column.role, value, pid);
        }
        case schema::ColumnRole::domain:
            return row_domain();
        case schema::ColumnRole::payload_schema:
        case schema::ColumnRole::payload_type:
            return ids_.schema(row_domain(), value);
        case schema::ColumnRole::hardware:
            return ids_.machine(value << 8 | integer_at(machine_).value_or(0)) >> 8;
        case schema::ColumnRole::virtual_machine:
            return ids_.machine(integer_at(hardware_).value_or(0) << 8 | value) & 0xFF;
        case schema::ColumnRole::prediction_part: {
            const auto part =
                static_cast<schema::PredictionPart>(integer_at(part_).value_or(schema::kPredictionParts));
            if (part == schema::PredictionPart::unit) return ids_.map(schema::ColumnRole::unit, value, -1);
            return part == schema::PredictionPart::module ? ids_.map(schema::ColumnRole::module, value, -1)
                                                          : value;
        }
        default:
            return ids_.map(column.role, value, -1);
    }
}

void TableCopy::bind(const Column& column, std::optional<std::int64_t> time) {
    const int index = column.at + 1;
    const store::ValueType type = from_.type(column.at);
    if (type == store::ValueType::null || (time && column.of_moment)) return bind_absent(column);
    if (column.role == schema::ColumnRole::payload) return bind_payload(column);
    if (column.role == schema::ColumnRole::undecided || column.role == schema::ColumnRole::kept ||
        column.role == schema::ColumnRole::pid || type != store::ValueType::integer)
        return to_.bind_value(index, from_, column.at);
    if (column.role == schema::ColumnRole::text_or_string)
        return to_.bind(index, ids_.strings.text(from_.integer(column.at)));
    if (time && column.role == schema::ColumnRole::time) return to_.bind(index, *time);
    to_.bind(index, mapped(column, from_.integer(column.at)));
}

void TableCopy::write(std::optional<std::int64_t> time) {
    for (const Column& column : columns_) bind(column, time);
    to_.run();
}

bool TableCopy::write_once(std::set<std::string>& written) {
    for (const Column& column : columns_) bind(column, {});
    if (!written.insert(to_.bound_sql()).second) {
        to_.reset();
        return true;
    }
    to_.step();
    const bool done = to_db_.changes() > 0;
    to_.reset();
    return done;
}

std::int64_t TableCopy::run(WorkWatch& watch, const std::function<bool()>& keep) {
    std::int64_t rows = 0;
    while (next()) {
        watch.row();
        if (keep && !keep()) continue;
        write();
        ++rows;
    }
    return rows;
}

}  // namespace shardscope::traces::merge
