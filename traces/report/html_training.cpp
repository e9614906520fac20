// Training in the HTML report: what each metric came to, with a small curve over its steps, and where the run
// diverged.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <fmt/core.h>

#include "traces/analysis/training/metrics.h"
#include "traces/report/html_parts.h"
#include "traces/report/print.h"
#include "traces/schema/metric_kinds.h"
#include "traces/store/grouped.h"

namespace shardscope::traces::report {

namespace {

constexpr int kSparkWidth = 160, kSparkHeight = 34, kSparkMargin = 2;  // of a curve, in pixels
constexpr std::size_t kSparksShown = 40;

double place_of(const analysis::MetricPoint& point, std::size_t i, bool has_steps) {
    return has_steps ? static_cast<double>(point.step) : static_cast<double>(i);
}

// A line over the steps or, if a value has none, over the values in their order. Where several lie in one
// column of pixels it goes from the lowest to the highest; what is not finite breaks it. `diverged`: a dashed
// line at this step.
std::string spark_svg(const analysis::MetricCurve& curve, std::optional<std::int64_t> diverged) {
    const std::vector<analysis::MetricPoint>& points = curve.points;
    const bool has_steps = points.front().step >= 0;
    const double first = place_of(points.front(), 0, has_steps),
                 last = place_of(points.back(), points.size() - 1, has_steps);
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (const analysis::MetricPoint& point : points) {
        if (!std::isfinite(point.value)) continue;
        low = std::min(low, point.value);
        high = std::max(high, point.value);
    }
    if (!(last > first) || low > high) return {};
    const auto x = [&](double at) {
        return kSparkMargin + (at - first) / (last - first) * (kSparkWidth - 2 * kSparkMargin);
    };
    const auto y = [&](double value) {  // halves, so that the difference is finite
        const double share = high > low ? (value / 2 - low / 2) / (high / 2 - low / 2) : 0.5;
        return kSparkHeight - kSparkMargin - share * (kSparkHeight - 2 * kSparkMargin);
    };
    std::string path;
    bool drawn = false;  // the line has a point to go on from
    for (std::size_t i = 0; i < points.size();) {
        const double at = x(place_of(points[i], i, has_steps));
        double least = std::numeric_limits<double>::infinity(), most = -least, latest = least;
        bool breaks = false;
        for (; i < points.size() && x(place_of(points[i], i, has_steps)) < std::floor(at) + 1; ++i) {
            const double value = points[i].value;
            breaks |= !std::isfinite(value);
            if (!std::isfinite(value)) continue;
            least = std::min(least, value);
            most = std::max(most, value);
            latest = value;
        }
        if (least <= most) {
            path += fmt::format("{}{:.1f} {:.1f}", drawn ? "L" : "M", at, y(most));
            if (most > least) path += fmt::format("V{:.1f}V{:.1f}", y(least), y(latest));
            drawn = true;
        }
        drawn &= !breaks;
    }
    std::string mark;
    if (diverged && has_steps && static_cast<double>(*diverged) >= first &&
        static_cast<double>(*diverged) <= last) {
        mark = fmt::format("<path class=\"peak\" d=\"M{:.1f} 0V{}\"/>", x(static_cast<double>(*diverged)),
                           kSparkHeight);
    }
    return fmt::format(
        "<svg class=\"spark\" viewBox=\"0 0 {} {}\" width=\"{}\" height=\"{}\" aria-hidden=\"true\">"
        "<path class=\"line\" d=\"{}\"/>{}</svg>",
        kSparkWidth, kSparkHeight, kSparkWidth, kSparkHeight, path, mark);
}

// A value of a metric with its unit, where its name tells one.
std::string value_text(std::string_view metric, double value) {
    if (metric.ends_with("_bytes")) return store::grouped(value / (1 << 20), 1) + " MiB";
    if (std::abs(value) >= 1e4 && std::abs(value) < 1e15) return store::grouped(value, 0);
    return fmt::format("{:.6g}", value);
}

std::string cell_of(const analysis::Field<analysis::MetricCurve>& field, const analysis::MetricCurve& curve) {
    const store::Cell cell = field.of(curve);
    const double* value = std::get_if<double>(&cell);
    return value != nullptr ? value_text(curve.name, *value) : cell_text(field, cell);
}

// A metric's name, which may be broken after an underscore, over how the ranks' values became the job's.
std::string name_cell(const analysis::MetricCurve& curve, const Redactor& redact) {
    std::string name;
    for (const char c : redact.text(curve.name)) {
        name += c;
        if (c == '_') name += "<wbr>";
    }
    const std::string_view words =
        curve.rank < 0 ? schema::words_of(schema::reduction_of(curve.name)) : std::string_view();
    return words.empty() ? name : fmt::format("{}<div class=\"dim small\">{}</div>", name, words);
}

}  // namespace

std::string html_training(const ReportedRun& run, const Redactor& redact) {
    std::vector<const analysis::MetricCurve*> shown;
    for (const analysis::MetricCurve& curve : run.metrics.curves) {
        // The job's curve stands for those of its ranks.
        const analysis::MetricCurve* jobs = run.metrics.find(curve.name);
        if (curve.rank >= 0 && jobs->rank < 0) continue;
        shown.push_back(&curve);
    }
    if (shown.empty()) return {};
    std::string html;
    if (run.diverged)
        html += fmt::format("<p class=\"bad\">The run diverged from step {} on (counted from 0).</p>\n",
                            *run.diverged);
    const bool by_rank = std::any_of(shown.begin(), shown.end(), [](const auto* c) { return c->rank >= 0; });
    std::vector<std::string> header = {"Metric", "Curve"};
    std::vector<analysis::Field<analysis::MetricCurve>> fields;  // of the columns after those
    for (const auto& field : analysis::metric_fields().subspan(1)) {
        if (field.key != "over_ranks" && (field.key != "rank" || by_rank)) fields.push_back(field);
    }
    for (const auto& field : fields) header.push_back(html_escaped(header_text(field)));
    HtmlTable table(header, 2);
    for (std::size_t i = 0; i < std::min(shown.size(), kSparksShown); ++i) {
        std::vector<std::string> cells = {name_cell(*shown[i], redact), spark_svg(*shown[i], run.diverged)};
        for (const auto& field : fields) cells.push_back(redact.text(cell_of(field, *shown[i])));
        table.row(cells);
    }
    html += table.html();
    if (shown.size() > kSparksShown)
        html += fmt::format("<p class=\"dim small\">{} more are not shown; the verb metrics lists all.</p>\n",
                            shown.size() - kSparksShown);
    return html;
}

}  // namespace shardscope::traces::report
