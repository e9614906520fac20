// Collectives: how fast their bytes go, by operation, group and size, and how long it takes until all members
// go on. A collective's own time is that from the arrival of its last member.
#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "trainer/calibrate/fit.h"
#include "trainer/calibrate/fit_curve.h"
#include "trainer/sim/collective_cost.h"
#include "trainer/sim/rank_classes.h"

namespace shardscope::trainer::calibrate {

namespace {

// One operation of one size in one kind of group.
struct Group {
    Operation operation = Operation::other;
    sim::Spread spread;
    std::int64_t bytes = 0;
    std::vector<double> transfers;
};

// Whether the ranks of a processor are threads that move each other's memory.
bool shares_memory(const MeasuredRun& run) {
    return !run.on_gpu() && run.engine == "local";
}

// Seconds that the model gives with these links and no latency.
double transfer(const sim::Cluster& cluster, const Group& group) {
    return sim::collective_seconds(cluster, group.spread, group.operation, group.bytes);
}

sim::Cluster without_latency(sim::Cluster cluster) {
    cluster.collectives.latency = cluster.intra.latency = cluster.inter.latency = 0;
    return cluster;
}

// The bandwidth over sizes that gives the groups' times.
std::int64_t fit_link(const std::vector<const Group*>& groups, const sim::Cluster& cluster, sim::Link& link,
                      const sim::Cluster& latencies) {
    std::vector<RateSample> samples;
    std::int64_t count = 0;
    for (const Group* own : groups) {
        // What the latencies leave of the time.
        const double time =
            std::max(median(own->transfers) - transfer(latencies, *own), 0.1 * median(own->transfers));
        const double at_one = transfer(cluster, *own);  // with 1 byte a second
        if (!(at_one > 0) || !(time > 0)) continue;
        samples.push_back({static_cast<double>(own->bytes), at_one / time,
                           static_cast<double>(own->transfers.size()) * time});
        count += std::ssize(own->transfers);
    }
    const RateCurve curve = rate_curve(samples, Shape::any);
    if (!(curve.best > 0)) return 0;
    link.bandwidth = curve.best;
    link.bandwidth_share = curve.share;
    return count;
}

}  // namespace

std::vector<CollectiveTime> collective_times(const MeasuredRun& run, const Calibration& fitted) {
    std::map<std::pair<std::int64_t, std::int64_t>, CollectiveTime> found;
    for (const MeasuredOp& work : run.work) {
        if (work.op->kind != OpKind::collective) continue;
        CollectiveTime& own = found[{work.group, work.sequence}];
        const double seconds = alone(work, fitted);
        own.transfer = own.members == 0 ? seconds : std::min(own.transfer, seconds);
        own.whole = static_cast<double>(work.over - work.begin) * 1e-9;
        own.op = work.op;
        own.rank = work.rank;
        ++own.members;
    }
    std::vector<CollectiveTime> result;
    const Mesh& mesh = run.program->mesh();
    const int cores = fitted.cluster.device.cores;
    for (auto& [key, own] : found) {
        if (own.members != mesh.size(own.op->group)) continue;  // at the edge of what was recorded
        own.finds_cores = cores == 0 || mesh.ranks <= cores;
        result.push_back(own);
    }
    return result;
}

void fit_collectives(const Runs& runs, Calibration& into) {
    sim::Cluster& cluster = into.cluster;
    const bool shared = std::any_of(runs.begin(), runs.end(), shares_memory);
    std::map<std::tuple<Operation, decltype(sim::Spread().key()), std::int64_t>, Group> groups;
    std::vector<double> rests;  // from the first member that has its data to the last
    for (const MeasuredRun& run : runs) {
        for (const CollectiveTime& own : collective_times(run, into)) {
            const Op& op = *own.op;
            const sim::Spread spread = sim::spread_of(run.program->mesh(), op.group, own.rank, cluster, {});
            if (spread.members == 1 || op.collective == Operation::barrier || op.bytes == 0) continue;
            if (own.finds_cores) rests.push_back(std::max(0.0, own.whole - own.transfer));
            Group& group = groups[{op.collective, spread.key(), op.bytes}];
            group.operation = op.collective;
            group.spread = spread;
            group.bytes = op.bytes;
            group.transfers.push_back(own.transfer);
        }
    }
    const std::string from_base = "from " + into.base + ": no trace has such a collective";
    into.notes["collectives.latency"] = into.notes["intra.latency"] = into.notes["inter.latency"] = from_base;
    into.notes["intra.bandwidth"] = into.notes["inter.bandwidth"] = from_base;
    if (groups.empty()) return;

    if (shared) {
        cluster.collectives.inside = sim::Algorithm::shared_memory;
        cluster.intra.latency = 0;
        cluster.collectives.latency = median(rests);
        into.notes["collectives.latency"] = fmt::format(
            "median time of {} collectives from the first member that is ready to the last", rests.size());
        into.notes["intra.latency"] = "in collectives.latency";
    } else {
        // The base model's latencies, all alike scaled to what the fastest collectives leave room for.
        sim::Cluster endless = cluster;
        endless.intra.bandwidth = endless.inter.bandwidth = 1e30;
        double scale = 1e30;
        for (const auto& [key, own] : groups)
            scale = std::min(scale, percentile(own.transfers, 0.1) / transfer(endless, own));
        cluster.collectives.latency *= scale;
        cluster.intra.latency *= scale;
        cluster.inter.latency *= scale;
        into.notes["collectives.latency"] = into.notes["intra.latency"] = into.notes["inter.latency"] =
            fmt::format("{}'s times {:.3g}: what the fastest collective took", into.base, scale);
    }
    std::vector<const Group*> inside, across;
    for (const auto& [key, own] : groups) (own.spread.nodes > 1 ? across : inside).push_back(&own);
    sim::Cluster latencies = cluster;
    if (shared) latencies.collectives.latency = 0;
    latencies.intra.bandwidth = latencies.inter.bandwidth = 1e30;
    sim::Cluster unit = without_latency(cluster);
    unit.intra.bandwidth = unit.inter.bandwidth = 1;
    unit.intra.bandwidth_share = unit.inter.bandwidth_share = {};
    if (const std::int64_t count = fit_link(inside, unit, cluster.intra, latencies); count > 0)
        into.notes["intra.bandwidth"] = fmt::format("{} collectives inside a node", count);
    // Bytes between nodes are the slower part: the links inside are taken to be endless beside them.
    unit.intra.bandwidth = 1e30;
    if (const std::int64_t count = fit_link(across, unit, cluster.inter, latencies); count > 0)
        into.notes["inter.bandwidth"] = fmt::format("{} collectives between nodes", count);
}

}  // namespace shardscope::trainer::calibrate
