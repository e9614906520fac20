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

// For a new result: plots the first number that is not an id, against time if there is a time column, else
// against the row's index.
void QueryPlot::choose_columns(const QueryTable& table) {
    std::vector<int> numbers;
    std::vector<std::string> names;
    for (std::size_t c = 0; c < table.columns().size(); ++c) {
        names.push_back(table.columns()[c].title);
        if (table.is_number(c)) numbers.push_back(static_cast<int>(c));
    }
    const RowPlaces places = find_places(names);
    x_ = places.start >= 0 && table.is_number(static_cast<std::size_t>(places.start)) ? places.start : -1;
    std::erase_if(numbers, [&](int c) { return c == x_; });
    const auto better = std::find_if(numbers.begin(), numbers.end(), [&](int c) {
        return c != places.rank && c != places.end &&
               !table.columns()[static_cast<std::size_t>(c)].unit.empty();
    });
    y_ = better != numbers.end() ? *better : (numbers.empty() ? -1 : numbers.back());
    look_ = static_cast<int>(x_ >= 0 ? Look::points : Look::bars);
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
    axes.x_low = range_.x_low * fx;
    axes.x_high = range_.x_high * fx;
    axes.y_low = range_.y_low * fy;
    axes.y_high = std::max(range_.y_high, range_.y_low < 0 ? 0 : 1e-12) * fy;
    axes.x_unit = axis_unit_of(unit_of(*table, x_));
    axes.y_unit = axis_unit_of(unit_of(*table, y_));
    draw::Chart chart = begin_chart("query.plot", {size.x, std::max(ImGui::GetFontSize() * 5, left)}, axes);
    draw::items::mark("query.plot", fmt::format("{} points", points_.size()));
    // From here on x and y are in the columns' own units.
    chart.x = {range_.x_low, range_.x_high, chart.min.x, chart.max.x};
    chart.y = {range_.y_low, axes.y_high / fy, chart.max.y, chart.min.y};
    chart.draw->PushClipRect(chart.min, {chart.max.x + 2, chart.max.y + 2}, true);
    paint(*table, chart);
    chart.draw->PopClipRect();
    if (range_.y_low < 0) {
        const float zero = std::floor(static_cast<float>(chart.y.pixel(0)));
        chart.draw->AddRectFilled({chart.min.x, zero}, {chart.max.x, zero + 1}, theme::text_dim());
    }
    draw_tip(*table, chart);
    ImGui::EndGroup();
}

void QueryPlot::paint(const QueryTable&, const draw::Chart& chart) const {
    const ImU32 color = theme::accent();
    const float step = chart.width() / static_cast<float>(std::max(1, seen_columns_));
    const auto at = [&](const PlotColumn& c) {
        return chart.min.x + step * (static_cast<float>(c.column) + 0.5F);
    };
    const auto y = [&](double value) { return static_cast<float>(chart.y.pixel(value)); };
    const float dot = std::max(2.0F, ImGui::GetFontSize() * 0.16F);
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
            for (std::size_t i = 0; i < folded_.size(); ++i) {
                const PlotColumn& c = folded_[i];
                if (c.highest > c.lowest)
                    chart.draw->AddLine({at(c), y(c.highest)}, {at(c), y(c.lowest)}, color, 1.5F);
                if (i > 0)
                    chart.draw->AddLine({at(folded_[i - 1]), y(folded_[i - 1].last)}, {at(c), y(c.first)},
                                        color, 1.5F);
            }
            return;
        case Look::bars: {
            // From zero up or down, so that even the smallest value is visible.
            const auto bar = [&](float left, float right, double low, double high) {
                if (low == 0 && high == 0) return;
                const float top = std::floor(y(high)), bottom = std::max(std::ceil(y(low)), top + 1);
                chart.draw->AddRectFilled({left, top}, {right, bottom}, color);
            };
            const float share = chart.width() / static_cast<float>(std::max<std::size_t>(1, points_.size()));
            if (points_.size() <= kSinglePoints && share >= 2 && x_ < 0) {
                for (std::size_t i = 0; i < points_.size(); ++i) {
                    const float x = chart.min.x + share * static_cast<float>(i);
                    bar(x + share * 0.1F, x + share * 0.9F, std::min(points_[i].y, 0.0),
                        std::max(points_[i].y, 0.0));
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
        const bool by_place = static_cast<Look>(look_) == Look::bars && x_ < 0;
        const float share = chart.width() / static_cast<float>(points_.size());
        const auto distance = [&](const PlotPoint& p, std::size_t i) {
            const float x = by_place ? chart.min.x + share * (static_cast<float>(i) + 0.5F)
                                     : static_cast<float>(chart.x.pixel(p.x));
            return std::hypot(x - mouse.x,
                              by_place ? 0.0F : static_cast<float>(chart.y.pixel(p.y)) - mouse.y);
        };
        std::size_t nearest = 0;
        for (std::size_t i = 1; i < points_.size(); ++i)
            if (distance(points_[i], i) < distance(points_[nearest], nearest)) nearest = i;
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
