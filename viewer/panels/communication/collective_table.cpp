// See collective_table.h.
#include "viewer/panels/communication/collective_table.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

#include "traces/store/columns/trace.h"
#include "viewer/draw/format.h"
#include "viewer/panels/communication/collective_rows.h"
#include "viewer/widgets/columns.h"

namespace shardscope::viewer {
namespace {

using Kind = TableColumn::Kind;
using traces::CollectiveTimes;

enum : std::size_t {
    kCollective,
    kUnit,
    kPhase,
    kGroup,
    kStart,
    kRanks,
    kSize,
    kTransfer,
    kLongest,
    kWaiting,
    kExposed,
    kOverlapped,
    kLastRank,
    kAlgbw,
    kBusbw
};

}  // namespace

CollectiveTable::CollectiveTable(std::shared_ptr<const std::vector<CollectiveTimes>> list,
                                 const traces::Trace& trace)
    : list_(std::move(list)) {
    columns_ = {
        text_column("collective", "Collective", 11),
        text_column("unit", "Unit", 8, 6),
        text_column("phase", "Phase", 6, 5),
        text_column("group", "Group", 6, 4),
        number_column("start_ms", "Start", "ms", 7, 9),
        number_column("ranks", "Ranks", "", 4, 3),
        number_column("mb", "Full buffer", "MB", 7, 8),
        number_column("transfer_us", "Transfer", kMicro, 6.5F, 9, transfer_color(),
                      "The shortest duration among the ranks."),
        number_column("longest_us", "Longest", kMicro, 6.5F, 7),
        number_column("waiting_us", "Waiting", kMicro, 6.5F, 10, waiting_color(),
                      "Sum over ranks of duration less transfer."),
        number_column("exposed_us", "Exposed", kMicro, 6.5F, 8, exposed_color(),
                      "Sum over ranks, outside compute kernels."),
        number_column("overlapped_us", "Overlapped", kMicro, 6.5F, 6, 0,
                      "Sum over ranks, beside compute kernels."),
        number_column("last_rank", "Last", "rank", 4, 9, 0,
                      "The rank whose duration is the shortest: it came last."),
        number_column("algbw_gbps", "algbw", "GB/s", 5.5F, 4, 0,
                      "Bytes of the full buffer over the transfer."),
        number_column("busbw_gbps", "busbw", "GB/s", 5.5F, 7, 0,
                      "algbw times the factor of nccl-tests for the operation and the ranks."),
    };
    for (const traces::UnitRow& unit : trace.units) units_.push_back(unit.name);
    leave_out_unknown();
}

// Other tools' traces contain no units, some no bytes: a column of dashes is useless.
void CollectiveTable::leave_out_unknown() {
    std::array<bool, kBusbw + 1> known{};
    known.fill(true);
    const auto any = [&](auto&& has) { return std::any_of(list_->begin(), list_->end(), has); };
    known[kUnit] = any([](const CollectiveTimes& c) { return c.unit >= 0; });
    known[kPhase] = any([](const CollectiveTimes& c) { return c.phase != traces::Phase::none; });
    known[kGroup] = any([](const CollectiveTimes& c) { return c.group >= 0; });
    known[kSize] = known[kAlgbw] = known[kBusbw] = any([](const CollectiveTimes& c) { return c.bytes > 0; });
    std::vector<TableColumn> columns;
    for (std::size_t field = 0; field < columns_.size(); ++field) {
        if (!known[field]) continue;
        columns.push_back(std::move(columns_[field]));
        fields_.push_back(field);
    }
    columns_ = std::move(columns);
}

std::string CollectiveTable::text(std::size_t row, std::size_t column) const {
    const CollectiveTimes& c = (*list_)[row];
    const auto known = [](std::int64_t value) { return value >= 0 ? format_count(value) : std::string("-"); };
    const auto micro = [](std::int64_t ns) { return format_decimal(static_cast<double>(ns) * 1e-3, 1); };
    switch (fields_[column]) {
        case kCollective:
            return c.sequence >= 0 ? fmt::format("{} {}", name(c.operation), c.sequence)
                                   : std::string(name(c.operation));
        case kStart:
            return format_decimal(static_cast<double>(c.start_ns) * 1e-6, 3);
        case kUnit:
            return c.unit >= 0 ? units_[static_cast<std::size_t>(c.unit)] : "-";
        case kPhase:
            return c.phase != traces::Phase::none ? std::string(name(c.phase)) : "-";
        case kGroup:  // an id, not a quantity: other tools' ids are hashes
            return c.group >= 0 ? fmt::format("{}", c.group) : "-";
        case kRanks:
            return format_count(c.ranks);
        case kSize:
            return c.bytes > 0 ? format_mb(c.bytes, false) : "-";
        case kTransfer:
            return micro(c.transfer_ns);
        case kLongest:
            return micro(c.longest_ns);
        case kWaiting:
            return micro(c.waiting_ns);
        case kExposed:
            return micro(c.exposed_ns);
        case kOverlapped:
            return micro(c.overlapped_ns);
        case kLastRank:
            return known(c.last_rank);
        case kAlgbw:
            return c.algbw_gbps > 0 ? format_decimal(c.algbw_gbps, 3) : "-";
        case kBusbw:
            return c.busbw_gbps > 0 ? format_decimal(c.busbw_gbps, 3) : "-";
        default:
            return {};
    }
}

double CollectiveTable::number(std::size_t row, std::size_t column) const {
    const CollectiveTimes& c = (*list_)[row];
    const auto known = [](std::int64_t value) { return value >= 0 ? static_cast<double>(value) : kNoNumber; };
    const auto micro = [](std::int64_t ns) { return static_cast<double>(ns) * 1e-3; };
    switch (fields_[column]) {
        case kStart:
            return static_cast<double>(c.start_ns) * 1e-6;
        case kRanks:
            return c.ranks;
        case kSize:
            return c.bytes > 0 ? static_cast<double>(c.bytes) / (1 << 20) : kNoNumber;
        case kTransfer:
            return micro(c.transfer_ns);
        case kLongest:
            return micro(c.longest_ns);
        case kWaiting:
            return micro(c.waiting_ns);
        case kExposed:
            return micro(c.exposed_ns);
        case kOverlapped:
            return micro(c.overlapped_ns);
        case kLastRank:
            return known(c.last_rank);
        case kAlgbw:
            return c.algbw_gbps > 0 ? c.algbw_gbps : kNoNumber;
        case kBusbw:
            return c.busbw_gbps > 0 ? c.busbw_gbps : kNoNumber;
        default:
            return kNoNumber;
    }
}

Color CollectiveTable::swatch(std::size_t row) const {
    return operation_color((*list_)[row].operation);
}

}  // namespace shardscope::viewer
