// Kernels, operators, collectives and allocations: a table of rows for each rank; see the fields of each.
#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/analysis/communication/collectives.h"
#include "traces/analysis/memory/allocations.h"
#include "traces/analysis/modules/operators.h"
#include "traces/analysis/time/kernels.h"
#include "traces/report/print.h"

namespace shardscope::traces::report {
namespace {

using Json = nlohmann::ordered_json;

// "; the first 10": how many of the rows are shown; only a newline if all are.
template <class Rows>
std::string shown_text(const Rows& rows, std::int64_t all, const char* which) {
    return size_of(rows) < all ? fmt::format("; the {} {}\n", which, store::grouped(size_of(rows))) : "\n";
}

// `head` returns the rank's own keys; its rows follow under `key`.
template <class Rank, class Row, class Head>
std::string rank_rows_json(const std::vector<Rank>& ranks, analysis::Fields<Row> fields, const char* key,
                           std::vector<Row> Rank::*rows, Head head) {
    return ranks_line(ranks, [&](const Rank& rank) {
        Json json = head(rank);
        json[key] = json_of(analysis::result_table(fields, rank.*rows));
        return json;
    });
}

// --- kernels ---

std::string table_text(const analysis::KernelsReport& report, std::size_t width) {
    if (report.ranks.empty()) return std::string(kNothingSelected);
    std::string text;
    for (const analysis::RankKernels& rank : report.ranks) {
        if (!text.empty()) text += '\n';
        text += fmt::format("Rank {}: {} of {}, {} µs", rank.rank,
                            store::counted(rank.count, "kernel", "kernels"),
                            store::counted(rank.distinct, "name", "names"), us(to_us(rank.total))) +
                shown_text(rank.kernels, rank.distinct, "first");
        if (!rank.kernels.empty())
            text += text_of(result_table(analysis::kernel_fields(), rank.kernels), width);
    }
    return text;
}

std::string json_text(const analysis::KernelsReport& report) {
    return rank_rows_json(report.ranks, analysis::kernel_fields(), "kernels", &analysis::RankKernels::kernels,
                          [](const analysis::RankKernels& rank) {
                              return Json{{"rank", rank.rank},
                                          {"distinct", rank.distinct},
                                          {"count", rank.count},
                                          {"us", to_us(rank.total)}};
                          });
}

std::string csv_text(const analysis::KernelsReport& report) {
    return csv_of(by_rank(analysis::kernel_fields(), report.ranks, &analysis::RankKernels::kernels));
}

// --- operators ---

std::string table_text(const analysis::OperatorsReport& report, std::size_t width) {
    if (report.ranks.empty()) return std::string(kNothingSelected);
    std::string text;
    for (const analysis::RankOperators& rank : report.ranks) {
        if (!text.empty()) text += '\n';
        if (rank.distinct == 0) {
            text += fmt::format("Rank {}: no operators\n", rank.rank);
            continue;
        }
        text += fmt::format("Rank {}: {} of {}", rank.rank, store::counted(rank.calls, "call", "calls"),
                            store::counted(rank.distinct, "operator", "operators")) +
                shown_text(rank.operators, rank.distinct, "first") +
                text_of(result_table(analysis::operator_fields(report.by_shape), rank.operators), width,
                        report.by_shape ? 2 : 1);
    }
    return text;
}

std::string json_text(const analysis::OperatorsReport& report) {
    return rank_rows_json(report.ranks, analysis::operator_fields(report.by_shape), "operators",
                          &analysis::RankOperators::operators, [](const analysis::RankOperators& rank) {
                              return Json{{"rank", rank.rank},
                                          {"distinct", rank.distinct},
                                          {"calls", rank.calls},
                                          {"host_self_us", to_us(rank.host_self)},
                                          {"device_self_us", to_us(rank.device_self)}};
                          });
}

std::string csv_text(const analysis::OperatorsReport& report) {
    return csv_of(by_rank(analysis::operator_fields(report.by_shape), report.ranks,
                          &analysis::RankOperators::operators));
}

// --- allocations ---

std::string table_text(const analysis::AllocationsReport& report, std::size_t width) {
    if (report.ranks.empty()) return std::string(kNothingSelected);
    const std::string where =
        report.space ? fmt::format(" of {} memory", name(*report.space)) : std::string();
    std::string text =
        paragraph("Lived: until the address was freed or reused; - to the end of the trace.", width);
    for (const analysis::RankAllocations& rank : report.ranks) {
        text += fmt::format("\nRank {}: {}{}, {} MiB in all", rank.rank,
                            store::counted(rank.count, "allocation", "allocations"), where, mb(rank.bytes)) +
                shown_text(rank.allocations, rank.count, "largest");
        if (rank.allocations.empty()) continue;
        analysis::ResultTable table = result_table(analysis::allocation_fields(), rank.allocations);
        if (report.space) table = without(std::move(table), {"space"});
        text += text_of(table, width);
    }
    return text;
}

std::string json_text(const analysis::AllocationsReport& report) {
    return rank_rows_json(report.ranks, analysis::allocation_fields(), "allocations",
                          &analysis::RankAllocations::allocations, [](const analysis::RankAllocations& rank) {
                              return Json{{"rank", rank.rank}, {"count", rank.count}, {"bytes", rank.bytes}};
                          });
}

std::string csv_text(const analysis::AllocationsReport& report) {
    return csv_of(
        by_rank(analysis::allocation_fields(), report.ranks, &analysis::RankAllocations::allocations));
}

// --- collectives ---

std::string table_text(const analysis::CollectivesReport& report, std::size_t width) {
    if (report.ranks.empty()) return std::string(kNothingSelected);
    analysis::ResultTable table =
        by_rank(analysis::collective_fields(), report.ranks, &analysis::RankCollectives::operations);
    if (table.rows.empty()) return "No collectives.\n";
    if (!report.stepped) table = without(std::move(table), {"count_per_step", "bytes_per_step"});
    std::string text = "MiB of the full buffer; GB = 10^9 bytes\n" + text_of(table, width, 2);
    std::int64_t unmatched = 0;
    bool on_host = false;
    for (const analysis::RankCollectives& rank : report.ranks) {
        unmatched += rank.unmatched;
        on_host = on_host || std::any_of(rank.operations.begin(), rank.operations.end(),
                                         [](const analysis::OperationStats& o) { return o.on_host; });
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

std::string json_text(const analysis::CollectivesReport& report) {
    return ranks_line(report.ranks, [](const analysis::RankCollectives& rank) {
        return Json{{"rank", rank.rank},
                    {"operations", json_of(result_table(analysis::collective_fields(), rank.operations))},
                    {"unmatched", rank.unmatched}};
    });
}

std::string csv_text(const analysis::CollectivesReport& report) {
    return csv_of(
        by_rank(analysis::collective_fields(), report.ranks, &analysis::RankCollectives::operations));
}

// --- plain rows ---

std::string table_text(const RankRows& rows, std::size_t width) {
    if (rows.ranks.empty()) return std::string(kNothingSelected);
    if (!rows.table.rows.empty()) return text_of(rows.table, width, 2);
    return std::string(rows.nothing) + '\n';
}

std::string json_text(const RankRows& rows) {
    return ranks_line(rows.ranks, [&](int rank) {
        const std::vector<analysis::ResultColumn>& columns = rows.table.columns;  // the rank is the first
        analysis::ResultTable own{{columns.begin() + 1, columns.end()}, {}, {}};
        for (const std::vector<store::Cell>& row : rows.table.rows) {
            if (row.front() == store::Cell(std::int64_t{rank}))
                own.rows.emplace_back(row.begin() + 1, row.end());
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

std::string render(const analysis::KernelsReport& result, Format format, std::size_t width) {
    return render_as(result, format, width, table_text, json_text, csv_text);
}

std::string render(const analysis::OperatorsReport& result, Format format, std::size_t width) {
    return render_as(result, format, width, table_text, json_text, csv_text);
}

std::string render(const analysis::AllocationsReport& result, Format format, std::size_t width) {
    return render_as(result, format, width, table_text, json_text, csv_text);
}

std::string render(const analysis::CollectivesReport& result, Format format, std::size_t width) {
    return render_as(result, format, width, table_text, json_text, csv_text);
}

}  // namespace shardscope::traces::report
