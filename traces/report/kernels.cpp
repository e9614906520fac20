// Kernels by name as table, JSON and CSV.
#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/formats.h"
#include "traces/report/json_parts.h"
#include "traces/report/kernel_label.h"
#include "traces/report/text_table.h"
#include "traces/report/units.h"

namespace shardscope::traces {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kKernelWidth = 80;

Json optional_json(const std::optional<double>& value) {
    return value ? Json(*value) : Json(nullptr);
}
Cell optional_cell(const std::optional<double>& value) {
    return value ? Cell(*value) : Cell(std::monostate());
}

std::string rank_table(const RankKernels& rank, std::size_t width) {
    const auto any = [&](auto member) {
        return std::any_of(rank.kernels.begin(), rank.kernels.end(),
                           [&](const KernelStats& k) { return (k.*member).has_value(); });
    };
    const bool blocks = any(&KernelStats::blocks_per_sm), occupancy = any(&KernelStats::occupancy_percent);
    std::vector<std::string> header = {"Kernel", "Count", "Total", "%",  "Mean",
                                       "Median", "p95",   "Min",   "Max"};
    if (blocks) header.emplace_back("Blocks/SM");
    if (occupancy) header.emplace_back("Occ. (%)");
    std::vector<Align> align(header.size(), Align::right);
    align[0] = Align::left;
    TextTable table(align);
    table.header(std::move(header));
    for (const KernelStats& k : rank.kernels) {
        std::vector<std::string> cells = {kernel_label(k.name, kKernelWidth),
                                          grouped(k.count),
                                          us(to_us(k.total)),
                                          grouped(k.share, 2),
                                          us(to_us(k.mean)),
                                          us(to_us(k.median)),
                                          us(to_us(k.p95)),
                                          us(to_us(k.shortest)),
                                          us(to_us(k.longest))};
        if (blocks) cells.push_back(k.blocks_per_sm ? grouped(*k.blocks_per_sm, 2) : "-");
        if (occupancy) cells.push_back(k.occupancy_percent ? grouped(*k.occupancy_percent, 2) : "-");
        table.row(std::move(cells));
    }
    return table.text(width);
}

}  // namespace

std::string table_text(const KernelsReport& report, std::size_t width) {
    if (report.ranks.empty()) return std::string(kNothingSelected);
    std::string text;
    for (const RankKernels& rank : report.ranks) {
        if (!text.empty()) text += '\n';
        text += fmt::format("Rank {}: {} of {}, {} us", rank.rank, counted(rank.count, "kernel", "kernels"),
                            counted(rank.distinct, "name", "names"), us(to_us(rank.total)));
        const auto shown = static_cast<std::int64_t>(rank.kernels.size());
        if (shown < rank.distinct) text += fmt::format("; the first {}", grouped(shown));
        text += " (times in us)\n";
        if (shown > 0) text += rank_table(rank, width);
    }
    return text;
}

std::string json_text(const KernelsReport& report) {
    Json ranks = Json::array();
    for (const RankKernels& rank : report.ranks) {
        Json kernels = Json::array();
        for (const KernelStats& k : rank.kernels) {
            kernels.push_back({{"name", std::string(k.name)},
                               {"communication", k.communication},
                               {"count", k.count},
                               {"us", to_us(k.total)},
                               {"mean_us", to_us(k.mean)},
                               {"median_us", to_us(k.median)},
                               {"p95_us", to_us(k.p95)},
                               {"min_us", to_us(k.shortest)},
                               {"max_us", to_us(k.longest)},
                               {"percent", k.share},
                               {"blocks_per_sm", optional_json(k.blocks_per_sm)},
                               {"occupancy_percent", optional_json(k.occupancy_percent)}});
        }
        ranks.push_back({{"rank", rank.rank},
                         {"distinct", rank.distinct},
                         {"count", rank.count},
                         {"us", to_us(rank.total)},
                         {"kernels", std::move(kernels)}});
    }
    return json_line({{"ranks", std::move(ranks)}});
}

std::string csv_text(const KernelsReport& report) {
    std::vector<std::vector<Cell>> rows;
    for (const RankKernels& rank : report.ranks) {
        for (const KernelStats& k : rank.kernels) {
            rows.push_back({std::int64_t(rank.rank), std::string(k.name), k.count, to_us(k.total),
                            to_us(k.mean), to_us(k.median), to_us(k.p95), to_us(k.shortest), to_us(k.longest),
                            k.share, optional_cell(k.blocks_per_sm), optional_cell(k.occupancy_percent)});
        }
    }
    return csv_text({{"rank"},
                     {"name"},
                     {"count"},
                     {"us"},
                     {"mean_us"},
                     {"median_us"},
                     {"p95_us"},
                     {"min_us"},
                     {"max_us"},
                     {"percent"},
                     {"blocks_per_sm"},
                     {"occupancy_percent"}},
                    rows);
}

}  // namespace shardscope::traces
