// Steps; see step_fields() and step_across_fields().
#include "traces/analysis/time/steps.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/print.h"

namespace shardscope::traces {
namespace {

using Json = nlohmann::ordered_json;

Json step_json(const StepOfRank& row) {
    Json json = json_row(step_fields(), row);
    Json& categories = json["categories_us"] = Json::object();
    for (std::size_t c = 0; c < row.step.summary.ns.size(); ++c)
        categories[std::string(kTimeCategoryNames[c])] = row.rank.knows(static_cast<TimeCategory>(c))
                                                             ? Json(to_us(row.step.summary.ns[c]))
                                                             : Json(nullptr);
    return json;
}

std::string table_text(const StepsReport& report, std::size_t width) {
    if (report.ranks.empty()) return std::string(kNothingSelected);
    std::string text =
        "Host: the step's range on the host. Window: from the end of the device work before it to the end\n"
        "of its own. Categories and busy (any device work): % of the window. Diff: against the rank's\n"
        "median window, which excludes the trace's first step if three or more are kept.\n";
    for (const RankStepDetails& rank : report.ranks) {
        text += fmt::format("\nRank {}: {}", rank.rank, counted(size_of(rank.steps), "step", "steps"));
        if (rank.cut_steps > 0)
            text += fmt::format(" ({} at the end cut off and excluded)", grouped(rank.cut_steps));
        text += '\n' + text_of(result_table(step_fields(), step_rows(rank)), width);
    }
    if (report.across.empty()) return text;
    return text + "\nAcross ranks\n" + text_of(result_table(step_across_fields(), report.across), width);
}

std::string json_text(const StepsReport& report) {
    Json ranks = Json::array();
    for (const RankStepDetails& rank : report.ranks) {
        Json steps = Json::array();
        for (const StepOfRank& row : step_rows(rank)) steps.push_back(step_json(row));
        Json json = {{"rank", rank.rank},
                     {"cut_steps", rank.cut_steps},
                     {"median_us", to_us(rank.median_window)},
                     {"slowest_step", nullptr},
                     {"steps", std::move(steps)}};
        if (rank.slowest >= 0)
            json["slowest_step"] = rank.steps[static_cast<std::size_t>(rank.slowest)].summary.number;
        ranks.push_back(std::move(json));
    }
    return json_line({{"ranks", std::move(ranks)},
                      {"across_ranks", json_of(result_table(step_across_fields(), report.across))}});
}

std::string csv_text(const StepsReport& report) {
    ResultTable table = empty_table(step_fields(), {kRankColumn});
    for (const RankStepDetails& rank : report.ranks) {
        for (const StepOfRank& row : step_rows(rank)) {
            table.rows.push_back({to_cell(rank.rank)});
            add_cells(table.rows.back(), step_fields(), row);
        }
    }
    return csv_of(table);
}

}  // namespace

std::string render(const StepsReport& result, Format format, std::size_t width) {
    return render_as(result, format, width, table_text, json_text, csv_text);
}

}  // namespace shardscope::traces
