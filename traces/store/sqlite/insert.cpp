#include "traces/store/sqlite/insert.h"

#include <algorithm>

#include <fmt/core.h>

namespace shardscope::traces {

namespace {

constexpr std::size_t kRows = 16;  // more would gain little

std::string insert_sql(std::string_view verb, std::string_view table,
                       const std::vector<BatchInsert::Target>& targets, std::size_t rows) {
    std::string names, values;
    for (const auto& target : targets) {
        fmt::format_to(std::back_inserter(names), "{}\"{}\"", names.empty() ? "" : ", ", target.column);
        fmt::format_to(std::back_inserter(values), "{}{}", values.empty() ? "" : ", ",
                       target.constant.empty() ? "?" : target.constant);
    }
    std::string sql = fmt::format("{} INTO {} ({}) VALUES ({})", verb, table, names, values);
    for (std::size_t i = 1; i < rows; ++i) fmt::format_to(std::back_inserter(sql), ", ({})", values);
    return sql;
}

}  // namespace

BatchInsert::BatchInsert(Database& database, std::string_view table, const std::vector<Target>& targets,
                         std::string_view verb)
    : columns_(static_cast<std::size_t>(
          std::count_if(targets.begin(), targets.end(), [](const Target& t) { return t.constant.empty(); }))),
      values_(columns_ * kRows),
      many_(database, insert_sql(verb, table, targets, kRows)),
      one_(database, insert_sql(verb, table, targets, 1)) {}

BatchInsert::Value& BatchInsert::next() {
    return values_[used_++];
}

BatchInsert& BatchInsert::integer(std::int64_t value) {
    Value& v = next();
    v.type = ValueType::integer;
    v.integer = value;
    return *this;
}

BatchInsert& BatchInsert::real(double value) {
    Value& v = next();
    v.type = ValueType::real;
    v.real = value;
    return *this;
}

BatchInsert& BatchInsert::text(std::string_view value) {
    Value& v = next();
    v.type = ValueType::text;
    v.text.assign(value);
    return *this;
}

BatchInsert& BatchInsert::null() {
    next().type = ValueType::null;
    return *this;
}

void BatchInsert::end_row() {
    if (used_ < values_.size()) return;
    used_ = 0;
    write(many_, 0, values_.size());
}

void BatchInsert::flush() {
    const std::size_t waiting = used_;
    used_ = 0;
    for (std::size_t first = 0; first < waiting; first += columns_) write(one_, first, columns_);
}

void BatchInsert::write(Statement& statement, std::size_t first, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        const Value& v = values_[first + i];
        const int index = static_cast<int>(i) + 1;
        switch (v.type) {
            case ValueType::integer:
                statement.bind(index, v.integer);
                break;
            case ValueType::real:
                statement.bind(index, v.real);
                break;
            case ValueType::text:
                statement.bind(index, std::string_view(v.text));
                break;
            default:
                statement.bind_null(index);
                break;
        }
    }
    statement.run();
}

}  // namespace shardscope::traces
