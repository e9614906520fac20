// Runs side by side by their parts: one row per part with the first run's figure, and each other run's with
// its difference. Times in us per step of one rank.
#include "traces/analysis/compare/compare_parts.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/formats.h"
#include "traces/report/text_table.h"
#include "traces/report/units.h"
#include "traces/schema/json_text.h"

namespace shardscope::traces {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kShown = 30;

bool inside(const PartFigures& run, const PartFigures& first) {
    return inside_spread(run.us, run.spread.spread, first.us, first.spread.spread);
}

std::string change(const PartFigures& run, const PartFigures& first) {
    const double more = run.us - first.us;
    if (!run.present) return first.present ? "gone" : "-";
    if (!first.present) return "new";
    if (std::isnan(more)) return "-";
    if (more == 0) return "=";
    std::string text = (more > 0 ? "+" : "") + grouped(more, 1);
    if (first.us > 0) text += fmt::format(" ({:+.1f} %)", 100 * more / first.us);
    return inside(run, first) ? "~ " + text : text;
}

// The end of a path is the most informative.
std::string shown_name(const std::string& name, CompareBy by) {
    constexpr std::size_t kWidth = 46;
    std::string text = printable(name);
    if (by != CompareBy::module || display_width(text) <= kWidth) return shortened(name, kWidth);
    for (auto slash = text.find('/'); slash != std::string::npos; slash = text.find('/', slash + 1)) {
        std::string end = "…" + text.substr(slash);
        if (display_width(end) <= kWidth) return end;
    }
    return shortened(name, kWidth);
}

std::string title(CompareBy by) {
    switch (by) {
        case CompareBy::module:
            return "Module (itself)";
        case CompareBy::kernel:
            return "Kernel";
        case CompareBy::collective:
            return "Collective";
        case CompareBy::unit:
            return "Unit, phase";
        case CompareBy::operation:
            return "Operator (itself)";
    }
    return {};
}

std::string table_text(const PartsComparison& comparison, std::size_t width) {
    std::string text;
    const std::vector<RunColumn>& runs = comparison.whole.runs;
    const bool stepped =
        std::any_of(runs.begin(), runs.end(), [](const RunColumn& run) { return run.stepped; });
    for (std::size_t r = 0; r < runs.size(); ++r) {
        text += fmt::format("Run {}: {}, {} {} us", r + 1, printable(runs[r].file),
                            runs[r].stepped ? "median step" : "the whole trace, which has no steps:",
                            us(runs[r].median_step_us));
        for (const auto& [key, value] : runs[r].config) {
            text += fmt::format("\n       {} = {}", printable(key), value.empty() ? "-" : printable(value));
        }
        text += "\n";
    }
    std::vector<std::string> header = {title(comparison.by), "Times", "Run 1 (us)"};
    for (std::size_t r = 1; r < runs.size(); ++r) {
        header.push_back(fmt::format("Run {} (us)", r + 1));
        header.emplace_back("against run 1");
    }
    std::vector<Align> align(header.size(), Align::right);
    align[0] = Align::left;
    TextTable table(align);
    table.header(std::move(header));
    for (std::size_t p = 0; p < std::min(comparison.parts.size(), kShown); ++p) {
        const ComparedPart& part = comparison.parts[p];
        const PartFigures& first = part.runs.front();
        std::vector<std::string> cells = {shown_name(part.name, comparison.by), grouped(first.times, 2),
                                          first.present ? us(first.us) : "-"};
        for (std::size_t r = 1; r < part.runs.size(); ++r) {
            cells.push_back(part.runs[r].present ? us(part.runs[r].us) : "-");
            cells.push_back(change(part.runs[r], first));
        }
        table.row(std::move(cells));
    }
    if (comparison.parts.empty()) return text + "No run has any to compare.\n";
    text += "\n" + table.text(width);
    if (comparison.parts.size() > kShown) {
        text += fmt::format("{} more differ less; --format csv gives all.\n",
                            grouped(static_cast<std::int64_t>(comparison.parts.size() - kShown)));
    }
    return text + paragraph(fmt::format("{} time {}, mean of the ranks; largest difference first. ~ the "
                                        "difference is within the spread of the steps"
                                        " (half the interquartile range).{}",
                                        comparison.on_host ? "Host" : "Device",
                                        stepped ? "per step" : "of the whole trace",
                                        comparison.on_host ? " Nothing is recorded on a device." : ""),
                            width);
}

std::string json_text(const PartsComparison& comparison) {
    Json json = parse_ordered_json(render(comparison.whole, Format::json));
    json["by"] = kCompareByNames[static_cast<std::size_t>(comparison.by)];
    json["on"] = comparison.on_host ? "host" : "device";
    // Each run has its own figures under the parts' names, for --fail-if; "parts" has them side by side.
    const std::string own = fmt::format("{}s", kCompareByNames[static_cast<std::size_t>(comparison.by)]);
    const std::string key = own == "collectives" ? "collectives_by_name" : own;
    for (Json& run : json["runs"]) run[key] = Json::object();
    Json parts = Json::array();
    for (const ComparedPart& part : comparison.parts) {
        const PartFigures& first = part.runs.front();
        Json runs = Json::array();
        for (std::size_t r = 0; r < part.runs.size(); ++r) {
            const PartFigures& f = part.runs[r];
            Json figures = {{"us", f.us},
                            {"median_us", f.spread.median},
                            {"spread_us", f.spread.spread},
                            {"times", f.times},
                            {"bytes", f.bytes}};
            json["runs"][r][key][printable(part.name)] = figures;
            figures["present"] = f.present;
            if (r > 0) {
                figures["difference_us"] = f.us - first.us;
                figures["percent"] = first.us > 0 ? Json(100 * (f.us - first.us) / first.us) : Json(nullptr);
                figures["inside_spread_of_first"] = inside(f, first);
            }
            runs.push_back(std::move(figures));
        }
        parts.push_back({{"name", printable(part.name)}, {"runs", std::move(runs)}});
    }
    json["parts"] = std::move(parts);
    return dump_json(json) + "\n";
}

std::string csv_text(const PartsComparison& comparison) {
    std::vector<std::vector<Cell>> rows;
    for (const ComparedPart& part : comparison.parts) {
        const PartFigures& first = part.runs.front();
        for (std::size_t r = 0; r < part.runs.size(); ++r) {
            const PartFigures& f = part.runs[r];
            rows.push_back({part.name, comparison.whole.runs[r].file, f.us, f.spread.median, f.spread.spread,
                            f.times, f.bytes, f.us - first.us,
                            std::string(r > 0 && inside(f, first) ? "true" : "false")});
        }
    }
    return rows_csv({{"name"},
                     {"file"},
                     {"us"},
                     {"median_us"},
                     {"spread_us"},
                     {"times"},
                     {"bytes"},
                     {"difference_us"},
                     {"inside_spread_of_first"}},
                    rows);
}

}  // namespace

std::string render(const PartsComparison& result, Format format, std::size_t width) {
    return render_as(
        format, [&] { return table_text(result, width); }, [&] { return json_text(result); },
        [&] { return csv_text(result); });
}

}  // namespace shardscope::traces
