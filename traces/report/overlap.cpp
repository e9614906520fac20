// Overlap as table, JSON and CSV.
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/formats.h"
#include "traces/report/json_parts.h"
#include "traces/report/text_table.h"
#include "traces/report/units.h"

namespace shardscope::traces {
namespace {

using Json = nlohmann::ordered_json;

std::string percent_text(const OverlapParts& parts) {
    return parts.communication() > 0 ? grouped(parts.overlap_percent(), 2) : "-";
}

void add_row(TextTable& table, std::string rank, std::string step, const OverlapParts& parts, double steps) {
    const auto cell = [&](std::int64_t ns) { return us(to_us(ns) / steps); };
    table.row({std::move(rank), std::move(step), cell(parts.whole()), cell(parts.computation),
               cell(parts.overlapped), cell(parts.exposed_communication), cell(parts.other),
               percent_text(parts)});
}

// Without communication nothing could have been overlapped.
Json percent_json(const OverlapParts& parts) {
    return parts.communication() > 0 ? Json(parts.overlap_percent()) : Json(nullptr);
}

Json parts_json(const OverlapParts& parts, double steps) {
    return {{"computation_us", to_us(parts.computation) / steps},
            {"overlapped_us", to_us(parts.overlapped) / steps},
            {"exposed_communication_us", to_us(parts.exposed_communication) / steps},
            {"other_us", to_us(parts.other) / steps},
            {"communication_us", to_us(parts.communication()) / steps},
            {"window_us", to_us(parts.whole()) / steps},
            {"overlap_percent", percent_json(parts)}};
}

double divisor(const RankOverlap& rank) {
    return rank.steps.empty() ? 1.0 : static_cast<double>(rank.steps.size());
}

}  // namespace

std::string table_text(const OverlapReport& report, std::size_t width) {
    if (report.ranks.empty()) return std::string(kNothingSelected);
    TextTable table({Align::right, Align::right, Align::right, Align::right, Align::right, Align::right,
                     Align::right, Align::right},
                    2);
    table.header({"Rank", "Step", "Window (us)", "Computation (us)", "Overlapped (us)", "Exposed comm. (us)",
                  "Other (us)", "Overlap (%)"});
    std::int64_t cut = 0;
    for (const RankOverlap& rank : report.ranks) {
        cut += rank.cut_steps;
        const std::string number = std::to_string(rank.rank);
        // Rows for each step of one rank; for many ranks their means side by side.
        if (report.ranks.size() == 1 && rank.steps.size() > 1) {
            for (const StepOverlap& step : rank.steps)
                add_row(table, number, std::to_string(step.number), step.parts, 1);
            table.rule();
        }
        add_row(table, number, "mean", rank.sum, divisor(rank));
    }
    std::string text =
        "Mean of the steps; overlap is the share of communication that ran beside compute kernels.\n" +
        table.text(width);
    if (cut > 0) text += fmt::format("Left out as cut off: {} at the end.\n", grouped(cut));
    return text;
}

std::string json_text(const OverlapReport& report) {
    Json ranks = Json::array();
    for (const RankOverlap& rank : report.ranks) {
        Json json = {{"rank", rank.rank}};
        json.update(parts_json(rank.sum, divisor(rank)));
        json["steps"] = rank.steps.size();
        json["cut_steps"] = rank.cut_steps;
        Json steps = Json::array();
        for (const StepOverlap& step : rank.steps) {
            Json one = {{"step", step.number}};
            one.update(parts_json(step.parts, 1));
            steps.push_back(std::move(one));
        }
        json["per_step"] = std::move(steps);
        json["device_time"] = parts_json(rank.device_time, 1);
        ranks.push_back(std::move(json));
    }
    return json_line({{"ranks", std::move(ranks)}});
}

std::string csv_text(const OverlapReport& report) {
    std::vector<std::vector<Cell>> rows;
    for (const RankOverlap& rank : report.ranks) {
        for (const StepOverlap& step : rank.steps) {
            const OverlapParts& p = step.parts;
            rows.push_back({std::int64_t(rank.rank), step.number, to_us(p.whole()), to_us(p.computation),
                            to_us(p.overlapped), to_us(p.exposed_communication), to_us(p.other),
                            p.communication() > 0 ? Cell(p.overlap_percent()) : Cell()});
        }
    }
    return csv_text({{"rank"},
                     {"step"},
                     {"window_us"},
                     {"computation_us"},
                     {"overlapped_us"},
                     {"exposed_communication_us"},
                     {"other_us"},
                     {"overlap_percent"}},
                    rows);
}

}  // namespace shardscope::traces
