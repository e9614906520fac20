// See use_lanes.h.
#include "traces/report/use_lanes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/core.h>

#include "traces/report/text_table.h"
#include "traces/report/use_text.h"
#include "traces/store/grouped.h"
#include "traces/store/number_list.h"

namespace shardscope::traces::report {

const std::string_view kLaneStyle = R"css(
.lanes{margin:.6rem 0}.lanes h3{display:flex;flex-wrap:wrap;gap:.1rem .8rem;align-items:baseline;margin:.9rem 0 .25rem}
.lanes h3 span{font-weight:400;font-size:.87rem;color:var(--dim)}
.dev{display:grid;grid-template-columns:8.5rem minmax(0,1fr) 4rem;gap:.6rem;align-items:center;margin:.12rem 0;font-size:.87rem;
font-variant-numeric:tabular-nums}
.dev>span:first-child{white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
.dev>span:last-child{text-align:right}
.dev i{font-style:normal;color:var(--dim)}
.lane{display:block;width:100%;height:1.6rem;background:var(--card);border-radius:.15rem}
.dense .lane{height:.7rem}.dense .dev{font-size:.75rem;line-height:1;margin:.05rem 0}
.lane .u{fill:var(--c4)}.lane .p{fill:var(--c4);opacity:.35}.lane .t{fill:var(--c3)}.lane .n{fill:var(--line)}
.use td{white-space:nowrap}.use td:first-child{min-width:0}
.axis{position:relative;height:1.3rem;border-top:1px solid var(--line);color:var(--dim);font-size:.8rem}
.axis span{position:absolute;top:.1rem;transform:translateX(-50%);white-space:nowrap}
.axis span::before{content:"";position:absolute;left:50%;top:-.35rem;height:.3rem;border-left:1px solid var(--dim)}
.axis span:first-child{transform:none}.axis span:first-child::before{left:0}
.legend .u{fill:var(--c4)}.legend .p{fill:var(--c4);opacity:.35}.legend .t{fill:var(--c3)}.legend .n{fill:var(--line)}
@media(max-width:40rem){.dev{grid-template-columns:4.6rem minmax(0,1fr) 3.1rem;gap:.35rem;font-size:.8rem}.dev i{display:none}
.axis span.odd{display:none}}
)css";

namespace {

constexpr int kHeight = 40, kThrottleHeight = 5;  // of a lane, in its own units
constexpr std::size_t kDense = 64;  // devices, from which on lanes are lower and have no highest

std::string ranks_text(const analysis::DeviceUse& device) {
    if (device.ranks.empty()) return {};
    return (device.ranks.size() == 1 ? "rank " : "ranks ") +
           store::number_list(std::vector<std::int64_t>(device.ranks.begin(), device.ranks.end()));
}

std::string percent_text(const std::optional<double>& percent) {
    return percent ? store::grouped(*percent, 1) + " %" : "-";
}

// An area from the bottom up to `value(point)`, from 0 to 100; neighbours that are equal are one piece.
template <class Value>
std::string area(const std::vector<analysis::LanePoint>& lane, Value value) {
    const auto y_of = [&](const analysis::LanePoint& point) {
        const double v = point.known ? std::clamp(static_cast<double>(value(point)), 0.0, 100.0) : 0.0;
        const int up = static_cast<int>(std::lround(v / 100 * kHeight));
        return kHeight - (v > 0 ? std::max(up, 1) : 0);
    };
    std::string path = fmt::format("M0 {}", kHeight);
    int y = kHeight;
    for (std::size_t i = 0; i < lane.size(); ++i) {
        const int next = y_of(lane[i]);
        if (next == y) continue;
        path += fmt::format("H{}V{}", i, next);
        y = next;
    }
    return path == fmt::format("M0 {}", kHeight) ? std::string()
                                                 : path + fmt::format("H{}V{}z", lane.size(), kHeight);
}

// Boxes where `holds(point)`.
template <class Holds>
std::string boxes(const std::vector<analysis::LanePoint>& lane, int from, int to, Holds holds) {
    std::string path;
    for (std::size_t i = 0; i < lane.size();) {
        std::size_t end = i;
        while (end < lane.size() && holds(lane[end])) ++end;
        if (end > i) path += fmt::format("M{} {}H{}V{}H{}z", i, from, end, to, i);
        i = std::max(end, i + 1);
    }
    return path;
}

std::string path_of(std::string_view kind, const std::string& path) {
    return path.empty() ? path : fmt::format("<path class=\"{}\" d=\"{}\"/>", kind, path);
}

// The content of a lane's picture: `lane.size()` wide, kHeight high.
std::string lane_paths(const std::vector<analysis::LanePoint>& lane, bool dense) {
    const auto mean = [](const analysis::LanePoint& p) { return p.mean; };
    const auto highest = [](const analysis::LanePoint& p) { return p.highest; };
    return path_of("n", boxes(lane, kHeight - 2, kHeight, [](const auto& p) { return !p.known; })) +
           (dense ? std::string() : path_of("p", area(lane, highest))) + path_of("u", area(lane, mean)) +
           path_of("t", boxes(lane, 0, kThrottleHeight, [](const auto& p) { return p.throttled >= 0.5F; }));
}

bool any_lane(const analysis::UtilizationReport& report) {
    return std::any_of(report.devices.begin(), report.devices.end(), [](const auto& d) {
        return std::any_of(d.lane.begin(), d.lane.end(), [](const auto& point) { return point.known; });
    });
}

// Whether some lane has it.
template <class Has>
bool any_point(const analysis::UtilizationReport& report, Has has) {
    return std::any_of(report.devices.begin(), report.devices.end(),
                       [&](const auto& d) { return std::any_of(d.lane.begin(), d.lane.end(), has); });
}

std::vector<std::pair<std::string_view, std::string>> legend_of(const analysis::UtilizationReport& report) {
    std::vector<std::pair<std::string_view, std::string>> entries = {{"u", "utilization, 0 to 100 %"}};
    if (report.devices.size() <= kDense) entries.emplace_back("p", "its highest sample");
    if (any_point(report, [](const auto& p) { return p.throttled >= 0.5F; }))
        entries.emplace_back("t", "clocks held down");
    if (any_point(report, [](const auto& p) { return !p.known; })) entries.emplace_back("n", "not sampled");
    return entries;
}

// The devices of one host, which are neighbours.
struct HostLanes {
    const analysis::HostUse* host = nullptr;
    std::size_t first = 0, last = 0;
};
std::vector<HostLanes> by_host(const analysis::UtilizationReport& report) {
    std::vector<HostLanes> hosts;
    for (std::size_t i = 0; i < report.devices.size();) {
        HostLanes lanes{nullptr, i, i};
        while (lanes.last < report.devices.size() &&
               report.devices[lanes.last].host == report.devices[i].host)
            ++lanes.last;
        for (const analysis::HostUse& host : report.hosts)
            if (host.host == report.devices[i].host) lanes.host = &host;
        hosts.push_back(lanes);
        i = lanes.last;
    }
    return hosts;
}

std::string host_name(const HostLanes& lanes, const Redactor& redact) {
    if (lanes.host == nullptr || lanes.host->host.empty()) return "unknown host";
    return redact.text(lanes.host->host);
}

std::string host_figures(const HostLanes& lanes) {
    std::string text =
        store::counted(static_cast<std::int64_t>(lanes.last - lanes.first), "device", "devices");
    if (lanes.host == nullptr) return text;
    if (lanes.host->utilization_percent) text += " · " + percent_text(lanes.host->utilization_percent);
    if (lanes.host->unused_devices > 0) text += fmt::format(" · {} unused", lanes.host->unused_devices);
    if (lanes.host->energy_j) text += " · " + energy_text(*lanes.host->energy_j);
    return text;
}

// "GPU 3 · rank 1 · NVIDIA H100 · 61.2 % · 3.1 % idle · 512 W": a lane's tooltip.
std::string device_text(const analysis::DeviceUse& device) {
    std::string text = device.title();
    if (!device.ranks.empty()) text += " · " + ranks_text(device);
    if (!device.name.empty()) text += " · " + device.name;
    if (device.utilization_percent) text += " · " + percent_text(device.utilization_percent);
    if (device.idle_percent) text += fmt::format(" · idle {}", percent_text(device.idle_percent));
    if (device.power_watts) text += fmt::format(" · {} W", store::grouped(*device.power_watts, 0));
    if (device.energy_j) text += " · " + energy_text(*device.energy_j);
    if (device.throttled_percent.value_or(0) > 0) text += " · held down by " + device.throttled_by;
    return text;
}

}  // namespace

std::vector<TimeMark> time_marks(double seconds, std::size_t most) {
    struct Scale {
        double unit;
        std::string_view name;
    };
    constexpr std::array kScales = {Scale{1e-3, "ms"}, Scale{1, "s"}, Scale{60, "min"}, Scale{3600, "h"},
                                    Scale{86400, "d"}};
    std::vector<TimeMark> marks = {{0, "0"}};
    if (!(seconds > 0) || !std::isfinite(seconds) || most == 0) return marks;
    const Scale* scale = kScales.data();
    for (const Scale& each : kScales)
        if (seconds >= 2 * each.unit) scale = &each;
    // The shortest of 1, 2, 5, 10, 20 … units that makes few enough marks.
    double step = 1e-6;
    for (std::size_t i = 0; seconds / scale->unit / step > static_cast<double>(most); ++i)
        step *= i % 3 == 1 ? 2.5 : 2;
    for (double at = step; at * scale->unit <= seconds * (1 + 1e-9); at += step) {
        marks.push_back({std::min(at * scale->unit / seconds, 1.0),
                         fmt::format("{:.6g} {}", std::round(at * 1e6) / 1e6, scale->name)});
    }
    return marks;
}

std::string html_use_lanes(const analysis::UtilizationReport& report, const Redactor& redact) {
    if (!any_lane(report)) return {};
    const bool dense = report.devices.size() > kDense;
    std::string html = "<ul class=\"legend\">";
    for (const auto& [kind, text] : legend_of(report))
        html += fmt::format(
            "<li><svg viewBox=\"0 0 10 10\"><rect width=\"10\" height=\"10\" rx=\"2\" "
            "class=\"{}\"/></svg>{}</li>",
            kind, text);
    html += "</ul>\n";
    html += dense ? "<div class=\"lanes dense\">\n" : "<div class=\"lanes\">\n";
    for (const HostLanes& lanes : by_host(report)) {
        html += fmt::format("<h3>{}<span>{}</span></h3>\n", host_name(lanes, redact), host_figures(lanes));
        for (std::size_t i = lanes.first; i < lanes.last; ++i) {
            const analysis::DeviceUse& device = report.devices[i];
            const std::string ranks = ranks_text(device);
            const std::string text = redact.text(device_text(device));
            html += fmt::format(
                "<div class=\"dev\" title=\"{0}\"><span>{1}{2}</span><svg class=\"lane\" viewBox=\"0 0 {3} "
                "{4}\" "
                "preserveAspectRatio=\"none\" role=\"img\" "
                "aria-label=\"{0}\">{5}</svg><span{7}>{6}</span></div>\n",
                text, html_escaped(device.title()),
                ranks.empty() ? "" : " <i>" + html_escaped(ranks) + "</i>",
                std::max<std::size_t>(device.lane.size(), 1), kHeight, lane_paths(device.lane, dense),
                percent_text(device.utilization_percent), device.unused() ? " class=\"bad\"" : "");
        }
    }
    html += "<div class=\"dev\"><span></span><div class=\"axis\">";
    std::size_t n = 0;
    for (const TimeMark& mark : time_marks(report.job.seconds, 8)) {
        // The last one would stand out of the page.
        if (mark.place > 0.97) continue;
        html += fmt::format("<span{} style=\"left:{:.2f}%\">{}</span>", n++ % 2 == 1 ? " class=\"odd\"" : "",
                            100 * mark.place, mark.text);
    }
    return html + "</div><span></span></div>\n</div>\n";
}

std::string svg_use_lanes(const analysis::UtilizationReport& report, std::string_view title,
                          const Redactor& redact) {
    if (!any_lane(report)) return {};
    constexpr int kWide = 1200, kLeft = 190, kRight = 100, kTop = 62;
    const std::size_t devices = report.devices.size();
    const bool dense = devices > kDense;
    const int height = dense ? 6 : 22, gap = dense ? 1 : 4, lane_width = kWide - kLeft - kRight;
    std::string rows;
    int y = kTop;
    for (const HostLanes& lanes : by_host(report)) {
        rows += fmt::format("<text x=\"16\" y=\"{}\" class=\"h\">{} <tspan class=\"d\">{}</tspan></text>\n",
                            y + 16, host_name(lanes, redact), host_figures(lanes));
        y += 24;
        for (std::size_t i = lanes.first; i < lanes.last; ++i) {
            const analysis::DeviceUse& device = report.devices[i];
            const std::string ranks = ranks_text(device);
            if (!dense) {
                rows += fmt::format(
                    "<text x=\"16\" y=\"{0}\">{1} <tspan class=\"d\">{2}</tspan></text><text x=\"{3}\" "
                    "y=\"{0}\" "
                    "class=\"e\">{4}</text>\n",
                    y + 16, html_escaped(device.title()), html_escaped(shortened(ranks, 16)), kWide - 16,
                    percent_text(device.utilization_percent));
            }
            rows += fmt::format(
                "<svg x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" viewBox=\"0 0 {} {}\" "
                "preserveAspectRatio=\"none\"><title>{}</title><rect class=\"b\" width=\"100%\" "
                "height=\"100%\"/>{}</svg>\n",
                kLeft, y, lane_width, height, std::max<std::size_t>(device.lane.size(), 1), kHeight,
                redact.text(device_text(device)), lane_paths(device.lane, dense));
            y += height + gap;
        }
    }
    std::string axis;
    for (const TimeMark& mark : time_marks(report.job.seconds, 10)) {
        const double x = kLeft + mark.place * lane_width;
        axis += fmt::format(
            "<path class=\"g\" d=\"M{0:.1f} {1}V{2}\"/><text x=\"{0:.1f}\" y=\"{3}\" "
            "class=\"m\">{4}</text>\n",
            x, kTop, y + 4, y + 20, mark.text);
    }
    std::string legend;
    double x = kLeft;
    for (const auto& [kind, text] : legend_of(report)) {
        legend += fmt::format(
            "<rect class=\"{0}\" x=\"{1}\" y=\"40\" width=\"12\" height=\"12\" rx=\"2\"/><text x=\"{2}\" "
            "y=\"50\" "
            "class=\"d\">{3}</text>\n",
            kind, x, x + 18, text);
        x += 40 + 7.2 * static_cast<double>(text.size());
    }
    return fmt::format(
        R"svg(<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}" role="img">
<title>{2}</title>
<style>
text{{font:13px system-ui,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;fill:#1d2430}}
.big{{font-size:17px;font-weight:600}}.h{{font-weight:600}}.d,.m{{fill:#5d6878;font-weight:400}}.m{{text-anchor:middle;font-size:12px}}
.e{{text-anchor:end}}.back{{fill:#fff}}.b{{fill:#f0f2f5}}.g{{stroke:#dfe3e8;stroke-width:1}}
.u{{fill:#5ea867}}.p{{fill:#5ea867;opacity:.35}}.t{{fill:#d1495b}}.n{{fill:#b4bcc8}}
@media(prefers-color-scheme:dark){{text{{fill:#e4e8ee}}.d,.m{{fill:#9aa5b5}}.back{{fill:#14181f}}.b{{fill:#1d232d}}.g{{stroke:#333c4a}}
.u,.p{{fill:#7cc085}}.t{{fill:#e06c7c}}.n{{fill:#6a7482}}}}
</style>
<rect class="back" width="100%" height="100%"/>
<text x="16" y="26" class="big">{2}</text>
{3}{4}{5}</svg>
)svg",
        kWide, y + 32, redact.text(title), legend, axis, rows);
}

}  // namespace shardscope::traces::report
