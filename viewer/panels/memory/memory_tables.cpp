// See memory_tables.h.
#include "viewer/panels/memory/memory_tables.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <fmt/core.h>

#include "traces/schema/sort_rows.h"
#include "viewer/draw/format.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::MemoryHolder;
using traces::analysis::RankMemory;
using traces::schema::MemoryCategory;
using Kind = tables::TableColumn::Kind;

struct Holders {
    std::string_view title;
    std::vector<MemoryHolder> RankMemory::*holders;
};
constexpr std::array<Holders, kHolderKinds> kHolders = {{{"FSDP unit", &RankMemory::units},
                                                         {"Module", &RankMemory::modules},
                                                         {"Buffer", &RankMemory::buffers},
                                                         {"Annotation", &RankMemory::annotations},
                                                         {"Requested by", &RankMemory::stacks}}};

tables::TableColumn name_column(std::string id, std::string title) {
    return tables::text_column(std::move(id), std::move(title), 0);
}
tables::TableColumn mb_column(std::string id, std::string title, int priority = 10) {
    return {
        .id = std::move(id), .title = std::move(title), .unit = "MiB", .width = 5.5F, .priority = priority};
}
tables::TableColumn bytes_column(std::string id, std::string title, int priority = 8) {
    return {
        .id = std::move(id), .title = std::move(title), .unit = "bytes", .width = 7.5F, .priority = priority};
}
tables::TableColumn share_column() {
    return tables::number_column("share_percent", "Share", "%", 4.5F, 9, theme::accent(),
                                 "of all live bytes at that instant");
}
void prediction_columns(std::vector<tables::TableColumn>& columns) {
    columns.push_back(mb_column("predicted_mb", "Predicted", 7));
    columns.back().help = "by the memory account, which walks the plan of the run without running it";
    columns.push_back(bytes_column("difference_bytes", "Difference", 6));
    columns.back().help = "measured - predicted; = is the same byte for byte";
}

double percent_of(std::int64_t bytes, std::int64_t whole) {
    return whole > 0 ? 100.0 * static_cast<double>(bytes) / static_cast<double>(whole) : 0.0;
}

// Signed; "=" if there is no difference.
tables::CellTable::Cell difference_cell(std::int64_t bytes) {
    if (bytes == 0) return {"=", 0};
    return {(bytes > 0 ? "+" : "") + draw::format_count(bytes), static_cast<double>(bytes)};
}
tables::CellTable::Cell mb_difference_cell(std::int64_t bytes) {
    if (bytes == 0) return {"=", 0};
    return {(bytes > 0 ? "+" : "") + draw::format_mb(bytes, false), tables::mb_cell(bytes).number};
}

std::string category_name(std::size_t category) {
    return draw::spaced(traces::schema::kMemoryCategoryNames[category]);
}
theme::Color color_of(std::size_t category) {
    return theme::category_color(static_cast<MemoryCategory>(category));
}

ModelPtr compared_table(
    std::string_view title,
    const std::vector<std::pair<std::string, std::pair<std::int64_t, std::int64_t>>>& rows, bool categories) {
    auto table = std::make_shared<tables::CellTable>(std::vector<tables::TableColumn>{
        name_column("name", std::string(title)), mb_column("here_mb", "This run"),
        mb_column("there_mb", "Other run"), mb_column("difference_mb", "Difference", 9),
        tables::number_column("change_percent", "Change", "%", 5.5F, 8)});
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto [here, there] = rows[i].second;
        const double change = here != 0 ? 100 * static_cast<double>(there - here) / static_cast<double>(here)
                                        : tables::kNoNumber;
        std::string text = here != 0 ? draw::format_decimal(change, 2) : (there != 0 ? "new" : "-");
        if (here != 0 && change > 0) text = "+" + text;
        const theme::Color color = categories && i > 0 ? color_of(i - 1) : 0;
        table->add({tables::text_cell(rows[i].first),
                    tables::mb_cell(here),
                    tables::mb_cell(there),
                    mb_difference_cell(there - here),
                    {std::move(text), change}},
                   color);
    }
    return table;
}

}  // namespace

std::string_view holder_title(HolderKind kind) {
    return kHolders[static_cast<std::size_t>(kind)].title;
}

