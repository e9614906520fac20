// What the printers of results share: a result table (traces/analysis/base/result_table.h) as text, JSON and
// CSV, and the numbers within sentences. Internal to traces/report and to reports of the trainer's verbs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "traces/analysis/base/result_table.h"
#include "traces/report/report.h"
#include "traces/report/text_table.h"

namespace shardscope::traces::analysis {
struct AdviceFigure;
}

namespace shardscope::traces::report {

inline constexpr std::string_view kNothingSelected = "The current selection has no rank of this trace.\n";

template <class Result>
std::string render_as(const Result& result, Format format, std::size_t width,
                      std::string (*table)(const Result&, std::size_t), std::string (*json)(const Result&),
                      std::string (*csv)(const Result&)) {
    return format == Format::table  ? table(result, width)
           : format == Format::json ? json(result)
                                    : csv(result);
}

// --- result tables ---

// A table for the terminal. `keys`: how many columns, from the left, identify a row (text_table.h). `width`:
// of the terminal, in columns.
std::string text_of(const analysis::ResultTable& table, std::size_t width, std::size_t keys = 1);

// Full precision, one header line.
std::string csv_of(const analysis::ResultTable& table);
std::string rows_csv(const std::vector<Column>& columns, const std::vector<std::vector<store::Cell>>& rows);

// "CPU Exec" -> "split_cpu_exec_us": CSV's key for a category of a step's time.
std::string split_key(std::string_view category);

// An array of objects.
nlohmann::ordered_json json_of(const analysis::ResultTable& table);
nlohmann::ordered_json json_of(const store::Cell& cell);
// One row as an object.
nlohmann::ordered_json json_row(const std::vector<analysis::ResultColumn>& columns,
                                const std::vector<store::Cell>& cells);
template <class Row, class Json = nlohmann::ordered_json>
Json json_row(analysis::Fields<Row> fields, const Row& row) {
    std::vector<store::Cell> cells;
    analysis::add_cells(cells, fields, row);
    return json_row({fields.begin(), fields.end()}, cells);
}

// --- JSON ---

// One line that ends with a newline; bytes that are not UTF-8 become U+FFFD.
std::string json_line(const nlohmann::ordered_json& json);

// A sum of bytes, or a bandwidth: 0 means "not known" (a barrier, a kernel without metadata) and becomes
// null.
nlohmann::ordered_json known_or_null(std::int64_t value);
nlohmann::ordered_json known_or_null(double value);

// An object of texts.
nlohmann::ordered_json json_pairs(const std::vector<std::pair<std::string, std::string>>& all);

// An array of objects: name, value and unit.
nlohmann::ordered_json json_figures(const std::vector<analysis::AdviceFigure>& figures);

// The keys of `first`, then those of `second`.
nlohmann::ordered_json with(nlohmann::ordered_json first, const nlohmann::ordered_json& second);

// {"ranks":[...]} as a line; `to_json` converts each rank.
template <typename Ranks, typename ToJson>
std::string ranks_line(const Ranks& ranks, ToJson to_json) {
    using Json = decltype(to_json(*ranks.begin()));
    Json all = Json::array(), json = Json::object();
    for (const auto& rank : ranks) all.push_back(to_json(rank));
    json["ranks"] = std::move(all);
    return json_line(json);
}

// --- numbers within sentences: times in nanoseconds or microseconds ---

constexpr double to_us(std::int64_t ns) {
    return static_cast<double>(ns) * 1e-3;
}
constexpr double to_us(double ns) {
    return ns * 1e-3;
}
inline std::string us(double value) {
    return store::grouped(value, 1);
}
inline std::string mb(double bytes) {
    return store::grouped(bytes / (1 << 20), 2);
}
inline std::string mb(std::int64_t bytes) {
    return mb(static_cast<double>(bytes));
}
inline std::string percent(double part, double whole) {
    return store::grouped(whole > 0 ? 100.0 * part / whole : 0.0, 2);
}
inline std::string percent(std::int64_t part, std::int64_t whole) {
    return percent(static_cast<double>(part), static_cast<double>(whole));
}
inline std::string milliseconds(std::int64_t ns) {
    return store::grouped(static_cast<double>(ns) * 1e-6, 3);
}
// The number of rows, for counted() and grouped().
template <class Rows>
std::int64_t size_of(const Rows& rows) {
    return static_cast<std::int64_t>(rows.size());
}
// "1 collective is", "21 collectives are".
inline std::string collectives_are(std::int64_t count) {
    return store::counted(count, "collective is", "collectives are");
}
// The last part of a path.
inline std::string base_name(const std::string& path) {
    return path.substr(path.find_last_of('/') + 1);
}

}  // namespace shardscope::traces::report
