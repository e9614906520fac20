// Steps; see step_fields() and step_across_fields().
#include "traces/analysis/time/steps.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/print.h"

namespace shardscope::traces::report {
namespace {

using Json = nlohmann::ordered_json;

Json step_json(const analysis::StepOfRank& row) {
    Json json = json_row(analysis::step_fields(), row);
    Json& categories = json["categories_us"] = Json::object();
    for (std::size_t c = 0; c < row.step.summary.ns.size(); ++c)
        categories[std::string(analysis::kTimeCategoryNames[c])] =
            row.rank.knows(static_cast<analysis::TimeCategory>(c)) ? Json(to_us(row.step.summary.ns[c]))
                                                                   : Json(nullptr);
    return json;
}

std::string table_text(const analysis::StepsReport& report, std::size_t width) {
    if (report.ranks.empty()) return std::string(kNothingSelected);
    std::string text =
        "Host: the step's range on the host. Window: from the end of the device work before it to the end\n"
        "of its own. Categories and busy (any device work): % of the window. Diff: against the rank's\n"
        "median window, which excludes the trace's first step if three or more are kept.\n";
    for (const analysis::RankStepDetails& rank : report.ranks) {
        text += fmt::format("\nRank {}: {}", rank.rank, store::counted(size_of(rank.steps), "step", "steps"));
        if (rank.cut_steps > 0)
            text += fmt::format(" ({} at the end cut off and excluded)", store::grouped(rank.cut_steps));
        text += '\n' + text_of(result_table(analysis::step_fields(), step_rows(rank)), width);
    }
    if (report.across.empty()) return text;
    return text + "\nAcross ranks\n" +
           text_of(result_table(analysis::step_across_fields(), report.across), width);
}

std::string json_text(const analysis::StepsReport& report) {
    Json ranks = Json::array();
    for (const analysis::RankStepDetails& rank : report.ranks) {
        Json steps = Json::array();
        for (const analysis::StepOfRank& row : step_rows(rank)) steps.push_back(step_json(row));
        Json json = {{"rank", rank.rank},
                     {"cut_steps", rank.cut_steps},
                     {"median_us", to_us(rank.median_window)},
                     {"slowest_step", nullptr},
                     {"steps", std::move(steps)}};
        if (rank.slowest >= 0)
            json["slowest_step"] = rank.steps[static_cast<std::size_t>(rank.slowest)].summary.number;
        ranks.push_back(std::move(json));
    }
    return json_line(
        {{"ranks", std::move(ranks)},
         {"across_ranks", json_of(result_table(analysis::step_across_fields(), report.across))}});
}

std::string csv_text(const analysis::StepsReport& report) {
    analysis::ResultTable table = empty_table(analysis::step_fields(), {analysis::kRankColumn});
    for (const analysis::RankStepDetails& rank : report.ranks) {
        for (const analysis::StepOfRank& row : step_rows(rank)) {
            table.rows.push_back({analysis::to_cell(rank.rank)});
            add_cells(table.rows.back(), analysis::step_fields(), row);
        }
    }
    return csv_of(table);
}

}  // namespace

std::string render(const analysis::StepsReport& result, Format format, std::size_t width) {
    return render_as(result, format, width, table_text, json_text, csv_text);
}

}  // namespace shardscope::traces::report
