// See query_plot.h. A few points are drawn one by one; many as their extremes in each pixel column.
#include "viewer/panels/query/query_plot.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/core.h>

#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/theme/theme.h"
#include "viewer/widgets/segmented.h"

namespace shardscope::viewer::panels {
namespace {

constexpr std::size_t kSinglePoints = 4000;  // more are folded
constexpr std::size_t kMostBars = 200;       // more numbered rows are points at first

// Half the side of a point.
float dot_size() {
    return std::max(2.0F, ImGui::GetFontSize() * 0.16F);
}

bool choose(const char* id, const char* none, const QueryTable& table, int& chosen) {
    const auto& columns = table.columns();
    const std::string shown = chosen < 0 ? none : columns[static_cast<std::size_t>(chosen)].title;
    bool changed = false;
    ImGui::SetNextItemWidth(ImGui::GetFontSize() * 9);
    const bool open = ImGui::BeginCombo(id, shown.c_str());
    draw::items::mark(fmt::format("query.plot.{}", id + 2), shown);
    if (!open) return false;
    if (*none != 0 && ImGui::Selectable(none, chosen < 0)) {
        chosen = -1;
        changed = true;
    }
    for (std::size_t c = 0; c < columns.size(); ++c) {
        if (!table.is_number(c)) continue;
        ImGui::PushID(static_cast<int>(c));
        if (ImGui::Selectable(columns[c].title.c_str(), chosen == static_cast<int>(c))) {
            chosen = static_cast<int>(c);
            changed = true;
        }
        ImGui::PopID();
    }
    ImGui::EndCombo();
    return changed;
}

std::string unit_of(const QueryTable& table, int column) {
    return column < 0 ? std::string() : table.columns()[static_cast<std::size_t>(column)].unit;
}

std::string shown_value(const QueryTable& table, int column, double value) {
    const std::string unit = unit_of(table, column);
    const std::string number = value == std::round(value) && std::abs(value) < 1e15
                                   ? draw::format_count(static_cast<std::int64_t>(value))
                                   : draw::format_decimal(value, 3);
    return unit.empty() ? number : number + " " + unit;
}

}  // namespace

void QueryPlot::choose_columns(const QueryTable& table) {
    const PlotAxes axes = choose_axes(table);
    x_ = axes.x;
    y_ = axes.y;
    const auto unit = x_ < 0 ? draw::AxisUnit::count : axis_unit_of(unit_of(table, x_));
    const bool bars = unit == draw::AxisUnit::count && table.rows() <= kMostBars;
    look_ = static_cast<int>(x_ < 0 || bars ? Look::bars : Look::points);
}

// With room at both ends for half a bar, or for the outermost points.
PlotRange QueryPlot::shown_range() const {
    PlotRange range = range_;
    if (static_cast<Look>(look_) == Look::points && points_.size() <= kSinglePoints) {
        const double room = (range.x_high - range.x_low) * 0.01;
        range.x_low -= room;
        range.x_high += room;
    }
    if (static_cast<Look>(look_) != Look::bars || points_.size() > kSinglePoints) return range;
    if (points_.size() == 1) range.x_high = range.x_low;
    range.x_low -= bar_ / 2;
    range.x_high += bar_ / 2;
    return range;
}

void QueryPlot::draw_choosers(const QueryTable& table) {
    static constexpr std::array<std::string_view, 3> kLooks = {"Points", "Line", "Bars"};
    const float font = ImGui::GetFontSize();
    choose("##y", "", table, y_);
    ImGui::SameLine(0, font * 0.5F);
    ImGui::AlignTextToFramePadding();
    draw::text("over");
    ImGui::SameLine(0, font * 0.5F);
    choose("##x", "row", table, x_);
    ImGui::SameLine(0, font);
    widgets::segmented("query.plot", kLooks, look_);
}

void QueryPlot::refresh(const std::shared_ptr<const QueryTable>& table,
                        const std::vector<std::uint32_t>& order, int columns) {
    if (seen_ == table && seen_x_ == x_ && seen_y_ == y_ && seen_columns_ == columns && seen_order_ == order)
        return;
    seen_ = table;
    seen_order_ = order;
    seen_x_ = x_;
    seen_y_ = y_;
    seen_columns_ = columns;
    points_ = plot_points(*table, order, x_, y_);
    range_ = plot_range(points_);
    bar_ = bar_distance(points_);
    const auto whole = [&](double PlotPoint::*value) {
        return std::all_of(points_.begin(), points_.end(),
                           [&](const PlotPoint& p) { return p.*value == std::round(p.*value); });
    };
    x_whole_ = whole(&PlotPoint::x);
    y_whole_ = whole(&PlotPoint::y);
    folded_ = fold_plot(points_, range_, columns);
}

void QueryPlot::draw(const std::shared_ptr<const QueryTable>& table, const std::vector<std::uint32_t>& order,
                     ImVec2 size) {
    if (seen_ != table) choose_columns(*table);
    const auto count = static_cast<int>(table->columns().size());
    x_ = std::min(x_, count - 1);
    y_ = std::min(y_, count - 1);
    ImGui::BeginGroup();
    draw_choosers(*table);
    const float left = size.y - ImGui::GetFrameHeightWithSpacing();
    if (y_ < 0) {
        draw::note("No column of this result holds numbers: there is nothing to plot.");
        ImGui::EndGroup();
        return;
    }
    refresh(table, order, std::max(16, static_cast<int>(size.x)));
    const double fx = axis_factor_of(unit_of(*table, x_)), fy = axis_factor_of(unit_of(*table, y_));
    draw::ChartAxes axes;
    const PlotRange range = shown_range();
    axes.x_low = range.x_low * fx;
    axes.x_high = range.x_high * fx;
    if (x_ < 0) axes.x_zero = -1;  // rows are counted from 1
    axes.x_whole = x_whole_;
    axes.y_low = range_.y_low * fy;
    axes.y_high = std::max(range_.y_high, range_.y_low < 0 ? 0 : 1e-12) * fy;
    axes.x_unit = axis_unit_of(unit_of(*table, x_));
    axes.y_unit = axis_unit_of(unit_of(*table, y_));
    if (axes.y_unit == draw::AxisUnit::count && !y_whole_) axes.y_unit = draw::AxisUnit::number;
    draw::Chart chart = begin_chart("query.plot", {size.x, std::max(ImGui::GetFontSize() * 5, left)}, axes);
    draw::items::mark("query.plot", fmt::format("{} points", points_.size()));
    // From here on x and y are in the columns' own units.
    chart.x = {range.x_low, range.x_high, chart.min.x, chart.max.x};
    chart.y = {range_.y_low, axes.y_high / fy, chart.max.y, chart.min.y};
    const float dot = dot_size() + 1;  // points at the edges are whole
    chart.draw->PushClipRect({chart.min.x - dot, chart.min.y - dot}, {chart.max.x + dot, chart.max.y + dot},
                             true);
    paint(chart);
    chart.draw->PopClipRect();
    if (range_.y_low < 0) {
        const float zero = std::floor(static_cast<float>(chart.y.pixel(0)));
        chart.draw->AddRectFilled({chart.min.x, zero}, {chart.max.x, zero + 1}, theme::text_dim());
    }
    draw_tip(*table, chart);
    ImGui::EndGroup();
}

void QueryPlot::paint(const draw::Chart& chart) const {
    const ImU32 color = theme::accent();
    const float step = chart.width() / static_cast<float>(std::max(1, seen_columns_));
    const auto at = [&](const PlotColumn& c) {
        return chart.min.x + step * (static_cast<float>(c.column) + 0.5F);
    };
    const auto y = [&](double value) { return static_cast<float>(chart.y.pixel(value)); };
    const float dot = dot_size();
    switch (static_cast<Look>(look_)) {
        case Look::points:
            if (points_.size() <= kSinglePoints) {
                for (const PlotPoint& p : points_) {
                    const auto x = static_cast<float>(chart.x.pixel(p.x));
                    chart.draw->AddRectFilled({x - dot, y(p.y) - dot}, {x + dot, y(p.y) + dot}, color, dot);
                }
                return;
            }
            for (const PlotColumn& c : folded_)
                chart.draw->AddRectFilled({at(c) - step / 2, y(c.highest) - 1},
                                          {at(c) + step / 2, y(c.lowest) + 1}, draw::faded(color, 0.7F));
            return;
        case Look::line:
            folded_line(chart, folded_, seen_columns_, color, 1.5F);
            return;
        case Look::bars: {
            // From zero up or down, so that even the smallest value is visible.
            const auto bar = [&](float left, float right, double low, double high) {
                if (low == 0 && high == 0) return;
                const float top = std::floor(y(high)), bottom = std::max(std::ceil(y(low)), top + 1);
                chart.draw->AddRectFilled({left, top}, {right, bottom}, color);
            };
            const auto width = static_cast<float>(bar_ / (chart.x.high - chart.x.low)) * chart.width();
            if (points_.size() <= kSinglePoints && width >= 2) {
                for (const PlotPoint& p : points_) {
                    const auto x = static_cast<float>(chart.x.pixel(p.x));
                    bar(x - width * 0.4F, x + width * 0.4F, std::min(p.y, 0.0), std::max(p.y, 0.0));
                }
                return;
            }
            const float half = std::max(1.0F, step / 2);
            for (const PlotColumn& c : folded_)
                bar(at(c) - half, at(c) + half, std::min(c.lowest, 0.0), std::max(c.highest, 0.0));
            return;
        }
    }
}

// The point nearest to the mouse if points are few; else the extremes of the column under it.
void QueryPlot::draw_tip(const QueryTable& table, const draw::Chart& chart) const {
    if (!chart.hovered || points_.empty()) return;
    const ImVec2 mouse = ImGui::GetIO().MousePos;
    const std::string x_name = x_ < 0 ? "row" : table.columns()[static_cast<std::size_t>(x_)].title;
    const std::string& y_name = table.columns()[static_cast<std::size_t>(y_)].title;
    if (points_.size() <= kSinglePoints) {
        const bool by_place = static_cast<Look>(look_) == Look::bars;
        const auto distance = [&](const PlotPoint& p) {
            const float y = by_place ? mouse.y : static_cast<float>(chart.y.pixel(p.y));
            return std::hypot(static_cast<float>(chart.x.pixel(p.x)) - mouse.x, y - mouse.y);
        };
        std::size_t nearest = 0;
        for (std::size_t i = 1; i < points_.size(); ++i)
            if (distance(points_[i]) < distance(points_[nearest])) nearest = i;
        draw::begin_tip("");
        draw::tip_row(x_name, shown_value(table, x_, points_[nearest].x + (x_ < 0 ? 1 : 0)));
        draw::tip_row(y_name, shown_value(table, y_, points_[nearest].y));
        draw::end_tip();
        return;
    }
    const int column =
        static_cast<int>((mouse.x - chart.min.x) / chart.width() * static_cast<float>(seen_columns_));
    const auto at =
        std::find_if(folded_.begin(), folded_.end(), [&](const PlotColumn& c) { return c.column >= column; });
    if (at == folded_.end()) return;
    draw::begin_tip("");
    draw::tip_row(y_name, fmt::format("{} to {}", shown_value(table, y_, at->lowest),
                                      shown_value(table, y_, at->highest)));
    draw::end_tip();
}

}  // namespace shardscope::viewer::panels
