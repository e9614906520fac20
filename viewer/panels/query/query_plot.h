// Two columns of a query's result as a plot: points, a line or bars. Drawing layer (Dear ImGui); frame
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <imgui.h>

#include "viewer/panels/query/query_table.h"

namespace shardscope::viewer::draw {
struct Chart;
}

namespace shardscope::viewer::panels {

class QueryPlot {
  public:
    // Draws the choosers and the plot, as large as `size`. `order`: the rows in the table's order.
    void draw(const std::shared_ptr<const QueryTable>& table, const std::vector<std::uint32_t>& order,
              ImVec2 size);

  private:
    enum class Look : int { points, line, bars };
    void choose_columns(const QueryTable& table);
    void draw_choosers(const QueryTable& table);
    void refresh(const std::shared_ptr<const QueryTable>& table, const std::vector<std::uint32_t>& order,
                 int columns);
    void paint(const draw::Chart& chart) const;
    void draw_tip(const QueryTable& table, const draw::Chart& chart) const;

    int x_ = -1, y_ = -1;  // columns; x -1: the row's index
    int look_ = 0;
    // What was folded, and its source.
    std::shared_ptr<const QueryTable> seen_;
    std::vector<std::uint32_t> seen_order_;
    int seen_x_ = -2, seen_y_ = -2, seen_columns_ = 0;
    std::vector<PlotPoint> points_;
    std::vector<PlotColumn> folded_;
    PlotRange range_;
    double bar_ = 1;                          // bar_distance() of the points
    bool x_whole_ = false, y_whole_ = false;  // all of the points are whole numbers there
    PlotRange shown_range() const;
};

}  // namespace shardscope::viewer::panels
