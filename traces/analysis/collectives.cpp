// Matching by sorting, then sums by rank and operation; see collectives.h.
#include "traces/analysis/collectives.h"

#include <algorithm>
#include <array>
#include <span>
#include <tuple>

#include "traces/analysis/device_time.h"
#include "traces/analysis/step_windows.h"
#include "traces/store/trace.h"

namespace shardscope::traces {
namespace {

// A collective's place in the matching; sorted, counterparts are neighbours.
struct Key {
    std::int64_t group = 0;
    Operation operation = Operation::other;
    std::int64_t sequence = 0;
    int rank = 0;
    std::size_t row = 0;
    bool by_order = true;  // `sequence` is a place in the rank's order, made here

    auto whole() const { return std::tie(group, operation, sequence); }
    auto kind() const { return std::tie(group, operation); }
};

std::int64_t duration(const Trace& trace, std::size_t row) {
    const std::int32_t event = trace.collectives.event[row];
    if (event < 0) return -1;
    const auto at = static_cast<std::size_t>(event);
    return trace.device.end[at] - trace.device.start[at];
}

bool point_to_point(Operation operation) {
    return operation == Operation::send || operation == Operation::recv;
}

// Collectives without a sequence number get their place in the rank's order of the same group and operation;
// where the ranks' counts do not agree that order means nothing and they stay negative, each for itself.
void number_by_order(const Trace& trace, std::vector<Key>& keys) {
    std::vector<Key*> unnumbered;
    for (Key& key : keys) {
        if (key.sequence < 0) unnumbered.push_back(&key);
    }
    const auto when = [&](const Key* key) {
        const std::int32_t event = trace.collectives.event[key->row];
        return event >= 0 ? trace.device.start[static_cast<std::size_t>(event)] : std::int64_t{-1};
    };
    std::sort(unnumbered.begin(), unnumbered.end(), [&](const Key* a, const Key* b) {
        return std::tuple(a->kind(), a->rank, when(a), a->row) <
               std::tuple(b->kind(), b->rank, when(b), b->row);
    });
    std::int64_t lonely = -1;
    for (std::size_t begin = 0; begin < unnumbered.size();) {
        std::size_t end = begin;
        std::vector<std::int64_t> counts;
        for (int rank = -1; end < unnumbered.size() && unnumbered[end]->kind() == unnumbered[begin]->kind();
             ++end) {
            if (unnumbered[end]->rank != rank) counts.push_back(0);
            rank = unnumbered[end]->rank;
            unnumbered[end]->sequence = counts.back()++;
        }
        const bool agree =
            std::all_of(counts.begin(), counts.end(), [&](auto n) { return n == counts.front(); });
        for (; begin < end; ++begin) {
            if (!agree) unnumbered[begin]->sequence = lonely--;
        }
    }
}

struct Sums {
    OperationStats stats;
    std::int64_t ns = 0, transfer_ns = 0;
    double timed_bytes = 0, timed_bus_bytes = 0;
    std::int64_t stepped = 0, stepped_bytes = 0, stepped_ns = 0;
    IntervalSet when;  // union of the device events
};

using OperationSums = std::array<Sums, kOperations>;

void add(const Trace& trace, std::size_t row, const MatchedCollective& match, Sums& sums) {
    const Collectives& collectives = trace.collectives;
    const std::int64_t bytes = collectives.bytes[row];
    ++sums.stats.count;
    sums.stats.bytes += bytes;
    if (collectives.event[row] < 0) return;
    sums.ns += duration(trace, row);
    sums.transfer_ns += match.transfer_ns;
    sums.timed_bytes += static_cast<double>(bytes);
    sums.timed_bus_bytes +=
        static_cast<double>(bytes) * bus_factor(collectives.operation[row], collectives.group_size[row]);
}

OperationStats finish(Sums& sums, std::span<const Interval> compute, std::int64_t steps) {
    OperationStats& stats = sums.stats;
    stats.us = static_cast<double>(sums.ns) * 1e-3;
    stats.transfer_us = static_cast<double>(sums.transfer_ns) * 1e-3;
    stats.waiting_us = static_cast<double>(sums.ns - sums.transfer_ns) * 1e-3;
    stats.exposed_us = static_cast<double>(length(subtract(sums.when, compute))) * 1e-3;
    if (sums.transfer_ns > 0) {  // bytes per nanosecond are GB/s
        stats.algbw_gbps = sums.timed_bytes / static_cast<double>(sums.transfer_ns);
        stats.busbw_gbps = sums.timed_bus_bytes / static_cast<double>(sums.transfer_ns);
    }
    if (steps > 0) {
        stats.count_per_step = static_cast<double>(sums.stepped) / static_cast<double>(steps);
        stats.bytes_per_step = static_cast<double>(sums.stepped_bytes) / static_cast<double>(steps);
        stats.us_per_step = static_cast<double>(sums.stepped_ns) * 1e-3 / static_cast<double>(steps);
    }
    return stats;
}

}  // namespace

double bus_factor(Operation operation, int ranks) {
    if (ranks < 1) return 1;
    const double n = ranks;
    switch (operation) {
        case Operation::all_gather:
        case Operation::reduce_scatter:
        case Operation::all_to_all:
        case Operation::gather:
        case Operation::scatter:
            return (n - 1) / n;
        case Operation::all_reduce:
            return 2 * (n - 1) / n;
        case Operation::broadcast:
        case Operation::reduce:
        case Operation::send:
        case Operation::recv:
        case Operation::barrier:
        case Operation::other:
            return 1;
    }
    return 1;
}

std::vector<MatchedCollective> match_collectives(const Trace& trace) {
    const Collectives& collectives = trace.collectives;
    std::vector<Key> keys(collectives.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
        const std::int64_t sequence = collectives.sequence[i];
        keys[i] = {collectives.group[i], collectives.operation[i], sequence, collectives.rank[i], i,
                   sequence < 0};
    }
    number_by_order(trace, keys);
    // Where one rank numbers and another does not, the numbers made here are no counterpart of real ones.
    std::sort(keys.begin(), keys.end(), [](const Key& a, const Key& b) {
        return std::tuple(a.whole(), a.by_order, a.rank, a.row) <
               std::tuple(b.whole(), b.by_order, b.rank, b.row);
    });
    std::vector<MatchedCollective> matched(collectives.size());
    std::int32_t match = 0;
    for (std::size_t begin = 0; begin < keys.size(); ++match) {
        std::size_t end = begin;
        int ranks = 0, group_size = 0, last_rank = -1;
        std::int64_t transfer = -1;
        bool differ = false;
        for (; end < keys.size() && keys[end].whole() == keys[begin].whole() &&
               keys[end].by_order == keys[begin].by_order;
             ++end) {
            const std::size_t row = keys[end].row;
            if (keys[end].rank != last_rank) ++ranks;
            last_rank = keys[end].rank;
            group_size = std::max(group_size, collectives.group_size[row]);
            differ = differ || collectives.bytes[row] != collectives.bytes[keys[begin].row];
            const std::int64_t took = duration(trace, row);
            if (took >= 0) transfer = transfer < 0 ? took : std::min(transfer, took);
        }
        const bool pair = point_to_point(keys[begin].operation);  // its counterpart is of another operation
        for (; begin < end; ++begin) {
            const std::size_t row = keys[begin].row;
            matched[row].transfer_ns = pair ? duration(trace, row) : transfer;
            matched[row].unmatched = !pair && (ranks < group_size || keys[begin].sequence < 0);
            matched[row].bytes_differ = !pair && differ;
            matched[row].match = match;
        }
    }
    return matched;
}

CollectivesReport collectives_report(const Trace& trace, const Selection& selection) {
    const Collectives& collectives = trace.collectives;
    const TraceSteps steps = find_steps(trace);
    const std::vector<bool> selected = selected_events(trace, steps, selection);
    const std::vector<MatchedCollective> matched = match_collectives(trace);
    const bool everything =
        !selection.first_step && !selection.last_step && !selection.from_ns && !selection.to_ns;

    std::vector<OperationSums> sums(trace.ranks.size());
    std::vector<std::int64_t> unmatched(trace.ranks.size(), 0);
    for (std::size_t i = 0; i < collectives.size(); ++i) {
        const std::int32_t event = collectives.event[i];
        const std::uint16_t rank = collectives.rank[i];
        // Without a device event a collective has no place in time: it counts only where all time does.
        if (event >= 0 ? !selected[static_cast<std::size_t>(event)] : !everything) continue;
        Sums& operation = sums[rank][static_cast<std::size_t>(collectives.operation[i])];
        add(trace, i, matched[i], operation);
        unmatched[rank] += matched[i].unmatched;
        if (event < 0) continue;
        const std::int32_t step = steps.event[static_cast<std::size_t>(event)];
        if (step < 0 || step >= steps.ranks[rank].kept()) continue;
        ++operation.stepped;
        operation.stepped_bytes += collectives.bytes[i];
        operation.stepped_ns += duration(trace, i);
    }
    const DeviceEvents& device = trace.device;  // sorted by start, as a union grows
    for (std::size_t i = 0; i < device.size(); ++i) {
        if (device.kind[i] != DeviceKind::communication || !selected[i]) continue;
        const std::uint16_t rank = device.rank[i];
        const std::int32_t row = device.collective[i];
        const Operation what = row >= 0 ? collectives.operation[static_cast<std::size_t>(row)]
                                        : operation_of_kernel(trace.strings[device.name[i]]);
        Sums& operation = sums[rank][static_cast<std::size_t>(what)];
        append_merged(operation.when, {device.start[i], device.end[i]});
        if (row >= 0) continue;
        const std::int64_t ns = device.end[i] - device.start[i];
        ++operation.stats.count;
        operation.ns += ns;
        operation.transfer_ns += ns;
        const std::int32_t step = steps.event[i];
        if (step < 0 || step >= steps.ranks[rank].kept()) continue;
        ++operation.stepped;
        operation.stepped_ns += ns;
    }

    const std::vector<KindUnions> unions = device_unions(trace);
    CollectivesReport report;
    for (const int r : selected_ranks(trace, selection)) {
        const auto at = static_cast<std::size_t>(r);
        const auto kept = static_cast<std::int64_t>(selected_windows(steps.ranks[at], selection).size());
        RankCollectives result;
        result.rank = trace.ranks[at].number;
        result.unmatched = unmatched[at];
        for (int o = 0; o < kOperations; ++o) {
            Sums& operation = sums[at][static_cast<std::size_t>(o)];
            if (operation.stats.count == 0) continue;
            operation.stats.operation = static_cast<Operation>(o);
            result.operations.push_back(finish(operation, of(unions[at], DeviceKind::kernel), kept));
        }
        report.ranks.push_back(std::move(result));
    }
    return report;
}

}  // namespace shardscope::traces
