// Runs side by side: one column per run, with its difference from the first. MB = 2^20 bytes.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/formats.h"
#include "traces/report/json_parts.h"
#include "traces/report/memory_parts.h"
#include "traces/report/result_text.h"
#include "traces/report/text_table.h"

namespace shardscope::traces {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMb = 1 << 20;
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

struct Value {
    double mean = 0, spread = 0;
};

// One figure for every run.
struct Figure {
    std::string title;
    int decimals = 1;
    std::function<Value(const RunColumn&)> of;
};

std::string base_name(const std::string& path) {
    const auto slash = path.find_last_of('/');
    return slash == std::string::npos ? path : path.substr(slash + 1);
}

// File names without their folders, if these are still distinct.
std::vector<std::string> run_titles(const Comparison& comparison) {
    std::map<std::string, int> times;
    for (const RunColumn& run : comparison.runs) ++times[base_name(run.file)];
    std::vector<std::string> titles;
    for (const RunColumn& run : comparison.runs) {
        const std::string base = base_name(run.file);
        titles.push_back(times[base] == 1 ? base : run.file);
    }
    return titles;
}

// "-12.3 (-4.56 %)", preceded by "~" if the spread of the steps explains the difference.
std::string difference(const Value& run, const Value& first, int decimals) {
    const double more = run.mean - first.mean;
    if (std::isnan(more)) return "-";
    if (more == 0) return "=";
    std::string text = (more > 0 ? "+" : "") + grouped(more, decimals);
    if (first.mean != 0) {
        const double percent = 100.0 * more / std::abs(first.mean);
        text += fmt::format(" ({}{} %)", percent > 0 ? "+" : "", grouped(percent, 2));
    }
    const bool claimed = !inside_spread(run.mean, run.spread, first.mean, first.spread);
    return claimed ? text : "~ " + text;
}

const OperationStats* find(const RunColumn& run, Operation operation) {
    const auto at = std::find_if(run.collectives.begin(), run.collectives.end(),
                                 [operation](const OperationStats& o) { return o.operation == operation; });
    return at == run.collectives.end() ? nullptr : &*at;
}

// `stepped`: whether some run has steps. For a run without steps, the figures "a step" cover its whole trace.
std::vector<Figure> time_figures(bool stepped) {
    const std::string per_step = stepped ? "us/step" : "us";
    std::vector<Figure> figures = {
        {stepped ? "Step time, median (us)" : "Whole trace (us)", 1,
         [](const RunColumn& r) {
             return Value{r.median_step_us, r.spread_step_us};
         }},
        {"Step time, mean (us)", 1,
         [](const RunColumn& r) {
             return Value{r.average_step_us, r.spread_step_us};
         }},
        {"Step time, spread (us)", 1,
         [](const RunColumn& r) {
             return Value{r.spread_step_us, 0};
         }},
    };
    if (!stepped) figures.resize(1);
    for (std::size_t c = 0; c < kTimeCategoryNames.size(); ++c) {
        figures.push_back({fmt::format("  {} (us)", kTimeCategoryNames[c]), 1, [c](const RunColumn& r) {
                               return Value{r.categories_us[c], r.categories_spread[c].spread};
                           }});
    }
    figures.push_back({fmt::format("Communication ({})", per_step), 1, [](const RunColumn& r) {
                           return Value{r.communication_us, r.communication_spread.spread};
                       }});
    figures.push_back({fmt::format("  exposed ({})", per_step), 1, [](const RunColumn& r) {
                           return Value{r.exposed_communication_us, r.exposed_communication_spread.spread};
                       }});
    figures.push_back({fmt::format("Memcpy ({})", per_step), 1, [](const RunColumn& r) {
                           return Value{r.memcpy_us, r.memcpy_spread.spread};
                       }});
    figures.push_back({"Device busy (%)", 2, [](const RunColumn& r) {
                           return Value{r.device_busy_percent, r.device_busy_spread.spread};
                       }});
    return figures;
}

std::vector<Figure> memory_figures(const Comparison& comparison) {
    std::vector<Figure> figures = {
        {"Peak memory (MB)", 2, [](const RunColumn& r) {
             return Value{r.peak_bytes > 0 ? static_cast<double>(r.peak_bytes) / kMb : kUnknown, 0};
         }}};
    for (std::size_t c = 0; c < kMemoryCategoryNames.size(); ++c) {
        const bool any = std::any_of(comparison.runs.begin(), comparison.runs.end(),
                                     [c](const RunColumn& r) { return r.at_peak[c] != 0; });
        if (!any) continue;
        figures.push_back(
            {fmt::format("  {} (MB)", kMemoryCategoryNames[c]), 2, [c](const RunColumn& r) {
                 return Value{r.peak_bytes > 0 ? static_cast<double>(r.at_peak[c]) / kMb : kUnknown, 0};
             }});
    }
    return figures;
}

std::vector<Figure> collective_figures(const Comparison& comparison, bool stepped) {
    std::vector<Figure> figures;
    for (int o = 0; o < kOperations; ++o) {
        const auto operation = static_cast<Operation>(o);
        // Work that happens only outside the steps (set-up) has nothing to compare per step.
        const bool any = std::any_of(comparison.runs.begin(), comparison.runs.end(), [&](const RunColumn& r) {
            const OperationStats* stats = find(r, operation);
            return stats != nullptr && stats->count_per_step > 0;
        });
        if (!any) continue;
        const auto add = [&](const char* what, int decimals, double OperationStats::*member, double unit) {
            figures.push_back({fmt::format("{} {}", name(operation), what), decimals,
                               [operation, member, unit](const RunColumn& r) {
                                   const OperationStats* stats = find(r, operation);
                                   if (stats == nullptr) return Value{0, 0};
                                   const bool unknown =
                                       member == &OperationStats::bytes_per_step && stats->bytes == 0;
                                   return Value{unknown ? kUnknown : stats->*member / unit, 0};
                               }});
        };
        add(stepped ? "(count/step)" : "(count)", 2, &OperationStats::count_per_step, 1);
        add(stepped ? "(MB/step)" : "(MB)", 2, &OperationStats::bytes_per_step, kMb);
        add(stepped ? "(us/step)" : "(us)", 1, &OperationStats::us_per_step, 1);
    }
    return figures;
}

void add_rows(TextTable& table, const Comparison& comparison, const std::vector<Figure>& figures) {
    for (const Figure& figure : figures) {
        std::vector<std::string> cells = {figure.title};
        const Value first = figure.of(comparison.runs.front());
        for (std::size_t r = 0; r < comparison.runs.size(); ++r) {
            const Value value = figure.of(comparison.runs[r]);
            cells.push_back(grouped(value.mean, figure.decimals));
            if (r > 0) cells.push_back(difference(value, first, figure.decimals));
        }
        table.row(std::move(cells));
    }
}

// "CPU Exec" -> "cpu_exec".
std::string snake_case(std::string_view name) {
    std::string result;
    for (const char c : name)
        result += c == ' ' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return result;
}

std::string table_text(const Comparison& comparison, std::size_t width) {
    if (comparison.runs.empty()) return "No runs to compare.\n";
    const std::vector<std::string> titles = run_titles(comparison);
    std::vector<std::string> header = {"Per rank, mean of the ranks"};
    std::vector<Align> align = {Align::left};
    for (std::size_t r = 0; r < titles.size(); ++r) {
        header.push_back(titles[r]);
        align.push_back(Align::right);
        if (r == 0) continue;
        header.push_back("against the first");
        align.push_back(Align::right);
    }
    TextTable table(align);
    table.header(std::move(header));
    const auto add_text = [&](const std::string& title,
                              const std::function<std::string(const RunColumn&)>& of) {
        std::vector<std::string> cells = {title};
        for (std::size_t r = 0; r < comparison.runs.size(); ++r) {
            cells.push_back(of(comparison.runs[r]));
            if (r > 0) cells.emplace_back();
        }
        table.row(std::move(cells));
    };
    for (std::size_t k = 0; k < comparison.runs.front().config.size(); ++k) {
        add_text(comparison.runs.front().config[k].first, [k](const RunColumn& run) {
            const std::string& value = run.config[k].second;
            return value.empty() ? std::string("-") : value;
        });
    }
    add_text("Ranks", [](const RunColumn& run) { return std::to_string(run.ranks); });
    add_text("Steps", [](const RunColumn& run) { return run.stepped ? grouped(run.steps) : "none"; });
    table.rule();
    const auto has_steps = [](const RunColumn& run) { return run.stepped; };
    const bool stepped = std::any_of(comparison.runs.begin(), comparison.runs.end(), has_steps);
    const bool all_stepped = std::all_of(comparison.runs.begin(), comparison.runs.end(), has_steps);
    add_rows(table, comparison, time_figures(stepped));
    table.rule();
    add_rows(table, comparison, memory_figures(comparison));
    const std::vector<Figure> collectives = collective_figures(comparison, stepped);
    if (!collectives.empty()) table.rule();
    add_rows(table, comparison, collectives);
    std::string notes =
        "MB = 2^20 bytes; the peak is that of the rank with the largest. ~ the difference is within the "
        "spread of the steps"
        " (half the interquartile range).";
    const auto left_out = [](const RunColumn& run) { return run.first_left_out; };
    if (std::any_of(comparison.runs.begin(), comparison.runs.end(), left_out))
        notes += " The median step and its spread exclude the trace's first step, which is the warm-up.";
    if (!all_stepped)
        notes += " A trace without steps counts as one step: its figures are of the whole trace.";
    for (std::size_t r = 0; r < comparison.runs.size(); ++r) {
        const RunColumn& run = comparison.runs[r];
        if (std::isnan(run.device_busy_percent))
            notes += fmt::format(
                " Nothing is recorded on a device in {}: its communication is that of host threads.",
                titles[r]);
        if (run.space == MemorySpace::host)
            notes +=
                fmt::format(" Memory of {} is host memory: nothing was allocated on a device.", titles[r]);
    }
    return table.text(width) + paragraph(notes, width);
}

std::string json_text(const Comparison& comparison) {
    Json runs = Json::array();
    for (const RunColumn& run : comparison.runs) {
        Json categories = Json::object();
        for (std::size_t c = 0; c < run.categories_us.size(); ++c) {
            categories[std::string(kTimeCategoryNames[c])] = {{"us", run.categories_us[c]},
                                                              {"median_us", run.categories_spread[c].median},
                                                              {"spread_us", run.categories_spread[c].spread}};
        }
        Json json = {{"file", run.file},
                     {"config", json_pairs(run.config)},
                     {"ranks", run.ranks},
                     {"stepped", run.stepped},
                     {"steps", run.steps},
                     {"average_step_us", run.average_step_us},
                     {"median_step_us", run.median_step_us},
                     {"spread_step_us", run.spread_step_us},
                     {"categories", std::move(categories)},
                     {"space", name(run.space)},
                     {"peak_bytes", known_or_null(run.peak_bytes)},
                     {"at_peak", bytes_by_category(run.at_peak)},
                     {"predicted_peak_bytes", nullptr},
                     {"communication_us", run.communication_us},
                     {"communication_spread_us", run.communication_spread.spread},
                     {"exposed_communication_us", run.exposed_communication_us},
                     {"exposed_communication_spread_us", run.exposed_communication_spread.spread},
                     {"memcpy_us", run.memcpy_us},
                     {"memcpy_spread_us", run.memcpy_spread.spread},
                     {"device_busy_percent", run.device_busy_percent},
                     {"device_busy_spread_percent", run.device_busy_spread.spread},
                     {"collectives", json_of(result_table(collective_fields(), run.collectives))}};
        if (run.predicted_peak_bytes >= 0) json["predicted_peak_bytes"] = run.predicted_peak_bytes;
        if (&run != &comparison.runs.front()) {
            json["step_inside_spread_of_first"] = inside_spread(comparison.runs.front(), run);
        }
        runs.push_back(std::move(json));
    }
    return json_line({{"runs", std::move(runs)}});
}

std::string csv_text(const Comparison& comparison) {
    std::vector<Column> names = csv_columns({"file", "ranks", "steps", "average_step_us", "median_step_us",
                                             "spread_step_us", "peak_bytes", "communication_us",
                                             "exposed_communication_us", "memcpy_us", "device_busy_percent"});
    // "communication" and "memcpy" alone are totals; the split counts only what no earlier category covers.
    for (const auto category : kTimeCategoryNames) names.push_back({"split_" + snake_case(category) + "_us"});
    for (const auto category : kMemoryCategoryNames)
        names.push_back({fmt::format("at_peak_{}_bytes", category)});
    if (!comparison.runs.empty()) {
        for (const auto& [key, value] : comparison.runs.front().config) names.push_back({key});
    }
    std::vector<std::vector<Cell>> rows;
    for (const RunColumn& run : comparison.runs) {
        std::vector<Cell> row = {to_cell(run.file),
                                 to_cell(run.ranks),
                                 run.steps,
                                 run.average_step_us,
                                 run.median_step_us,
                                 run.spread_step_us,
                                 Cell(),  // the peak
                                 run.communication_us,
                                 run.exposed_communication_us,
                                 run.memcpy_us,
                                 run.device_busy_percent};
        if (run.peak_bytes > 0) row[6] = run.peak_bytes;
        row.insert(row.end(), run.categories_us.begin(), run.categories_us.end());
        row.insert(row.end(), run.at_peak.begin(), run.at_peak.end());
        for (const auto& [key, value] : run.config) row.emplace_back(value);
        rows.push_back(std::move(row));
    }
    return rows_csv(names, rows);
}

}  // namespace

std::string render(const Comparison& result, Format format, std::size_t width) {
    return render_as(
        format, [&] { return table_text(result, width); }, [&] { return json_text(result); },
        [&] { return csv_text(result); });
}

}  // namespace shardscope::traces