const std::vector<MemoryHolder>& holders_of(const RankMemory& memory, HolderKind kind) {
    return memory.*kHolders[static_cast<std::size_t>(kind)].holders;
}

std::vector<HolderKind> told_kinds(const RankMemory& memory) {
    std::vector<HolderKind> told;
    for (int k = 0; k < kHolderKinds; ++k) {
        const auto kind = static_cast<HolderKind>(k);
        const bool names = std::any_of(holders_of(memory, kind).begin(), holders_of(memory, kind).end(),
                                       [](const MemoryHolder& h) { return !h.name.starts_with('('); });
        if (names) told.push_back(kind);
    }
    return told;
}

bool has_prediction(const RankMemory& memory) {
    return memory.predicted_peak_bytes >= 0 && memory.prediction_applies;
}

ModelPtr category_table(const RankMemory& memory) {
    const bool predicted = has_prediction(memory);
    std::vector<tables::TableColumn> columns = {name_column("category", "Category"), mb_column("mb", "Live"),
                                                bytes_column("bytes", "", predicted ? 5 : 8), share_column()};
    columns.front().least = 12.5F;  // wide enough for the longest category
    if (predicted) prediction_columns(columns);
    auto table = std::make_shared<tables::CellTable>(std::move(columns));
    const auto add = [&](std::string_view name, std::int64_t bytes, std::int64_t prediction,
                         theme::Color color) {
        std::vector<tables::CellTable::Cell> cells = {
            tables::text_cell(name), tables::mb_cell(bytes), tables::count_cell(bytes),
            tables::percent_cell(percent_of(bytes, memory.peak_bytes))};
        if (predicted) {
            cells.push_back(tables::mb_cell(prediction));
            cells.push_back(difference_cell(bytes - prediction));
        }
        table->add(std::move(cells), color);
    };
    add("all", memory.peak_bytes, memory.predicted_peak_bytes, 0);
    for (std::size_t c = 0; c < memory.at_peak.size(); ++c)
        add(category_name(c), memory.at_peak[c], memory.predicted_at_peak[c], color_of(c));
    return table;
}

ModelPtr holder_table(const RankMemory& memory, HolderKind kind) {
    const std::vector<MemoryHolder>& holders = holders_of(memory, kind);
    const bool predicted = !holders.empty() && holders.front().predicted.has_value();
    std::vector<tables::TableColumn> columns = {name_column("name", std::string(holder_title(kind))),
                                                mb_column("mb", "Live"), share_column()};
    if (predicted) prediction_columns(columns);
    auto table = std::make_shared<tables::CellTable>(std::move(columns));
    for (const MemoryHolder& holder : holders) {
        std::vector<tables::CellTable::Cell> cells = {
            tables::text_cell(holder.name), tables::mb_cell(holder.bytes),
            tables::percent_cell(percent_of(holder.bytes, memory.peak_bytes))};
        if (predicted) {
            cells.push_back(tables::mb_cell(holder.predicted.value_or(0)));
            cells.push_back(difference_cell(holder.bytes - holder.predicted.value_or(0)));
        }
        table->add(std::move(cells));
    }
    return table;
}

ModelPtr step_table(const traces::analysis::RankExplanation& rank) {
    const auto told = [&](auto member) {
        return std::any_of(rank.steps.begin(), rank.steps.end(),
                           [&](const traces::analysis::StepMemory& s) { return (s.*member).has_value(); });
    };
    const bool active = told(&traces::analysis::StepMemory::active_bytes),
               reserved = told(&traces::analysis::StepMemory::reserved_bytes),
               predicted = told(&traces::analysis::StepMemory::predicted);
    std::vector<tables::TableColumn> columns = {tables::number_column("step", "Step", "", 4),
                                                mb_column("peak_mb", "Peak")};
    columns.back().bar = theme::accent();
    columns.back().width = 8;
    columns.push_back(bytes_column("peak_bytes", "", 5));
    if (predicted) prediction_columns(columns);
    if (active) {
        columns.push_back(mb_column("active_mb", "Active", 7));
        columns.back().help = "most that a stream still used";
    }
    if (reserved) {
        columns.push_back(mb_column("reserved_mb", "Reserved", 7));
        columns.back().help = "largest reserved size of the pool";
    }
    columns.push_back(tables::number_column("growths", "Pool grew", "times", 5.5F, 6, 0,
                                            "calls of cudaMalloc in the step"));
    auto table = std::make_shared<tables::CellTable>(std::move(columns));
    const auto mb_or_none = [](std::optional<std::int64_t> bytes) {
        return bytes ? tables::mb_cell(*bytes) : tables::no_cell();
    };
    for (const traces::analysis::StepMemory& step : rank.steps) {
        std::vector<tables::CellTable::Cell> cells = {tables::count_cell(step.step),
                                                      tables::mb_cell(step.peak_bytes),
                                                      tables::count_cell(step.peak_bytes)};
        if (predicted) {
            cells.push_back(mb_or_none(step.predicted));
            cells.push_back(step.predicted ? difference_cell(step.peak_bytes - *step.predicted)
                                           : tables::no_cell());
        }
        if (active) cells.push_back(mb_or_none(step.active_bytes));
        if (reserved) cells.push_back(mb_or_none(step.reserved_bytes));
        cells.push_back(tables::count_cell(step.growths));
        table->add(std::move(cells));
    }
    return table;
}

