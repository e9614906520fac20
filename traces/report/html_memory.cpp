// Memory in the HTML report: the curve, the peak by category, and what was allocated at the peak.
#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include <fmt/core.h>

#include "traces/report/html_parts.h"
#include "traces/report/memory_parts.h"
#include "traces/report/print.h"

namespace shardscope::traces::report {

namespace {

constexpr std::size_t kHoldersShown = 10;
constexpr double kMegabyte = 1 << 20;

// "unsharded parameters": separate words, so that a line can break between them.
std::string category_name(std::size_t category) {
    std::string words(schema::kMemoryCategoryNames[category]);
    std::replace(words.begin(), words.end(), '_', ' ');
    return words;
}

struct MemoryColumn {  // in pixels
    analysis::MemoryPoint highest;
    std::int64_t lowest = 0;
};

// A state counts in every column that it spans.
std::vector<MemoryColumn> columns_of(const std::vector<analysis::MemoryPoint>& curve, std::int64_t from,
                                     std::int64_t to, int width) {
    std::vector<MemoryColumn> columns(static_cast<std::size_t>(width));
    const double ns_per_column = static_cast<double>(to - from) / width;
    const auto column_at = [&](std::int64_t time) {
        return std::clamp(static_cast<int>(static_cast<double>(time - from) / ns_per_column), 0, width - 1);
    };
    analysis::MemoryPoint now = curve.front();
    int last = -1;  // the last column that has a state
    const auto enter = [&](int column) {
        for (int c = last + 1; c <= column; ++c) columns[static_cast<std::size_t>(c)] = {now, now.total};
        last = std::max(last, column);
    };
    for (const analysis::MemoryPoint& point : curve) {
        if (point.time > to) break;
        const int column = column_at(point.time);
        enter(column);
        now = point;
        MemoryColumn& here = columns[static_cast<std::size_t>(column)];
        if (now.total > here.highest.total) here.highest = now;
        here.lowest = std::min(here.lowest, now.total);
    }
    enter(width - 1);
    return columns;
}

// The SVG path along the tops of one-pixel columns, from the left or from the right end. Neighbours of equal
// height share one line.
std::string steps_right(const std::vector<double>& tops, int left) {
    std::string path;
    for (std::size_t x = 0; x < tops.size(); ++x) {
        const bool last = x + 1 == tops.size();
        if (!last && std::abs(tops[x + 1] - tops[x]) < 0.05) continue;
        path += fmt::format("H{}", left + static_cast<int>(x) + 1);
        if (!last) path += fmt::format("V{:.1f}", tops[x + 1]);
    }
    return path;
}

std::string steps_left(const std::vector<double>& tops, int left) {
    std::string path = fmt::format("V{:.1f}", tops.back());
    for (std::size_t x = tops.size(); x-- > 0;) {
        if (x > 0 && std::abs(tops[x - 1] - tops[x]) < 0.05) continue;
        path += fmt::format("H{}", left + static_cast<int>(x));
        if (x > 0) path += fmt::format("V{:.1f}", tops[x - 1]);
    }
    return path;
}

// 1, 2 or 5 times a power of ten, such that about `count` steps fill `most`.
double nice_step(double most, int count) {
    const double rough = most / count;
    const double power = std::pow(10.0, std::floor(std::log10(rough)));
    for (const double factor : {1.0, 2.0, 5.0}) {
        if (rough <= factor * power) return factor * power;
    }
    return 10 * power;
}

std::string number(double value) {
    return value == std::floor(value) ? store::grouped(static_cast<std::int64_t>(value))
                                      : fmt::format("{:g}", value);
}

std::string category_table(const analysis::RankMemory& rank) {
    HtmlTable table({"At the peak", "", "MiB", "%"}, 2);
    for (std::size_t c = 0; c < rank.at_peak.size(); ++c) {
        if (rank.at_peak[c] == 0) continue;
        const double share = rank.peak_bytes > 0
                                 ? static_cast<double>(rank.at_peak[c]) / static_cast<double>(rank.peak_bytes)
                                 : 0;
        table.row({category_name(c), cell_bar(share, static_cast<int>(c)), mb(rank.at_peak[c]),
                   percent(rank.at_peak[c], rank.peak_bytes)});
    }
    table.row({"all", "", mb(rank.peak_bytes), percent(rank.peak_bytes, rank.peak_bytes)}, "sum");
    return table.html();
}

std::string holder_table(const char* title, const std::vector<analysis::MemoryHolder>& holders,
                         const analysis::RankMemory& rank, const Redactor& redact) {
    // A single row "(no module)" is not informative.
    if (holders.size() == 1 && holders.front().name.starts_with('(')) return {};
    std::vector<analysis::MemoryPart> parts =
        holder_parts(holders_at_peak(holders), rank.peak_bytes, kHoldersShown);
    for (analysis::MemoryPart& part : parts) {
        if (part.name.empty()) part.name = "(none)";
    }
    if (parts.empty()) return {};
    return html_of(chosen(result_table(analysis::memory_part_fields(), parts),
                          {{"name", title}, {"mb"}, {"share", "%"}}),
                   redact);
}

std::string rank_memory(const analysis::RankMemory& rank, const std::vector<analysis::MemoryPoint>& curve,
                        const Redactor& redact) {
    std::string html =
        fmt::format("<p>Peak {} MiB at {} ms", mb(rank.peak_bytes), milliseconds(rank.peak_time_ns));
    if (rank.reserved_bytes > 0)
        html += fmt::format("; the allocator reserved {} MiB at most", mb(rank.reserved_bytes));
    const bool like = rank.prediction_applies || rank.predicted_of_steps < 0;
    if (rank.predicted_peak_bytes >= 0) {
        const std::int64_t predicted = like ? rank.predicted_peak_bytes : rank.predicted_of_steps;
        html += fmt::format("; the memory account predicted {} MiB ({:+.2f} %)", mb(predicted),
                            analysis::difference_percent(rank.peak_bytes, predicted));
        if (!like)
            html += fmt::format(" for the steps shown, and {} MiB{}", mb(rank.predicted_peak_bytes),
                                since_step(rank));
    }
    html += ".</p>\n";
    if (curve.size() > 1) {
        // The curve is folded to the pixels of the picture, of which a phone has fewer.
        html += "<div class=\"wide\">" + memory_curve_svg(curve, rank, 1000, 300) + "</div>";
        html += "<div class=\"narrow\">" + memory_curve_svg(curve, rank, 380, 230) + "</div>";
        std::vector<std::pair<std::string, int>> names;
        for (std::size_t c = 0; c < schema::kMemoryCategoryNames.size(); ++c) {
            const bool any = std::any_of(curve.begin(), curve.end(),
                                         [c](const analysis::MemoryPoint& p) { return p.bytes[c] != 0; });
            if (any) names.emplace_back(category_name(c), static_cast<int>(c));
        }
        html += legend(names);
        html +=
            "<p class=\"dim small\">Each column of pixels shows the largest total in its time; the line "
            "shows the smallest."
            " The dashed line is the peak.</p>\n";
    }
    html += "<div class=\"two\"><div>" + category_table(rank) + "</div>";
    const auto add = [&](const char* title, const std::vector<analysis::MemoryHolder>& holders) {
        if (const std::string table = holder_table(title, holders, rank, redact); !table.empty())
            html += "<div>" + table + "</div>";
    };
    add("FSDP unit", rank.units);
    add("Module", rank.modules);
    add("Buffer", rank.buffers);
    add("Annotation", rank.annotations);
    if (!redact.on()) add("Allocated by", rank.stacks);
    html += "</div>\n";
    if (!rank.failures.empty()) {
        std::string list = "<ul>";
        for (const analysis::MemoryFailure& failure : rank.failures)
            list +=
                fmt::format("<li>{} ms: {}</li>", milliseconds(failure.time_ns), redact.text(failure.text));
        html += "<h3>Out of memory</h3>" + list + "</ul>\n";
    }
    return html;
}

// What the caching allocator would reserve with other settings.
std::string reserved_memory(const analysis::RankAllocator& rank, const Redactor& redact) {
    if (rank.requests == 0) return {};
    std::string html = "<h3>Reserved memory with other settings</h3>\n" +
                       html_of(result_table(analysis::reserved_fields(), rank.reserved), redact);
    if (!rank.failures.empty())
        html += "<h3>Requests that failed</h3>\n" + html_of(failed_requests_table(rank), redact);
    return html;
}

}  // namespace

std::string memory_curve_svg(const std::vector<analysis::MemoryPoint>& curve,
                             const analysis::RankMemory& rank, int width, int height) {
    constexpr int kLeft = 70, kRight = 10, kTop = 24, kBottom = 26;
    const int plot_width = width - kLeft - kRight, plot_height = height - kTop - kBottom;
    const std::int64_t from = curve.front().time;
    const std::int64_t to = std::max(curve.back().time, from + 1);
    const std::vector<MemoryColumn> columns = columns_of(curve, from, to, plot_width);
    std::int64_t most = 1;
    for (const MemoryColumn& column : columns) most = std::max(most, column.highest.total);
    const auto y_of = [&](double bytes) {
        return kTop + plot_height * (1 - bytes / (1.04 * static_cast<double>(most)));
    };
    std::string svg = fmt::format(
        "<svg class=\"curve\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"Allocated memory over "
        "time\">\n",
        width, height);
    const auto to_svg = std::back_inserter(svg);
    const double most_mb = static_cast<double>(most) / kMegabyte;
    const double step = nice_step(most_mb, 4);
    for (double mark = 0; mark <= 1.04 * most_mb; mark += step) {
        const double y = y_of(mark * kMegabyte);
        fmt::format_to(to_svg, "<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>",
                       kLeft, width - kRight, y, y);
        fmt::format_to(to_svg, "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", kLeft - 6,
                       y + 4, number(mark));
    }
    fmt::format_to(to_svg, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">MiB</text>\n", kLeft - 6, 12);
    // Areas are stacked from the bottom up: each category's columns on top of those before it.
    std::vector<double> base(columns.size(), 0);
    for (std::size_t c = 0; c < schema::kMemoryCategoryNames.size(); ++c) {
        bool any = false;
        std::vector<double> low(columns.size()), high(columns.size());
        for (std::size_t x = 0; x < columns.size(); ++x) {
            const double bytes = static_cast<double>(columns[x].highest.bytes[c]);
            any = any || bytes > 0;
            low[x] = y_of(base[x]);
            high[x] = y_of(base[x] + bytes);
            base[x] += bytes;
        }
        if (!any) continue;
        fmt::format_to(to_svg, "<path class=\"c{}\" d=\"M{} {:.1f}{}{}Z\"><title>{}</title></path>\n", c,
                       kLeft, high.front(), steps_right(high, kLeft), steps_left(low, kLeft),
                       schema::kMemoryCategoryNames[c]);
    }
    std::vector<double> lowest;
    lowest.reserve(columns.size());
    for (const MemoryColumn& column : columns) lowest.push_back(y_of(static_cast<double>(column.lowest)));
    fmt::format_to(to_svg, "<path class=\"low\" d=\"M{} {:.1f}{}\"/>\n", kLeft, lowest.front(),
                   steps_right(lowest, kLeft));
    if (rank.peak_time_ns >= from && rank.peak_time_ns <= to) {
        const double x = kLeft + plot_width * static_cast<double>(rank.peak_time_ns - from) /
                                     static_cast<double>(to - from);
        fmt::format_to(to_svg, "<line class=\"peak\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{}\" y2=\"{}\"/>\n", x,
                       x, kTop, kTop + plot_height);
    }
    const double span_ms = static_cast<double>(to - from) * 1e-6;
    const double start_ms = static_cast<double>(from) * 1e-6;
    const double tick = nice_step(span_ms, width > 600 ? 8 : 4);
    for (double at = std::ceil(start_ms / tick) * tick; at <= start_ms + span_ms; at += tick) {
        const double x = kLeft + plot_width * (at - start_ms) / span_ms;
        if (x > width - 45) break;  // the unit is printed there
        fmt::format_to(to_svg, "<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>", x, height - 8,
                       number(at));
    }
    fmt::format_to(to_svg, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">ms</text>\n</svg>\n", width - kRight,
                   height - 8);
    return svg;
}

std::string html_memory(const ReportedRun& run, const Redactor& redact) {
    const auto& ranks = run.memory.ranks;
    const bool any = std::any_of(ranks.begin(), ranks.end(),
                                 [](const analysis::RankMemory& r) { return r.peak_bytes > 0; });
    if (!any) return {};
    std::size_t fullest = 0;
    for (std::size_t r = 1; r < ranks.size(); ++r) {
        if (ranks[r].peak_bytes > ranks[fullest].peak_bytes) fullest = r;
    }
    static const std::vector<analysis::MemoryPoint> kNoCurve;
    const auto curve = [&](std::size_t r) -> const std::vector<analysis::MemoryPoint>& {
        return r < run.curves.size() ? run.curves[r] : kNoCurve;
    };
    std::string html;
    if (ranks.size() > 1)
        html +=
            fmt::format("<h3>Rank {}, with the highest peak of {}</h3>\n", ranks[fullest].rank, ranks.size());
    html += rank_memory(ranks[fullest], curve(fullest), redact);
    for (const analysis::RankAllocator& allocator : run.allocator.ranks) {
        if (allocator.rank == ranks[fullest].rank) html += reserved_memory(allocator, redact);
    }
    if (ranks.size() > 1) {
        HtmlTable table({"Rank", "Peak (MiB)", "Peak at (ms)", "Reserved (MiB)"});
        for (const analysis::RankMemory& rank : ranks) {
            table.row({std::to_string(rank.rank), mb(rank.peak_bytes), milliseconds(rank.peak_time_ns),
                       rank.reserved_bytes > 0 ? mb(rank.reserved_bytes) : "-"});
        }
        html += folded("The peaks of all ranks", table.html());
    }
    return html;
}

}  // namespace shardscope::traces::report
