// One metric of training on a card: the curves of the runs, what the mouse points at, and where the profile
// is. Drawing layer (Dear ImGui); frame thread only.
//
// For scripts: "training.chart.<metric>"; at the cursor, for the n-th of the shown runs
// "training.value.<metric>.<n>", "training.smooth.<metric>.<n>" and "training.step.<metric>.<n>".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <imgui.h>

#include "viewer/draw/chart.h"
#include "viewer/panels/compare/compare_tables.h"
#include "viewer/panels/training/training_rows.h"

namespace shardscope::viewer::panels {

class TrainingCard {
  public:
    struct Input {
        const MetricChart* chart = nullptr;
        std::size_t version = 0;         // of the charts: another one, other curves
        std::span<const RunHead> heads;  // by run
        Over over = Over::steps;
        XRange x;
        bool log = false;
        std::optional<double> cursor;  // x of the mouse on another card
        std::size_t active = 0;        // the run whose trace is active
        std::optional<double> step;    // x of its step that other panels' cursor is in
    };
    struct Picked {
        std::size_t run = 0;
        traces::analysis::MetricPoint point;
    };
    struct Done {
        std::optional<double> cursor;  // x of the mouse
        std::optional<Picked> picked;  // by a click
        std::optional<XRange> zoom;    // by a drag
    };
    Done draw(const Input& input, ImVec2 size);

  private:
    struct Folded {
        std::vector<draw::PlotColumn> raw, smooth;
        std::vector<ColumnsWithoutNumber> lost;
    };
    void refresh(const Input& input, const MetricLook& look, int columns);
    void paint(const Input& input, const draw::Chart& chart) const;
    void paint_points(const RunCurve& curve, const draw::Chart& chart, ImU32 color) const;
    void paint_profile(const Input& input, const draw::Chart& chart) const;
    void paint_cursor(const Input& input, const MetricLook& look, const draw::Chart& chart, double x,
                      bool tip) const;
    float y_pixel(const draw::Chart& chart, double y) const;

    std::size_t version_ = 0;
    XRange x_;
    bool wanted_log_ = false, log_ = false;
    int columns_ = 0;
    bool any_ = false;  // whether a value is in sight
    draw::PlotRange range_;
    std::vector<Folded> folded_;  // by curve
};

}  // namespace shardscope::viewer::panels
