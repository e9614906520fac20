// Allocations, largest first; see allocation_fields().
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/analysis/memory/allocations_report.h"
#include "traces/report/print.h"

namespace shardscope::traces {

using Json = nlohmann::ordered_json;

namespace {

std::string table_text(const AllocationsReport& report, std::size_t width) {
    if (report.ranks.empty()) return std::string(kNothingSelected);
    const std::string where =
        report.space ? fmt::format(" of {} memory", name(*report.space)) : std::string();
    std::string text = paragraph(
        "Lived: until the address was freed or reused; - to the end of the trace. MB = 2^20 bytes.", width);
    for (const RankAllocations& rank : report.ranks) {
        text += fmt::format("\nRank {}: {}{}, {} MB in all", rank.rank,
                            counted(rank.count, "allocation", "allocations"), where, mb(rank.bytes));
        const auto shown = static_cast<std::int64_t>(rank.allocations.size());
        if (shown < rank.count) text += fmt::format("; the largest {}", grouped(shown));
        text += '\n';
        if (shown == 0) continue;
        ResultTable table = result_table(allocation_fields(), rank.allocations);
        if (report.space) table = without(std::move(table), {"space"});
        text += text_of(table, width);
    }
    return text;
}

std::string json_text(const AllocationsReport& report) {
    Json ranks = Json::array();
    for (const RankAllocations& rank : report.ranks) {
        ranks.push_back({{"rank", rank.rank},
                         {"count", rank.count},
                         {"bytes", rank.bytes},
                         {"allocations", json_of(result_table(allocation_fields(), rank.allocations))}});
    }
    return json_line({{"ranks", std::move(ranks)}});
}

std::string csv_text(const AllocationsReport& report) {
    return csv_of(by_rank(allocation_fields(), report.ranks, &RankAllocations::allocations));
}

}  // namespace

std::string render(const AllocationsReport& result, Format format, std::size_t width) {
    return render_as(result, format, width, table_text, json_text, csv_text);
}

}  // namespace shardscope::traces
