// Communication and the compute that overlaps it; see overlap_fields().
#include "traces/analysis/time/overlap.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/print.h"

namespace shardscope::traces {
namespace {

using Json = nlohmann::ordered_json;

MeanOverlap mean_of(const RankOverlap& rank) {
    return {rank.sum, rank.steps.empty() ? 1.0 : static_cast<double>(rank.steps.size())};
}

ResultTable overlap_table() {
    return empty_table(overlap_fields(), {kRankColumn, {"step", "Step", Unit::index, "Number of the step."}});
}

void add_row(ResultTable& table, int rank, Cell step, const MeanOverlap& mean) {
    table.rows.push_back({std::int64_t{rank}, std::move(step)});
    add_cells(table.rows.back(), overlap_fields(), mean);
}

Json with(Json json, const MeanOverlap& mean) {
    json.update(json_row(overlap_fields(), mean));
    return json;
}

std::string table_text(const OverlapReport& report, std::size_t width) {
    if (report.ranks.empty()) return std::string(kNothingSelected);
    ResultTable table = overlap_table();
    std::int64_t cut = 0;
    for (const RankOverlap& rank : report.ranks) {
        cut += rank.cut_steps;
        // Rows for each step of one rank; with several ranks, their averages side by side.
        if (report.ranks.size() == 1 && rank.steps.size() > 1) {
            for (const StepOverlap& step : rank.steps) add_row(table, rank.rank, step.number, {step.parts});
            table.rules.push_back(table.rows.size());
        }
        add_row(table, rank.rank, std::string("mean"), mean_of(rank));
    }
    std::string text =
        "Mean of the steps; overlap is the share of communication that ran at the same time as compute "
        "kernels.\n" +
        text_of(table, width, 2);
    if (cut > 0) text += fmt::format("Left out as cut off: {} at the end.\n", grouped(cut));
    return text;
}

std::string json_text(const OverlapReport& report) {
    Json ranks = Json::array();
    for (const RankOverlap& rank : report.ranks) {
        Json json = with({{"rank", rank.rank}}, mean_of(rank));
        json["steps"] = rank.steps.size();
        json["cut_steps"] = rank.cut_steps;
        Json steps = Json::array();
        for (const StepOverlap& step : rank.steps)
            steps.push_back(with({{"step", step.number}}, {step.parts}));
        json["per_step"] = std::move(steps);
        json["device_time"] = json_row(overlap_fields(), MeanOverlap{rank.device_time});
        ranks.push_back(std::move(json));
    }
    return json_line({{"ranks", std::move(ranks)}});
}

std::string csv_text(const OverlapReport& report) {
    ResultTable table = overlap_table();
    for (const RankOverlap& rank : report.ranks) {
        for (const StepOverlap& step : rank.steps) add_row(table, rank.rank, step.number, {step.parts});
    }
    return csv_of(table);
}

}  // namespace

std::string render(const OverlapReport& result, Format format, std::size_t width) {
    return render_as(result, format, width, table_text, json_text, csv_text);
}

}  // namespace shardscope::traces
