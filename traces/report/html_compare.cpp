// Several runs side by side in the HTML report, as wholes and by the parts that differ most.
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/core.h>

#include "traces/report/html_parts.h"
#include "traces/report/print.h"

namespace shardscope::traces::report {
namespace {

// A run's difference from the first: "-12.3 %", coloured as good if it is lower; "~ -1.2 %", dimmed, if it is
// within the spread of the steps.
std::string difference(const analysis::ComparedValue& run, const analysis::ComparedValue& first) {
    if (std::isnan(run.mean - first.mean)) return "-";
    if (run.mean == first.mean) return "=";
    const auto percent = run.change_percent(first);
    if (!percent) return "new";
    const std::string text =
        analysis::cell_text({.unit = analysis::Unit::percent, .difference = true}, *percent) + " %";
    if (run.inside_spread(first))
        return "<span class=\"dim\" title=\"within the spread of the steps\">~ " + text + "</span>";
    return fmt::format("<span class=\"{}\">{}</span>", *percent < 0 ? "good" : "bad", text);
}

std::string bars(const analysis::Comparison& comparison, const std::vector<std::string>& names) {
    double longest = 0;
    for (const analysis::RunColumn& run : comparison.runs) longest = std::max(longest, run.average_step_us);
    std::string html;
    std::array<bool, analysis::kTimeCategories> used{};
    for (std::size_t r = 0; r < comparison.runs.size(); ++r) {
        const analysis::RunColumn& run = comparison.runs[r];
        std::vector<BarPart> parts;
        for (std::size_t c = 0; c < run.categories_us.size(); ++c) {
            if (std::isnan(run.categories_us[c])) continue;
            used[c] = used[c] || run.categories_us[c] > 0;
            parts.push_back(
                {fmt::format("{}: {} µs", analysis::kTimeCategoryNames[c], us(run.categories_us[c])),
                 longest > 0 ? run.categories_us[c] / longest : 0, static_cast<int>(c)});
        }
        const std::string mean = store::grouped(run.average_step_us * 1e-3, 3);
        html += fmt::format("<div class=\"small dim\">{}: {}</div>\n", names[r],
                            run.stepped ? fmt::format("median step {} ms, mean {} ms",
                                                      store::grouped(run.median_step_us * 1e-3, 3), mean)
                                        : mean + " ms in the whole trace");
        html += stacked_bar(parts, run.stepped ? "Where the time of a step went" : "Where the time went");
    }
    std::vector<std::pair<std::string, int>> entries;
    for (std::size_t c = 0; c < used.size(); ++c) {
        if (used[c]) entries.emplace_back(std::string(analysis::kTimeCategoryNames[c]), static_cast<int>(c));
    }
    return legend(entries) + html;
}

// "Name", then each run, and after all but the first "vs. first run".
std::vector<std::string> header_of(std::string_view first, const std::vector<std::string>& runs) {
    std::vector<std::string> header = {std::string(first)};
    for (std::size_t r = 0; r < runs.size(); ++r) {
        header.push_back(runs[r]);
        if (r > 0) header.emplace_back("vs. first run");
    }
    return header;
}

constexpr std::size_t kPartsOnPage = 15;  // parts of each kind

std::string_view title_of(analysis::CompareBy by, bool on_host) {
    switch (by) {
        case analysis::CompareBy::module:
            return on_host ? "Modules (host time of the module itself)"
                           : "Modules (device time launched in the module itself)";
        case analysis::CompareBy::kernel:
            return "Kernels";
        case analysis::CompareBy::collective:
            return "Collectives, by operation and unit";
        case analysis::CompareBy::unit:
            return "FSDP units, by phase";
        case analysis::CompareBy::operation:
            return on_host ? "Operators (host time of the operator itself)"
                           : "Operators (device time launched in the operator itself)";
    }
    return "";
}

std::string part_difference(const analysis::PartFigures& run, const analysis::PartFigures& first) {
    if (!run.present) return first.present ? "gone" : "";
    return first.present ? difference(run.value(), first.value()) : "new";
}

std::string part_table(const analysis::PartsComparison& comparison, std::vector<std::string> names,
                       const Redactor& redact) {
    for (std::size_t r = 0; r < names.size(); ++r)
        names[r] += comparison.whole.runs[r].stepped ? " (µs/step)" : " (µs)";
    HtmlTable table(header_of("Name", names));
    for (std::size_t p = 0; p < std::min(kPartsOnPage, comparison.parts.size()); ++p) {
        const analysis::ComparedPart& part = comparison.parts[p];
        std::vector<std::string> cells = {redact.text(part.name)};
        for (std::size_t r = 0; r < part.runs.size(); ++r) {
            cells.push_back(part.runs[r].present ? us(part.runs[r].us) : "-");
            if (r > 0) cells.push_back(part_difference(part.runs[r], part.runs.front()));
        }
        table.row(cells);
    }
    std::string html =
        fmt::format("<h3>{}</h3>\n", title_of(comparison.by, comparison.on_host)) + table.html();
    if (comparison.parts.size() > kPartsOnPage)
        html += fmt::format("<p class=\"dim small\">The {} that differ most, of {}.</p>\n", kPartsOnPage,
                            store::grouped(size_of(comparison.parts)));
    return html;
}

}  // namespace

std::string html_comparison(const analysis::Comparison& comparison, const std::vector<ReportedRun>& runs,
                            const Redactor& redact) {
    if (comparison.runs.size() < 2) return {};
    std::vector<std::string> names;
    for (std::size_t r = 0; r < comparison.runs.size(); ++r)
        names.push_back(redact.text(r < runs.size() ? runs[r].name : comparison.runs[r].file));
    HtmlTable table(header_of("Mean of the ranks", names));
    for (std::size_t k = 0; k < comparison.runs.front().config.size(); ++k) {
        const std::string& key = comparison.runs.front().config[k].first;
        std::vector<std::string> cells = {redact.text(key)};
        bool shown = true;
        for (std::size_t r = 0; r < comparison.runs.size(); ++r) {
            const std::string& value = comparison.runs[r].config[k].second;
            shown = shown && redact.shows(key, value);
            cells.push_back(value.empty() ? "-" : redact.text(value));
            if (r > 0) cells.emplace_back();
        }
        if (shown) table.row(cells);
    }
    for (const analysis::ComparedFigure& figure : compared_figures(comparison)) {
        const bool any = std::any_of(
            figure.runs.begin(), figure.runs.end(),
            [](const analysis::ComparedValue& value) { return value.mean != 0 && !std::isnan(value.mean); });
        if (!any || !figure.less_is_better) continue;
        const bool inner = figure.title.starts_with("  ");
        std::vector<std::string> cells = {inner ? "&emsp;" + html_escaped(figure.title.substr(2))
                                                : html_escaped(figure.title)};
        for (std::size_t r = 0; r < figure.runs.size(); ++r) {
            cells.push_back(analysis::cell_text({.unit = figure.unit}, figure.runs[r].mean));
            if (r > 0) cells.push_back(difference(figure.runs[r], figure.runs.front()));
        }
        table.row(cells);
    }
    std::string notes =
        "~ the difference is within the spread of the steps (half the interquartile range). - it is not "
        "known.";
    for (std::size_t r = 0; r < comparison.runs.size(); ++r) {
        if (comparison.runs[r].space == schema::MemorySpace::host)
            notes +=
                fmt::format(" Memory of {} is host memory: nothing was allocated on a device.", names[r]);
    }
    return bars(comparison, names) + table.html() + fmt::format("<p class=\"dim small\">{}</p>\n", notes);
}

std::string html_compared_parts(const std::vector<analysis::PartsComparison>& comparisons,
                                const std::vector<ReportedRun>& runs, const Redactor& redact) {
    std::vector<std::string> names;
    names.reserve(runs.size());
    for (const ReportedRun& run : runs) names.push_back(redact.text(run.name));
    std::string html;
    for (const analysis::PartsComparison& comparison : comparisons) {
        if (!comparison.parts.empty()) html += part_table(comparison, names, redact);
    }
    return html;
}

}  // namespace shardscope::traces::report
