// See query_table.h.
#include "viewer/panels/query/query_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string_view>

#include <fmt/core.h>

#include "traces/schema/text.h"
#include "viewer/draw/format.h"

namespace shardscope::viewer::panels {
namespace {

using traces::store::QueryValue;

struct UnitEnding {
    std::string_view ending, unit;
};
constexpr std::array kEndings = {
    UnitEnding{"_ns", "ns"},       UnitEnding{"_us", "\u00b5s"}, UnitEnding{"_ms", "ms"},
    UnitEnding{"_s", "s"},         UnitEnding{"_percent", "%"},  UnitEnding{"percent", "%"},
    UnitEnding{"_bytes", "bytes"}, UnitEnding{"bytes", "bytes"}, UnitEnding{"_mb", "MiB"},
    UnitEnding{"_gbps", "GB/s"},   UnitEnding{"_mib", "MiB"},
};

bool exact_number(const QueryValue& value) {
    if (std::holds_alternative<double>(value)) return true;
    const auto* whole = std::get_if<std::int64_t>(&value);
    return whole != nullptr && std::abs(static_cast<double>(*whole)) <= tables::kExactInteger;
}

// The columns whose values are all numbers, with at least one.
std::vector<bool> number_columns(const traces::store::QueryResult& result) {
    std::vector<bool> number(result.columns.size(), true), any(result.columns.size(), false);
    for (const auto& row : result.rows) {
        for (std::size_t c = 0; c < row.size(); ++c) {
            if (std::holds_alternative<std::monostate>(row[c])) continue;
            any[c] = true;
            if (!exact_number(row[c])) number[c] = false;
        }
    }
    for (std::size_t c = 0; c < number.size(); ++c) number[c] = number[c] && any[c];
    return number;
}

// The number of decimals is the same for the whole column, so that decimal points are aligned.
int decimals_of(const traces::store::QueryResult& result, std::size_t column) {
    double largest = 0;
    for (const auto& row : result.rows) {
        const auto* real = std::get_if<double>(&row[column]);
        if (real != nullptr && std::isfinite(*real)) largest = std::max(largest, std::abs(*real));
    }
    return largest < 10 ? 3 : 2;
}

// Column names in CSV and JSON must be distinct.
std::string distinct(const std::string& name, std::set<std::string>& used) {
    std::string id = name.empty() ? "column" : name;
    for (int n = 2; !used.insert(id).second; ++n) id = fmt::format("{}_{}", name, n);
    return id;
}

// The width of the longest of the first rows, within limits.
float width_of(const traces::store::QueryResult& result, std::size_t column, bool number) {
    std::size_t longest = result.columns[column].size() + 1;
    for (std::size_t r = 0; r < std::min<std::size_t>(result.rows.size(), 50); ++r) {
        const QueryValue& value = result.rows[r][column];
        if (const auto* text = std::get_if<std::string>(&value)) longest = std::max(longest, text->size());
        if (const auto* whole = std::get_if<std::int64_t>(&value))
            longest = std::max(longest, draw::format_count(*whole).size());
    }
    return std::clamp(static_cast<float>(longest) * (number ? 0.62F : 0.56F) + 1, 4.0F, 26.0F);
}

struct Match {
    int column = -1;
    double ns = 1;
};

Match find_column(const std::vector<std::string>& columns, std::initializer_list<std::string_view> names) {
    struct Unit {
        std::string_view ending;
        double ns;
    };
    static constexpr std::array kUnits = {Unit{"", 1}, Unit{"_ns", 1}, Unit{"_us", 1e3}, Unit{"_ms", 1e6},
                                          Unit{"_s", 1e9}};
    for (const std::string_view name : names) {
        for (const Unit& unit : kUnits) {
            for (std::size_t c = 0; c < columns.size(); ++c) {
                if (traces::schema::lower_case(columns[c]) == fmt::format("{}{}", name, unit.ending))
                    return {static_cast<int>(c), unit.ns};
            }
        }
    }
    return {};
}

std::optional<std::int64_t> as_ns(const QueryTable& table, std::size_t row, int column, double factor) {
    if (column < 0) return {};
    const double value = table.number(row, static_cast<std::size_t>(column)) * factor;
    if (!std::isfinite(value) || std::abs(value) > 9e18) return {};
    return static_cast<std::int64_t>(std::llround(value));
}

}  // namespace

QueryTable::QueryTable(std::shared_ptr<const traces::store::QueryResult> result)
    : result_(std::move(result)) {
    const std::vector<bool> number = number_columns(*result_);
    std::set<std::string> used;
    for (std::size_t c = 0; c < result_->columns.size(); ++c) {
        tables::TableColumn column;
        column.id = distinct(result_->columns[c], used);
        column.title = result_->columns[c];
        column.kind = number[c] ? tables::TableColumn::Kind::number : tables::TableColumn::Kind::text;
        if (number[c]) column.unit = unit_of_name(column.title);
        column.width = width_of(*result_, c, number[c]);
        if (!number[c]) column.least = 10;             // the numbers beside a long name are needed, too
        column.priority = 1000 - static_cast<int>(c);  // the columns keep the query's order
        columns_.push_back(std::move(column));
        decimals_.push_back(decimals_of(*result_, c));
    }
}

std::string QueryTable::text(std::size_t row, std::size_t column) const {
    const QueryValue& value = result_->rows[row][column];
    const tables::TableColumn& about = columns_[column];
    if (const auto* whole = std::get_if<std::int64_t>(&value))
        return about.unit.empty() ? fmt::format("{}", *whole) : draw::format_count(*whole);
    if (const auto* real = std::get_if<double>(&value)) {
        if (!std::isfinite(*real)) return fmt::format("{}", *real);
        const double size = std::abs(*real);
        if (size != 0 && (size < 0.0005 || size >= 1e15)) return fmt::format("{:.4g}", *real);
        return draw::format_decimal(*real, decimals_[column]);
    }
    if (const auto* text = std::get_if<std::string>(&value)) return *text;
    return "-";
}

double QueryTable::number(std::size_t row, std::size_t column) const {
    const QueryValue& value = result_->rows[row][column];
    if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
    if (const auto* real = std::get_if<double>(&value)) return *real;
    return tables::kNoNumber;
}

RowPlaces find_places(const std::vector<std::string>& columns) {
    RowPlaces places;
    const Match start = find_column(columns, {"start", "begin", "from", "time", "ts", "peak_time"});
    const Match end = find_column(columns, {"end", "to"});
    const Match duration = find_column(columns, {"duration", "dur", "length"});
    places.start = start.column;
    places.start_ns = start.ns;
    places.end = end.column;
    places.end_ns = end.ns;
    places.duration = duration.column;
    places.duration_ns = duration.ns;
    places.rank = find_column(columns, {"rank"}).column;
    return places;
}

std::optional<RowPlace> place_of(const QueryTable& table, const RowPlaces& places, std::size_t row) {
    const auto from = as_ns(table, row, places.start, places.start_ns);
    if (!from) return {};
    RowPlace place{*from, *from, {}};
    if (const auto to = as_ns(table, row, places.end, places.end_ns)) {
        place.to = std::max(*from, *to);
    } else if (const auto length = as_ns(table, row, places.duration, places.duration_ns)) {
        place.to = *from + std::clamp<std::int64_t>(*length, 0, INT64_MAX / 4);
    }
    if (const auto rank = as_ns(table, row, places.rank, 1)) place.rank = static_cast<int>(*rank);
    return place;
}

std::int64_t device_event_at(const traces::store::Trace& trace, const RowPlace& place) {
    const auto& start = trace.device.start;
    for (auto at = std::lower_bound(start.begin(), start.end(), place.from);
         at != start.end() && *at == place.from; ++at) {
        const auto i = static_cast<std::size_t>(at - start.begin());
        const bool rank = !place.rank || trace.ranks[trace.device.rank[i]].number == *place.rank;
        if (trace.device.end[i] == place.to && rank) return static_cast<std::int64_t>(i);
    }
    return -1;
}

std::int64_t host_range_at(const traces::store::Trace& trace, const RowPlace& place) {
    const auto& start = trace.ranges.start;
    for (auto at = std::lower_bound(start.begin(), start.end(), place.from);
         at != start.end() && *at == place.from; ++at) {
        const auto i = static_cast<std::size_t>(at - start.begin());
        const traces::store::RankIndex on = trace.threads[trace.ranges.thread[i]].rank;
        const bool rank = !place.rank || (on.known() && trace.ranks[on.at()].number == *place.rank);
        if (trace.ranges.end[i] == place.to && rank) return static_cast<std::int64_t>(i);
    }
    return -1;
}

int find_name(const QueryTable& table) {
    int first = -1;
    for (std::size_t c = 0; c < table.columns().size(); ++c) {
        if (table.is_number(c)) continue;
        if (traces::schema::lower_case(table.columns()[c].title) == "name") return static_cast<int>(c);
        if (first < 0) first = static_cast<int>(c);
    }
    return first;
}

std::vector<model::ResultSpan> result_spans(const QueryTable& table, const RowPlaces& places,
                                            const traces::store::Trace& trace) {
    std::vector<model::ResultSpan> spans;
    if (!places.spans()) return spans;
    const int name = find_name(table);
    for (std::size_t row = 0; row < table.rows(); ++row) {
        const auto place = place_of(table, places, row);
        if (!place) continue;
        model::ResultSpan span{place->from, place->to, place->rank, {}, {}};
        if (const auto device = device_event_at(trace, *place); device >= 0) {
            span.event = {model::EventKind::device, device};
        } else if (const auto range = host_range_at(trace, *place); range >= 0) {
            span.event = {model::EventKind::range, range};
        }
        if (name >= 0) span.name = table.text(row, static_cast<std::size_t>(name));
        spans.push_back(std::move(span));
    }
    return spans;
}

std::vector<PlotPoint> plot_points(const QueryTable& table, std::span<const std::uint32_t> order, int x,
                                   int y) {
    std::vector<PlotPoint> points;
    for (std::size_t i = 0; i < order.size(); ++i) {
        const auto value = [&](int column) {
            return column < 0 ? static_cast<double>(i)
                              : table.number(order[i], static_cast<std::size_t>(column));
        };
        const PlotPoint point{value(x), value(y)};
        if (std::isfinite(point.x) && std::isfinite(point.y)) points.push_back(point);
    }
    return points;
}

PlotAxes choose_axes(const QueryTable& table) {
    std::vector<std::string> names, lower;
    for (const tables::TableColumn& column : table.columns()) {
        names.push_back(column.title);
        lower.push_back(traces::schema::lower_case(column.title));
    }
    const RowPlaces places = find_places(names);
    const auto first = [&](auto&& wanted) {
        for (std::size_t c = 0; c < lower.size(); ++c)
            if (table.is_number(c) && wanted(c)) return static_cast<int>(c);
        return -1;
    };
    const auto is_step = [&](std::size_t c) { return lower[c] == "step" || lower[c] == "iteration"; };
    const auto is_size = [&](std::size_t c) {
        return lower[c] == "size" || lower[c] == "elements" || lower[c].ends_with("size") ||
               table.columns()[c].unit == "bytes";
    };
    PlotAxes axes;
    axes.x = first(is_step);
    if (axes.x < 0) axes.x = first([&](std::size_t c) { return static_cast<int>(c) == places.start; });
    if (axes.x < 0) {
        axes.x = first(is_size);
        // A size alone is what the plot is about.
        if (axes.x >= 0 && first([&](std::size_t c) {
                               return static_cast<int>(c) != axes.x && !is_size(c) &&
                                      !table.columns()[c].unit.empty();
                           }) < 0)
            axes.x = -1;
    }
    const bool x_is_size = axes.x >= 0 && is_size(static_cast<std::size_t>(axes.x));
    const auto other_meaning = [&](std::size_t c) {
        const int at = static_cast<int>(c);
        const bool identifies =
            at == places.rank || lower[c] == "id" || lower[c].ends_with("_id") || is_step(c);
        return at != axes.x && at != places.start && at != places.end && !identifies &&
               !(x_is_size && is_size(c));
    };
    axes.y = first([&](std::size_t c) { return other_meaning(c) && !table.columns()[c].unit.empty(); });
    if (axes.y < 0) axes.y = first(other_meaning);
    if (axes.y < 0) axes.y = first([&](std::size_t c) { return static_cast<int>(c) != axes.x; });
    if (axes.y < 0) axes = {-1, axes.x};
    return axes;
}

double bar_distance(std::span<const PlotPoint> points) {
    std::vector<double> places;
    for (const PlotPoint& point : points) places.push_back(point.x);
    std::sort(places.begin(), places.end());
    double least = 0;
    for (std::size_t i = 1; i < places.size(); ++i) {
        const double distance = places[i] - places[i - 1];
        if (distance > 0 && (least == 0 || distance < least)) least = distance;
    }
    return least > 0 ? least : 1;
}

PlotRange plot_range(std::span<const PlotPoint> points) {
    PlotRange range;
    if (points.empty()) return range;
    const auto [left, right] = std::minmax_element(points.begin(), points.end(),
                                                   [](const auto& a, const auto& b) { return a.x < b.x; });
    const auto [low, high] = std::minmax_element(points.begin(), points.end(),
                                                 [](const auto& a, const auto& b) { return a.y < b.y; });
    range.x_low = left->x;
    range.x_high = right->x > left->x ? right->x : left->x + 1;
    range.y_low = low->y < 0 ? -draw::axis_top(-low->y) : 0;
    range.y_high = low->y < 0 && high->y <= 0 ? 0 : draw::axis_top(high->y);
    return range;
}

std::string unit_of_name(std::string_view column) {
    const std::string name = traces::schema::lower_case(column);
    for (const UnitEnding& e : kEndings)
        if (name.ends_with(e.ending)) return std::string(e.unit);
    return {};
}

draw::AxisUnit axis_unit_of(const std::string& unit) {
    if (unit == "ns" || unit == "\u00b5s" || unit == "ms" || unit == "s") return draw::AxisUnit::nanoseconds;
    if (unit == "bytes" || unit == "MiB") return draw::AxisUnit::bytes;
    return unit == "%" ? draw::AxisUnit::percent : draw::AxisUnit::count;
}

double axis_factor_of(const std::string& unit) {
    if (unit == "\u00b5s") return 1e3;
    if (unit == "ms") return 1e6;
    if (unit == "s") return 1e9;
    return unit == "MiB" ? 1048576.0 : 1.0;
}

}  // namespace shardscope::viewer::panels
