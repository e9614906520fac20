// Collectives by operation; see collective_fields().
#include "traces/analysis/communication/collectives.h"

#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/print.h"

namespace shardscope::traces {

using Json = nlohmann::ordered_json;

namespace {

std::string table_text(const CollectivesReport& report, std::size_t width) {
    if (report.ranks.empty()) return std::string(kNothingSelected);
    ResultTable table = by_rank(collective_fields(), report.ranks, &RankCollectives::operations);
    if (table.rows.empty()) return "No collectives.\n";
    if (!report.stepped) table = without(std::move(table), {"count_per_step", "bytes_per_step"});
    std::string text = "MB = 2^20 bytes of the full buffer, GB = 10^9 bytes\n" + text_of(table, width, 2);
    std::int64_t unmatched = 0;
    bool on_host = false;
    for (const RankCollectives& rank : report.ranks) {
        unmatched += rank.unmatched;
        on_host = on_host || std::any_of(rank.operations.begin(), rank.operations.end(),
                                         [](const OperationStats& o) { return o.on_host; });
    }
    if (on_host) {
        text += paragraph(
            "Host threads (Gloo, MPI) executed these: the times are theirs, and how much compute hides is "
            "unknown.",
            width);
    }
    if (unmatched > 0) {
        text += fmt::format("{} without a counterpart on another rank: the whole time counts as transfer.\n",
                            collectives_are(unmatched));
    }
    return text;
}

std::string json_text(const CollectivesReport& report) {
    Json ranks = Json::array();
    for (const RankCollectives& rank : report.ranks) {
        ranks.push_back({{"rank", rank.rank},
                         {"operations", json_of(result_table(collective_fields(), rank.operations))},
                         {"unmatched", rank.unmatched}});
    }
    return json_line({{"ranks", std::move(ranks)}});
}

std::string csv_text(const CollectivesReport& report) {
    return csv_of(by_rank(collective_fields(), report.ranks, &RankCollectives::operations));
}

}  // namespace

std::string render(const CollectivesReport& result, Format format, std::size_t width) {
    return render_as(result, format, width, table_text, json_text, csv_text);
}

}  // namespace shardscope::traces
