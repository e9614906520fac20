// See collective_rows.h.
#include "viewer/panels/communication/collective_rows.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "traces/schema/joined.h"
#include "traces/store/number_list.h"
#include "viewer/draw/format.h"
#include "viewer/widgets/columns.h"

namespace shardscope::viewer {
namespace {

using Cell = CellTable::Cell;
using Kind = TableColumn::Kind;
using traces::Operation;

constexpr char kTransferHelp[] =
    "The shortest duration among the ranks: what the wires and the algorithm take.";
constexpr char kWaitingHelp[] = "Duration less transfer: in it for another rank that came later.";
constexpr char kAlgorithmHelp[] = "Bytes of the full buffer over the transfer, as nccl-tests has it.";
constexpr char kBusHelp[] =
    "algbw times (n-1)/n, for all_reduce 2(n-1)/n: comparable with the hardware's bandwidth, whatever the "
    "ranks.";

Cell ns_cell(std::int64_t ns) {
    return us_cell(static_cast<double>(ns) * 1e-3);
}
Cell mean_us_cell(std::int64_t ns, std::int64_t steps) {
    return steps > 0 ? us_cell(static_cast<double>(ns) * 1e-3 / static_cast<double>(steps)) : no_cell();
}
Cell rate_cell(double gbps) {
    return gbps > 0 ? decimal_cell(gbps, 3) : no_cell();
}
// An id, not a number to count with: those of other tools are hashes.
Cell group_cell(std::int64_t group) {
    return text_cell(group >= 0 ? fmt::format("{}", group) : "-");
}
Cell known_count(std::int64_t count) {
    return count > 0 ? count_cell(count) : no_cell();
}

Color communication() {
    return kind_color(traces::DeviceKind::communication);
}

}  // namespace

Color operation_color(Operation operation) {
    switch (operation) {
        case Operation::all_gather:
            return shard_color(traces::ShardState::gathering);
        case Operation::reduce_scatter:
            return shard_color(traces::ShardState::reducing);
        case Operation::all_reduce:
            return shard_color(traces::ShardState::freed);
        case Operation::broadcast:
            return shard_color(traces::ShardState::full);
        case Operation::all_to_all:
            return shard_color(traces::ShardState::computing);
        default:
            break;
    }
    return range_color(traces::RangeKind::annotation);
}

std::shared_ptr<const CellTable> operation_table(const traces::RankCollectives& rank, bool stepped) {
    std::vector<TableColumn> columns = {
        text_column("operation", "Operation", 9),
        number_column("count", "Count", "", 5, 10),
        number_column("mb", "Full buffers", "MB", 7, 8, 0,
                      "Sum of the bytes of the full (gathered) buffers."),
        number_column("us", "Time", kMicro, 7, 10, communication(), "Sum of the durations on the device."),
        number_column("transfer_us", "Transfer", kMicro, 7, 7, transfer_color(), kTransferHelp),
        number_column("waiting_us", "Waiting", kMicro, 7, 8, waiting_color(), kWaitingHelp),
        number_column("exposed_us", "Exposed", kMicro, 7, 9, exposed_color(),
                      "What of the union lies outside compute kernels."),
        number_column("algbw_gbps", "algbw", "GB/s", 6, 6, 0, kAlgorithmHelp),
        number_column("busbw_gbps", "busbw", "GB/s", 6, 9, theme::accent(), kBusHelp),
    };
    if (stepped) {
        columns.push_back(number_column("count_per_step", "Count", "a step", 6, 5));
        columns.push_back(number_column("mb_per_step", "MB", "a step", 6, 5));
        columns.push_back(number_column("us_per_step", "Time", "\u00b5s a step", 6.5F, 5));
    }
    auto table = std::make_shared<CellTable>(std::move(columns));
    for (const traces::OperationStats& o : rank.operations) {
        const bool sized = o.bytes > 0;
        std::vector<Cell> cells = {text_cell(name(o.operation)),
                                   count_cell(o.count),
                                   sized ? mb_cell(o.bytes) : no_cell(),
                                   us_cell(o.us),
                                   us_cell(o.transfer_us),
                                   us_cell(o.waiting_us),
                                   o.on_host ? no_cell() : us_cell(o.exposed_us),
                                   rate_cell(o.algbw_gbps),
                                   rate_cell(o.busbw_gbps)};
        if (stepped) {
            cells.push_back(decimal_cell(o.count_per_step, 2));
            cells.push_back(sized ? decimal_cell(o.bytes_per_step / (1 << 20), 2) : no_cell());
            cells.push_back(us_cell(o.us_per_step));
        }
        table->add(std::move(cells), operation_color(o.operation));
    }
    return table;
}

// --- the ranks together ---

std::shared_ptr<const CellTable> straggler_table(const traces::StragglersReport& report, int kind) {
    auto table = std::make_shared<CellTable>(std::vector<TableColumn>{
        number_column("rank", "Rank", "", 4, 10),
        number_column("collectives", "Compared", "", 6, 6, 0,
                      "Collectives in which at least two ranks' durations are known."),
        number_column("last", "Last", "", 5, 8, 0, "In which the rank came last, alone."),
        number_column("last_percent", "Last", "%", 5.5F, 9, waiting_color()),
        number_column("late_us", "Behind the first", kMicro, 8, 10, waiting_color(),
                      "Sum over all: how long after the first rank it came."),
        number_column("late_mean_us", "Mean", kMicro, 6, 7),
        number_column("held_us", "Held others", kMicro, 7, 7, 0,
                      "Sum over those where it was last: how long after the last but one."),
        number_column("waited_us", "Waited itself", kMicro, 7.5F, 7, waiting_color(),
                      "Sum over all: its own wait for the last."),
    });
    const auto& ranks = kind < 0 ? report.ranks : report.kinds[static_cast<std::size_t>(kind)].ranks;
    for (const traces::Arrivals& rank : ranks) {
        const auto n = static_cast<double>(rank.collectives);
        table->add({count_cell(rank.rank), count_cell(rank.collectives), count_cell(rank.last),
                    n > 0 ? percent_cell(100 * static_cast<double>(rank.last) / n) : no_cell(),
                    ns_cell(rank.late_ns),
                    n > 0 ? us_cell(static_cast<double>(rank.late_ns) * 1e-3 / n) : no_cell(),
                    ns_cell(rank.held_ns), ns_cell(rank.waited_ns)});
    }
    return table;
}

std::shared_ptr<const CellTable> traffic_table(const traces::DistributedReport& report) {
    auto table = std::make_shared<CellTable>(std::vector<TableColumn>{
        text_column("operation", "Operation", 9),
        text_column("size", "Size", 9, 9),
        text_column("within", "Within", 6, 6),
        text_column("group", "Group", 6, 8),
        number_column("ranks", "Ranks", "", 4.5F, 7),
        number_column("count", "Count", "", 5, 10, theme::accent(),
                      "Each collective once, whatever the ranks."),
        number_column("mb", "Full buffers", "MB", 7, 8),
        number_column("transfer_us", "Transfer", kMicro, 7, 9, transfer_color(), kTransferHelp),
        number_column("wait_part_us", "Wait", "\u00b5s a part", 6.5F, 8, waiting_color(),
                      "Mean waiting of one rank in one collective."),
        number_column("algbw_gbps", "algbw", "GB/s", 6, 6, 0, kAlgorithmHelp),
        number_column("busbw_gbps", "busbw", "GB/s", 6, 9, 0, kBusHelp),
    });
    for (const traces::Traffic& t : report.traffic) {
        const std::string within = t.nodes <= 0   ? "-"
                                   : t.nodes == 1 ? "one node"
                                                  : fmt::format("{} nodes", t.nodes);
        const std::size_t size =
            t.size_class < 0 ? kHistogramClasses - 1 : static_cast<std::size_t>(t.size_class);
        table->add({text_cell(name(t.operation)), text_cell(size_class_text(size)), text_cell(within),
                    group_cell(t.group), known_count(t.group_size), count_cell(t.count),
                    t.bytes > 0 ? mb_cell(t.bytes) : no_cell(), ns_cell(t.transfer_ns),
                    mean_us_cell(t.waiting_ns, t.parts), rate_cell(t.algbw_gbps), rate_cell(t.busbw_gbps)},
                   operation_color(t.operation));
    }
    return table;
}

std::shared_ptr<const CellTable> rank_table(const traces::DistributedReport& report, bool stepped) {
    const bool hosts =
        std::any_of(report.ranks.begin(), report.ranks.end(), [](const auto& r) { return !r.host.empty(); });
    std::vector<TableColumn> columns = {
        number_column("rank", "Rank", "", 4, 10),
        number_column("computation_us", "Computation", kMicro, 7.5F, 10,
                      kind_color(traces::DeviceKind::kernel), "Compute kernels and no communication."),
        number_column("overlapped_us", "Overlapped", kMicro, 7, 10, overlapped_color(),
                      "Compute kernels and communication at once."),
        number_column("exposed_us", "Exposed", kMicro, 7, 10, exposed_color(),
                      "Communication and no compute kernel."),
        number_column("other_us", "Other", kMicro, 7, 8, 0, "Neither: copies and idleness."),
        number_column("overlap_percent", "Overlap", "%", 6, 9, theme::accent(),
                      "Share of the communication that ran beside compute."),
        number_column("collectives", "Collectives", stepped ? "a step" : "", 7, 5),
        number_column("mb", "Full buffers", "MB", 7, 6),
        number_column("transfer_us", "Transfer", kMicro, 7, 7, transfer_color(), kTransferHelp),
        number_column("waiting_us", "Waiting", kMicro, 7, 9, waiting_color(), kWaitingHelp),
        number_column("steps", "Steps", "", 4.5F, 3),
    };
    if (hosts) columns.push_back(text_column("host", "Host", 9, 4));
    auto table = std::make_shared<CellTable>(std::move(columns));
    for (const traces::RankTraffic& r : report.ranks) {
        const auto mean = [&](std::int64_t ns) { return mean_us_cell(ns, r.steps); };
        const auto per_step = [&](std::int64_t n) {
            return static_cast<double>(n) / static_cast<double>(std::max<std::int64_t>(r.steps, 1));
        };
        std::vector<Cell> cells = {
            count_cell(r.rank),
            mean(r.parts.computation),
            mean(r.parts.overlapped),
            mean(r.parts.exposed_communication),
            mean(r.parts.other),
            r.parts.communication() > 0 ? percent_cell(r.parts.overlap_percent()) : no_cell(),
            decimal_cell(per_step(r.collectives), 2),
            r.bytes > 0 ? decimal_cell(per_step(r.bytes) / (1 << 20), 2) : no_cell(),
            mean(r.transfer_ns),
            mean(r.ns - r.transfer_ns),
            count_cell(r.steps)};
        if (hosts) cells.push_back(text_cell(r.host));
        table->add(std::move(cells));
    }
    return table;
}

std::shared_ptr<const CellTable> slowest_table(const traces::DistributedReport& report) {
    auto table = std::make_shared<CellTable>(std::vector<TableColumn>{
        text_column("collective", "Collective", 11),
        text_column("group", "Group", 6, 5),
        number_column("start_ms", "Start", "ms", 7, 9),
        number_column("mb", "Full buffer", "MB", 7, 7),
        number_column("ranks", "Ranks", "", 4.5F, 4),
        number_column("transfer_us", "Transfer", kMicro, 7, 8, transfer_color(), kTransferHelp),
        number_column("longest_us", "Longest", kMicro, 7, 7),
        number_column("waiting_us", "Waiting", kMicro, 7, 10, waiting_color(),
                      "Sum over ranks of duration less transfer."),
        number_column("last_rank", "Last", "rank", 4.5F, 10, 0,
                      "The rank whose duration is the shortest: it came last."),
    });
    for (const traces::SlowCollective& s : report.slowest) {
        const std::string key = s.sequence >= 0 ? fmt::format("{} {}", name(s.operation), s.sequence)
                                                : std::string(name(s.operation));
        table->add(
            {text_cell(key), group_cell(s.group), decimal_cell(static_cast<double>(s.start_ns) * 1e-6, 3),
             s.bytes > 0 ? mb_cell(s.bytes) : no_cell(), count_cell(s.ranks), ns_cell(s.transfer_ns),
             ns_cell(s.longest_ns), ns_cell(s.waiting_ns),
             s.last_rank >= 0 ? count_cell(s.last_rank) : no_cell()},
            operation_color(s.operation));
    }
    return table;
}

std::shared_ptr<const CellTable> host_table(const traces::HostsReport& report) {
    auto table = std::make_shared<CellTable>(std::vector<TableColumn>{
        text_column("host", "Host", 9, 7),
        text_column("ranks", "Ranks", 7, 8),
        text_column("cpus", "Processors", 9, 4),
        number_column("collectives", "Collectives", "between hosts", 8, 9),
        number_column("last", "Came last", "", 6, 10, theme::accent(),
                      "How often its last rank came after those of all other hosts."),
        number_column("late_us", "Late", kMicro, 6, 10, waiting_color(),
                      "Median, from when the first host was complete to when it was."),
    });
    for (const traces::HostPlace& host : report.hosts) {
        std::vector<std::int64_t> ranks;
        std::vector<std::string> cpus;
        for (const auto& member : host.ranks) {
            ranks.push_back(member.rank);
            if (!member.cpus.empty() && std::find(cpus.begin(), cpus.end(), member.cpus) == cpus.end())
                cpus.push_back(member.cpus);
        }
        table->add({text_cell(host.name.empty() ? "unknown" : host.name),
                    text_cell(traces::number_list(ranks)),
                    text_cell(cpus.empty() ? "-" : traces::joined(cpus, " | ")), count_cell(host.collectives),
                    count_cell(host.last), host.collectives > 0 ? ns_cell(host.median_late_ns) : no_cell()});
    }
    return table;
}

std::shared_ptr<const CellTable> host_traffic_table(const traces::HostsReport& report) {
    auto table = std::make_shared<CellTable>(std::vector<TableColumn>{
        text_column("hosts", "Hosts", 7, 7),
        text_column("operation", "Operation", 9, 10),
        number_column("count", "Count", "", 5, 9, theme::accent(),
                      "Each collective once, whatever the ranks."),
        number_column("mb", "Full buffers", "MB", 7, 8),
        number_column("transfer_us", "Transfer", kMicro, 7, 9, transfer_color(), kTransferHelp),
        number_column("waiting_us", "Waiting", kMicro, 7, 8, waiting_color(), kWaitingHelp),
        number_column("algbw_gbps", "algbw", "GB/s", 6, 6, 0, kAlgorithmHelp),
        number_column("busbw_gbps", "busbw", "GB/s", 6, 9, 0, kBusHelp),
    });
    for (const traces::HostTraffic& t : report.traffic) {
        table->add({text_cell(traces::name(t.where)), text_cell(name(t.operation)), count_cell(t.count),
                    t.bytes > 0 ? mb_cell(t.bytes) : no_cell(), ns_cell(t.transfer_ns), ns_cell(t.waiting_ns),
                    rate_cell(t.algbw_gbps), rate_cell(t.busbw_gbps)},
                   operation_color(t.operation));
    }
    return table;
}

std::string size_class_text(std::size_t index) {
    constexpr std::size_t kBounds = std::size(traces::kSizeClasses);
    const auto bound = [](std::size_t i) {
        const std::int64_t bytes = traces::kSizeClasses[i];
        return bytes >= 1 << 20 ? fmt::format("{} MB", bytes >> 20) : fmt::format("{} KB", bytes >> 10);
    };
    if (index > kBounds) return "unknown";
    if (index == 0) return "below " + bound(0);
    if (index == kBounds) return "from " + bound(kBounds - 1);
    return bound(index - 1) + " - " + bound(index);
}

SizeHistogram size_histogram(const traces::DistributedReport& report) {
    SizeHistogram histogram;
    std::array<std::int64_t, kHistogramClasses> sums{};
    for (const traces::Traffic& t : report.traffic) {
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

}  // namespace shardscope::viewer
