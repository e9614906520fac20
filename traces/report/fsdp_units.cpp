// The FSDP units' costs; see unit_fields() and unit_rank_fields().
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/analysis/fsdp/units.h"
#include "traces/report/print.h"

namespace shardscope::traces::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kNoUnits =
    "This trace contains no FSDP units: it has neither the trainer's units nor ranges such as "
    "FullyShardedDataParallel.forward or FSDP::all_gather.";

Json unit_json(const analysis::UnitMeans& means) {
    Json json = json_row(analysis::unit_fields(), means);
    Json& steps = json["steps"] = Json::array();
    for (const analysis::UnitStep& step : means.row.steps) {
        const analysis::UnitPhase one{
            .name = {}, .phase = {}, .sum = step.costs, .steps = {}, .hidden_by = {}};
        steps.push_back(with({{"step", step.number}},
                             json_row(analysis::unit_sum_fields(), analysis::UnitMeans{one, 1})));
    }
    return json;
}

// The row "max/mean" below the rows of the ranks.
std::vector<store::Cell> unevenness_row(const analysis::Unevenness& uneven,
                                        const analysis::ResultTable& table) {
    const auto ratio = [](double value) { return store::Cell(value > 0 ? store::grouped(value, 3) : "-"); };
    std::vector<store::Cell> cells;
    for (const analysis::ResultColumn& column : table.columns) {
        cells.push_back(column.key == "rank"               ? store::Cell(std::string("max/mean"))
                        : column.key == "shard_bytes"      ? ratio(uneven.shard_bytes)
                        : column.key == "peak_bytes"       ? ratio(uneven.peak_bytes)
                        : column.key == "busy_per_step_us" ? ratio(uneven.busy)
                                                           : analysis::blank_cell());
    }
    return cells;
}

std::string table_text(const analysis::UnitsReport& report, std::size_t width) {
    if (report.ranks.empty()) return std::string(kNothingSelected);
    if (!report.any_unit) return paragraph(kNoUnits, width);
    std::vector<analysis::UnitMeans> rows = unit_means(report.all_ranks, report.rank_steps);
    analysis::UnitPhase all{
        .name = "all", .phase = schema::Phase::none, .sum = {}, .steps = {}, .hidden_by = {}};
    for (const analysis::UnitPhase& row : report.all_ranks) all.sum.add(row.sum);
    rows.push_back({all, report.rank_steps});
    analysis::ResultTable units =
        chosen(result_table(analysis::unit_fields(), rows), {{"name"},
                                                             {"phase"},
                                                             {"gathers_per_step"},
                                                             {"bytes_per_step"},
                                                             {"gather_per_step_us", "Time (µs)"},
                                                             {"wait_per_step_us"},
                                                             {"limiter_per_step_us", "Limiter"},
                                                             {"reductions_per_step"},
                                                             {"reduce_bytes_per_step"},
                                                             {"reduce_per_step_us", "Time (µs)"},
                                                             {"exposed_per_step_us", "Exposed"},
                                                             {"hidden_by"}});
    units.rules = {report.all_ranks.size()};
    units.rows.back()[1] = units.rows.back().back() =
        analysis::blank_cell();  // blank in the total: phase, hidden by
    const std::string whose = report.ranks.size() == 1 ? fmt::format("rank {}", report.ranks[0].rank)
                                                       : fmt::format("{} ranks", report.ranks.size());
    std::string text =
        paragraph(
            fmt::format(
                "{} of {}. MiB of the full buffer; Limiter and Exposed in µs. Wait: "
                "compute was ready and the gather was not. Exposed: gathers and reductions outside compute.",
                report.stepped ? "Mean per step" : "The whole trace, which has no steps,", whose),
            width) +
        text_of(units, width, 2);
    analysis::ResultTable ranks = result_table(analysis::unit_rank_fields(), report.ranks);
    if (report.ranks.size() > 1) {
        ranks.rules = {report.ranks.size()};
        ranks.rows.push_back(unevenness_row(report.uneven, ranks));
    }
    text += fmt::format("\nBy rank, all units, {}\n", report.stepped ? "mean per step" : "the whole trace") +
            text_of(ranks, width);
    if (const std::int64_t padding = all.sum.gather_padding + all.sum.reduce_padding; padding > 0) {
        text += fmt::format("\nPadding: {} % of the bytes that are gathered and reduced.\n",
                            percent(padding, all.sum.gather_bytes + all.sum.reduce_bytes));
    }
    for (const analysis::UnitMeans& means : rows) {
        if (&means.row == &all || means.row.sum.regathers == 0) continue;
        text += fmt::format("\n{} is gathered again right after it was freed ({}): {} µs{}.\n",
                            printable(means.row.name), name(means.row.phase), us(means.regather_us()),
                            report.stepped ? " per step" : "");
    }
    return text;
}

std::string json_text(const analysis::UnitsReport& report) {
    Json ranks = Json::array();
    for (const analysis::RankUnits& rank : report.ranks) {
        Json json = json_row(analysis::unit_rank_fields(), rank);
        json["units"] = Json::array();
        for (const analysis::UnitMeans& means : unit_means(rank.rows, rank.steps))
            json["units"].push_back(unit_json(means));
        const analysis::UnitPhase sum{.name = {}, .phase = {}, .sum = rank.sum, .steps = {}, .hidden_by = {}};
        const analysis::UnitMeans means{sum, rank.steps};
        json["sum"] =
            with(json_row(analysis::unit_sum_fields(), means), json_row(analysis::unit_mean_fields(), means));
        ranks.push_back(std::move(json));
    }
    return json_line({{"ranks", std::move(ranks)},
                      {"largest_over_mean",
                       {{"shard_bytes", known_or_null(report.uneven.shard_bytes)},
                        {"peak_bytes", known_or_null(report.uneven.peak_bytes)},
                        {"busy", known_or_null(report.uneven.busy)}}}});
}

std::string csv_text(const analysis::UnitsReport& report) {
    analysis::ResultTable table = empty_table(analysis::unit_fields(), {analysis::kRankColumn});
    for (const analysis::RankUnits& rank : report.ranks) {
        for (const analysis::UnitMeans& means : unit_means(rank.rows, rank.steps)) {
            table.rows.push_back({analysis::to_cell(rank.rank)});
            add_cells(table.rows.back(), analysis::unit_fields(), means);
        }
    }
    return csv_of(table);
}

}  // namespace

std::string render(const analysis::UnitsReport& result, Format format, std::size_t width) {
    return render_as(result, format, width, table_text, json_text, csv_text);
}

}  // namespace shardscope::traces::report
