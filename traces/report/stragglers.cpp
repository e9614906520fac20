// Which ranks arrive last, as a table, JSON and CSV; see straggler_report.
#include "traces/analysis/communication/stragglers.h"

#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/print.h"
#include "traces/schema/json_text.h"

namespace shardscope::traces::report {
namespace {

using Json = nlohmann::ordered_json;

std::string arrivals_table(const std::vector<analysis::Arrivals>& ranks, std::size_t width) {
    return text_of(result_table(analysis::arrival_fields(), ranks), width);
}

std::string order_of(const std::vector<analysis::Arrivals>& ranks) {
    constexpr std::size_t kNamed = 3;
    std::string text;
    for (std::size_t i = 0; i < std::min(kNamed, ranks.size()); ++i)
        text += fmt::format("{}{}", i > 0 ? ", then " : "", ranks[i].rank);
    return text;
}

Json arrivals_json(const std::vector<analysis::Arrivals>& ranks) {
    return json_of(result_table(analysis::arrival_fields(), ranks));
}

std::string table_text(const analysis::StragglersReport& report, std::size_t width) {
    std::string text;
    if (!report.flight.groups.empty()) text = render(report.flight, Format::table, width) + "\n";
    if (report.trace_ranks < 2) {
        return text +
               fmt::format(
                   "The trace has {}: to see which ranks arrive late, open all ranks together (several "
                   "files, or their folder)."
                   "\n",
                   report.trace_ranks == 1 ? "one rank" : "no rank");
    }
    if (report.collectives == 0) {
        return text + "No collective has a counterpart on another rank: nothing can be compared.\n";
    }
    if (report.ranks.empty()) return text + std::string(kNothingSelected);
    if (equally_late(report.ranks)) {
        text += "Latest: none, all ranks are equally late\n\n";
    } else if (report.ranks.size() > 1) {
        text += fmt::format("Latest: rank {}\n\n", order_of(report.ranks));
    }
    if (report.warm_up) text += sentence(*report.warm_up) + "\n";
    text += fmt::format("{}: by durations (the rank with the shortest duration arrived last)\n",
                        store::counted(report.collectives, "collective", "collectives"));
    text += arrivals_table(report.ranks, width);
    for (const analysis::KindStragglers& kind : report.kinds) {
        if (report.kinds.size() == 1) break;
        text += fmt::format("\n{}: {}\n", name(kind.operation), store::grouped(kind.collectives));
        text += arrivals_table(kind.ranks, width);
    }
    if (report.unmatched > 0) {
        text += fmt::format("\n{} without a counterpart on another rank and omitted.\n",
                            collectives_are(report.unmatched));
    }
    return text;
}

std::string json_text(const analysis::StragglersReport& report) {
    Json kinds = Json::array();
    for (const analysis::KindStragglers& kind : report.kinds) {
        kinds.push_back({{"name", name(kind.operation)},
                         {"collectives", kind.collectives},
                         {"ranks", arrivals_json(kind.ranks)}});
    }
    Json json = {{"ranks", arrivals_json(report.ranks)},
                 {"operations", std::move(kinds)},
                 {"trace_ranks", report.trace_ranks},
                 {"collectives", report.collectives},
                 {"unmatched", report.unmatched},
                 {"warm_up_step", report.warm_up ? Json(report.warm_up->step) : Json()}};
    if (!report.flight.groups.empty())
        json["flight"] = schema::parse_ordered_json(render(report.flight, Format::json));
    return json_line(json);
}

std::string csv_text(const analysis::StragglersReport& report) {
    // CSV holds one table: the flight recorder's, if the trace has no timed collectives.
    if (report.collectives == 0 && !report.flight.groups.empty()) return render(report.flight, Format::csv);
    analysis::ResultTable table =
        empty_table(analysis::arrival_fields(),
                    {{"operation", "Operation", analysis::Unit::text, "The kind of collective, or all."}});
    const auto add = [&](const std::string& operation, const std::vector<analysis::Arrivals>& ranks) {
        for (const analysis::Arrivals& arrivals : ranks) {
            table.rows.push_back({operation});
            add_cells(table.rows.back(), analysis::arrival_fields(), arrivals);
        }
    };
    add("all", report.ranks);
    for (const analysis::KindStragglers& kind : report.kinds)
        add(std::string(name(kind.operation)), kind.ranks);
    return csv_of(table);
}

}  // namespace

std::string render(const analysis::StragglersReport& result, Format format, std::size_t width) {
    return render_as(result, format, width, table_text, json_text, csv_text);
}

}  // namespace shardscope::traces::report
