// The temporal breakdown; see temporal_fields().
#include "traces/analysis/time/temporal.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/print.h"

namespace shardscope::traces {
namespace {

using Json = nlohmann::ordered_json;

ResultTable temporal_table() {
    return empty_table(
        temporal_fields(),
        {kRankColumn, {"step", "Step", Unit::index, "Number of the step; none: all of the time."}});
}

void add_row(ResultTable& table, int rank, Cell step, const TemporalParts& parts) {
    table.rows.push_back({std::int64_t{rank}, std::move(step)});
    add_cells(table.rows.back(), temporal_fields(), parts);
}

Json with(Json json, const TemporalParts& parts) {
    json.update(json_row(temporal_fields(), parts));
    return json;
}

std::string table_text(const TemporalReport& report, std::size_t width) {
    if (report.ranks.empty()) return std::string(kNothingSelected);
    ResultTable table = temporal_table();
    for (const RankTemporal& rank : report.ranks) {
        if (report.ranks.size() == 1 && rank.steps.size() > 1) {
            for (const StepTemporal& step : rank.steps) add_row(table, rank.rank, step.number, step.parts);
            table.rules.push_back(table.rows.size());
        }
        add_row(table, rank.rank, std::string("all"), rank.whole);
    }
    return paragraph(
               "From the first to the last device event. Communication counts outside compute, memory "
               "(copies and fills) outside both.",
               width) +
           text_of(table, width, 2);
}

std::string json_text(const TemporalReport& report) {
    Json ranks = Json::array();
    for (const RankTemporal& rank : report.ranks) {
        Json json = with({{"rank", rank.rank}}, rank.whole);
        json["cut_steps"] = rank.cut_steps;
        Json steps = Json::array();
        for (const StepTemporal& step : rank.steps)
            steps.push_back(with({{"step", step.number}}, step.parts));
        json["per_step"] = std::move(steps);
        ranks.push_back(std::move(json));
    }
    return json_line({{"ranks", std::move(ranks)}});
}

std::string csv_text(const TemporalReport& report) {
    ResultTable table = temporal_table();
    for (const RankTemporal& rank : report.ranks) {
        add_row(table, rank.rank, {}, rank.whole);
        for (const StepTemporal& step : rank.steps) add_row(table, rank.rank, step.number, step.parts);
    }
    return csv_of(table);
}

}  // namespace

std::string render(const TemporalReport& result, Format format, std::size_t width) {
    return render_as(result, format, width, table_text, json_text, csv_text);
}

}  // namespace shardscope::traces
