#include "trainer/lift/host_collective_costs.h"

#include <algorithm>
#include <cmath>
#include <limits>
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

// Between two processes of one machine that share its cores, as measured with Gloo over TCP from 0.1 to 20
// MiB. A collective of `kLatencyBytes` takes twice as long as an empty one.
constexpr double kLatencyBytes = 1e6, kGlooBandwidth = 1e9;  // bytes, bytes/s on the wire

struct Sum {
    double seconds = 0;
    int count = 0;
};

// The line through the mean times of collectives, by their bytes on the wire. Their sum remains as recorded;
// latency and bandwidth share it by least squares of the relative errors, each weighted with its part of the
// time. Sizes that are too alike to show both leave the typical ratio of the two (`kLatencyBytes`).
sim::CollectiveModel::Measured line_of(const std::map<double, Sum>& times) {
    constexpr double kWeightOfTypical = 0.02;  // of the squared logarithm of a ratio to the typical one
    constexpr int kSteps = 24, kStepsPerDouble = 8;
    double seconds = 0, count = 0, shares = 0;
    for (const auto& [share, sum] : times) {
        seconds += sum.seconds;
        count += sum.count;
        shares += share * sum.count;
    }
    double least = std::numeric_limits<double>::infinity();
    sim::CollectiveModel::Measured best;
    for (int step = -kSteps; step <= kSteps; ++step) {
        const double ratio = std::exp2(static_cast<double>(step) / kStepsPerDouble),
                     latency_bytes = ratio * kLatencyBytes,
                     per_byte = seconds / (count * latency_bytes + shares);
        double error = kWeightOfTypical * std::log(ratio) * std::log(ratio);
        for (const auto& [share, sum] : times) {
            const double off = per_byte * (latency_bytes + share) * sum.count / sum.seconds - 1;
            error += off * off * sum.seconds / seconds;
        }
        if (error >= least) continue;
        least = error;
        best = {per_byte * latency_bytes, 1 / per_byte};
    }
    return best;
}

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

// A collective between ranks.
struct Transfer {
    Interval time;  // on the first rank, after all have arrived
    double share = 0;
    int members = 0;
    bool beside_operators = false;  // of any member, for most of the time
    // The first of several all-reduces of a step. Gloo's threads get a core late then: it takes two to four
    // times as long as those that follow.
    bool first_bucket = false;
};

// Those of these steps (sorted, disjoint), in order of time.
std::vector<Transfer> transfers_of(const Trace& trace, const std::vector<Interval>& windows) {
    const std::vector<traces::analysis::IntervalSet> operators = operators_of(trace);
    const traces::analysis::Communications communications = traces::analysis::match_communications(trace);
    std::vector<std::vector<Transfer>> by_step(windows.size());
    for (const traces::analysis::CollectiveMatch& match : communications.matches) {
        const traces::analysis::Communication& part = communications.parts[match.begin];
        if (part.row < 0 || part.event < 0 || match.transfer_ns <= 0) continue;
        const auto row = static_cast<std::size_t>(part.row);
        const Operation operation = trace.collectives.operation[row];
        const auto bytes = static_cast<double>(trace.collectives.bytes[row]);
        Transfer own{.members = trace.collectives.group_size[row]};
        if (own.members < 2 || bytes <= 0) continue;
        const auto interval_of = [&](const traces::analysis::Communication& member) {
            const std::int64_t end = trace.device.end[static_cast<std::size_t>(member.event)];
            return Interval{end - match.transfer_ns, end};
        };
        own.time = interval_of(part);
        own.share = bytes * share_of(operation, own.members);
        const std::int64_t start = trace.device.start[static_cast<std::size_t>(part.event)];
        const auto window = std::find_if(windows.begin(), windows.end(), [&](const Interval& step) {
            return step.start <= start && start < step.end;
        });
        if (window == windows.end()) continue;
        for (const traces::analysis::Communication& member : communications.of(match)) {
            if (member.event < 0) continue;
            const std::int64_t busy =
                traces::analysis::length_within(operators[member.rank], interval_of(member));
            own.beside_operators = own.beside_operators || 2 * busy > match.transfer_ns;
        }
        own.first_bucket = operation == Operation::all_reduce;
        by_step[static_cast<std::size_t>(window - windows.begin())].push_back(own);
    }
    std::vector<Transfer> all;
    for (std::vector<Transfer>& step : by_step) {
        std::sort(step.begin(), step.end(),
                  [](const Transfer& a, const Transfer& b) { return a.time.start < b.time.start; });
        bool seen =
            std::count_if(step.begin(), step.end(), [](const Transfer& own) { return own.first_bucket; }) < 2;
        for (Transfer& own : step) {
            own.first_bucket = own.first_bucket && !std::exchange(seen, seen || own.first_bucket);
            all.push_back(own);
        }
    }
    return all;
}

}  // namespace

void know_host_collectives(const Trace& converted, const std::vector<Interval>& windows,
                           sim::CollectiveModel& model, std::vector<std::string>& notes) {
    std::map<double, Sum> alone, beside;  // by share
    std::vector<Interval> transfers;      // beside operators, on the first rank
    int members = 0;
    for (const Transfer& own : transfers_of(converted, windows)) {
        members = std::max(members, own.members);
        if (own.first_bucket) continue;
        if (own.beside_operators) transfers.push_back(own.time);
        Sum& sum = (own.beside_operators ? beside : alone)[own.share];
        sum.seconds += static_cast<double>(own.time.length()) * kNs;
        ++sum.count;
    }
    const bool has_alone = !alone.empty();
    if (!has_alone) alone = beside;
    sim::CollectiveModel::Measured line{kLatencyBytes / kGlooBandwidth, kGlooBandwidth};
    if (alone.empty()) {
        members = 2;
        notes.push_back(fmt::format(
            "No collective between ranks was recorded: each is assumed to take {} ms and {} ms a MiB "
            "on the wire, as Gloo's did between two processes of one machine.",
            line.latency * 1e3, 1e9 / kGlooBandwidth));
    } else {
        line = line_of(alone);
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
