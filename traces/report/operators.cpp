// Operators by name; see operator_fields().
#include "traces/analysis/modules/operators.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/print.h"

namespace shardscope::traces {

using Json = nlohmann::ordered_json;

namespace {

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
        text += '\n' + text_of(result_table(operator_fields(report.by_shape), rank.operators), width,
                               report.by_shape ? 2 : 1);
    }
    return text;
}

std::string json_text(const OperatorsReport& report) {
    Json ranks = Json::array();
    for (const RankOperators& rank : report.ranks) {
        ranks.push_back(
            {{"rank", rank.rank},
             {"distinct", rank.distinct},
             {"calls", rank.calls},
             {"host_self_us", to_us(rank.host_self)},
             {"device_self_us", to_us(rank.device_self)},
             {"operators", json_of(result_table(operator_fields(report.by_shape), rank.operators))}});
    }
    return json_line({{"ranks", std::move(ranks)}});
}

std::string csv_text(const OperatorsReport& report) {
    return csv_of(by_rank(operator_fields(report.by_shape), report.ranks, &RankOperators::operators));
}

}  // namespace

std::string render(const OperatorsReport& result, Format format, std::size_t width) {
    return render_as(result, format, width, table_text, json_text, csv_text);
}

}  // namespace shardscope::traces
