// Collectives: the rate of their bytes, by operation, group and size, and the time until all members
// continue. A collective's own time starts when its last member arrives.
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/core.h>

#include "trainer/calibrate/fit.h"
#include "trainer/calibrate/fit_curve.h"
#include "trainer/sim/collective_cost.h"
#include "trainer/sim/rank_classes.h"

namespace shardscope::trainer::calibrate {

namespace {

// The collectives of one operation and size in one kind of group.
struct Group {
    plan::Operation operation = plan::Operation::other;
    sim::Spread spread;
    std::int64_t bytes = 0;
    std::vector<double> transfers;
    double time = 0;  // mean of one collective, seconds

    double weight() const { return static_cast<double>(transfers.size()) * time; }
};

// Whether the ranks are threads on a processor that access each other's memory. A run with a single rank
// decides this only if no other run does.
bool share_memory(const Runs& runs) {
    const MeasuredRun* first = nullptr;  // a run with several ranks, or else one with a single rank
    for (const MeasuredRun& run : runs) {
        if (run.engine.empty()) continue;
        if (first && first->job.run.ranks > 1 && run.job.run.ranks > 1 && first->engine != run.engine) {
            throw CalibrationError(fmt::format(
                "the collectives of {} went over {}, those of {} over {}; a model has one way inside a node: "
                "calibrate with traces of one kind",
                first->file, first->engine, run.file, run.engine));
        }
        if (!first || run.job.run.ranks > first->job.run.ranks) first = &run;
    }
    return first && !first->on_gpu() && first->engine == "local";
}

// Seconds by the model with these links and no latency.
double transfer(const sim::Cluster& cluster, const Group& group) {
    return sim::collective_seconds(cluster, group.spread, group.operation, group.bytes);
}

// Links of one byte per second without latency; between nodes, bytes are the slower part.
sim::Cluster unit_links(sim::Cluster cluster) {
    cluster.collectives.latency = cluster.intra.latency = cluster.inter.latency = 0;
    cluster.intra.bandwidth = cluster.inter.bandwidth = 1;
    cluster.intra.bandwidth_share = cluster.inter.bandwidth_share = {};
    return cluster;
}

// Fits the bandwidth by size that reproduces the groups' times; returns the number of collectives used.
std::int64_t fit_link(const std::vector<const Group*>& groups, const sim::Cluster& unit, sim::Link& link,
                      const sim::Cluster& latencies) {
    std::vector<RateSample> samples;
    std::int64_t count = 0;
    for (const Group* own : groups) {
        // The time without the latencies.
        const double time = std::max(own->time - transfer(latencies, *own), 0.1 * own->time);
        const double at_one = transfer(unit, *own);  // at 1 byte per second
        if (!(at_one > 0) || !(time > 0)) continue;
        samples.push_back({static_cast<double>(own->bytes), at_one / time, own->weight()});
        count += std::ssize(own->transfers);
    }
    const RateCurve curve = rate_curve(samples, Shape::any);
    if (!(curve.best > 0)) return 0;
    link.bandwidth = curve.best;
    link.bandwidth_share = curve.share;
    return count;
}

// The mean relative error of scale * latency + bytes / bandwidth, with the best bandwidth, against the times;
// 1 is an error as large as the times.
double misfit(const std::vector<const Group*>& groups, const sim::Cluster& unit,
              const sim::Cluster& latencies, double scale) {
    std::vector<Weighted> rates;
    for (const Group* own : groups) {
        const double left = own->time - scale * transfer(latencies, *own);
        if (left <= 0) return 1e30;
        rates.push_back({transfer(unit, *own) / left, own->weight()});
    }
    const double rate = weighted_median(rates);
    double misfit = 0, weight = 0;
    for (const Group* own : groups) {
        const double model = scale * transfer(latencies, *own) + transfer(unit, *own) / rate;
        misfit += own->weight() * std::abs(model - own->time) / own->time;
        weight += own->weight();
    }
    return misfit / weight;
}

// The factor of the latencies with which one bandwidth explains the times best; 1 if none is better.
double fit_latency(const std::vector<const Group*>& groups, const sim::Cluster& unit,
                   const sim::Cluster& latencies) {
    constexpr double kDifference = 0.005;  // of the misfit; smaller ones are noise
    double best = 1, least = misfit(groups, unit, latencies, 1) - kDifference;
    for (double scale = 0.01; scale < 1000; scale *= 1.02) {
        const double own = misfit(groups, unit, latencies, scale);
        if (own >= least) continue;
        least = own;
        best = scale;
    }
    return best;
}

}  // namespace

std::vector<CollectiveTime> collective_times(const MeasuredRun& run, const Calibration& fitted) {
    std::map<std::pair<std::int64_t, std::int64_t>, CollectiveTime> found;
    for (const MeasuredOp& work : run.work) {
        if (work.op->kind != plan::OpKind::collective) continue;
        CollectiveTime& own = found[{work.group, work.sequence}];
        // Only the member that arrived last did not wait for others.
        if (const double seconds = alone(work, fitted); work.begin == work.start && seconds > 0)
            own.transfer = own.transfer > 0 ? std::min(own.transfer, seconds) : seconds;
        own.whole = static_cast<double>(work.over - work.begin) * 1e-9;
        own.op = work.op;
        own.rank = work.rank.value;  // its number, too: the trace has all ranks of the job
        ++own.members;
    }
    std::vector<CollectiveTime> result;
    const plan::Mesh& mesh = run.program->mesh();
    const int cores = fitted.cluster.device.cores;
    for (auto& [key, own] : found) {
        // Skips collectives at the edge of the recording, and those too short to be timed.
        if (own.members != mesh.size(own.op->collective().group) || !(own.transfer > 0)) continue;
        own.finds_cores = cores == 0 || mesh.ranks <= cores;
        result.push_back(own);
    }
    return result;
}

void fit_collectives(const Runs& runs, Calibration& into) {
    sim::Cluster& cluster = into.cluster;
    const bool shared = share_memory(runs);
    std::map<std::tuple<plan::Operation, decltype(sim::Spread().key()), std::int64_t>, Group> groups;
    std::vector<double> rests;  // time from the first member that has its data to the last, seconds
    for (const MeasuredRun& run : runs) {
        for (const CollectiveTime& own : collective_times(run, into)) {
            const plan::Op& op = *own.op;
            const sim::Spread spread =
                sim::spread_of(run.program->mesh(), op.collective().group, own.rank, cluster, {});
            if (op.collective().operation == plan::Operation::barrier || op.bytes == 0) continue;
            if (spread.members == 1 && !shared) continue;  // a local copy on one device
            if (own.finds_cores && spread.members > 1)
                rests.push_back(std::max(0.0, own.whole - own.transfer));
            Group& group = groups[{op.collective().operation, spread.key(), op.bytes}];
            group.operation = op.collective().operation;
            group.spread = spread;
            group.bytes = op.bytes;
            group.transfers.push_back(own.transfer);
        }
    }
    const std::string from_base = "from " + into.base + ": no trace has such a collective";
    into.notes["collectives.latency"] = into.notes["intra.latency"] = into.notes["inter.latency"] = from_base;
    into.notes["intra.bandwidth"] = into.notes["inter.bandwidth"] = from_base;
    if (groups.empty()) return;

    std::vector<const Group*> inside, across, all;
    for (auto& [key, own] : groups) {
        own.time = trimmed_mean(own.transfers);
        (own.spread.nodes > 1 ? across : inside).push_back(&own);
        all.push_back(&own);
    }
    if (shared) {
        cluster.collectives.inside = sim::Algorithm::shared_memory;
        cluster.intra.latency = 0;
        cluster.collectives.latency = percentile(rests, 0.25);
        into.notes["collectives.latency"] =
            fmt::format("from the first member that has its data to the last; a quarter of {} took no longer",
                        rests.size());
        into.notes["intra.latency"] = "in collectives.latency";
    } else {
        sim::Cluster latencies = cluster;
        latencies.intra.bandwidth = latencies.inter.bandwidth = 1e30;
        const double scale = fit_latency(all, unit_links(cluster), latencies);
        cluster.collectives.latency *= scale;
        cluster.intra.latency *= scale;
        cluster.inter.latency *= scale;
        into.notes["collectives.latency"] = into.notes["intra.latency"] = into.notes["inter.latency"] =
            fmt::format("{}'s times {:.3g}: what collectives of all sizes have in common", into.base, scale);
    }
    sim::Cluster latencies = cluster, unit = unit_links(cluster);
    if (shared) latencies.collectives.latency = 0;
    latencies.intra.bandwidth = latencies.inter.bandwidth = 1e30;
    if (const std::int64_t count = fit_link(inside, unit, cluster.intra, latencies); count > 0)
        into.notes["intra.bandwidth"] = fmt::format("{} collectives inside a node", count);
    // For links between nodes, those inside are assumed to be infinitely fast.
    unit.intra.bandwidth = 1e30;
    if (const std::int64_t count = fit_link(across, unit, cluster.inter, latencies); count > 0)
        into.notes["inter.bandwidth"] = fmt::format("{} collectives between nodes", count);
}

}  // namespace shardscope::trainer::calibrate