ModelPtr rank_table(const traces::analysis::MemoryReport& report) {
    std::vector<tables::TableColumn> columns = {tables::number_column("rank", "Rank", "", 4),
                                                mb_column("peak_mb", "Peak"),
                                                tables::number_column("peak_ms", "At", "ms", 7)};
    columns[1].bar = theme::accent();
    columns[1].width = 8;
    const bool reserved = std::any_of(report.ranks.begin(), report.ranks.end(),
                                      [](const RankMemory& r) { return r.reserved_bytes > 0; });
    if (reserved) columns.push_back(mb_column("reserved_mb", "Reserved", 9));
    if (std::any_of(report.ranks.begin(), report.ranks.end(), has_prediction)) prediction_columns(columns);
    const bool predicted = columns.back().id == "difference_bytes";
    std::vector<std::size_t> categories;
    for (std::size_t c = 0; c < traces::schema::kMemoryCategories; ++c) {
        const bool used = std::any_of(report.ranks.begin(), report.ranks.end(),
                                      [c](const RankMemory& r) { return r.at_peak[c] != 0; });
        if (!used) continue;
        categories.push_back(c);
        columns.push_back(
            mb_column(std::string(traces::schema::kMemoryCategoryNames[c]) + "_mb", category_name(c), 4));
        columns.back().width = std::max(5.5F, 0.56F * static_cast<float>(columns.back().title.size()));
        columns.back().bar = color_of(c);
        columns.back().help = "live at the rank's peak";
    }
    auto table = std::make_shared<tables::CellTable>(std::move(columns));
    for (const RankMemory& rank : report.ranks) {
        std::vector<tables::CellTable::Cell> cells = {
            tables::count_cell(rank.rank), tables::mb_cell(rank.peak_bytes),
            tables::decimal_cell(static_cast<double>(rank.peak_time_ns) * 1e-6, 3)};
        if (reserved)
            cells.push_back(rank.reserved_bytes > 0 ? tables::mb_cell(rank.reserved_bytes)
                                                    : tables::no_cell());
        if (predicted) {
            cells.push_back(has_prediction(rank) ? tables::mb_cell(rank.predicted_peak_bytes)
                                                 : tables::no_cell());
            cells.push_back(has_prediction(rank)
                                ? difference_cell(rank.peak_bytes - rank.predicted_peak_bytes)
                                : tables::no_cell());
        }
        for (const std::size_t c : categories) cells.push_back(tables::mb_cell(rank.at_peak[c]));
        table->add(std::move(cells));
    }
    return table;
}

