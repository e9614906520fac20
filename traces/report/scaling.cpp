// Runs at several sizes as a table, JSON and CSV; see scaling_report.
#include "traces/analysis/compare/scaling.h"

#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/formats.h"
#include "traces/report/units.h"
#include "traces/schema/json_text.h"
#include "traces/store/grouped.h"

namespace shardscope::traces {
namespace {

using Json = nlohmann::ordered_json;

std::string known(double value, int decimals) {
    return value > 0 ? grouped(value, decimals) : "-";
}
Json known_json(double value) {
    return value > 0 ? Json(value) : Json(nullptr);
}

std::string ranks_text(const ScalingRun& run) {
    return run.ranks == run.ranks_in_trace ? std::to_string(run.ranks)
                                           : fmt::format("{} ({} here)", run.ranks, run.ranks_in_trace);
}

double us_of(const ScalingRun& run, Operation operation) {
    for (const OperationTime& o : run.operations) {
        if (o.operation == operation) return o.us;
    }
    return 0;
}

// The end of a path, which distinguishes files.
std::string file_text(const std::string& path) {
    constexpr std::size_t kMost = 28;
    const std::string name = printable(path.substr(path.find_last_of('/') + 1));
    return display_width(name) > kMost && name.size() > kMost ? "..." + name.substr(name.size() - kMost + 3)
                                                              : name;
}

std::string grown(double value, double base) {
    const std::string text = us(value - base);  // "-" if one of them is unknown
    return value >= base ? "+" + text : text;
}

std::string runs_table(const ScalingReport& report, bool tokens, std::size_t width) {
    TextTable table({Align::right, Align::left, Align::right, Align::right, Align::right, Align::right,
                     Align::left, Align::right},
                    2);
    table.header({"Ranks", "Run", "Step (us)", tokens ? "Tokens/s" : "Samples/s", "Speed-up",
                  "Efficiency (%)", "Grew most", "by (us)"});
    for (const ScalingRun& run : report.runs) {
        table.row({ranks_text(run), file_text(run.file), us(run.step_us),
                   known(tokens ? run.tokens_per_second() : run.samples_per_second(), 1),
                   known(run.speed_up, 3), known(100 * run.efficiency, 1),
                   run.grew >= 0 ? std::string(kTimeCategoryNames[static_cast<std::size_t>(run.grew)]) : "-",
                   run.grew >= 0 ? grown(run.grew_us, 0) : ""});
    }
    return table.text(width);
}

// Why a run's figures do not depend on its size alone, as a sentence.
std::string difference_note(const ScalingRun& run, const ScalingRun& base) {
    if (run.differs.empty()) return {};
    constexpr std::size_t kMost = 4;
    std::string what;
    for (std::size_t i = 0; i < std::min(run.differs.size(), kMost); ++i)
        what += (i > 0 ? ", " : "") + printable(run.differs[i]);
    if (run.differs.size() > kMost) what += fmt::format(" and {} more", run.differs.size() - kMost);
    if (!run.same_model)
        return fmt::format("{} trains another model than {}, so no speed-up is given: {}. ",
                           file_text(run.file), file_text(base.file), what);
    return fmt::format("{} differs from {} in more than its size: {}. ", file_text(run.file),
                       file_text(base.file), what);
}

// One row for each part of a step, one column for each run and, after the first, its difference.
std::string parts_table(const ScalingReport& report, std::size_t width) {
    std::vector<Align> align = {Align::left};
    std::vector<std::string> header = {"us per step"};
    const ScalingRun& base = report.runs[report.baseline];
    for (std::size_t r = 0; r < report.runs.size(); ++r) {
        header.push_back(counted(report.runs[r].ranks, "rank", "ranks"));
        align.push_back(Align::right);
        if (r == report.baseline) continue;
        header.emplace_back("more");
        align.push_back(Align::right);
    }
    TextTable table(align);
    table.header(header);
    const auto add = [&](std::string_view name, auto value) {
        std::vector<std::string> cells = {std::string(name)};
        for (std::size_t r = 0; r < report.runs.size(); ++r) {
            cells.push_back(us(value(report.runs[r])));
            if (r != report.baseline) cells.push_back(grown(value(report.runs[r]), value(base)));
        }
        table.row(std::move(cells));
    };
    for (std::size_t c = 0; c < kTimeCategoryNames.size(); ++c)
        add(kTimeCategoryNames[c], [c](const ScalingRun& run) { return run.categories_us[c]; });
    table.rule();
    add("step", [](const ScalingRun& run) { return run.step_us; });
    bool any = false;
    for (std::size_t o = 0; o < kOperations; ++o) {
        const auto operation = static_cast<Operation>(o);
        if (std::none_of(report.runs.begin(), report.runs.end(),
                         [&](const ScalingRun& run) { return us_of(run, operation) > 0; }))
            continue;
        if (!any) table.rule();
        any = true;
        add(name(operation), [operation](const ScalingRun& run) { return us_of(run, operation); });
    }
    return "\nCommunication is its exposed part; collectives by operation include the hidden part, on one "
           "rank\n" +
           table.text(width);
}

std::string table_text(const ScalingReport& report, std::size_t width) {
    if (report.runs.empty()) return "No run.\n";
    bool all_tokens = true, all_samples = true;
    std::string notes;
    for (const ScalingRun& run : report.runs) {
        notes += difference_note(run, report.runs[report.baseline]);
        all_tokens = all_tokens && run.tokens_per_step > 0;
        all_samples = all_samples && run.samples_per_step > 0;
    }
    std::string text = "Mean per step; efficiency = speed-up / (ranks / fewest ranks)\n" +
                       runs_table(report, all_tokens, width);
    text += notes.empty() ? notes : paragraph(notes, width);
    if (!all_samples) {
        text +=
            "Not every run's configuration contains its batch: no speed-up can be given for those with "
            "\"-\".\n";
    }
    return text + parts_table(report, width);
}

std::string json_text(const ScalingReport& report) {
    Json runs = Json::array();
    for (const ScalingRun& run : report.runs) {
        Json categories = Json::object(), operations = Json::array();
        for (std::size_t c = 0; c < run.categories_us.size(); ++c)
            categories[std::string(kTimeCategoryNames[c])] = run.categories_us[c];
        for (const OperationTime& o : run.operations) {
            operations.push_back({{"name", name(o.operation)},
                                  {"count_per_step", o.count},
                                  {"bytes_per_step", known_json(o.bytes)},
                                  {"us_per_step", o.us},
                                  {"transfer_us_per_step", o.transfer_us}});
        }
        runs.push_back({{"file", run.file},
                        {"ranks", run.ranks},
                        {"ranks_in_trace", run.ranks_in_trace},
                        {"steps", run.steps},
                        {"average_step_us", run.step_us},
                        {"samples_per_second", known_json(run.samples_per_second())},
                        {"tokens_per_second", known_json(run.tokens_per_second())},
                        {"same_model", run.same_model},
                        {"differs", run.differs},
                        {"speed_up", known_json(run.speed_up)},
                        {"efficiency", known_json(run.efficiency)},
                        {"grew", run.grew >= 0 ? Json(kTimeCategoryNames[static_cast<std::size_t>(run.grew)])
                                               : Json(nullptr)},
                        {"grew_us", run.same_model ? Json(run.grew_us) : Json(nullptr)},
                        {"categories_us", std::move(categories)},
                        {"operations", std::move(operations)}});
    }
    return dump_json(Json{{"runs", std::move(runs)}}) + "\n";
}

std::string csv_text(const ScalingReport& report) {
    std::vector<Column> columns;
    for (const char* column : {"file", "ranks", "ranks_in_trace", "steps", "average_step_us",
                               "samples_per_second", "tokens_per_second", "speed_up", "efficiency"})
        columns.push_back({column});
    const auto key = [](std::string_view name) {
        std::string text(name);
        for (char& c : text)
            c = c == ' ' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        return text;
    };
    for (const auto category : kTimeCategoryNames) columns.push_back({"split_" + key(category) + "_us"});
    for (const auto operation : kOperationNames) columns.push_back({fmt::format("{}_us", operation)});
    std::vector<std::vector<Cell>> rows;
    const auto cell = [](double value) { return value > 0 ? Cell{value} : Cell{}; };
    for (const ScalingRun& run : report.runs) {
        std::vector<Cell> row = {run.file,
                                 std::int64_t{run.ranks},
                                 std::int64_t{run.ranks_in_trace},
                                 run.steps,
                                 run.step_us,
                                 cell(run.samples_per_second()),
                                 cell(run.tokens_per_second()),
                                 cell(run.speed_up),
                                 cell(run.efficiency)};
        for (const double us : run.categories_us) row.emplace_back(us);
        for (std::size_t o = 0; o < kOperations; ++o) row.emplace_back(us_of(run, static_cast<Operation>(o)));
        rows.push_back(std::move(row));
    }
    return rows_csv(columns, rows);
}

}  // namespace

std::string render(const ScalingReport& result, Format format, std::size_t width) {
    return render_as(
        format, [&] { return table_text(result, width); }, [&] { return json_text(result); },
        [&] { return csv_text(result); });
}

}  // namespace shardscope::traces
