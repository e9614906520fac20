// Runs at several sizes as a table, JSON and CSV; see scaling_report.
#include "traces/analysis/compare/scaling.h"

#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/print.h"

namespace shardscope::traces::report {
namespace {

using Json = nlohmann::ordered_json;

// The end of a path, which tells files apart.
std::string file_text(const std::string& path) {
    constexpr std::size_t kMost = 28;
    const std::string name = printable(base_name(path));
    return display_width(name) > kMost && name.size() > kMost ? "..." + name.substr(name.size() - kMost + 3)
                                                              : name;
}

// How much longer a part of a step takes than in the baseline.
std::string grown(double value, double base) {
    return analysis::cell_text({.unit = analysis::Unit::us, .difference = true}, value - base);
}

std::string runs_table(const analysis::ScalingReport& report, bool tokens, std::size_t width) {
    analysis::ResultTable table = without(result_table(analysis::scaling_fields(), report.runs),
                                          {tokens ? "samples_per_second" : "tokens_per_second"});
    for (std::size_t r = 0; r < report.runs.size(); ++r) table.rows[r][1] = file_text(report.runs[r].file);
    return text_of(table, width, 2);
}

// A sentence on the settings besides its size in which a run differs from the baseline.
std::string difference_note(const analysis::ScalingRun& run, const analysis::ScalingRun& base) {
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
std::string scaling_parts_table(const analysis::ScalingReport& report, std::size_t width) {
    std::vector<Align> align = {Align::left};
    std::vector<std::string> header = {"µs per step"};
    const analysis::ScalingRun& base = report.runs[report.baseline];
    for (std::size_t r = 0; r < report.runs.size(); ++r) {
        header.push_back(store::counted(report.runs[r].ranks, "rank", "ranks"));
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
    for (std::size_t c = 0; c < analysis::kTimeCategoryNames.size(); ++c)
        add(analysis::kTimeCategoryNames[c],
            [c](const analysis::ScalingRun& run) { return run.categories_us[c]; });
    table.rule();
    add("step", [](const analysis::ScalingRun& run) { return run.step_us; });
    bool any = false;
    for (std::size_t o = 0; o < schema::kOperations; ++o) {
        const auto operation = static_cast<schema::Operation>(o);
        if (std::none_of(report.runs.begin(), report.runs.end(),
                         [&](const analysis::ScalingRun& run) { return run.us_of(operation) > 0; }))
            continue;
        if (!any) table.rule();
        any = true;
        add(name(operation), [operation](const analysis::ScalingRun& run) { return run.us_of(operation); });
    }
    return "\nCommunication is its exposed part; collectives by operation include the hidden part, on one "
           "rank\n" +
           table.text(width);
}

std::string table_text(const analysis::ScalingReport& report, std::size_t width) {
    if (report.runs.empty()) return "No run.\n";
    bool all_tokens = true, all_samples = true;
    std::string notes;
    for (const analysis::ScalingRun& run : report.runs) {
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
    return text + scaling_parts_table(report, width);
}

std::string json_text(const analysis::ScalingReport& report) {
    Json runs = Json::array();
    for (const analysis::ScalingRun& run : report.runs) {
        Json json = json_row(analysis::scaling_fields(), run);
        json["differs"] = run.differs;
        json["categories_us"] = Json::object();
        for (std::size_t c = 0; c < run.categories_us.size(); ++c)
            json["categories_us"][std::string(analysis::kTimeCategoryNames[c])] = run.categories_us[c];
        json["operations"] = json_of(result_table(analysis::operation_time_fields(), run.operations));
        runs.push_back(std::move(json));
    }
    return json_line({{"runs", std::move(runs)}});
}

std::string csv_text(const analysis::ScalingReport& report) {
    std::vector<std::string> keys;
    keys.reserve(analysis::kTimeCategoryNames.size() + schema::kOperationNames.size());
    for (const auto category : analysis::kTimeCategoryNames) keys.push_back(split_key(category));
    for (const auto operation : schema::kOperationNames) keys.push_back(fmt::format("{}_us", operation));
    analysis::ResultTable table = result_table(analysis::scaling_fields(), report.runs);
    for (const std::string& key : keys) table.columns.push_back({key, {}, analysis::Unit::us});
    for (std::size_t r = 0; r < report.runs.size(); ++r) {
        const analysis::ScalingRun& run = report.runs[r];
        table.rows[r].insert(table.rows[r].end(), run.categories_us.begin(), run.categories_us.end());
        for (std::size_t o = 0; o < schema::kOperations; ++o)
            table.rows[r].emplace_back(run.us_of(static_cast<schema::Operation>(o)));
    }
    return csv_of(table);
}

}  // namespace

std::string render(const analysis::ScalingReport& result, Format format, std::size_t width) {
    return render_as(result, format, width, table_text, json_text, csv_text);
}

}  // namespace shardscope::traces::report
