// Bus bandwidth over size: a row for each size of each curve, and one for each pair of ranks that exchange
// messages.
#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/analysis/communication/bus_bandwidth.h"
#include "traces/report/print.h"

namespace shardscope::traces::report {
namespace {

constexpr std::size_t kPairsShown = 64;

analysis::ResultTable size_table(const analysis::BusBandwidthReport& report) {
    analysis::ResultTable table = empty_table(analysis::bandwidth_fields());
    for (const analysis::BandwidthCurve& curve : report.curves) {
        if (!table.rows.empty()) table.rules.push_back(table.rows.size());
        for (const analysis::BandwidthPoint& point : curve.points)
            add_cells(table.rows.emplace_back(), analysis::bandwidth_fields(), {&curve, point});
    }
    return table;
}

std::string bounds_text(const analysis::BusBandwidthReport& report, std::size_t width) {
    std::vector<std::string> known;
    for (const analysis::BandwidthCurve& curve : report.curves) {
        if (!curve.bound.of.empty() && std::find(known.begin(), known.end(), curve.bound.of) == known.end())
            known.push_back(curve.bound.of);
    }
    if (known.empty()) return {};
    std::string text = "Bound: what ";
    for (std::size_t i = 0; i < known.size(); ++i) text += (i > 0 ? " or " : "") + known[i];
    return paragraph(
        text + (known.size() == 1 && known[0].starts_with("the host's")
                    ? " allows if each byte of each buffer moves once; data that stay in a cache "
                      "can be faster."
                    : " can carry in one direction."),
        width);
}

std::string table_text(const analysis::BusBandwidthReport& report, std::size_t width) {
    if (report.curves.empty()) {
        return report.left_out == 0
                   ? "No collectives.\n"
                   : paragraph("No collective whose size, number of ranks and time on a device are known.",
                               width);
    }
    analysis::ResultTable table = size_table(report);
    const auto none = [&](auto differs) {
        return std::none_of(report.curves.begin(), report.curves.end(), differs);
    };
    if (none([](const auto& curve) { return !curve.axis.empty(); }))
        table = without(std::move(table), {"axis"});
    if (none([](const auto& curve) { return curve.where != analysis::HostTraffic::Where::unknown; }))
        table = without(std::move(table), {"where"});
    std::string text =
        "Bandwidth over size: each collective once; medians, with the quartiles of busbw; GB = "
        "10^9 bytes\n" +
        text_of(table, width, 4);
    text += bounds_text(report, width);
    if (report.left_out > 0)
        text += fmt::format("{} left out: bytes, ranks or time unknown.\n", collectives_are(report.left_out));
    if (report.pairs.empty()) return text;
    const std::size_t shown = std::min(report.pairs.size(), kPairsShown);
    text += "\nMessages from rank to rank: latency of the smallest size, highest median bandwidth\n" +
            text_of(result_table(analysis::pair_bandwidth_fields(),
                                 std::vector(report.pairs.begin(),
                                             report.pairs.begin() + static_cast<std::ptrdiff_t>(shown))),
                    width, 2);
    if (shown < report.pairs.size())
        text += fmt::format("... and {} more; --format json has all.\n", report.pairs.size() - shown);
    return text;
}

std::string json_text(const analysis::BusBandwidthReport& report) {
    return json_line({{"sizes", json_of(result_table(analysis::bandwidth_fields(), bandwidth_rows(report)))},
                      {"pairs", json_of(result_table(analysis::pair_bandwidth_fields(), report.pairs))},
                      {"left_out", report.left_out}});
}

std::string csv_text(const analysis::BusBandwidthReport& report) {
    return csv_of(result_table(analysis::bandwidth_fields(), bandwidth_rows(report)));
}

}  // namespace

std::string render(const analysis::BusBandwidthReport& result, Format format, std::size_t width) {
    return render_as(result, format, width, table_text, json_text, csv_text);
}

}  // namespace shardscope::traces::report
