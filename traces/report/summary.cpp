// The Execution Summary.
#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/formats.h"
#include "traces/report/json_parts.h"
#include "traces/report/text_table.h"
#include "traces/report/units.h"

namespace shardscope::traces {
using Json = nlohmann::ordered_json;

namespace {

std::string table_text(const ExecutionSummary& summary, std::size_t width) {
    if (summary.ranks.empty()) return std::string(kNothingSelected);
    std::string text;
    for (const RankSummary& rank : summary.ranks) {
        if (!text.empty()) text += '\n';
        text += summary.stepped
                    ? fmt::format("Rank {}: mean of {} step{}", rank.rank,
                                  grouped(std::int64_t(rank.steps.size())), rank.steps.size() == 1 ? "" : "s")
                    : fmt::format("Rank {}: the whole trace, which has no steps", rank.rank);
        if (rank.cut_steps > 0) {
            text += fmt::format(" ({} at the end cut off and left out)", grouped(rank.cut_steps));
        }
        if (summary.stepped && !rank.steps.empty())
            text += fmt::format("; median {} us, host step {} us", us(rank.median_step_us),
                                us(rank.average_host_step_us));
        text += '\n';
        TextTable table({Align::left, Align::right, Align::right});
        table.header({"Category", "Time (us)", "Percent"});
        table.row({summary.stepped ? "Average Step Time" : "Whole trace", us(rank.average_step_us),
                   percent(rank.average_step_us, rank.average_step_us)});
        for (std::size_t c = 0; c < rank.average_us.size(); ++c) {
            if (!summary.has(static_cast<TimeCategory>(c))) continue;
            const bool known = rank.knows(static_cast<TimeCategory>(c));
            table.row({std::string(kTimeCategoryNames[c]), known ? us(rank.average_us[c]) : "-",
                       known ? percent(rank.average_us[c], rank.average_step_us) : "-"});
        }
        text += table.text(width);
    }
    if (!summary.has(TimeCategory::communication)) text += "Kernel includes communication.\n";
    if (!summary.stepped) return text;
    const auto left_out = [](const RankSummary& rank) { return rank.first_left_out; };
    const bool any = std::any_of(summary.ranks.begin(), summary.ranks.end(), left_out);
    return text +
           paragraph(fmt::format("A step's time is its window: from the end of the device work before it to "
                                 "the end of its own. The host step is its range on the host.{}",
                                 any ? " The median excludes the trace's first step." : ""),
                     width);
}

std::string json_text(const ExecutionSummary& summary) {
    return ranks_line(summary.ranks, [&](const RankSummary& rank) {
        Json categories = Json::object();
        for (int c = 0; c < kTimeCategories; ++c) {
            if (!summary.has(static_cast<TimeCategory>(c))) continue;
            const auto at = static_cast<std::size_t>(c);
            const bool known = rank.knows(static_cast<TimeCategory>(c));
            categories[std::string(kTimeCategoryNames[at])] = {
                {"us", known ? Json(rank.average_us[at]) : Json(nullptr)},
                {"percent", known ? Json(rank.percent(static_cast<TimeCategory>(c))) : Json(nullptr)}};
        }
        Json json = {{"rank", rank.rank},
                     {"steps", rank.steps.size()},
                     {"cut_steps", rank.cut_steps},
                     {"communication_folded", !summary.has(TimeCategory::communication)},
                     {"stepped", summary.stepped},
                     {"average_step_us", rank.average_step_us},
                     {"median_step_us", rank.median_step_us},
                     {"average_host_step_us", rank.average_host_step_us},
                     {"categories", std::move(categories)}};
        Json per_step = Json::array();
        for (const StepSummary& step : rank.steps) {
            Json ns = Json::object();
            for (std::size_t c = 0; c < step.ns.size(); ++c)
                if (summary.has(static_cast<TimeCategory>(c)))
                    ns[std::string(kTimeCategoryNames[c])] =
                        rank.knows(static_cast<TimeCategory>(c)) ? Json(step.ns[c]) : Json(nullptr);
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

std::string csv_text(const ExecutionSummary& summary) {
    std::vector<std::vector<Cell>> rows;
    for (const RankSummary& rank : summary.ranks) {
        const auto steps = static_cast<std::int64_t>(rank.steps.size());
        rows.push_back({to_cell(rank.rank), steps, to_cell("Average Step Time"), rank.average_step_us,
                        rank.average_step_us > 0 ? 100.0 : 0.0});
        for (int c = 0; c < kTimeCategories; ++c) {
            if (!summary.has(static_cast<TimeCategory>(c))) continue;
            const auto at = static_cast<std::size_t>(c);
            const bool known = rank.knows(static_cast<TimeCategory>(c));
            rows.push_back({to_cell(rank.rank), steps, to_cell(kTimeCategoryNames[at]),
                            known ? Cell(rank.average_us[at]) : Cell(),
                            known ? Cell(rank.percent(static_cast<TimeCategory>(c))) : Cell()});
        }
    }
    return rows_csv(csv_columns({"rank", "steps", "category", "us", "percent"}), rows);
}

}  // namespace

std::string render(const ExecutionSummary& result, Format format, std::size_t width) {
    return render_as(
        format, [&] { return table_text(result, width); }, [&] { return json_text(result); },
        [&] { return csv_text(result); });
}

}  // namespace shardscope::traces
