// Bus bandwidth over size in the HTML report: the curves with their spread and bound, both axes logarithmic.
#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/core.h>

#include "traces/report/html_parts.h"
#include "traces/report/print.h"

namespace shardscope::traces::report {

namespace {

constexpr std::size_t kCurvesShown = 8;  // as many as there are colours

// The curves that moved most, in the order of the report.
std::vector<const analysis::BandwidthCurve*> shown_curves(const analysis::BusBandwidthReport& report) {
    std::vector<const analysis::BandwidthCurve*> curves;
    for (const analysis::BandwidthCurve& curve : report.curves) curves.push_back(&curve);
    std::stable_sort(curves.begin(), curves.end(),
                     [](const auto* a, const auto* b) { return a->bytes > b->bytes; });
    curves.resize(std::min(curves.size(), kCurvesShown));
    std::sort(curves.begin(), curves.end());  // they lie in one vector
    return curves;
}

struct Extent {
    double least_bytes = 0, most_bytes = 0;  // powers of two
    double least_gbps = 0, most_gbps = 0;    // powers of ten
};

Extent extent_of(const std::vector<const analysis::BandwidthCurve*>& curves) {
    double bytes_from = INFINITY, bytes_to = 0, gbps_from = INFINITY, gbps_to = 0;
    for (const analysis::BandwidthCurve* curve : curves) {
        for (const analysis::BandwidthPoint& point : curve->points) {
            bytes_from = std::min(bytes_from, static_cast<double>(point.bytes));
            bytes_to = std::max(bytes_to, static_cast<double>(point.bytes));
            gbps_from = std::min(gbps_from, point.low_gbps);
            gbps_to = std::max({gbps_to, point.high_gbps, curve->bound.gbps});
        }
    }
    Extent extent{std::exp2(std::floor(std::log2(bytes_from))), std::exp2(std::ceil(std::log2(bytes_to))),
                  std::pow(10, std::floor(std::log10(gbps_from))),
                  std::pow(10, std::ceil(std::log10(gbps_to)))};
    if (extent.most_bytes <= extent.least_bytes) {
        extent.least_bytes /= 2;
        extent.most_bytes *= 2;
    }
    if (extent.most_gbps <= extent.least_gbps) extent.most_gbps = 10 * extent.least_gbps;
    return extent;
}

}  // namespace

std::string bus_bandwidth_svg(const analysis::BusBandwidthReport& report, int width, int height) {
    const std::vector<const analysis::BandwidthCurve*> curves = shown_curves(report);
    if (curves.empty()) return {};
    constexpr int kLeft = 70, kRight = 16, kTop = 24, kBottom = 26;
    const int plot_width = width - kLeft - kRight, plot_height = height - kTop - kBottom;
    const Extent extent = extent_of(curves);
    const double octaves = std::log2(extent.most_bytes / extent.least_bytes);
    const double decades = std::log10(extent.most_gbps / extent.least_gbps);
    const auto x_of = [&](double bytes) {
        return kLeft + plot_width * std::log2(bytes / extent.least_bytes) / octaves;
    };
    const auto y_of = [&](double gbps) {
        const double part = std::log10(std::max(gbps, extent.least_gbps) / extent.least_gbps) / decades;
        return kTop + plot_height * (1 - part);
    };
    std::string svg = fmt::format(
        "<svg class=\"curve\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"Bus bandwidth over "
        "size\">\n",
        width, height);
    const auto to_svg = std::back_inserter(svg);
    for (double gbps = extent.least_gbps; gbps <= extent.most_gbps * 1.001; gbps *= 10) {
        const double y = y_of(gbps);
        fmt::format_to(to_svg,
                       "<line class=\"grid\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/><text "
                       "x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5:.6g}</text>\n",
                       kLeft, width - kRight, y, kLeft - 6, y + 4, gbps);
    }
    fmt::format_to(to_svg, "<text x=\"{}\" y=\"12\" text-anchor=\"end\">GB/s</text>\n", kLeft - 6);
    const double tick = std::max(1.0, std::ceil(octaves * 64 / plot_width));  // a label has 64 pixels
    for (double octave = 0; octave <= octaves + 0.001; octave += tick) {
        const double bytes = extent.least_bytes * std::exp2(octave), x = x_of(bytes);
        fmt::format_to(to_svg,
                       "<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/><text "
                       "x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"{4}\">{5}</text>\n",
                       x, kTop, kTop + plot_height, height - 8, x > width - 45 ? "end" : "middle",
                       analysis::size_text(static_cast<std::int64_t>(bytes)));
    }
    for (std::size_t c = 0; c < curves.size(); ++c) {
        const analysis::BandwidthCurve& curve = *curves[c];
        std::string line, forth, back;
        for (const analysis::BandwidthPoint& point : curve.points) {
            const double x = x_of(static_cast<double>(point.bytes));
            line += fmt::format("{}{:.1f} {:.1f}", line.empty() ? "M" : "L", x, y_of(point.busbw_gbps));
            forth += fmt::format("{}{:.1f} {:.1f}", forth.empty() ? "M" : "L", x, y_of(point.high_gbps));
            back = fmt::format("L{:.1f} {:.1f}", x, y_of(point.low_gbps)) + back;
        }
        fmt::format_to(to_svg, "<path class=\"c{}\" style=\"opacity:.2\" d=\"{}{}Z\"/>\n", c, forth, back);
        fmt::format_to(to_svg, "<path style=\"fill:none;stroke:var(--c{})\" stroke-width=\"2\" d=\"{}\"/>\n",
                       c, line);
        for (const analysis::BandwidthPoint& point : curve.points) {
            fmt::format_to(
                to_svg,
                "<circle class=\"c{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"><title>{}: {}, {} GB/s ({} to "
                "{}), {} µs, {}</title></circle>\n",
                c, x_of(static_cast<double>(point.bytes)), y_of(point.busbw_gbps),
                html_escaped(curve_name(curve)), analysis::size_text(point.bytes),
                store::grouped(point.busbw_gbps, 2), store::grouped(point.low_gbps, 2),
                store::grouped(point.high_gbps, 2), us(point.median_us),
                store::counted(point.count, "time", "times"));
        }
        if (curve.bound.gbps <= 0) continue;
        const double y = y_of(curve.bound.gbps);
        fmt::format_to(
            to_svg,
            "<line style=\"stroke:var(--c{0})\" stroke-dasharray=\"5 4\" x1=\"{1:.1f}\" x2=\"{2:.1f}\" "
            "y1=\"{3:.1f}\" y2=\"{3:.1f}\"><title>{4}: at most {5} GB/s, {6}</title></line>\n",
            c, x_of(static_cast<double>(curve.points.front().bytes)),
            x_of(static_cast<double>(curve.points.back().bytes)), y, html_escaped(curve_name(curve)),
            store::grouped(curve.bound.gbps, 2), html_escaped(curve.bound.of));
    }
    return svg + "</svg>\n";
}

std::string html_bus_bandwidth(const ReportedRun& run, const Redactor& redact) {
    const std::vector<const analysis::BandwidthCurve*> curves = shown_curves(run.bus_bandwidth);
    if (curves.empty()) return {};
    std::string html = "<h3>Bus bandwidth over size</h3>\n<div class=\"wide\">" +
                       bus_bandwidth_svg(run.bus_bandwidth, 1000, 320) + "</div><div class=\"narrow\">" +
                       bus_bandwidth_svg(run.bus_bandwidth, 380, 260) + "</div>";
    std::vector<std::pair<std::string, int>> names;
    bool bounded = false;
    for (const analysis::BandwidthCurve* curve : curves) {
        names.emplace_back(redact.text(curve_name(*curve)), static_cast<int>(names.size()));
        bounded = bounded || curve->bound.gbps > 0;
    }
    html += legend(names);
    html += fmt::format(
        "<p class=\"dim small\">Each collective counts once, by its shortest duration among the ranks: the "
        "median, and the quartiles around it.{}{}</p>\n",
        bounded ? " Dashed: what memory, links or adapters allow." : "",
        curves.size() < run.bus_bandwidth.curves.size()
            ? fmt::format(" Of {} curves, those that moved most.", run.bus_bandwidth.curves.size())
            : "");
    return html + folded("Sizes", html_of(chosen(result_table(analysis::bandwidth_fields(),
                                                              bandwidth_rows(run.bus_bandwidth)),
                                                 {{"operation"},
                                                  {"axis"},
                                                  {"ranks"},
                                                  {"where"},
                                                  {"size"},
                                                  {"count"},
                                                  {"median_us"},
                                                  {"algbw_gbps"},
                                                  {"busbw_gbps"},
                                                  {"low_gbps"},
                                                  {"high_gbps"},
                                                  {"bound_gbps"}}),
                                          redact));
}

}  // namespace shardscope::traces::report
