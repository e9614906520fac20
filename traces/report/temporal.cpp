// The temporal breakdown as table, JSON and CSV.
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/formats.h"
#include "traces/report/json_parts.h"
#include "traces/report/text_table.h"
#include "traces/report/units.h"

namespace shardscope::traces {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> row(std::string rank, std::string step, const TemporalParts& parts) {
    const auto share = [&](std::int64_t ns) { return percent(ns, parts.whole()); };
    return {std::move(rank),
            std::move(step),
            us(to_us(parts.whole())),
            us(to_us(parts.idle)),
            share(parts.idle),
            us(to_us(parts.compute)),
            share(parts.compute),
            us(to_us(parts.exposed_communication)),
            share(parts.exposed_communication),
            us(to_us(parts.exposed_memory)),
            share(parts.exposed_memory)};
}

Json parts_json(const TemporalParts& parts) {
    return {{"total_us", to_us(parts.whole())},
            {"idle_us", to_us(parts.idle)},
            {"compute_us", to_us(parts.compute)},
            {"exposed_communication_us", to_us(parts.exposed_communication)},
            {"exposed_memory_us", to_us(parts.exposed_memory)},
            {"non_compute_us", to_us(parts.non_compute())},
            {"start_ns", parts.time.start},
            {"end_ns", parts.time.end}};
}

}  // namespace

std::string table_text(const TemporalReport& report, std::size_t width) {
    if (report.ranks.empty()) return std::string(kNothingSelected);
    const Align r = Align::right;
    TextTable table({r, r, r, r, r, r, r, r, r, r, r}, 2);
    table.header({"Rank", "Step", "Total (us)", "Idle (us)", "%", "Compute (us)", "%", "Comm. (us)", "%",
                  "Memory (us)", "%"});
    for (const RankTemporal& rank : report.ranks) {
        const std::string number = std::to_string(rank.rank);
        if (report.ranks.size() == 1 && rank.steps.size() > 1) {
            for (const StepTemporal& step : rank.steps)
                table.row(row(number, std::to_string(step.number), step.parts));
            table.rule();
        }
        table.row(row(number, "all", rank.whole));
    }
    return paragraph(
               "From the first to the last device event. Communication counts outside compute, memory "
               "(copies "
               "and fills) outside both.",
               width) +
           table.text(width);
}

std::string json_text(const TemporalReport& report) {
    Json ranks = Json::array();
    for (const RankTemporal& rank : report.ranks) {
        Json json = {{"rank", rank.rank}};
        json.update(parts_json(rank.whole));
        json["cut_steps"] = rank.cut_steps;
        Json steps = Json::array();
        for (const StepTemporal& step : rank.steps) {
            Json one = {{"step", step.number}};
            one.update(parts_json(step.parts));
            steps.push_back(std::move(one));
        }
        json["per_step"] = std::move(steps);
        ranks.push_back(std::move(json));
    }
    return json_line({{"ranks", std::move(ranks)}});
}

// The step is empty in a rank's row of the whole.
std::string csv_text(const TemporalReport& report) {
    std::vector<std::vector<Cell>> rows;
    const auto add = [&](int rank, Cell step, const TemporalParts& p) {
        rows.push_back({std::int64_t(rank), std::move(step), to_us(p.whole()), to_us(p.idle),
                        to_us(p.compute), to_us(p.exposed_communication), to_us(p.exposed_memory)});
    };
    for (const RankTemporal& rank : report.ranks) {
        add(rank.rank, std::monostate(), rank.whole);
        for (const StepTemporal& step : rank.steps) add(rank.rank, step.number, step.parts);
    }
    return csv_text({{"rank"},
                     {"step"},
                     {"total_us"},
                     {"idle_us"},
                     {"compute_us"},
                     {"exposed_communication_us"},
                     {"exposed_memory_us"}},
                    rows);
}

}  // namespace shardscope::traces
