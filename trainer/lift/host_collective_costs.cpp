#include "trainer/lift/host_collective_costs.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include <fmt/core.h>

#include "traces/analysis/base/intervals.h"
#include "traces/analysis/communication/matching.h"
#include "traces/store/columns/trace.h"
#include "trainer/lift/recorded_costs.h"
#include "trainer/sim/collective_cost.h"

namespace shardscope::trainer::lift {

namespace {

using traces::analysis::Interval;
using traces::schema::Operation;
using traces::store::Trace;

// Between two processes of one machine that share its cores, as measured with Gloo over TCP from 0.1 to 15
// MB.
constexpr double kGlooLatency = 0.7e-3, kGlooBandwidth = 1e9;  // s, bytes/s on the wire

struct Sum {
    double seconds = 0, bytes = 0;
    int count = 0;
};

// Operators' times, by rank.
std::vector<traces::analysis::IntervalSet> operators_of(const Trace& trace) {
    std::vector<std::vector<Interval>> found(trace.ranks.size());
    for (std::size_t e = 0; e < trace.device.size(); ++e)
        if (trace.device.kind[e] == traces::store::DeviceKind::kernel)
            found[trace.device.rank[e]].push_back({trace.device.start[e], trace.device.end[e]});
    std::vector<traces::analysis::IntervalSet> sets;
    sets.reserve(found.size());
    for (std::vector<Interval>& own : found) sets.push_back(traces::analysis::make_union(std::move(own)));
    return sets;
}

// By how much collectives beside operators, of which Gloo's threads carry out several at a time, are slower
// together than those that ranks waited for; as many threads again share the cores where the trace has none
// of them.
double slowdown(const std::map<double, Sum>& beside, const traces::analysis::IntervalSet& transfers,
                const sim::CollectiveModel::Measured& line) {
    constexpr double kAssumed = 2;
    double alone = 0;
    for (const auto& [share, sum] : beside) alone += sum.count * (line.latency + share / line.bandwidth);
    return alone > 0 ? std::max(static_cast<double>(traces::analysis::length(transfers)) * kNs / alone, 1.0)
                     : kAssumed;
}

double share_of(Operation operation, double members) {
    return sim::bus_share(operation == Operation::reduce_scatter ? Operation::all_reduce : operation,
                          members);
}

}  // namespace

void know_host_collectives(const Trace& converted, const std::vector<Interval>& windows,
                           sim::CollectiveModel& model, std::vector<std::string>& notes) {
    const std::vector<traces::analysis::IntervalSet> operators = operators_of(converted);
    const traces::analysis::Communications communications = traces::analysis::match_communications(converted);
    std::map<double, Sum> alone, beside;  // by share
    std::vector<Interval> transfers;      // beside operators, on the first rank
    int members = 0;
    for (const traces::analysis::CollectiveMatch& match : communications.matches) {
        const traces::analysis::Communication& part = communications.parts[match.begin];
        if (part.row < 0 || match.transfer_ns <= 0) continue;
        const auto row = static_cast<std::size_t>(part.row);
        const int own_members = converted.collectives.group_size[row];
        const auto bytes = static_cast<double>(converted.collectives.bytes[row]);
        if (own_members < 2 || bytes <= 0) continue;
        members = std::max(members, own_members);
        if (part.event < 0) continue;
        const std::int64_t start = converted.device.start[static_cast<std::size_t>(part.event)];
        if (std::none_of(windows.begin(), windows.end(),
                         [&](const Interval& own) { return own.start <= start && start < own.end; }))
            continue;
        std::int64_t busy = 0;
        for (const traces::analysis::Communication& own : communications.of(match)) {
            if (own.event < 0) continue;
            const std::int64_t end = converted.device.end[static_cast<std::size_t>(own.event)];
            busy = std::max(
                busy, traces::analysis::length_within(operators[own.rank], {end - match.transfer_ns, end}));
        }
        const bool beside_operators = 2 * busy > match.transfer_ns;
        if (beside_operators) {
            const std::int64_t end = converted.device.end[static_cast<std::size_t>(part.event)];
            transfers.push_back({end - match.transfer_ns, end});
        }
        const double share = bytes * share_of(converted.collectives.operation[row], own_members);
        Sum& sum = (beside_operators ? beside : alone)[share];
        sum.seconds += static_cast<double>(match.transfer_ns) * kNs;
        sum.bytes += bytes;
        ++sum.count;
    }
    const bool has_alone = !alone.empty();
    if (!has_alone) alone = beside;
    auto line = sim::CollectiveModel::Measured{kGlooLatency, kGlooBandwidth};
    if (alone.empty()) {
        members = 2;
        notes.push_back(fmt::format(
            "No collective between ranks was recorded: each is assumed to take {} ms and {} ms a MB "
            "on the wire, as Gloo's did between two processes of one machine.",
            kGlooLatency * 1e3, 1e9 / kGlooBandwidth));
    } else {
        // Large collectives alone show a rate, not a latency, since their delays vary by more than it: a
        // small one of typical latency, but of no more than half of any recorded time, keeps the line honest.
        std::vector<CollectiveSample> samples(1, {.seconds = kGlooLatency});
        for (const auto& [share, sum] : alone) {
            samples.push_back({sum.bytes / sum.count, share, sum.seconds / sum.count});
            samples.front().seconds = std::min(samples.front().seconds, samples.back().seconds / 2);
        }
        line = line_through(samples, samples.front().seconds);
    }
    model.beside_work = has_alone || beside.empty()
                            ? slowdown(beside, traces::analysis::make_union(std::move(transfers)), line)
                            : 1;
    auto& measured = model.measured;
    for (const Operation operation : {Operation::all_gather, Operation::all_reduce, Operation::broadcast})
        measured[static_cast<std::size_t>(operation)] = line;
    const double of_sums = share_of(Operation::reduce_scatter, members);
    measured[static_cast<std::size_t>(Operation::reduce_scatter)] = {
        line.latency, line.bandwidth * sim::bus_share(Operation::reduce_scatter, members) / of_sums};
}

std::int64_t transfer_inside(const Trace& converted, traces::store::RankIndex rank,
                             const std::vector<Interval>& windows) {
    std::vector<Interval> transfers;
    const traces::analysis::Communications communications = traces::analysis::match_communications(converted);
    for (const traces::analysis::CollectiveMatch& match : communications.matches) {
        for (const traces::analysis::Communication& part : communications.of(match)) {
            if (part.rank != rank.column() || part.event < 0 || match.transfer_ns <= 0) continue;
            const std::int64_t end = converted.device.end[static_cast<std::size_t>(part.event)];
            transfers.push_back({end - match.transfer_ns, end});
        }
    }
    const traces::analysis::IntervalSet exposed = traces::analysis::subtract(
        traces::analysis::make_union(std::move(transfers)), operators_of(converted)[rank.at()]);
    const std::vector<std::int64_t> inside = traces::analysis::length_inside(exposed, windows);
    return std::accumulate(inside.begin(), inside.end(), std::int64_t{0});
}

}  // namespace shardscope::trainer::lift
