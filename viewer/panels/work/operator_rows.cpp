// See operator_rows.h.
#include "viewer/panels/work/operator_rows.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

#include "viewer/draw/short_name.h"
#include "viewer/tables/result_model.h"
#include "viewer/theme/theme.h"
#include "viewer/timeline/color_modes.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::TimeCategory;

constexpr float kNameWidth = 24;  // font sizes: enough for most names of functions

// Colours of the first rows, as in the timeline by name: a name has the same colour in every panel. If two
// names share a hue the later one takes the next free one.
template <class Row>
std::vector<theme::Color> share_colors(const std::vector<Row>& rows) {
    static_assert(kNamedShares <= timeline::kHues);
    std::array<bool, timeline::kHues> taken{};
    std::vector<theme::Color> colors(rows.size(), 0);
    for (std::size_t i = 0; i < std::min(rows.size(), kNamedShares); ++i) {
        std::size_t hue = timeline::hue_of(rows[i].name) - timeline::kFirstHue;
        while (taken[hue]) hue = (hue + 1) % timeline::kHues;
        taken[hue] = true;
        colors[i] = theme::hue_color(static_cast<int>(hue));
    }
    return colors;
}

template <class Row, class Time>
std::vector<NameShare> shares(const std::vector<Row>& rows, std::int64_t whole, const Time& time) {
    std::vector<NameShare> parts;
    std::int64_t told = 0;
    const auto percent = [whole](std::int64_t ns) {
        return whole > 0 ? 100 * static_cast<double>(ns) / static_cast<double>(whole) : 0.0;
    };
    const std::vector<theme::Color> colors = share_colors(rows);
    for (std::size_t i = 0; i < std::min(rows.size(), kNamedShares); ++i) {
        const std::int64_t ns = time(rows[i]);
        if (ns <= 0) continue;
        told += ns;
        parts.push_back(
            {draw::readable_name(rows[i].name), tables::us(ns), percent(ns), colors[i], static_cast<int>(i)});
    }
    if (whole > told)
        parts.push_back(
            {"others", tables::us(whole - told), percent(whole - told), theme::no_hue_color(), -1});
    return parts;
}

}  // namespace

std::shared_ptr<const tables::TableModel> operator_table(const traces::analysis::RankOperators& rank,
                                                         bool by_shape) {
    std::vector<tables::ColumnLook> looks = {
        {.key = "name", .width = 0, .priority = 20, .least = kNameWidth},
        {.key = "calls", .width = 5, .priority = 15},
        {.key = "host_us", .width = 7, .priority = 12},
        {.key = "host_self_us",
         .width = 7,
         .priority = 13,
         .bar = theme::time_category_color(TimeCategory::cpu_exec)},
        {.key = "device_us", .width = 7.5F, .priority = 14},
        {.key = "device_self_us",
         .width = 7.5F,
         .priority = 16,
         .bar = theme::time_category_color(TimeCategory::kernel)},
        {.key = "device_percent", .width = 5},
    };
    if (by_shape)
        looks.insert(looks.begin() + 1,
                     {.key = "shapes", .width = 14, .priority = 11, .title = "Input shapes"});
    std::vector<theme::Color> colors = share_colors(rank.operators);
    for (std::size_t i = 0; i < colors.size(); ++i) {
        if (rank.operators[i].device_self <= 0) colors[i] = 0;
    }
    return result_model(
        traces::analysis::result_table(traces::analysis::operator_fields(by_shape), rank.operators), looks,
        colors);
}

std::shared_ptr<const tables::TableModel> kernel_table(const traces::analysis::RankKernels& rank) {
    const tables::ColumnLook looks[] = {
        {.key = "full_name",
         .width = 0,
         .priority = 20,
         .id = "name",
         .least = kNameWidth,
         .write = draw::readable_name},
        {.key = "kind", .priority = 6},
        {.key = "count", .width = 5, .priority = 15},
        {.key = "us", .width = 7.5F, .priority = 16, .bar = theme::time_category_color(TimeCategory::kernel)},
        {.key = "percent", .width = 5, .priority = 14, .title = "Share"},
        {.key = "mean_us", .priority = 13},
        {.key = "median_us", .priority = 9},
        {.key = "p95_us"},
        {.key = "min_us", .priority = 7, .title = "Shortest"},
        {.key = "max_us", .priority = 12, .title = "Longest"},
        {.key = "blocks_per_sm", .width = 5, .priority = 5, .title = "Blocks", .unit = "per SM"},
        {.key = "occupancy_percent", .priority = 11},
    };
    return result_model(traces::analysis::result_table(traces::analysis::kernel_fields(), rank.kernels),
                        looks, share_colors(rank.kernels));
}

std::vector<NameShare> operator_shares(const traces::analysis::RankOperators& rank) {
    return shares(rank.operators, rank.device_self,
                  [](const traces::analysis::OperatorStats& row) { return row.device_self; });
}

std::vector<NameShare> kernel_shares(const traces::analysis::RankKernels& rank) {
    return shares(rank.kernels, rank.total,
                  [](const traces::analysis::KernelStats& row) { return row.total; });
}

}  // namespace shardscope::viewer::panels
