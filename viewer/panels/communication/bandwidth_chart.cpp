// See bandwidth_chart.h.
#include "viewer/panels/communication/bandwidth_chart.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <imgui.h>

#include "traces/store/grouped.h"
#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/panels/communication/bandwidth_rows.h"
#include "viewer/theme/theme.h"
#include "viewer/widgets/segmented.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::BandwidthCurve;
using traces::analysis::BandwidthPoint;
using traces::analysis::BusBandwidthReport;

std::string gbps(double value) {
    return draw::format_decimal(value, value < 10 ? 3 : 1) + " GB/s";
}

struct Near {
    std::size_t curve = 0, point = 0;
};

class Curves {
  public:
    Curves(const BusBandwidthReport& report, const draw::Chart& chart)
        : report_(report), chart_(chart), font_(ImGui::GetFontSize()) {}

    void draw() {
        chart_.draw->PushClipRect(chart_.min, chart_.max, true);
        for (std::size_t c = 0; c < report_.curves.size(); ++c) curve(c);
        chart_.draw->PopClipRect();
        if (chart_.hovered && near_) tip(*near_);
    }

  private:
    ImVec2 at(double bytes, double rate) const {
        return {static_cast<float>(chart_.x.pixel(std::log10(bytes))),
                static_cast<float>(chart_.y.pixel(rate))};
    }

    void curve(std::size_t c) {
        const BandwidthCurve& curve = report_.curves[c];
        const ImU32 color = theme::run_color(static_cast<int>(c));
        if (curve.bound.gbps > 0) {
            // Dashed: nothing is above it.
            const auto y = static_cast<float>(chart_.y.pixel(curve.bound.gbps));
            for (float x = chart_.min.x; y >= chart_.min.y && x < chart_.max.x; x += font_ * 0.7F)
                chart_.draw->AddLine({x, y}, {x + font_ * 0.4F, y}, draw::faded(color, 0.8F), 1.5F);
        }
        std::optional<ImVec2> before;
        for (std::size_t p = 0; p < curve.points.size(); ++p) {
            const BandwidthPoint& point = curve.points[p];
            if (point.bytes <= 0) continue;
            const ImVec2 here = at(static_cast<double>(point.bytes), point.busbw_gbps);
            if (before) chart_.draw->AddLine(*before, here, color, 2);
            before = here;
            const float low = at(static_cast<double>(point.bytes), point.low_gbps).y;
            const float high = at(static_cast<double>(point.bytes), point.high_gbps).y;
            if (low - high > 1)
                chart_.draw->AddLine({here.x, low}, {here.x, high}, draw::faded(color, 0.5F), 3);
            chart_.draw->AddCircleFilled(here, font_ * 0.22F, color, 12);
            const ImVec2 mouse = ImGui::GetIO().MousePos;
            const float far = std::hypot(mouse.x - here.x, mouse.y - here.y);
            if (far > std::min(distance_, font_ * 1.5F)) continue;
            distance_ = far;
            near_ = Near{c, p};
        }
    }

    void tip(const Near& near) const {
        const BandwidthCurve& curve = report_.curves[near.curve];
        const BandwidthPoint& point = curve.points[near.point];
        draw::begin_tip(fmt::format("{}: {}", curve_name(curve), traces::analysis::size_text(point.bytes)));
        draw::tip_row("Bus bandwidth", gbps(point.busbw_gbps),
                      theme::run_color(static_cast<int>(near.curve)));
        draw::tip_row("quartiles", fmt::format("{} to {}", gbps(point.low_gbps), gbps(point.high_gbps)));
        draw::tip_row("Algorithm bandwidth", gbps(point.algbw_gbps));
        draw::tip_row("Transfer", draw::format_duration(point.median_us * 1e3));
        draw::tip_row("Collectives", draw::format_count(point.count));
        if (curve.bound.gbps > 0)
            draw::tip_row("Bound", fmt::format("{}, {}", gbps(curve.bound.gbps), curve.bound.of));
        draw::end_tip();
    }

    const BusBandwidthReport& report_;
    const draw::Chart& chart_;
    float font_, distance_ = 1e9F;
    std::optional<Near> near_;
};

}  // namespace

void BandwidthChart::draw(const std::shared_ptr<const BusBandwidthReport>& report) {
    const float font = ImGui::GetFontSize();
    std::vector<draw::LegendItem> labels;
    for (std::size_t c = 0; c < report->curves.size(); ++c)
        labels.push_back({curve_name(report->curves[c]), theme::run_color(static_cast<int>(c))});
    draw::legend(labels);
    draw::text_dim(
        "Bus bandwidth in GB/s over the size of the full buffer: median, quartiles; dashed: its bound");
    const std::string beyond = bounds_beyond(*report);
    if (!beyond.empty()) draw::note(beyond);
    const float height = std::max(font * 12, ImGui::GetContentRegionAvail().y * 0.55F);
    draw_curves(*report, height);
    static constexpr std::string_view kTables[] = {"By size", "By pair of ranks"};
    if (!report->pairs.empty()) widgets::segmented("collectives.bandwidth.by", kTables, table_);
    const std::shared_ptr<const void> source = report;
    if (table_ == 1 && !report->pairs.empty()) {
        const auto model = pairs_.of(source, "pairs", [&] { return pair_bandwidth_table(*report); });
        tables::draw_table("collectives.pairs", model, pairs_state_,
                           {.filter = false, .name = "pairs of ranks"});
        return;
    }
    const auto model = rows_.of(source, "sizes", [&] { return bandwidth_table(*report); });
    tables::draw_table("collectives.bandwidth", model, rows_state_,
                       {.filter = false, .name = "bus bandwidth"});
}

void BandwidthChart::draw_curves(const BusBandwidthReport& report, float height) {
    const BandwidthAxes axes = bandwidth_axes(report);
    const draw::Chart chart = draw::begin_chart("bandwidth", {ImGui::GetContentRegionAvail().x, height},
                                                {.x_low = axes.x_low,
                                                 .x_high = axes.x_high,
                                                 .y_high = axes.y_high,
                                                 .x_unit = draw::AxisUnit::bytes,
                                                 .y_unit = draw::AxisUnit::number,
                                                 .x_log = true});
    std::size_t points = 0;
    for (const BandwidthCurve& curve : report.curves) points += curve.points.size();
    draw::items::place(
        "collectives.chart", chart.min, chart.max,
        fmt::format(
            "{}, {}",
            traces::store::counted(static_cast<std::int64_t>(report.curves.size()), "curve", "curves"),
            traces::store::counted(static_cast<std::int64_t>(points), "point", "points")));
    Curves(report, chart).draw();
}

}  // namespace shardscope::viewer::panels
