// Sums of matched collectives by rank and operation; see collectives.h.
#include "traces/analysis/communication/collectives.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <unordered_map>

#include "traces/analysis/base/intervals.h"
#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/communication/host_collectives.h"
#include "traces/analysis/communication/matching.h"
#include "traces/analysis/time/device_time.h"
#include "traces/schema/sort_rows.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {

namespace {

struct Sums {
    OperationStats stats;
    std::int64_t ns = 0, transfer_ns = 0;
    Bandwidths rates;
    std::int64_t stepped = 0, stepped_bytes = 0, stepped_ns = 0;
    IntervalSet when;  // union of the device events
};

using OperationSums = std::array<Sums, schema::kOperations>;

void add(const store::Trace& trace, const Communication& part, const CollectiveMatch& match, Sums& sums) {
    const store::Collectives& collectives = trace.collectives;
    const std::int64_t bytes = part.row >= 0 ? collectives.bytes[static_cast<std::size_t>(part.row)] : 0;
    ++sums.stats.count;
    sums.stats.bytes += bytes;
    if (part.event < 0) return;
    sums.ns += duration(trace, part);
    sums.transfer_ns += match.transfer_ns;
    if (part.row < 0) return;
    sums.rates.add(part.operation, bytes, match.transfer_ns,
                   collectives.group_size[static_cast<std::size_t>(part.row)]);
}

// Adds the host threads' collectives of ranks that have none on a device.
void add_host_collectives(const std::vector<SelectedHostCollective>& all, std::vector<OperationSums>& sums,
                          std::vector<std::int64_t>& unmatched) {
    for (const auto& [c, in_step] : all) {
        Sums& operation = sums[c.rank][static_cast<std::size_t>(c.operation)];
        operation.stats.on_host = true;
        ++operation.stats.count;
        operation.stats.bytes += c.bytes;
        operation.ns += c.end - c.start;
        operation.transfer_ns += c.transfer_ns;
        operation.rates.add(c.operation, c.bytes, c.transfer_ns, 0);
        unmatched[c.rank] += c.unmatched;
        if (!in_step) continue;
        ++operation.stepped;
        operation.stepped_bytes += c.bytes;
        operation.stepped_ns += c.end - c.start;
    }
}

OperationStats finish(Sums& sums, std::span<const Interval> compute, std::int64_t steps) {
    OperationStats& stats = sums.stats;
    stats.us = static_cast<double>(sums.ns) * 1e-3;
    stats.transfer_us = static_cast<double>(sums.transfer_ns) * 1e-3;
    stats.waiting_us = static_cast<double>(sums.ns - sums.transfer_ns) * 1e-3;
    stats.exposed_us = static_cast<double>(length(subtract(sums.when, compute))) * 1e-3;
    stats.algbw_gbps = sums.rates.algbw();
    stats.busbw_gbps = sums.rates.busbw();
    if (steps > 0) {
        stats.count_per_step = static_cast<double>(sums.stepped) / static_cast<double>(steps);
        stats.bytes_per_step = static_cast<double>(sums.stepped_bytes) / static_cast<double>(steps);
        stats.us_per_step = static_cast<double>(sums.stepped_ns) * 1e-3 / static_cast<double>(steps);
    }
    return stats;
}

}  // namespace

double bus_factor(schema::Operation operation, int ranks) {
    const double n = ranks > 0 ? ranks : std::numeric_limits<double>::quiet_NaN();
    switch (operation) {
        case schema::Operation::all_gather:
        case schema::Operation::reduce_scatter:
        case schema::Operation::all_to_all:
        case schema::Operation::gather:
        case schema::Operation::scatter:
            return (n - 1) / n;
        case schema::Operation::all_reduce:
            return 2 * (n - 1) / n;
        case schema::Operation::broadcast:
        case schema::Operation::reduce:
        case schema::Operation::send:
        case schema::Operation::recv:
        case schema::Operation::barrier:
        case schema::Operation::other:
            return 1;
    }
    return 1;
}

void Bandwidths::add(schema::Operation operation, std::int64_t bytes, std::int64_t transfer_ns, int ranks) {
    if (bytes <= 0) return;
    ns_ += transfer_ns;
    bytes_ += static_cast<double>(bytes);
    bus_bytes_ += static_cast<double>(bytes) * bus_factor(operation, ranks);
}

double Bandwidths::gbps(double bytes) const {
    const double gbps = ns_ > 0 ? bytes / static_cast<double>(ns_) : 0;  // bytes per nanosecond are GB/s
    return std::isfinite(gbps) ? gbps : 0;
}