ModelPtr pool_table(const traces::analysis::RankExplanation& rank) {
    auto table = std::make_shared<tables::CellTable>(std::vector<tables::TableColumn>{
        name_column("figure", "Figure"), tables::number_column("value", "Value", "", 8),
        tables::text_column("unit", "Unit", 6, 9)});
    const auto mb = [&](std::string_view name, std::int64_t bytes) {
        table->add({tables::text_cell(name), tables::mb_cell(bytes), tables::text_cell("MiB")});
    };
    const auto count = [&](std::string_view name, std::int64_t n) {
        table->add({tables::text_cell(name), tables::count_cell(n), tables::text_cell("times")});
    };
    const auto percent = [&](std::string_view name, double p) {
        table->add({tables::text_cell(name), tables::percent_cell(p), tables::text_cell("%")});
    };
    const traces::analysis::PoolMemory& pool = rank.pool;
    const bool active_told = rank.memory.until_last_use;
    const std::string_view live = active_told ? "active" : "allocated";
    if (!active_told) mb("Allocated, at its peak (in the host's order)", rank.memory.peak_bytes);
    if (pool.allocated_peak_bytes)
        mb("Allocated, at its peak (in the host's order)", *pool.allocated_peak_bytes);
    if (active_told) {
        mb("Active, at its peak (until the last stream used it)", rank.memory.peak_bytes);
    } else if (pool.active_peak_bytes) {
        mb("Active, at its peak (until the last stream used it)", *pool.active_peak_bytes);
    }
    if (pool.reserved_peak_bytes) {
        mb("Reserved, at its peak (held by the pool)", *pool.reserved_peak_bytes);
        mb(fmt::format("Reserved when {} is at its peak", live), pool.reserved_at_peak);
        mb(fmt::format("Of that, cached (reserved but not {})", live), pool.cached_at_peak);
        mb(fmt::format("Most {} while reserved is at its peak", live), pool.allocated_at_reserved_peak);
        if (pool.active_at_reserved_peak && !active_told)
            mb("Most active while reserved is at its peak", *pool.active_at_reserved_peak);
        percent(fmt::format("Of the reserved peak never {} at the same time", live),
                pool.fragmentation_percent);
    }
    count("Growths of the pool (cudaMalloc)", pool.growths);
    if (!rank.steps.empty()) count("Growths inside steps", pool.growths_in_steps);
    if (rank.memory.fragmentation) {
        const traces::analysis::Fragmentation& f = *rank.memory.fragmentation;
        mb("The allocator's segments at the peak", f.held_bytes);
        count("Segments", f.segments);
        mb("Free in them", f.free_bytes);
        count("Free blocks", f.free_blocks);
        mb("Largest free block", f.largest_free);
        percent("Fragmentation of the free bytes", f.percent());
    }
    return table;
}

ModelPtr compared_categories(const RankMemory& here, const RankMemory& there) {
    std::vector<std::pair<std::string, std::pair<std::int64_t, std::int64_t>>> rows = {
        {"all", {here.peak_bytes, there.peak_bytes}}};
    for (std::size_t c = 0; c < here.at_peak.size(); ++c)
        rows.push_back({category_name(c), {here.at_peak[c], there.at_peak[c]}});
    return compared_table("Category", rows, true);
}

ModelPtr compared_holders(const RankMemory& here, const RankMemory& there, HolderKind kind) {
    std::map<std::string, std::pair<std::int64_t, std::int64_t>> joined;
    for (const MemoryHolder& holder : holders_of(here, kind)) joined[holder.name].first += holder.bytes;
    for (const MemoryHolder& holder : holders_of(there, kind)) joined[holder.name].second += holder.bytes;
    std::vector<std::pair<std::string, std::pair<std::int64_t, std::int64_t>>> rows(joined.begin(),
                                                                                    joined.end());
    traces::schema::sort_rows(rows, [](const auto& a, const auto& b) {  // the largest difference first
        const auto off = [](const auto& row) { return std::abs(row.second.first - row.second.second); };
        return off(a) > off(b);
    });
    return compared_table(holder_title(kind), rows, false);
}

std::string moment_sentence(const traces::analysis::RankExplanation& rank) {
    const traces::analysis::PeakMoment& moment = rank.moment;
    if (moment.bytes == 0) return {};
    std::string text = fmt::format("Reached by allocating {}", draw::format_size(moment.bytes));
    if (!moment.buffer.empty()) text += fmt::format(" ({})", moment.buffer);
    if (!moment.module.empty()) text += fmt::format(" for {}", moment.module);
    if (!moment.unit.empty()) text += fmt::format(" of {}", moment.unit);
    if (!moment.annotation.empty()) text += fmt::format(" in {}", moment.annotation);
    if (moment.phase != traces::schema::Phase::none)
        text += fmt::format(", in the {}", traces::schema::name(moment.phase));
    if (moment.step)
        text += fmt::format("{} step {}", moment.phase != traces::schema::Phase::none ? " of" : ", in",
                            *moment.step);
    return text + ".";
}

}  // namespace shardscope::viewer::panels
