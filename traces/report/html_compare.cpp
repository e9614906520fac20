// Several runs side by side in the HTML report.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include <fmt/core.h>

#include "traces/report/html_parts.h"
#include "traces/report/units.h"

namespace shardscope::traces {

namespace {

constexpr double kNoFigure = std::numeric_limits<double>::quiet_NaN();

struct Shown {
    double mean = 0, spread = 0;
};

class Rows {
  public:
    Rows(const Comparison& comparison, HtmlTable& table) : comparison_(comparison), table_(table) {}

    void add(const std::string& title, const std::function<Shown(const RunColumn&)>& of,
             const std::function<std::string(double)>& print) {
        std::vector<std::string> cells = {title};
        const Shown first = of(comparison_.runs.front());
        const bool any =
            std::any_of(comparison_.runs.begin(), comparison_.runs.end(), [&](const RunColumn& run) {
                const double mean = of(run).mean;
                return mean != 0 && !std::isnan(mean);
            });
        if (!any) return;
        for (std::size_t r = 0; r < comparison_.runs.size(); ++r) {
            const Shown value = of(comparison_.runs[r]);
            cells.push_back(print(value.mean));
            if (r > 0) cells.push_back(html_difference(value.mean, value.spread, first.mean, first.spread));
        }
        table_.row(cells);
    }

  private:
    const Comparison& comparison_;
    HtmlTable& table_;
};

std::string bars(const Comparison& comparison, const std::vector<std::string>& names) {
    double longest = 0;
    for (const RunColumn& run : comparison.runs) longest = std::max(longest, run.average_step_us);
    std::string html;
    std::array<bool, kTimeCategories> used{};
    for (std::size_t r = 0; r < comparison.runs.size(); ++r) {
        const RunColumn& run = comparison.runs[r];
        std::vector<BarPart> parts;
        for (std::size_t c = 0; c < run.categories_us.size(); ++c) {
            if (std::isnan(run.categories_us[c])) continue;
            used[c] = used[c] || run.categories_us[c] > 0;
            parts.push_back({fmt::format("{}: {} us", kTimeCategoryNames[c], us(run.categories_us[c])),
                             longest > 0 ? run.categories_us[c] / longest : 0, static_cast<int>(c)});
        }
        html +=
            run.stepped
                ? fmt::format("<div class=\"small dim\">{}: median step {} ms, mean {} ms</div>\n", names[r],
                              grouped(run.median_step_us * 1e-3, 3), grouped(run.average_step_us * 1e-3, 3))
                : fmt::format("<div class=\"small dim\">{}: {} ms in the whole trace</div>\n", names[r],
                              grouped(run.average_step_us * 1e-3, 3));
        html += stacked_bar(parts, run.stepped ? "Where the time of a step went" : "Where the time went");
    }
    std::vector<std::pair<std::string, int>> entries;
    for (std::size_t c = 0; c < used.size(); ++c) {
        if (used[c]) entries.emplace_back(std::string(kTimeCategoryNames[c]), static_cast<int>(c));
    }
    return legend(entries) + html;
}

}  // namespace

std::string html_difference(double mean, double spread, double first_mean, double first_spread) {
    if (std::isnan(mean - first_mean)) return "-";
    if (mean == first_mean) return "=";
    if (first_mean == 0) return "new";
    const double part = 100 * (mean - first_mean) / std::abs(first_mean);
    const std::string text = fmt::format("{}{} %", part > 0 ? "+" : "", grouped(part, 2));
    if (inside_spread(mean, spread, first_mean, first_spread))
        return "<span class=\"dim\" title=\"within the spread of the steps\">~ " + text + "</span>";
    return fmt::format("<span class=\"{}\">{}</span>", part < 0 ? "good" : "bad", text);
}

std::string html_comparison(const Comparison& comparison, const std::vector<ReportedRun>& runs,
                            const Redactor& redact) {
    if (comparison.runs.size() < 2) return {};
    std::vector<std::string> names;
    for (std::size_t r = 0; r < comparison.runs.size(); ++r)
        names.push_back(redact.text(r < runs.size() ? runs[r].name : comparison.runs[r].file));
    std::vector<std::string> header = {"Mean of the ranks"};
    for (std::size_t r = 0; r < names.size(); ++r) {
        header.push_back(names[r]);
        if (r > 0) header.emplace_back("against the first");
    }
    HtmlTable table(header);
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
    Rows rows(comparison, table);
    const auto as_us = [](double value) { return us(value); };
    const auto as_mb = [](double value) { return mb(value); };
    const auto has_steps = [](const RunColumn& run) { return run.stepped; };
    const bool stepped = std::any_of(comparison.runs.begin(), comparison.runs.end(), has_steps);
    const char* const unit = stepped ? "us/step" : "us";
    rows.add(
        stepped ? "Step time, median (us)" : "Whole trace (us)",
        [](const RunColumn& r) {
            return Shown{r.median_step_us, r.spread_step_us};
        },
        as_us);
    if (stepped) {
        rows.add(
            "Step time, mean (us)",
            [](const RunColumn& r) {
                return Shown{r.average_step_us, r.spread_step_us};
            },
            as_us);
    }
    for (std::size_t c = 0; c < kTimeCategoryNames.size(); ++c) {
        rows.add(
            fmt::format("{} ({})", kTimeCategoryNames[c], unit),
            [c](const RunColumn& r) {
                return Shown{r.categories_us[c], r.categories_spread[c].spread};
            },
            as_us);
    }
    rows.add(
        fmt::format("All communication ({})", unit),
        [](const RunColumn& r) {
            return Shown{r.communication_us, r.communication_spread.spread};
        },
        as_us);
    rows.add(
        fmt::format("Communication outside compute ({})", unit),
        [](const RunColumn& r) {
            return Shown{r.exposed_communication_us, r.exposed_communication_spread.spread};
        },
        as_us);
    rows.add(
        fmt::format("Memory copies ({})", unit),
        [](const RunColumn& r) {
            return Shown{r.memcpy_us, r.memcpy_spread.spread};
        },
        as_us);
    rows.add(
        "Peak memory (MB)",
        [](const RunColumn& r) {
            return Shown{r.peak_bytes > 0 ? static_cast<double>(r.peak_bytes) : kNoFigure, 0};
        },
        as_mb);
    for (std::size_t c = 0; c < kMemoryCategoryNames.size(); ++c) {
        rows.add(
            fmt::format("At the peak: {} (MB)", kMemoryCategoryNames[c]),
            [c](const RunColumn& r) {
                return Shown{static_cast<double>(r.at_peak[c]), 0};
            },
            as_mb);
    }
    std::string notes =
        "~ the difference is within the spread of the steps (half the interquartile range). - it is not "
        "known.";
    for (std::size_t r = 0; r < comparison.runs.size(); ++r) {
        if (comparison.runs[r].space == MemorySpace::host)
            notes +=
                fmt::format(" Memory of {} is host memory: nothing was allocated on a device.", names[r]);
    }
    return bars(comparison, names) + table.html() + fmt::format("<p class=\"dim small\">{}</p>\n", notes);
}

}  // namespace shardscope::traces