std::vector<MatchedCollective> match_collectives(const store::Trace& trace) {
    const Communications all = match_communications(trace);
    std::vector<MatchedCollective> matched(trace.collectives.size());
    for (const Communication& part : all.parts) {
        if (part.row < 0) continue;
        const CollectiveMatch& match = all.matches[static_cast<std::size_t>(part.match)];
        matched[static_cast<std::size_t>(part.row)] = {.transfer_ns = match.transfer_ns,
                                                       .unmatched = match.unmatched,
                                                       .bytes_differ = match.bytes_differ,
                                                       .match = part.match};
    }
    return matched;
}

CollectivesReport collectives_report(const store::Trace& trace, const Selection& selection) {
    const store::Collectives& collectives = trace.collectives;
    const TraceSteps steps = find_steps(trace);
    const std::vector<bool> selected = selected_events(trace, steps, selection);
    const Communications all = match_communications(trace);
    const bool everything =
        !selection.first_step && !selection.last_step && !selection.from_ns && !selection.to_ns;

    std::vector<OperationSums> sums(trace.ranks.size());
    std::vector<std::int64_t> unmatched(trace.ranks.size(), 0);
    std::vector<schema::Operation> operation_of(trace.device.size(), schema::Operation::other);
    for (const Communication& part : all.parts) {
        const auto at = static_cast<std::size_t>(part.event);
        if (part.event >= 0) operation_of[at] = part.operation;
        // A collective without a device event has no known time: it counts only if all time is selected.
        if (part.event >= 0 ? !selected[at] : !everything) continue;
        const CollectiveMatch& match = all.matches[static_cast<std::size_t>(part.match)];
        Sums& operation = sums[part.rank][static_cast<std::size_t>(part.operation)];
        add(trace, part, match, operation);
        unmatched[part.rank] += match.unmatched;
        if (part.event < 0) continue;
        const std::int32_t step = steps.event[at];
        if (step < 0 || step >= steps.ranks[part.rank].kept()) continue;
        ++operation.stepped;
        if (part.row >= 0) operation.stepped_bytes += collectives.bytes[static_cast<std::size_t>(part.row)];
        operation.stepped_ns += duration(trace, part);
    }
    const store::DeviceEvents& device = trace.device;  // sorted by start, as append_merged requires
    for (std::size_t i = 0; i < device.size(); ++i) {
        if (device.kind[i] != store::DeviceKind::communication || !selected[i]) continue;
        Sums& operation = sums[device.rank[i]][static_cast<std::size_t>(operation_of[i])];
        append_merged(operation.when, {device.start[i], device.end[i]});
    }

    add_host_collectives(selected_host_collectives(trace, steps, all, selection), sums, unmatched);

    const std::vector<KindUnions> unions = device_unions(trace);
    CollectivesReport report;
    report.stepped = !trace.steps.empty();
    for (const store::RankIndex r : selected_ranks(trace, selection)) {
        const std::size_t at = r.at();
        const auto kept = static_cast<std::int64_t>(selected_windows(steps.ranks[at], selection).size());
        RankCollectives result;
        result.rank = trace.ranks[at].number;
        result.unmatched = unmatched[at];
        for (int o = 0; o < schema::kOperations; ++o) {
            Sums& operation = sums[at][static_cast<std::size_t>(o)];
            if (operation.stats.count == 0) continue;
            operation.stats.operation = static_cast<schema::Operation>(o);
            result.operations.push_back(finish(operation, of(unions[at], store::DeviceKind::kernel), kept));
        }
        report.ranks.push_back(std::move(result));
    }
    return report;
}

Fields<OperationStats> collective_fields() {
    using O = OperationStats;
    static constexpr Field<O> kFields[] = {
        {{"name", "Operation", Unit::text, "The kind of collective."},
         [](const O& o) { return to_cell(name(o.operation)); }},
        {{"count", "Count", Unit::count, "Collectives in the current selection."}, value_of<&O::count>},
        {{"bytes", "MiB", Unit::bytes, "Sum of the full buffers, of those whose bytes are known."},
         known_value_of<&O::bytes>},
        {{"us", "Time", Unit::us, "Sum of their durations."}, value_of<&O::us>},
        {{"transfer_us", "Transfer", Unit::us, "Sum of the shortest duration among the ranks of each."},
         value_of<&O::transfer_us>},
        {{"waiting_us", "Waiting", Unit::us,
          "Their durations without the transfer: waiting for other ranks."},
         value_of<&O::waiting_us>},
        {{"exposed_us", "Exposed", Unit::us,
          "Their union outside compute kernels; unknown if host threads executed them."},
         [](const O& o) { return o.on_host ? store::Cell() : store::Cell(o.exposed_us); }},
        {{"on", "", Unit::text, "\"device\", or \"host\" if host threads executed them.", in_json},
         [](const O& o) { return to_cell(o.on_host ? "host" : "device"); }},
        {{"algbw_gbps", "algbw", Unit::gbps, "Algorithm bandwidth as nccl-tests defines it."},
         known_value_of<&O::algbw_gbps>},
        {{"busbw_gbps", "busbw", Unit::gbps, "Bus bandwidth as nccl-tests defines it."},
         known_value_of<&O::busbw_gbps>},
        {{"count_per_step", "Count/step", Unit::count, "Mean count per step."}, value_of<&O::count_per_step>},
        {{"bytes_per_step", "MiB/step", Unit::bytes, "Mean bytes per step."},
         [](const O& o) { return o.bytes > 0 ? store::Cell(o.bytes_per_step) : store::Cell(); }},
        {{"us_per_step", "", Unit::us, "Mean time per step.", in_programs}, value_of<&O::us_per_step>},
    };
    return kFields;
}

