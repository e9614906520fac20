// Operators as table, JSON and CSV.
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/formats.h"
#include "traces/report/json_parts.h"
#include "traces/report/text_table.h"
#include "traces/report/units.h"
#include "traces/store/grouped.h"

namespace shardscope::traces {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kOperatorWidth = 80;

std::string rank_table(const RankOperators& rank, bool by_shape, std::size_t width) {
    std::vector<std::string> header = {"Operator"};
    if (by_shape) header.emplace_back("Shapes");
    const std::size_t keys = header.size();
    std::vector<Align> align(keys, Align::left);
    header.insert(header.end(), {"Calls", "Host total (us)", "Host self (us)", "Device total (us)",
                                 "Device self (us)", "Device (%)"});
    align.resize(header.size(), Align::right);
    TextTable table(align, keys);
    table.header(std::move(header));
    for (const OperatorStats& o : rank.operators) {
        std::vector<std::string> cells = {shortened(o.name, kOperatorWidth)};
        if (by_shape) cells.push_back(o.shapes.empty() ? "-" : shortened(o.shapes, kOperatorWidth));
        cells.insert(cells.end(), {grouped(o.calls), us(to_us(o.host_total)), us(to_us(o.host_self)),
                                   us(to_us(o.device_total)), us(to_us(o.device_self)),
                                   percent(o.device_self, rank.device_self)});
        table.row(std::move(cells));
    }
    return table.text(width);
}

}  // namespace

std::string table_text(const OperatorsReport& report, std::size_t width) {
    if (report.ranks.empty()) return std::string(kNothingSelected);
    std::string text;
    for (const RankOperators& rank : report.ranks) {
        if (!text.empty()) text += '\n';
        if (rank.distinct == 0) {
            text += fmt::format("Rank {}: no operators\n", rank.rank);
            continue;
        }
        text += fmt::format("Rank {}: {} of {}", rank.rank, counted(rank.calls, "call", "calls"),
                            counted(rank.distinct, "operator", "operators"));
        const auto shown = static_cast<std::int64_t>(rank.operators.size());
        if (shown < rank.distinct) text += fmt::format("; the first {}", grouped(shown));
        text += '\n' + rank_table(rank, report.by_shape, width);
    }
    return text;
}

std::string json_text(const OperatorsReport& report) {
    Json ranks = Json::array();
    for (const RankOperators& rank : report.ranks) {
        Json operators = Json::array();
        for (const OperatorStats& o : rank.operators) {
            Json json = {{"name", std::string(o.name)}};
            if (report.by_shape) json["shapes"] = std::string(o.shapes);
            json["calls"] = o.calls;
            json["host_us"] = to_us(o.host_total);
            json["host_self_us"] = to_us(o.host_self);
            json["device_us"] = to_us(o.device_total);
            json["device_self_us"] = to_us(o.device_self);
            operators.push_back(std::move(json));
        }
        ranks.push_back({{"rank", rank.rank},
                         {"distinct", rank.distinct},
                         {"calls", rank.calls},
                         {"host_self_us", to_us(rank.host_self)},
                         {"device_self_us", to_us(rank.device_self)},
                         {"operators", std::move(operators)}});
    }
    return json_line({{"ranks", std::move(ranks)}});
}

std::string csv_text(const OperatorsReport& report) {
    std::vector<std::vector<Cell>> rows;
    for (const RankOperators& rank : report.ranks) {
        for (const OperatorStats& o : rank.operators) {
            rows.push_back({std::int64_t(rank.rank), std::string(o.name), std::string(o.shapes), o.calls,
                            to_us(o.host_total), to_us(o.host_self), to_us(o.device_total),
                            to_us(o.device_self)});
        }
    }
    return csv_text({{"rank"},
                     {"name"},
                     {"shapes"},
                     {"calls"},
                     {"host_us"},
                     {"host_self_us"},
                     {"device_us"},
                     {"device_self_us"}},
                    rows);
}

}  // namespace shardscope::traces
