// The overlap of communication with compute, and the temporal breakdown: parts of a rank's device time by
// step; see overlap_fields() and temporal_fields().
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/analysis/time/overlap.h"
#include "traces/analysis/time/temporal.h"
#include "traces/report/print.h"

namespace shardscope::traces::report {
namespace {

using Json = nlohmann::ordered_json;

analysis::MeanOverlap whole_of(const analysis::RankOverlap& rank) {
    return {rank.sum, rank.steps.empty() ? 1.0 : static_cast<double>(rank.steps.size())};
}
const analysis::TemporalParts& whole_of(const analysis::RankTemporal& rank) {
    return rank.whole;
}
analysis::MeanOverlap parts_of(const analysis::StepOverlap& step) {
    return {step.parts};
}
const analysis::TemporalParts& parts_of(const analysis::StepTemporal& step) {
    return step.parts;
}

template <class Row>
analysis::ResultTable table_by_step(analysis::Fields<Row> fields) {
    return analysis::empty_table(
        fields, {analysis::kRankColumn,
                 {"step", "Step", analysis::Unit::index, "Number of the step; none: all of the time."}});
}

template <class Row>
void add_row(analysis::ResultTable& table, analysis::Fields<Row> fields, int rank, store::Cell step,
             const Row& parts) {
    table.rows.push_back({analysis::to_cell(rank), std::move(step)});
    analysis::add_cells(table.rows.back(), fields, parts);
}

template <class Rank, class Row>
void add_steps(analysis::ResultTable& table, analysis::Fields<Row> fields, const Rank& rank) {
    for (const auto& step : rank.steps) add_row<Row>(table, fields, rank.rank, step.number, parts_of(step));
}

// For one rank, a row per step above its row `whole`; for several ranks, only their rows `whole`.
template <class Report, class Row>
std::string steps_table(const Report& report, analysis::Fields<Row> fields, const char* whole,
                        std::size_t width) {
    analysis::ResultTable table = table_by_step(fields);
    for (const auto& rank : report.ranks) {
        if (report.ranks.size() == 1 && rank.steps.size() > 1) {
            add_steps(table, fields, rank);
            table.rules.push_back(table.rows.size());
        }
        add_row<Row>(table, fields, rank.rank, analysis::to_cell(whole), whole_of(rank));
    }
    return text_of(table, width, 2);
}

template <class Rank, class Row>
Json steps_json(const Rank& rank, analysis::Fields<Row> fields) {
    Json steps = Json::array();
    for (const auto& step : rank.steps)
        steps.push_back(with({{"step", step.number}}, json_row<Row>(fields, parts_of(step))));
    return steps;
}

std::string table_text(const analysis::OverlapReport& report, std::size_t width) {
    if (report.ranks.empty()) return std::string(kNothingSelected);
    std::int64_t cut = 0;
    for (const analysis::RankOverlap& rank : report.ranks) cut += rank.cut_steps;
    std::string text =
        "Mean of the steps; overlap is the share of communication that ran at the same time as compute "
        "kernels.\n" +
        steps_table(report, analysis::overlap_fields(), "mean", width);
    if (cut > 0) text += fmt::format("Excluded as cut off: {} at the end.\n", store::grouped(cut));
    return text;
}

std::string table_text(const analysis::TemporalReport& report, std::size_t width) {
    if (report.ranks.empty()) return std::string(kNothingSelected);
    return paragraph(
               "From the first to the last device event. Communication counts outside compute, memory "
               "(copies and fills) outside both.",
               width) +
           steps_table(report, analysis::temporal_fields(), "all", width);
}

std::string json_text(const analysis::OverlapReport& report) {
    return ranks_line(report.ranks, [](const analysis::RankOverlap& rank) {
        Json json = with({{"rank", rank.rank}}, json_row(analysis::overlap_fields(), whole_of(rank)));
        json["steps"] = rank.steps.size();
        json["cut_steps"] = rank.cut_steps;
        json["per_step"] = steps_json(rank, analysis::overlap_fields());
        json["device_time"] = json_row(analysis::overlap_fields(), analysis::MeanOverlap{rank.device_time});
        return json;
    });
}

std::string json_text(const analysis::TemporalReport& report) {
    return ranks_line(report.ranks, [](const analysis::RankTemporal& rank) {
        Json json = with({{"rank", rank.rank}}, json_row(analysis::temporal_fields(), rank.whole));
        json["cut_steps"] = rank.cut_steps;
        json["per_step"] = steps_json(rank, analysis::temporal_fields());
        return json;
    });
}

std::string csv_text(const analysis::OverlapReport& report) {
    analysis::ResultTable table = table_by_step(analysis::overlap_fields());
    for (const analysis::RankOverlap& rank : report.ranks) add_steps(table, analysis::overlap_fields(), rank);
    return csv_of(table);
}

std::string csv_text(const analysis::TemporalReport& report) {
    analysis::ResultTable table = table_by_step(analysis::temporal_fields());
    for (const analysis::RankTemporal& rank : report.ranks) {
        add_row(table, analysis::temporal_fields(), rank.rank, {}, rank.whole);
        add_steps(table, analysis::temporal_fields(), rank);
    }
    return csv_of(table);
}

}  // namespace

std::string render(const analysis::OverlapReport& result, Format format, std::size_t width) {
    return render_as(result, format, width, table_text, json_text, csv_text);
}

std::string render(const analysis::TemporalReport& result, Format format, std::size_t width) {
    return render_as(result, format, width, table_text, json_text, csv_text);
}

}  // namespace shardscope::traces::report
