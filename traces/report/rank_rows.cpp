// Kernels, operators, collectives and allocations: a table of rows for each rank; see the fields of each.
#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/analysis/communication/collectives.h"
#include "traces/analysis/memory/allocations.h"
#include "traces/analysis/modules/operators.h"
#include "traces/analysis/time/kernels.h"
#include "traces/report/print.h"

namespace shardscope::traces {
namespace {

using Json = nlohmann::ordered_json;

// "; the first 10": how many of the rows are shown; only a newline if all are.
template <class Rows>
std::string shown_text(const Rows& rows, std::int64_t all, const char* which) {
    return size_of(rows) < all ? fmt::format("; the {} {}\n", which, grouped(size_of(rows))) : "\n";
}

// `head` returns the rank's own keys; its rows follow under `key`.
template <class Rank, class Row, class Head>
std::string rank_rows_json(const std::vector<Rank>& ranks, Fields<Row> fields, const char* key,
                           std::vector<Row> Rank::*rows, Head head) {
    return ranks_line(ranks, [&](const Rank& rank) {
        Json json = head(rank);
        json[key] = json_of(result_table(fields, rank.*rows));
        return json;
    });
}

// --- kernels ---

std::string table_text(const KernelsReport& report, std::size_t width) {
    if (report.ranks.empty()) return std::string(kNothingSelected);
    std::string text;
    for (const RankKernels& rank : report.ranks) {
        if (!text.empty()) text += '\n';
        text += fmt::format("Rank {}: {} of {}, {} us", rank.rank, counted(rank.count, "kernel", "kernels"),
                            counted(rank.distinct, "name", "names"), us(to_us(rank.total))) +
                shown_text(rank.kernels, rank.distinct, "first");
        if (!rank.kernels.empty()) text += text_of(result_table(kernel_fields(), rank.kernels), width);
    }
    return text;
}

std::string json_text(const KernelsReport& report) {
    return rank_rows_json(report.ranks, kernel_fields(), "kernels", &RankKernels::kernels,
                          [](const RankKernels& rank) {
                              return Json{{"rank", rank.rank},
                                          {"distinct", rank.distinct},
                                          {"count", rank.count},
                                          {"us", to_us(rank.total)}};
                          });
}

std::string csv_text(const KernelsReport& report) {
    return csv_of(by_rank(kernel_fields(), report.ranks, &RankKernels::kernels));
}

// --- operators ---

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
                            counted(rank.distinct, "operator", "operators")) +
                shown_text(rank.operators, rank.distinct, "first") +
                text_of(result_table(operator_fields(report.by_shape), rank.operators), width,
                        report.by_shape ? 2 : 1);
    }
    return text;
}

std::string json_text(const OperatorsReport& report) {
    return rank_rows_json(report.ranks, operator_fields(report.by_shape), "operators",
                          &RankOperators::operators, [](const RankOperators& rank) {
                              return Json{{"rank", rank.rank},
                                          {"distinct", rank.distinct},
                                          {"calls", rank.calls},
                                          {"host_self_us", to_us(rank.host_self)},
                                          {"device_self_us", to_us(rank.device_self)}};
                          });
}

std::string csv_text(const OperatorsReport& report) {
    return csv_of(by_rank(operator_fields(report.by_shape), report.ranks, &RankOperators::operators));
}

// --- allocations ---

std::string table_text(const AllocationsReport& report, std::size_t width) {
    if (report.ranks.empty()) return std::string(kNothingSelected);
    const std::string where =
        report.space ? fmt::format(" of {} memory", name(*report.space)) : std::string();
    std::string text = paragraph(
        "Lived: until the address was freed or reused; - to the end of the trace. MB = 2^20 bytes.", width);
    for (const RankAllocations& rank : report.ranks) {
        text += fmt::format("\nRank {}: {}{}, {} MB in all", rank.rank,
                            counted(rank.count, "allocation", "allocations"), where, mb(rank.bytes)) +
                shown_text(rank.allocations, rank.count, "largest");
        if (rank.allocations.empty()) continue;
        ResultTable table = result_table(allocation_fields(), rank.allocations);
        if (report.space) table = without(std::move(table), {"space"});
        text += text_of(table, width);
    }
    return text;
}

std::string json_text(const AllocationsReport& report) {
    return rank_rows_json(report.ranks, allocation_fields(), "allocations", &RankAllocations::allocations,
                          [](const RankAllocations& rank) {
                              return Json{{"rank", rank.rank}, {"count", rank.count}, {"bytes", rank.bytes}};
                          });
}

std::string csv_text(const AllocationsReport& report) {
    return csv_of(by_rank(allocation_fields(), report.ranks, &RankAllocations::allocations));
}

// --- collectives ---

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
    return ranks_line(report.ranks, [](const RankCollectives& rank) {
        return Json{{"rank", rank.rank},
                    {"operations", json_of(result_table(collective_fields(), rank.operations))},
                    {"unmatched", rank.unmatched}};
    });
}

std::string csv_text(const CollectivesReport& report) {
    return csv_of(by_rank(collective_fields(), report.ranks, &RankCollectives::operations));
}

// --- plain rows ---

std::string table_text(const RankRows& rows, std::size_t width) {
    if (rows.ranks.empty()) return std::string(kNothingSelected);
    return rows.table.rows.empty() ? fmt::format("No {}.\n", rows.key) : text_of(rows.table, width, 2);
}

std::string json_text(const RankRows& rows) {
    return ranks_line(rows.ranks, [&](int rank) {
        const std::vector<ResultColumn>& columns = rows.table.columns;  // the rank is the first
        ResultTable own{{columns.begin() + 1, columns.end()}, {}, {}};
        for (const std::vector<Cell>& row : rows.table.rows) {
            if (row.front() == Cell(std::int64_t{rank})) own.rows.emplace_back(row.begin() + 1, row.end());
        }
        Json json = {{"rank", rank}};
        json[std::string(rows.key)] = json_of(own);
        return json;
    });
}

std::string csv_text(const RankRows& rows) {
    return csv_of(rows.table);
}

}  // namespace

std::string render(const RankRows& result, Format format, std::size_t width) {
    return render_as(result, format, width, table_text, json_text, csv_text);
}

std::string render(const KernelsReport& result, Format format, std::size_t width) {
    return render_as(result, format, width, table_text, json_text, csv_text);
}

std::string render(const OperatorsReport& result, Format format, std::size_t width) {
    return render_as(result, format, width, table_text, json_text, csv_text);
}

std::string render(const AllocationsReport& result, Format format, std::size_t width) {
    return render_as(result, format, width, table_text, json_text, csv_text);
}

std::string render(const CollectivesReport& result, Format format, std::size_t width) {
    return render_as(result, format, width, table_text, json_text, csv_text);
}

}  // namespace shardscope::traces
