// The Execution Summary.

#include "traces/analysis/time/summary.h"

#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/print.h"

namespace shardscope::traces::report {
using Json = nlohmann::ordered_json;

namespace {

std::string table_text(const analysis::ExecutionSummary& summary, std::size_t width) {
    if (summary.ranks.empty()) return std::string(kNothingSelected);
    std::string text;
    for (const analysis::RankSummary& rank : summary.ranks) {
        if (!text.empty()) text += '\n';
        text += summary.stepped ? fmt::format("Rank {}: mean of {}", rank.rank,
                                              store::counted(size_of(rank.steps), "step", "steps"))
                                : fmt::format("Rank {}: the whole trace, which has no steps", rank.rank);
        if (rank.cut_steps > 0) {
            text += fmt::format(" ({} at the end cut off and excluded)", store::grouped(rank.cut_steps));
        }
        if (summary.stepped && !rank.steps.empty())
            text += fmt::format("; median {} µs, host step {} µs", us(rank.median_step_us),
                                us(rank.average_host_step_us));
        text += '\n';
        analysis::ResultTable table =
            result_table(analysis::category_time_fields(), category_times(summary, rank));
        if (!summary.stepped) table.rows.front().front() = std::string("Whole trace");
        text += text_of(table, width);
    }
    if (!summary.has(analysis::TimeCategory::communication)) text += "Kernel includes communication.\n";
    if (!summary.stepped) return text;
    const auto left_out = [](const analysis::RankSummary& rank) { return rank.first_left_out; };
    const bool any = std::any_of(summary.ranks.begin(), summary.ranks.end(), left_out);
    return text +
           paragraph(fmt::format("A step's time is its window: from the end of the device work before it to "
                                 "the end of its own. The host step is its range on the host.{}",
                                 any ? " The median excludes the trace's first step." : ""),
                     width);
}

std::string json_text(const analysis::ExecutionSummary& summary) {
    return ranks_line(summary.ranks, [&](const analysis::RankSummary& rank) {
        Json categories = Json::object();
        const std::vector<analysis::CategoryTime> times = category_times(summary, rank);
        for (std::size_t t = 1; t < times.size(); ++t)  // 0 is the step itself
            categories[std::string(times[t].name)] = {{"us", json_of(times[t].us)},
                                                      {"percent", json_of(times[t].percent)}};
        Json json = {{"rank", rank.rank},
                     {"steps", rank.steps.size()},
                     {"cut_steps", rank.cut_steps},
                     {"communication_folded", !summary.has(analysis::TimeCategory::communication)},
                     {"stepped", summary.stepped},
                     {"average_step_us", rank.average_step_us},
                     {"median_step_us", rank.median_step_us},
                     {"average_host_step_us", rank.average_host_step_us},
                     {"categories", std::move(categories)}};
        Json per_step = Json::array();
        for (const analysis::StepSummary& step : rank.steps) {
            Json ns = Json::object();
            for (std::size_t c = 0; c < step.ns.size(); ++c)
                if (summary.has(static_cast<analysis::TimeCategory>(c)))
                    ns[std::string(analysis::kTimeCategoryNames[c])] =
                        rank.knows(static_cast<analysis::TimeCategory>(c)) ? Json(step.ns[c]) : Json(nullptr);
            per_step.push_back({{"step", step.number},
                                {"start_ns", step.window_start},
                                {"end_ns", step.window_end},
                                {"host_ns", step.host_ns},
                                {"categories_ns", std::move(ns)}});
        }
        json["per_step"] = std::move(per_step);
        return json;
    });
}

std::string csv_text(const analysis::ExecutionSummary& summary) {
    analysis::ResultTable table =
        empty_table(analysis::category_time_fields(),
                    {analysis::kRankColumn, {"steps", "Steps", analysis::Unit::count, "Kept steps."}});
    for (const analysis::RankSummary& rank : summary.ranks) {
        for (const analysis::CategoryTime& time : category_times(summary, rank)) {
            table.rows.push_back({analysis::to_cell(rank.rank), size_of(rank.steps)});
            add_cells(table.rows.back(), analysis::category_time_fields(), time);
        }
    }
    return csv_of(table);
}

}  // namespace

std::string render(const analysis::ExecutionSummary& result, Format format, std::size_t width) {
    return render_as(result, format, width, table_text, json_text, csv_text);
}

}  // namespace shardscope::traces::report
