// The FSDP units' costs as a table, JSON and CSV; see units_report.
#include <array>
#include <string_view>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/analysis/fsdp/units.h"
#include "traces/report/formats.h"
#include "traces/report/units.h"
#include "traces/schema/json_text.h"

namespace shardscope::traces {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kNoUnits =
    "This trace contains no FSDP units: it has neither the trainer's units nor ranges such as "
    "FullyShardedDataParallel.forward or FSDP::all_gather.";

std::string mean_mb(std::int64_t bytes, std::int64_t count) {
    return count > 0 ? known_mb(static_cast<double>(bytes) / static_cast<double>(count)) : "-";
}
std::string mean_count(std::int64_t number, std::int64_t count) {
    if (count == 0) return "-";
    return number % count == 0 ? grouped(number / count)
                               : grouped(static_cast<double>(number) / static_cast<double>(count), 2);
}

// The rank's size in MB; negative `bytes` are unknown.
std::string size_mb(std::int64_t bytes) {
    return bytes >= 0 ? mb(bytes) : "-";
}

// The figures of every row: sums over the kept steps under the plain names, with averages per step next to
// them.
struct UnitFigure {
    std::string_view sum, mean;
    Cell (*of)(const UnitCosts&);
};
template <std::int64_t UnitCosts::*Ns>
Cell time_of(const UnitCosts& c) {
    return micro(c.*Ns);
}
template <std::int64_t UnitCosts::*Count>
Cell count_of(const UnitCosts& c) {
    return c.*Count;
}
// There is no sum if the bytes of some collective are unknown.
template <std::int64_t UnitCosts::*Bytes, std::int64_t UnitCosts::*Count>
Cell bytes_of(const UnitCosts& c) {
    return c.*Count > 0 && c.*Bytes == 0 ? Cell() : Cell(c.*Bytes);
}
constexpr std::array<UnitFigure, 17> kUnitFigures = {{
    {"gathers", "gathers_per_step", count_of<&UnitCosts::gathers>},
    {"bytes", "bytes_per_step", bytes_of<&UnitCosts::gather_bytes, &UnitCosts::gathers>},
    {"padding_bytes", "padding_bytes_per_step", count_of<&UnitCosts::gather_padding>},
    {"gather_us", "gather_per_step_us", time_of<&UnitCosts::gather_ns>},
    {"issue_to_ready_us", "issue_to_ready_per_step_us", time_of<&UnitCosts::issue_to_ready_ns>},
    {"wait_us", "wait_per_step_us", time_of<&UnitCosts::wait_ns>},
    {"exposed_us", "exposed_per_step_us", [](const UnitCosts& c) { return Cell(micro(c.exposed_ns())); }},
    {"gather_exposed_us", "gather_exposed_per_step_us", time_of<&UnitCosts::gather_exposed_ns>},
    {"reductions", "reductions_per_step", count_of<&UnitCosts::reductions>},
    {"reduce_bytes", "reduce_bytes_per_step", bytes_of<&UnitCosts::reduce_bytes, &UnitCosts::reductions>},
    {"reduce_padding_bytes", "reduce_padding_bytes_per_step", count_of<&UnitCosts::reduce_padding>},
    {"reduce_us", "reduce_per_step_us", time_of<&UnitCosts::reduce_ns>},
    {"reduce_exposed_us", "reduce_exposed_per_step_us", time_of<&UnitCosts::reduce_exposed_ns>},
    {"limiter_us", "limiter_per_step_us", time_of<&UnitCosts::limiter_ns>},
    {"regathers", "regathers_per_step", count_of<&UnitCosts::regathers>},
    {"held_us", "held_per_step_us", time_of<&UnitCosts::held_ns>},
    {"freed_us", "freed_per_step_us", time_of<&UnitCosts::freed_ns>},
}};

Cell mean_of(const Cell& sum, std::int64_t steps) {
    if (steps <= 0) return {};
    const auto n = static_cast<double>(steps);
    if (const auto* whole = std::get_if<std::int64_t>(&sum)) return static_cast<double>(*whole) / n;
    if (const auto* real = std::get_if<double>(&sum)) return *real / n;
    return {};
}

Json unit_cell_json(const Cell& cell) {
    if (const auto* whole = std::get_if<std::int64_t>(&cell)) return *whole;
    if (const auto* real = std::get_if<double>(&cell)) return *real;
    return nullptr;
}

Json costs_json(const UnitCosts& c) {
    Json json = Json::object();
    for (const UnitFigure& figure : kUnitFigures)
        json[std::string(figure.sum)] = unit_cell_json(figure.of(c));
    return json;
}

Json costs_json(const UnitCosts& c, std::int64_t steps) {
    Json json = costs_json(c);
    for (const UnitFigure& figure : kUnitFigures)
        json[std::string(figure.mean)] = unit_cell_json(mean_of(figure.of(c), steps));
    return json;
}

Json with(Json first, const Json& second) {
    first.update(second);
    return first;
}

Json known_json(std::int64_t value) {
    return value >= 0 ? Json(value) : Json(nullptr);
}

Json row_json(const UnitPhase& row, std::int64_t kept) {
    Json steps = Json::array();
    for (const UnitStep& step : row.steps)
        steps.push_back(with({{"step", step.number}}, costs_json(step.costs)));
    Json json = with({{"name", row.name}, {"phase", name(row.phase)}}, costs_json(row.sum, kept));
    json["hidden_by"] = row.hidden_by.empty() ? Json(nullptr) : Json(row.hidden_by);
    json["hidden_us"] = micro(row.hidden_ns);
    json["steps"] = std::move(steps);
    return json;
}

std::string uneven_text(double value) {
    return value > 0 ? grouped(value, 3) : "-";
}

std::string table_text(const UnitsReport& report, std::size_t width) {
    if (report.ranks.empty()) return std::string(kNothingSelected);
    if (!report.any_unit) return paragraph(kNoUnits, width);
    const std::int64_t n = report.rank_steps;
    TextTable units({Align::left, Align::left, Align::right, Align::right, Align::right, Align::right,
                     Align::right, Align::right, Align::right, Align::right, Align::right, Align::left},
                    2);
    units.header({"Unit", "Phase", "Gathers", "MB", "Time (us)", "Wait (us)", "Limiter", "Reduces", "MB",
                  "Time (us)", "Exposed", "Hidden mostly by"});
    const auto add = [&](const std::string& unit, std::string_view phase, const UnitCosts& c,
                         const std::string& hidden) {
        const auto gathered = [&](const std::string& text) { return c.gathers > 0 ? text : std::string(); };
        const auto reduced = [&](const std::string& text) { return c.reductions > 0 ? text : std::string(); };
        units.row({unit, std::string(phase), gathered(mean_count(c.gathers, n)),
                   gathered(mean_mb(c.gather_bytes, n)), gathered(mean_us(c.gather_ns, n)),
                   gathered(mean_us(c.wait_ns, n)), gathered(mean_us(c.limiter_ns, n)),
                   reduced(mean_count(c.reductions, n)), reduced(mean_mb(c.reduce_bytes, n)),
                   reduced(mean_us(c.reduce_ns, n)), mean_us(c.exposed_ns(), n), hidden});
    };
    UnitCosts all;
    for (const UnitPhase& row : report.all_ranks) {
        all.add(row.sum);
        add(row.name, name(row.phase), row.sum, row.hidden_by);
    }
    units.rule();
    add("all", "", all, "");
    const std::string whose = report.ranks.size() == 1 ? fmt::format("rank {}", report.ranks[0].rank)
                                                       : fmt::format("{} ranks", report.ranks.size());
    std::string text = paragraph(
        fmt::format(
            "{} of {}. MB = 2^20 bytes of the full buffer; Limiter and Exposed in us. Wait: "
            "compute was ready and the gather was not. Exposed: gathers and reductions outside compute.",
            report.stepped ? "Mean per step" : "The whole trace, which has no steps,", whose),
        width);
    text += units.text(width);

    TextTable ranks(std::vector<Align>(10, Align::right));
    ranks.header({"Rank", "Steps", "Gather (us)", "Wait (us)", "Limiter (us)", "Reduce (us)", "Exposed (us)",
                  "Shard (MB)", "Peak (MB)", "Busy (us)"});
    for (const RankUnits& rank : report.ranks) {
        const UnitCosts& c = rank.sum;
        ranks.row({std::to_string(rank.rank), grouped(rank.steps), mean_us(c.gather_ns, rank.steps),
                   mean_us(c.wait_ns, rank.steps), mean_us(c.limiter_ns, rank.steps),
                   mean_us(c.reduce_ns, rank.steps), mean_us(c.exposed_ns(), rank.steps),
                   size_mb(rank.shard_bytes), size_mb(rank.peak_bytes), mean_us(rank.busy_ns, rank.steps)});
    }
    if (report.ranks.size() > 1) {
        ranks.rule();
        ranks.row({"max/mean", "", "", "", "", "", "", uneven_text(report.uneven.shard_bytes),
                   uneven_text(report.uneven.peak_bytes), uneven_text(report.uneven.busy)});
    }
    text += fmt::format("\nBy rank, all units, {}\n", report.stepped ? "mean per step" : "the whole trace") +
            ranks.text(width);

    const std::int64_t padding = all.gather_padding + all.reduce_padding;
    const std::int64_t bytes = all.gather_bytes + all.reduce_bytes;
    if (padding > 0) {
        text += fmt::format("\nPadding: {} % of the bytes that are gathered and reduced.\n",
                            percent(padding, bytes));
    }
    for (const UnitPhase& row : report.all_ranks) {
        if (row.sum.regathers == 0) continue;
        text += fmt::format("\n{} is gathered again right after it was freed ({}): {} us{}.\n",
                            printable(row.name), name(row.phase),
                            us(micro(row.sum.gather_ns) / static_cast<double>(row.sum.gathers) *
                               static_cast<double>(row.sum.regathers) / static_cast<double>(n)),
                            report.stepped ? " per step" : "");
    }
    return text;
}

std::string json_text(const UnitsReport& report) {
    Json ranks = Json::array();
    for (const RankUnits& rank : report.ranks) {
        Json rows = Json::array();
        for (const UnitPhase& row : rank.rows) rows.push_back(row_json(row, rank.steps));
        ranks.push_back({{"rank", rank.rank},
                         {"steps", rank.steps},
                         {"units", std::move(rows)},
                         {"sum", costs_json(rank.sum, rank.steps)},
                         {"shard_bytes", known_json(rank.shard_bytes)},
                         {"peak_bytes", known_json(rank.peak_bytes)},
                         {"busy_us", micro(rank.busy_ns)},
                         {"busy_per_step_us", unit_cell_json(mean_of(micro(rank.busy_ns), rank.steps))}});
    }
    const auto ratio = [](double value) { return value > 0 ? Json(value) : Json(nullptr); };
    const Json json = {{"ranks", std::move(ranks)},
                       {"largest_over_mean",
                        {{"shard_bytes", ratio(report.uneven.shard_bytes)},
                         {"peak_bytes", ratio(report.uneven.peak_bytes)},
                         {"busy", ratio(report.uneven.busy)}}}};
    return dump_json(json) + "\n";
}

std::string csv_text(const UnitsReport& report) {
    std::vector<Column> columns = {{"rank"}, {"name"}, {"phase"}, {"steps"}};
    for (const UnitFigure& figure : kUnitFigures) columns.push_back({std::string(figure.sum)});
    columns.insert(columns.end(), {{"hidden_by"}, {"hidden_us"}});
    for (const UnitFigure& figure : kUnitFigures) columns.push_back({std::string(figure.mean)});
    std::vector<std::vector<Cell>> rows;
    for (const RankUnits& rank : report.ranks) {
        for (const UnitPhase& row : rank.rows) {
            std::vector<Cell> cells = {std::int64_t{rank.rank}, row.name, std::string(name(row.phase)),
                                       rank.steps};
            for (const UnitFigure& figure : kUnitFigures) cells.push_back(figure.of(row.sum));
            cells.insert(cells.end(), {row.hidden_by, micro(row.hidden_ns)});
            for (const UnitFigure& figure : kUnitFigures)
                cells.push_back(mean_of(figure.of(row.sum), rank.steps));
            rows.push_back(std::move(cells));
        }
    }
    return rows_csv(columns, rows);
}

}  // namespace

std::string render(const UnitsReport& result, Format format, std::size_t width) {
    return render_as(
        format, [&] { return table_text(result, width); }, [&] { return json_text(result); },
        [&] { return csv_text(result); });
}

}  // namespace shardscope::traces
