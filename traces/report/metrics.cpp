// Metrics; see metric_fields() and metric_point_fields(). One metric alone is printed point by point.
#include "traces/analysis/training/metrics.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/print.h"

namespace shardscope::traces::report {
namespace {

using Json = nlohmann::ordered_json;

std::vector<analysis::PointOfCurve> all_points(const analysis::MetricsReport& report) {
    std::vector<analysis::PointOfCurve> rows;
    for (const analysis::MetricCurve& curve : report.curves) {
        for (const analysis::MetricPoint& point : curve.points) rows.push_back({curve, point});
    }
    return rows;
}

std::string reached_text(const analysis::ReachedLoss& reached) {
    if (!reached.point) return fmt::format("The loss did not reach {}.\n", reached.asked);
    std::string place;
    if (reached.point->step >= 0) place = fmt::format("at step {}", reached.point->step);
    if (reached.point->sample >= 0)
        place += fmt::format("{}{} samples", place.empty() ? "after " : " and ",
                             store::grouped(reached.point->sample));
    return fmt::format("Loss {} was reached {}{:.3f} s after the {} began.\n", reached.asked,
                       place.empty() ? place : place + ", ", static_cast<double>(reached.since_start) * 1e-9,
                       reached.has_steps ? "first step" : "capture");
}

std::string table_text(const analysis::MetricsReport& report, std::size_t width) {
    std::string text = report.reached ? reached_text(*report.reached) : "";
    if (report.curves.empty()) {
        return text + fmt::format(
                          "This trace has no {}. A program records one with a mark, "
                          "torch.cuda.nvtx.mark(\"metric loss=2.31 step=4\"), or a range of that name, "
                          "torch.profiler.record_function(...).\n",
                          report.one_metric ? "such metric" : "metrics");
    }
    if (!text.empty()) text += '\n';
    if (report.one_metric)
        return text + text_of(result_table(analysis::metric_point_fields(), all_points(report)), width);
    return text + text_of(result_table(analysis::metric_fields(), report.curves), width);
}

std::string json_text(const analysis::MetricsReport& report) {
    Json metrics = Json::array();
    for (const analysis::MetricCurve& curve : report.curves) {
        Json json = json_row(analysis::metric_fields(), curve);
        json["points"] = json_of(result_table(analysis::metric_point_fields(), points_of(curve)));
        metrics.push_back(std::move(json));
    }
    Json json = {{"metrics", std::move(metrics)}};
    if (report.reached) {
        const auto& reached = *report.reached;
        json["to_loss"] = {
            {"loss", reached.asked},
            {"step", reached.point && reached.point->step >= 0 ? Json(reached.point->step) : Json(nullptr)},
            {"seconds",
             reached.point ? Json(static_cast<double>(reached.since_start) * 1e-9) : Json(nullptr)}};
    }
    return json_line(json);
}

std::string csv_text(const analysis::MetricsReport& report) {
    return csv_of(result_table(analysis::metric_point_fields(), all_points(report)));
}

}  // namespace

std::string render(const analysis::MetricsReport& report, Format format, std::size_t width) {
    return render_as(report, format, width, table_text, json_text, csv_text);
}

}  // namespace shardscope::traces::report
