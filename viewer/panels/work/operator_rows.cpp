// See operator_rows.h.
#include "viewer/panels/work/operator_rows.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

#include "viewer/theme/theme.h"
#include "viewer/draw/short_name.h"
#include "viewer/widgets/columns.h"
#include "viewer/timeline/color_modes.h"

namespace shardscope::viewer {
namespace {

using Kind = TableColumn::Kind;

constexpr float kNameWidth = 24;  // font sizes: what most names of functions have room in

// Of the first rows, as the timeline paints them by name: a name has its colour in every panel. Where two
// names meet in a hue the later one takes the next that is free.
template <class Row>
std::vector<Color> share_colors(const std::vector<Row>& rows) {
    static_assert(kNamedShares <= kHues);
    std::array<bool, kHues> taken{};
    std::vector<Color> colors(rows.size(), 0);
    for (std::size_t i = 0; i < std::min(rows.size(), kNamedShares); ++i) {
        std::size_t hue = hue_of(rows[i].name) - kFirstHue;
        while (taken[hue]) hue = (hue + 1) % kHues;
        taken[hue] = true;
        colors[i] = hue_color(static_cast<int>(hue));
    }
    return colors;
}

CellTable::Cell share_cell(std::int64_t ns, std::int64_t whole) {
    return whole > 0 ? percent_cell(100 * static_cast<double>(ns) / static_cast<double>(whole)) : no_cell();
}

template <class Row, class Time>
std::vector<NameShare> shares(const std::vector<Row>& rows, std::int64_t whole, const Time& time) {
    std::vector<NameShare> parts;
    std::int64_t told = 0;
    const auto percent = [whole](std::int64_t ns) {
        return whole > 0 ? 100 * static_cast<double>(ns) / static_cast<double>(whole) : 0.0;
    };
    const std::vector<Color> colors = share_colors(rows);
    for (std::size_t i = 0; i < std::min(rows.size(), kNamedShares); ++i) {
        const std::int64_t ns = time(rows[i]);
        if (ns <= 0) continue;
        told += ns;
        parts.push_back({readable_name(rows[i].name), us(ns), percent(ns), colors[i], static_cast<int>(i)});
    }
    if (whole > told)
        parts.push_back({"others", us(whole - told), percent(whole - told), no_hue_color(), -1});
    return parts;
}

}  // namespace

std::shared_ptr<const TableModel> operator_table(const traces::RankOperators& rank, bool by_shape) {
    const Color bar = time_category_color(traces::TimeCategory::kernel);
    std::vector<TableColumn> columns = {
        {"name", "Operator", "", Kind::text, 0, 20, 0, "The range's name.", 0, kNameWidth},
        {"shapes", "Input shapes", "", Kind::text, 14, 11, 0, "The sizes of the operator's inputs."},
        {"calls", "Calls", "", Kind::number, 5, 15, 0, "Calls that start in what is looked at."},
        {"host_us", "Host total", "\u00b5s", Kind::number, 7, 12, 0,
         "The calls' durations on the host, with operators inside."},
        {"host_self_us", "Host self", "\u00b5s", Kind::number, 7, 13,
         time_category_color(traces::TimeCategory::cpu_exec),
         "Without operators inside and without calls of the runtime."},
        {"device_us", "Device total", "\u00b5s", Kind::number, 7.5F, 14, 0,
         "Device work launched inside, in operators inside too."},
        {"device_self_us", "Device self", "\u00b5s", Kind::number, 7.5F, 16, bar,
         "Device work launched inside, but not in an operator inside."},
        {"device_percent", "Device", "%", Kind::number, 5, 10, 0,
         "Of the device's time that all operators launched."},
    };
    if (!by_shape) columns.erase(columns.begin() + 1);
    auto table = std::make_shared<CellTable>(std::move(columns));
    const std::vector<Color> colors = share_colors(rank.operators);
    for (std::size_t i = 0; i < rank.operators.size(); ++i) {
        const traces::OperatorStats& row = rank.operators[i];
        std::vector<CellTable::Cell> cells = {text_cell(row.name)};
        if (by_shape) cells.push_back(text_cell(row.shapes.empty() ? "-" : row.shapes));
        for (CellTable::Cell& cell : std::vector<CellTable::Cell>{
                 count_cell(row.calls), us_cell(us(row.host_total)), us_cell(us(row.host_self)),
                 us_cell(us(row.device_total)), us_cell(us(row.device_self)),
                 share_cell(row.device_self, rank.device_self)}) {
            cells.push_back(std::move(cell));
        }
        table->add(std::move(cells), row.device_self > 0 ? colors[i] : Color{0});
    }
    return table;
}

std::shared_ptr<const TableModel> kernel_table(const traces::RankKernels& rank) {
    const auto any = [&](auto member) {
        return std::any_of(rank.kernels.begin(), rank.kernels.end(),
                           [&](const traces::KernelStats& k) { return (k.*member).has_value(); });
    };
    const bool blocks = any(&traces::KernelStats::blocks_per_sm),
               occupancy = any(&traces::KernelStats::occupancy_percent);
    std::vector<TableColumn> columns = {
        {"name", "Kernel", "", Kind::text, 0, 20, 0, "The kernel's name.", 0, kNameWidth},
        {"kind", "Kind", "", Kind::text, 6, 6, 0, "Compute, or the kernel of a collective."},
        {"count", "Count", "", Kind::number, 5, 15, 0, "Kernels of that name in what is looked at."},
        {"us", "Total", "\u00b5s", Kind::number, 7.5F, 16, time_category_color(traces::TimeCategory::kernel),
         "The sum of their durations."},
        {"percent", "Share", "%", Kind::number, 5, 14, 0, "Of the time of all kernels of the rank."},
        {"mean_us", "Mean", "\u00b5s", Kind::number, 6, 13, 0, {}},
        {"median_us", "Median", "\u00b5s", Kind::number, 6, 9, 0, {}},
        {"p95_us", "p95", "\u00b5s", Kind::number, 6, 10, 0, "95 % of them are not longer."},
        {"min_us", "Shortest", "\u00b5s", Kind::number, 6, 7, 0, {}},
        {"max_us", "Longest", "\u00b5s", Kind::number, 6, 12, 0, {}},
    };
    if (blocks) {
        columns.push_back({"blocks_per_sm", "Blocks", "per SM", Kind::number, 5, 5, 0,
                           "Launched blocks for each multiprocessor; mean weighted with duration."});
    }
    if (occupancy) {
        columns.push_back({"occupancy_percent", "Occupancy", "%", Kind::number, 6, 11, 0,
                           "Achieved occupancy; mean weighted with duration."});
    }
    auto table = std::make_shared<CellTable>(std::move(columns));
    const std::vector<Color> colors = share_colors(rank.kernels);
    for (std::size_t i = 0; i < rank.kernels.size(); ++i) {
        const traces::KernelStats& k = rank.kernels[i];
        std::vector<CellTable::Cell> cells = {text_cell(readable_name(k.name)),
                                              text_cell(k.communication ? "collective" : "compute"),
                                              count_cell(k.count),
                                              us_cell(us(k.total)),
                                              percent_cell(k.share),
                                              us_cell(k.mean * 1e-3),
                                              us_cell(k.median * 1e-3),
                                              us_cell(k.p95 * 1e-3),
                                              us_cell(us(k.shortest)),
                                              us_cell(us(k.longest))};
        if (blocks) cells.push_back(k.blocks_per_sm ? decimal_cell(*k.blocks_per_sm, 2) : no_cell());
        if (occupancy)
            cells.push_back(k.occupancy_percent ? decimal_cell(*k.occupancy_percent, 1) : no_cell());
        table->add(std::move(cells), colors[i]);
    }
    return table;
}

std::vector<NameShare> operator_shares(const traces::RankOperators& rank) {
    return shares(rank.operators, rank.device_self,
                  [](const traces::OperatorStats& row) { return row.device_self; });
}

std::vector<NameShare> kernel_shares(const traces::RankKernels& rank) {
    return shares(rank.kernels, rank.total, [](const traces::KernelStats& row) { return row.total; });
}

}  // namespace shardscope::viewer
