// See collective_rows.h.
#include "viewer/panels/communication/collective_rows.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

#include "traces/schema/joined.h"
#include "traces/store/columns/trace.h"
#include "traces/store/number_list.h"
#include "viewer/draw/format.h"
#include "viewer/tables/result_model.h"

namespace shardscope::viewer::panels {
namespace {

using Cell = tables::CellTable::Cell;
using Kind = tables::TableColumn::Kind;
using traces::schema::Operation;

constexpr char kTransferHelp[] =
    "The shortest duration among the ranks: what the wires and the algorithm take.";
// An id, not a quantity: other tools' ids are hashes.
Cell group_cell(std::int64_t group) {
    return tables::text_cell(group >= 0 ? fmt::format("{}", group) : "-");
}
theme::Color communication() {
    return theme::kind_color(traces::store::DeviceKind::communication);
}

}  // namespace

theme::Color operation_color(Operation operation) {
    switch (operation) {
        case Operation::all_gather:
            return theme::shard_color(traces::analysis::ShardState::gathering);
        case Operation::reduce_scatter:
            return theme::shard_color(traces::analysis::ShardState::reducing);
        case Operation::all_reduce:
            return theme::shard_color(traces::analysis::ShardState::freed);
        case Operation::broadcast:
            return theme::shard_color(traces::analysis::ShardState::full);
        case Operation::all_to_all:
            return theme::shard_color(traces::analysis::ShardState::computing);
        default:
            break;
    }
    return theme::range_color(traces::store::RangeKind::annotation);
}

namespace {

template <class Row>
std::vector<theme::Color> swatches_of(const std::vector<Row>& rows) {
    std::vector<theme::Color> swatches;
    swatches.reserve(rows.size());
    for (const Row& row : rows) swatches.push_back(operation_color(row.operation));
    return swatches;
}

}  // namespace

std::shared_ptr<const tables::CellTable> operation_table(const traces::analysis::RankCollectives& rank,
                                                         bool stepped) {
    std::vector<tables::ColumnLook> looks = {
        {.key = "name", .width = 9, .id = "operation"},
        {.key = "count", .width = 5},
        {.key = "bytes", .width = 7, .priority = 8, .id = "mb", .title = "Full buffers"},
        {.key = "us", .width = 7, .bar = communication()},
        {.key = "transfer_us", .width = 7, .priority = 7, .bar = theme::transfer_color()},
        {.key = "waiting_us", .width = 7, .priority = 8, .bar = theme::waiting_color()},
        {.key = "exposed_us", .width = 7, .priority = 9, .bar = theme::exposed_color()},
        {.key = "algbw_gbps", .priority = 6},
        {.key = "busbw_gbps", .priority = 9, .bar = theme::accent()},
    };
    if (stepped) {
        looks.push_back({.key = "count_per_step", .priority = 5, .title = "Count", .unit = "per step"});
        looks.push_back({.key = "bytes_per_step",
                         .priority = 5,
                         .id = "mb_per_step",
                         .title = "MiB",
                         .unit = "per step"});
        looks.push_back({.key = "us_per_step",
                         .width = 6.5F,
                         .priority = 5,
                         .title = "Time",
                         .unit = "\u00b5s per step"});
    }
    return result_model(
        traces::analysis::result_table(traces::analysis::collective_fields(), rank.operations), looks,
        swatches_of(rank.operations));
}

// --- the ranks together ---

std::shared_ptr<const tables::CellTable> straggler_table(const traces::analysis::StragglersReport& report,
                                                         int kind) {
    const tables::ColumnLook looks[] = {
        {.key = "rank", .width = 4},
        {.key = "collectives", .priority = 6, .title = "Compared"},
        {.key = "last", .width = 5, .priority = 8},
        {.key = "last_percent", .width = 5.5F, .priority = 9, .bar = theme::waiting_color()},
        {.key = "late_us", .width = 8, .bar = theme::waiting_color()},
        {.key = "late_mean_us", .priority = 7},
        {.key = "held_us", .width = 7, .priority = 7},
        {.key = "waited_us", .width = 7.5F, .priority = 7, .bar = theme::waiting_color()},
    };
    const auto& ranks = kind < 0 ? report.ranks : report.kinds[static_cast<std::size_t>(kind)].ranks;
    return result_model(traces::analysis::result_table(traces::analysis::arrival_fields(), ranks), looks);
}

std::shared_ptr<const tables::CellTable> traffic_table(const traces::analysis::DistributedReport& report) {
    const tables::ColumnLook looks[] = {
        {.key = "name", .width = 9, .id = "operation"},
        {.key = "size", .width = 9, .priority = 9},
        {.key = "within", .priority = 6},
        {.key = "group", .priority = 8, .as_text = true},
        {.key = "axis", .width = 6, .priority = 7, .where_known = true},
        {.key = "group_size", .width = 4.5F, .priority = 7, .id = "ranks"},
        {.key = "count", .width = 5, .bar = theme::accent()},
        {.key = "bytes", .width = 7, .priority = 8, .id = "mb", .title = "Full buffers"},
        {.key = "transfer_us", .width = 7, .priority = 9, .bar = theme::transfer_color()},
        {.key = "wait_part_us",
         .width = 6.5F,
         .priority = 8,
         .bar = theme::waiting_color(),
         .title = "Wait",
         .unit = "\u00b5s per part"},
        {.key = "algbw_gbps", .priority = 6},
        {.key = "busbw_gbps", .priority = 9},
    };
    return result_model(traces::analysis::result_table(traces::analysis::traffic_fields(), report.traffic),
                        looks, swatches_of(report.traffic));
}

std::shared_ptr<const tables::CellTable> axis_table(const traces::analysis::DistributedReport& report) {
    if (report.axes.empty()) return nullptr;
    const char* const per = report.stepped ? "per step" : "";
    const tables::ColumnLook looks[] = {
        {.key = "axis", .width = 8},
        {.key = "groups", .width = 5, .priority = 6},
        {.key = "group_size", .width = 4.5F, .priority = 7, .id = "ranks"},
        {.key = "count_per_step", .width = 6, .priority = 8, .title = "Collectives", .unit = per},
        {.key = "bytes_per_step", .width = 7, .priority = 9, .id = "mb", .title = "Full buffers"},
        {.key = "us_per_step", .width = 7, .bar = theme::accent()},
        {.key = "waiting_us_per_step", .width = 7, .priority = 8, .bar = theme::waiting_color()},
        {.key = "exposed_us_per_step", .width = 7, .bar = theme::exposed_color()},
        {.key = "algbw_gbps", .priority = 6},
        {.key = "busbw_gbps", .priority = 9},
    };
    return result_model(traces::analysis::result_table(traces::analysis::axis_traffic_fields(), report.axes),
                        looks);
}

std::shared_ptr<const tables::CellTable> rank_table(const traces::analysis::DistributedReport& report,
                                                    bool stepped) {
    const tables::ColumnLook looks[] = {
        {.key = "rank", .width = 4},
        {.key = "computation_us", .width = 7.5F, .bar = theme::kind_color(traces::store::DeviceKind::kernel)},
        {.key = "overlapped_us", .width = 7, .bar = theme::overlapped_color()},
        {.key = "exposed_communication_us", .width = 7, .bar = theme::exposed_color(), .id = "exposed_us"},
        {.key = "other_us", .width = 7, .priority = 8},
        {.key = "overlap_percent", .priority = 9, .bar = theme::accent(), .title = "Overlap"},
        {.key = "collectives", .width = 7, .priority = 5, .unit = stepped ? "per step" : ""},
        {.key = "bytes", .width = 7, .priority = 6, .id = "mb", .title = "Full buffers"},
        {.key = "transfer_us", .width = 7, .priority = 7, .bar = theme::transfer_color()},
        {.key = "waiting_us", .width = 7, .priority = 9, .bar = theme::waiting_color()},
        {.key = "steps", .width = 4.5F, .priority = 3, .title = "Steps"},
        {.key = "place", .width = 10, .priority = 5, .where_known = true},
        {.key = "host", .width = 9, .priority = 4, .where_known = true},
    };
    return result_model(traces::analysis::result_table(traces::analysis::rank_traffic_fields(), report.ranks),
                        looks);
}

std::shared_ptr<const tables::CellTable> slowest_table(const traces::analysis::DistributedReport& report) {
    auto table = std::make_shared<tables::CellTable>(std::vector<tables::TableColumn>{
        tables::text_column("collective", "Collective", 11),
        tables::text_column("group", "Group", 6, 5),
        tables::number_column("start_ms", "Start", "ms", 7, 9),
        tables::number_column("mb", "Full buffer", "MiB", 7, 7),
        tables::number_column("ranks", "Ranks", "", 4.5F, 4),
        tables::number_column("transfer_us", "Transfer", tables::kMicro, 7, 8, theme::transfer_color(),
                              kTransferHelp),
        tables::number_column("longest_us", "Longest", tables::kMicro, 7, 7),
        tables::number_column("waiting_us", "Waiting", tables::kMicro, 7, 10, theme::waiting_color(),
                              "Sum over ranks of duration less transfer."),
        tables::number_column("last_rank", "Last", "rank", 4.5F, 10, 0,
                              "The rank with the shortest duration: it arrived last."),
    });
    for (const traces::analysis::SlowCollective& s : report.slowest) {
        std::string key = s.sequence >= 0 ? fmt::format("{} {}", name(s.operation), s.sequence)
                                          : std::string(name(s.operation));
        if (s.ends.known()) key += fmt::format(", rank {} to {}", s.ends.source, s.ends.destination);
        table->add(
            {tables::text_cell(key), group_cell(s.group),
             tables::decimal_cell(static_cast<double>(s.start_ns) * 1e-6, 3),
             s.bytes > 0 ? tables::mb_cell(s.bytes) : tables::no_cell(), tables::count_cell(s.ranks),
             tables::ns_cell(s.transfer_ns), tables::ns_cell(s.longest_ns), tables::ns_cell(s.waiting_ns),
             s.last_rank >= 0 ? tables::count_cell(s.last_rank) : tables::no_cell()},
            operation_color(s.operation));
    }
    return table;
}

std::shared_ptr<const tables::CellTable> host_table(const traces::analysis::HostsReport& report) {
    auto table = std::make_shared<tables::CellTable>(std::vector<tables::TableColumn>{
        tables::text_column("host", "Host", 9, 7),
        tables::text_column("ranks", "Ranks", 7, 8),
        tables::text_column("cpus", "Processors", 9, 4),
        tables::number_column("collectives", "Collectives", "between hosts", 8, 9),
        tables::number_column("last", "Came last", "", 6, 10, theme::accent(),
                              "How often its last rank arrived after those of all other hosts."),
        tables::number_column("late_us", "Late", tables::kMicro, 6, 10, theme::waiting_color(),
                              "Median delay after the first complete host."),
    });
    for (const traces::analysis::HostPlace& host : report.hosts) {
        std::vector<std::int64_t> ranks;
        std::vector<std::string> cpus;
        for (const auto& member : host.ranks) {
            ranks.push_back(member.rank);
            if (!member.cpus.empty() && std::find(cpus.begin(), cpus.end(), member.cpus) == cpus.end())
                cpus.push_back(member.cpus);
        }
        table->add({tables::text_cell(host.name.empty() ? "unknown" : host.name),
                    tables::text_cell(traces::store::number_list(ranks)),
                    tables::text_cell(cpus.empty() ? "-" : traces::schema::joined(cpus, " | ")),
                    tables::count_cell(host.collectives), tables::count_cell(host.last),
                    host.collectives > 0 ? tables::ns_cell(host.median_late_ns) : tables::no_cell()});
    }
    return table;
}

std::shared_ptr<const tables::CellTable> host_traffic_table(const traces::analysis::HostsReport& report) {
    const tables::ColumnLook looks[] = {
        {.key = "hosts", .width = 7, .priority = 7},
        {.key = "name", .width = 9, .id = "operation"},
        {.key = "count", .width = 5, .priority = 9, .bar = theme::accent()},
        {.key = "bytes", .width = 7, .priority = 8, .id = "mb", .title = "Full buffers"},
        {.key = "transfer_us", .width = 7, .priority = 9, .bar = theme::transfer_color()},
        {.key = "waiting_us", .width = 7, .priority = 8, .bar = theme::waiting_color()},
        {.key = "algbw_gbps", .priority = 6},
        {.key = "busbw_gbps", .priority = 9},
    };
    return result_model(
        traces::analysis::result_table(traces::analysis::host_traffic_fields(), report.traffic), looks,
        swatches_of(report.traffic));
}

std::string size_class_text(std::size_t index) {
    constexpr std::size_t kBounds = std::size(traces::analysis::kSizeClasses);
    const auto bound = [](std::size_t i) {
        const std::int64_t bytes = traces::analysis::kSizeClasses[i];
        return bytes >= 1 << 20 ? fmt::format("{} MiB", bytes >> 20) : fmt::format("{} KiB", bytes >> 10);
    };
    if (index > kBounds) return "unknown";
    if (index == 0) return "below " + bound(0);
    if (index == kBounds) return "from " + bound(kBounds - 1);
    return bound(index - 1) + " - " + bound(index);
}

SizeHistogram size_histogram(const traces::analysis::DistributedReport& report) {
    SizeHistogram histogram;
    std::array<std::int64_t, kHistogramClasses> sums{};
    for (const traces::analysis::Traffic& t : report.traffic) {
        const std::size_t size =
            t.size_class < 0 ? kHistogramClasses - 1 : static_cast<std::size_t>(t.size_class);
        auto it = std::find_if(histogram.operations.begin(), histogram.operations.end(),
                               [&](const auto& o) { return o.operation == t.operation; });
        if (it == histogram.operations.end()) {
            histogram.operations.push_back({t.operation, {}, {}});
            it = histogram.operations.end() - 1;
        }
        it->count[size] += t.count;
        it->bytes[size] += t.bytes;
        histogram.most = std::max(histogram.most, sums[size] += t.count);
    }
    return histogram;
}

// --- The table of all collectives.

CollectiveTable::CollectiveTable(std::shared_ptr<const std::vector<traces::analysis::CollectiveTimes>> list,
                                 const traces::store::Trace& trace)
    : tables::LazyTable(list->size()), list_(std::move(list)) {
    using traces::analysis::CollectiveTimes;
    for (const traces::schema::UnitRow& unit : trace.units) units_.push_back(unit.name);
    const auto any = [&](auto&& has) { return std::any_of(list_->begin(), list_->end(), has); };
    const auto text = [this](tables::TableColumn column, std::string (*of)(const CollectiveTimes&)) {
        cells_.add(std::move(column), [this, of](std::size_t row) { return of((*list_)[row]); });
    };
    const auto number = [this](tables::TableColumn column, int decimals,
                               double (*of)(const CollectiveTimes&)) {
        cells_.add(std::move(column), decimals, [this, of](std::size_t row) { return of((*list_)[row]); });
    };
    const bool sized = any([](const CollectiveTimes& c) { return c.bytes > 0; });
    // Other tools' traces contain no units, some no bytes: a column of dashes is useless.
    text(tables::text_column("collective", "Collective", 11), [](const CollectiveTimes& c) {
        return c.sequence >= 0 ? fmt::format("{} {}", name(c.operation), c.sequence)
                               : std::string(name(c.operation));
    });
    if (any([](const CollectiveTimes& c) { return c.unit.known(); }))
        cells_.add(tables::text_column("unit", "Unit", 8, 6), [this](std::size_t row) {
            const traces::store::UnitIndex unit = (*list_)[row].unit;
            return unit.known() ? units_[unit.at()] : "-";
        });
    if (any([](const CollectiveTimes& c) { return c.phase != traces::schema::Phase::none; }))
        text(tables::text_column("phase", "Phase", 6, 5), [](const CollectiveTimes& c) {
            return c.phase != traces::schema::Phase::none ? std::string(name(c.phase)) : "-";
        });
    if (any([](const CollectiveTimes& c) {
            return c.group >= 0;
        }))  // an id, not a quantity: it may be a hash
        text(tables::text_column("group", "Group", 6, 4),
             [](const CollectiveTimes& c) { return c.group >= 0 ? fmt::format("{}", c.group) : "-"; });
    if (any([](const CollectiveTimes& c) { return c.ends.known(); })) {
        number(
            tables::number_column("from", "From", "rank", 4, 7, 0, "Of a message: the rank that sends it."),
            0, [](const CollectiveTimes& c) {
                return c.ends.known() ? static_cast<double>(c.ends.source) : tables::kNoNumber;
            });
        number(tables::number_column("to", "To", "rank", 4, 7, 0, "Of a message: the rank that receives it."),
               0, [](const CollectiveTimes& c) {
                   return c.ends.known() ? static_cast<double>(c.ends.destination) : tables::kNoNumber;
               });
    }
    number(tables::number_column("start_ms", "Start", "ms", 7, 9), 3,
           [](const CollectiveTimes& c) { return static_cast<double>(c.start_ns) * 1e-6; });
    number(tables::number_column("ranks", "Ranks", "", 4, 3), 0,
           [](const CollectiveTimes& c) { return static_cast<double>(c.ranks); });
    if (sized)
        number(tables::number_column("mb", "Full buffer", "MiB", 7, 8), 2, [](const CollectiveTimes& c) {
            return c.bytes > 0 ? static_cast<double>(c.bytes) / (1 << 20) : tables::kNoNumber;
        });
    number(tables::number_column("transfer_us", "Transfer", tables::kMicro, 6.5F, 9, theme::transfer_color(),
                                 "The shortest duration among the ranks."),
           1, [](const CollectiveTimes& c) { return tables::us(c.transfer_ns); });
    number(tables::number_column("longest_us", "Longest", tables::kMicro, 6.5F, 7), 1,
           [](const CollectiveTimes& c) { return tables::us(c.longest_ns); });
    number(tables::number_column("waiting_us", "Waiting", tables::kMicro, 6.5F, 10, theme::waiting_color(),
                                 "Sum over ranks of duration less transfer."),
           1, [](const CollectiveTimes& c) { return tables::us(c.waiting_ns); });
    number(tables::number_column("exposed_us", "Exposed", tables::kMicro, 6.5F, 8, theme::exposed_color(),
                                 "Sum over ranks, outside compute kernels."),
           1, [](const CollectiveTimes& c) { return tables::us(c.exposed_ns); });
    number(tables::number_column("overlapped_us", "Overlapped", tables::kMicro, 6.5F, 6, 0,
                                 "Sum over ranks, beside compute kernels."),
           1, [](const CollectiveTimes& c) { return tables::us(c.overlapped_ns); });
    number(tables::number_column("last_rank", "Last", "rank", 4, 9, 0,
                                 "The rank with the shortest duration: it arrived last."),
           0, [](const CollectiveTimes& c) {
               return c.last_rank >= 0 ? static_cast<double>(c.last_rank) : tables::kNoNumber;
           });
    if (sized) {
        number(tables::number_column("algbw_gbps", "algbw", "GB/s", 5.5F, 4, 0,
                                     "Bytes of the full buffer over the transfer."),
               3,
               [](const CollectiveTimes& c) { return c.algbw_gbps > 0 ? c.algbw_gbps : tables::kNoNumber; });
        number(tables::number_column("busbw_gbps", "busbw", "GB/s", 5.5F, 7, 0,
                                     "algbw times the factor of nccl-tests for the operation and the ranks."),
               3,
               [](const CollectiveTimes& c) { return c.busbw_gbps > 0 ? c.busbw_gbps : tables::kNoNumber; });
    }
}

}  // namespace shardscope::viewer::panels
