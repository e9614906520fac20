// The result of a query as a table, the places of its rows in time, and two of its columns as a plot. Pure;
// any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/store/columns/trace.h"
#include "traces/store/sqlite/query.h"
#include "viewer/draw/axis.h"
#include "viewer/draw/plot.h"
#include "viewer/model/result_rows.h"
#include "viewer/tables/table_model.h"

namespace shardscope::viewer::panels {

// A column holds numbers if all its values are numbers (or NULL) that a double holds exactly; else text. The
// ending of its name gives the unit: start_ns, bytes, percent.
class QueryTable final : public tables::TableModel {
  public:
    explicit QueryTable(std::shared_ptr<const traces::store::QueryResult> result);
    std::size_t rows() const override { return result_->rows.size(); }
    std::string text(std::size_t row, std::size_t column) const override;
    double number(std::size_t row, std::size_t column) const override;
    bool scales() const override { return false; }  // the query chose the units
    bool is_number(std::size_t column) const {
        return columns_[column].kind == tables::TableColumn::Kind::number;
    }

  private:
    std::shared_ptr<const traces::store::QueryResult> result_;
    std::vector<int> decimals_;  // of each column's non-integer numbers
};

// Where a row is in time: columns called start, start_ns, time_ns, from_us ... with end or duration, and
// rank.
struct RowPlaces {
    int start = -1, end = -1, duration = -1, rank = -1;  // columns, -1 none
    double start_ns = 1, end_ns = 1, duration_ns = 1;    // ns in one unit of the column
    bool known() const { return start >= 0; }
    bool spans() const { return start >= 0 && (end >= 0 || duration >= 0); }
};
RowPlaces find_places(const std::vector<std::string>& columns);

struct RowPlace {
    std::int64_t from = 0, to = 0;
    std::optional<int> rank;
};
std::optional<RowPlace> place_of(const QueryTable& table, const RowPlaces& places, std::size_t row);

// The column that names a row: name, or the first of texts; -1 none.
int find_name(const QueryTable& table);

// The rows that have a start and an end or a duration, as rows of the timeline; empty if there are none.
std::vector<model::ResultSpan> result_spans(const QueryTable& table, const RowPlaces& places,
                                            const traces::store::Trace& trace);

// The device event or host range with exactly this place, -1 none: what a click on the row selects.
std::int64_t device_event_at(const traces::store::Trace& trace, const RowPlace& place);
std::int64_t host_range_at(const traces::store::Trace& trace, const RowPlace& place);

// --- the plot --------------------------------------------------------------------------------------------

using draw::PlotColumn;
using draw::PlotPoint;
using draw::PlotRange;
// The points of the rows in `order` where both columns have a number; column -1: the row's index in the
// order.
std::vector<PlotPoint> plot_points(const QueryTable& table, std::span<const std::uint32_t> order, int x,
                                   int y);

// The columns that a new plot shows. x: a step, a start or a size, else the row's index (-1). y: the first
// number of another meaning, rather with a unit; -1: the result has no number to plot.
struct PlotAxes {
    int x = -1, y = -1;
};
PlotAxes choose_axes(const QueryTable& table);

// The smallest distance between two different x, of which each bar takes most; 1 if there are none.
double bar_distance(std::span<const PlotPoint> points);

// Includes zero, with a small margin around the lowest and the highest value.
PlotRange plot_range(std::span<const PlotPoint> points);

// The unit that the ending of a column's name gives, "" none: start_ns, bytes, percent.
std::string unit_of_name(std::string_view column);
draw::AxisUnit axis_unit_of(const std::string& column_unit);  // of TableColumn::unit
double axis_factor_of(const std::string& column_unit);        // to the axis's base unit (ns, bytes)

}  // namespace shardscope::viewer::panels
