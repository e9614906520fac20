// Compares runs side by side: whole runs (one column per run, then its difference from the first) and their
// parts (one row per part). Times of parts are us per step of one rank.
#include "traces/analysis/compare/compare.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/analysis/compare/compare_parts.h"
#include "traces/report/memory_parts.h"
#include "traces/report/print.h"
#include "traces/schema/json_text.h"

namespace shardscope::traces::report {
namespace {

using Json = nlohmann::ordered_json;

// "-12.3 (-4.56 %)", preceded by "~" if the spread of the steps explains the difference.
std::string change_text(const analysis::ComparedValue& run, const analysis::ComparedValue& first,
                        analysis::Unit unit) {
    std::string text = analysis::cell_text({.unit = unit, .difference = true}, run.mean - first.mean);
    if (text == "-" || text == "=") return text;
    if (const auto percent = run.change_percent(first))
        text += fmt::format(
            " ({} %)", analysis::cell_text({.unit = analysis::Unit::percent, .difference = true}, *percent));
    return run.inside_spread(first) ? "~ " + text : text;
}

std::string table_text(const analysis::Comparison& comparison, std::size_t width) {
    if (comparison.runs.empty()) return "No runs to compare.\n";
    std::vector<std::string> files;
    for (const analysis::RunColumn& run : comparison.runs) files.push_back(run.file);
    const std::vector<std::string> titles = analysis::run_names(files);
    std::vector<std::string> header = {"Per rank, mean of the ranks"};
    for (std::size_t r = 0; r < titles.size(); ++r) {
        header.push_back(titles[r]);
        if (r > 0) header.emplace_back("vs. first run");
    }
    std::vector<Align> align(header.size(), Align::right);
    align.front() = Align::left;
    TextTable table(align);
    table.header(std::move(header));
    const auto add = [&](const std::string& title, const std::function<std::string(std::size_t)>& value,
                         const std::function<std::string(std::size_t)>& change) {
        std::vector<std::string> cells = {title};
        for (std::size_t r = 0; r < comparison.runs.size(); ++r) {
            cells.push_back(value(r));
            if (r > 0) cells.push_back(change(r));
        }
        table.row(std::move(cells));
    };
    const auto add_fact = [&](const std::string& title,
                              const std::function<std::string(const analysis::RunColumn&)>& of) {
        add(
            title, [&](std::size_t r) { return of(comparison.runs[r]); },
            [](std::size_t) { return std::string(); });
    };
    for (std::size_t k = 0; k < comparison.runs.front().config.size(); ++k) {
        add_fact(comparison.runs.front().config[k].first, [k](const analysis::RunColumn& run) {
            const std::string& value = run.config[k].second;
            return value.empty() ? std::string("-") : value;
        });
    }
    add_fact("Ranks", [](const analysis::RunColumn& run) { return std::to_string(run.ranks); });
    add_fact("Steps",
             [](const analysis::RunColumn& run) { return run.stepped ? store::grouped(run.steps) : "none"; });
    std::optional<analysis::ComparedFigure::Group> group;
    for (const analysis::ComparedFigure& figure : compared_figures(comparison)) {
        if (group != figure.group) table.rule();
        group = figure.group;
        add(
            printable(figure.title),
            [&](std::size_t r) { return analysis::cell_text({.unit = figure.unit}, figure.runs[r].mean); },
            [&](std::size_t r) { return change_text(figure.runs[r], figure.runs.front(), figure.unit); });
    }
    std::string notes =
        "The peak is that of the rank with the largest. ~ the difference is within the "
        "spread of the steps"
        " (half the interquartile range).";
    const auto left_out = [](const analysis::RunColumn& run) { return run.first_left_out; };
    if (std::any_of(comparison.runs.begin(), comparison.runs.end(), left_out))
        notes += " The median step and its spread exclude the trace's first step, which is the warm-up.";
    if (std::any_of(comparison.runs.begin(), comparison.runs.end(),
                    [](const analysis::RunColumn& run) { return !run.stepped; }))
        notes += " A trace without steps counts as one step: its figures are of the whole trace.";
    for (std::size_t r = 0; r < comparison.runs.size(); ++r) {
        const analysis::RunColumn& run = comparison.runs[r];
        if (std::isnan(run.device_busy_percent))
            notes +=
                fmt::format(" {} contains no device work: its communication is host-thread time.", titles[r]);
        if (run.space == schema::MemorySpace::host)
            notes +=
                fmt::format(" Memory of {} is host memory: nothing was allocated on a device.", titles[r]);
    }
    return table.text(width) + paragraph(notes, width);
}

Json comparison_json(const analysis::Comparison& comparison) {
    Json runs = Json::array();
    for (const analysis::RunColumn& run : comparison.runs) {
        Json json = json_row(analysis::run_fields(), run);
        json["config"] = json_pairs(run.config);
        Json& categories = json["categories"] = Json::object();
        for (std::size_t c = 0; c < run.categories_us.size(); ++c) {
            categories[std::string(analysis::kTimeCategoryNames[c])] = {
                {"us", run.categories_us[c]},
                {"median_us", run.categories_spread[c].median},
                {"spread_us", run.categories_spread[c].spread}};
        }
        json["at_peak"] = bytes_by_category(run.at_peak);
        Json& metrics = json["metrics"] = Json::object();
        for (const analysis::RunColumn::Metric& metric : run.metrics)
            metrics[printable(metric.name)] =
                json_of(std::isfinite(metric.value) ? store::Cell(metric.value) : store::Cell());
        json["collectives"] = json_of(result_table(analysis::collective_fields(), run.collectives));
        if (&run != &comparison.runs.front())
            json["step_inside_spread_of_first"] = inside_spread(comparison.runs.front(), run);
        runs.push_back(std::move(json));
    }
    return {{"runs", std::move(runs)}};
}

std::string json_text(const analysis::Comparison& comparison) {
    return json_line(comparison_json(comparison));
}

std::string csv_text(const analysis::Comparison& comparison) {
    // "communication" and "memcpy" are totals; the split keys count only what no earlier category covers.
    std::vector<std::string> keys;
    keys.reserve(analysis::kTimeCategoryNames.size() + schema::kMemoryCategoryNames.size());
    for (const auto category : analysis::kTimeCategoryNames) keys.push_back(split_key(category));
    for (const auto category : schema::kMemoryCategoryNames)
        keys.push_back(fmt::format("at_peak_{}_bytes", category));
    if (!comparison.runs.empty()) {
        for (const auto& [key, value] : comparison.runs.front().config) keys.push_back(key);
    }
    analysis::ResultTable table = result_table(analysis::run_fields(), comparison.runs);
    for (const std::string& key : keys) table.columns.push_back({.key = key});
    for (std::size_t r = 0; r < comparison.runs.size(); ++r) {
        const analysis::RunColumn& run = comparison.runs[r];
        std::vector<store::Cell>& row = table.rows[r];
        row.insert(row.end(), run.categories_us.begin(), run.categories_us.end());
        row.insert(row.end(), run.at_peak.begin(), run.at_peak.end());
        for (const auto& [key, value] : run.config) row.emplace_back(value);
    }
    return csv_of(table);
}

// --- by parts ---

constexpr std::size_t kShown = 30;

std::string part_change(const analysis::PartFigures& run, const analysis::PartFigures& first) {
    if (!run.present) return first.present ? "gone" : "-";
    if (!first.present) return "new";
    return change_text(run.value(), first.value(), analysis::Unit::us);
}

// Shortens a module path from the front, since its end is the most informative.
std::string shown_name(const std::string& name, analysis::CompareBy by) {
    constexpr std::size_t kWidth = 46;
    std::string text = printable(name);
    if (by != analysis::CompareBy::module || display_width(text) <= kWidth) return shortened(name, kWidth);
    for (auto slash = text.find('/'); slash != std::string::npos; slash = text.find('/', slash + 1)) {
        std::string end = "…" + text.substr(slash);
        if (display_width(end) <= kWidth) return end;
    }
    return shortened(name, kWidth);
}

constexpr std::array<const char*, analysis::kCompareByNames.size()> kPartTitles = {
    "Module (itself)", "Kernel", "Collective", "Unit, phase", "Operator (itself)"};

std::string table_text(const analysis::PartsComparison& comparison, std::size_t width) {
    std::string text;
    const std::vector<analysis::RunColumn>& runs = comparison.whole.runs;
    for (std::size_t r = 0; r < runs.size(); ++r) {
        text += fmt::format("Run {}: {}, {} {} µs", r + 1, printable(runs[r].file),
                            runs[r].stepped ? "median step" : "the whole trace, which has no steps:",
                            us(runs[r].median_step_us));
        for (const auto& [key, value] : runs[r].config) {
            text += fmt::format("\n       {} = {}", printable(key), value.empty() ? "-" : printable(value));
        }
        text += "\n";
    }
    if (comparison.parts.empty()) return text + "No run has parts of this kind.\n";
    std::vector<std::string> header = {kPartTitles[static_cast<std::size_t>(comparison.by)], "Times",
                                       "Run 1 (µs)"};
    for (std::size_t r = 1; r < runs.size(); ++r) {
        header.push_back(fmt::format("Run {} (µs)", r + 1));
        header.emplace_back("vs. run 1");
    }
    std::vector<Align> align(header.size(), Align::right);
    align[0] = Align::left;
    TextTable table(align);
    table.header(std::move(header));
    for (std::size_t p = 0; p < std::min(comparison.parts.size(), kShown); ++p) {
        const analysis::ComparedPart& part = comparison.parts[p];
        const analysis::PartFigures& first = part.runs.front();
        std::vector<std::string> cells = {shown_name(part.name, comparison.by),
                                          store::grouped(first.times, 2)};
        for (std::size_t r = 0; r < part.runs.size(); ++r) {
            cells.push_back(part.runs[r].present ? us(part.runs[r].us) : "-");
            if (r > 0) cells.push_back(part_change(part.runs[r], first));
        }
        table.row(std::move(cells));
    }
    text += "\n" + table.text(width);
    if (comparison.parts.size() > kShown) {
        text += fmt::format("{} more with smaller differences; use --format csv for all.\n",
                            store::grouped(size_of(comparison.parts) - static_cast<std::int64_t>(kShown)));
    }
    return text +
           paragraph(
               fmt::format("{} time {}, mean of the ranks; largest difference first. ~ the difference lies "
                           "inside the spread of the steps (half the interquartile range).{}",
                           comparison.on_host ? "Host" : "Device",
                           comparison.whole.any_stepped() ? "per step" : "of the whole trace",
                           comparison.on_host ? " Nothing is recorded on a device." : ""),
               width);
}

std::string json_text(const analysis::PartsComparison& comparison) {
    Json json = comparison_json(comparison.whole);
    const std::string by(analysis::kCompareByNames[static_cast<std::size_t>(comparison.by)]);
    json["by"] = by;
    json["on"] = comparison.on_host ? "host" : "device";
    // Each run has its own figures under the parts' names, for --fail-if; "parts" has them side by side.
    const std::string key = by == "collective" ? "collectives_by_name" : by + "s";
    for (Json& run : json["runs"]) run[key] = Json::object();
    Json parts = Json::array();
    for (const analysis::ComparedPart& part : comparison.parts) {
        const analysis::PartFigures& first = part.runs.front();
        Json runs = Json::array();
        for (std::size_t r = 0; r < part.runs.size(); ++r) {
            const analysis::PartFigures& f = part.runs[r];
            Json figures = json_row(analysis::part_fields(), f);
            json["runs"][r][key][printable(part.name)] = figures;
            figures["present"] = f.present;
            if (r > 0) {
                const auto percent = f.value().change_percent(first.value());
                figures["difference_us"] = f.us - first.us;
                figures["percent"] = percent ? Json(*percent) : Json(nullptr);
                figures["inside_spread_of_first"] = f.value().inside_spread(first.value());
            }
            runs.push_back(std::move(figures));
        }
        parts.push_back({{"name", printable(part.name)}, {"runs", std::move(runs)}});
    }
    json["parts"] = std::move(parts);
    return json_line(json);
}

std::string csv_text(const analysis::PartsComparison& comparison) {
    analysis::ResultTable table = empty_table(analysis::part_fields(), {{.key = "name"}, {.key = "file"}});
    table.columns.insert(table.columns.end(), {{.key = "difference_us"}, {.key = "inside_spread_of_first"}});
    for (const analysis::ComparedPart& part : comparison.parts) {
        const analysis::PartFigures& first = part.runs.front();
        for (std::size_t r = 0; r < part.runs.size(); ++r) {
            const analysis::PartFigures& f = part.runs[r];
            std::vector<store::Cell>& row = table.rows.emplace_back();
            row = {part.name, comparison.whole.runs[r].file};
            add_cells(row, analysis::part_fields(), f);
            row.insert(row.end(), {f.us - first.us, r > 0 && f.value().inside_spread(first.value())});
        }
    }
    return csv_of(table);
}

}  // namespace

std::string render(const analysis::Comparison& result, Format format, std::size_t width) {
    return render_as(result, format, width, table_text, json_text, csv_text);
}

std::string render(const analysis::PartsComparison& result, Format format, std::size_t width) {
    return render_as(result, format, width, table_text, json_text, csv_text);
}

}  // namespace shardscope::traces::report