namespace {

// The union of one rank's compute kernels, with the total length before each piece.
class ComputeTime {
  public:
    void add(Interval kernel) { append_merged(pieces_, kernel); }  // in order of start
    void finish() {
        before_.assign(1, 0);
        for (const Interval& piece : pieces_) before_.push_back(before_.back() + piece.length());
    }
    std::int64_t inside(Interval time) const { return up_to(time.end) - up_to(time.start); }

  private:
    std::int64_t up_to(std::int64_t time) const {
        const auto at =
            static_cast<std::size_t>(std::partition_point(pieces_.begin(), pieces_.end(),
                                                          [&](const Interval& p) { return p.start < time; }) -
                                     pieces_.begin());
        if (at == 0) return 0;
        return before_[at - 1] + std::min(time, pieces_[at - 1].end) - pieces_[at - 1].start;
    }
    IntervalSet pieces_;
    std::vector<std::int64_t> before_;
};

std::vector<ComputeTime> compute_of_ranks(const store::Trace& trace) {
    std::vector<ComputeTime> compute(trace.ranks.size());
    for (std::size_t i = 0; i < trace.device.size(); ++i) {
        if (trace.device.kind[i] == store::DeviceKind::kernel)
            compute[trace.device.rank[i]].add({trace.device.start[i], trace.device.end[i]});
    }
    for (ComputeTime& rank : compute) rank.finish();
    return compute;
}

}  // namespace

std::vector<CollectiveTimes> collective_list(const store::Trace& trace, const Selection& selection) {
    const TraceSteps steps = find_steps(trace);
    const std::vector<bool> selected = selected_events(trace, steps, selection);
    const Communications all = match_communications(trace);
    const std::vector<ComputeTime> compute = compute_of_ranks(trace);

    std::vector<CollectiveTimes> list;
    for (const CollectiveMatch& match : all.matches) {
        CollectiveTimes c;
        bool wanted = false;
        for (const Communication& part : all.of(match)) {
            const std::int64_t ns = duration(trace, part);
            if (ns < 0) continue;
            const auto event = static_cast<std::size_t>(part.event);
            wanted = wanted || selected[event];
            const std::int64_t hidden =
                compute[part.rank].inside({trace.device.start[event], trace.device.end[event]});
            c.overlapped_ns += hidden;
            c.exposed_ns += ns - hidden;
            c.waiting_ns += ns - match.transfer_ns;
            if (c.ranks == 0 || ns > c.longest_ns) {
                c.longest_ns = ns;
                c.event = part.event;
                c.start_ns = trace.device.start[event];
            }
            if (ns == match.transfer_ns && c.last_rank < 0) c.last_rank = trace.ranks[part.rank].number;
            ++c.ranks;
        }
        if (!wanted) continue;
        const Communication& first = all.of(match).front();
        c.operation = first.operation;
        c.ends = match.ends;
        c.transfer_ns = match.transfer_ns;
        if (c.ranks < 2) c.last_rank = -1;
        if (first.row >= 0) {
            const auto row = static_cast<std::size_t>(first.row);
            const store::Collectives& rows = trace.collectives;
            c.phase = rows.phase[row];
            c.group = rows.group[row];
            c.sequence = rows.sequence[row];
            c.bytes = rows.bytes[row];
            c.group_size = rows.group_size[row];
            c.unit = trace.unit_of_id(rows.unit[row]);
        }
        Bandwidths rates;
        rates.add(c.operation, c.bytes, c.transfer_ns, c.group_size);
        c.algbw_gbps = rates.algbw();
        c.busbw_gbps = rates.busbw();
        list.push_back(c);
    }
    schema::sort_rows(list, [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; });
    return list;
}

}  // namespace shardscope::traces::analysis
