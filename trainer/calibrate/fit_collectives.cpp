// Collectives: the rate of their bytes, by operation, group and size, and the time until all members
// continue. A collective's own time starts when its last member arrives.
#include <algorithm>
#include <cmath>
#include <list>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "trainer/calibrate/fit.h"
#include "trainer/calibrate/fit_curve.h"
#include "trainer/sim/collective_cost.h"
#include "trainer/sim/rank_classes.h"

namespace shardscope::trainer::calibrate {

namespace {

// The collectives of one operation and size in one kind of group.
struct TimedGroup {
    plan::Operation operation = plan::Operation::other;
    const plan::Mesh* mesh = nullptr;
    std::vector<int> ranks;
    sim::Spread spread;
    std::int64_t bytes = 0;
    std::vector<double> transfers;
    double time = 0;  // mean of one collective, seconds

    double weight() const { return static_cast<double>(transfers.size()) * time; }
};

// Whether the ranks are threads on a processor that access each other's memory. A run with a single rank
// decides this only if no other run does.
bool share_memory(const std::vector<const Machine*>& machines) {
    const Machine* first = nullptr;  // a run with several ranks, or else one with a single rank
    for (const Machine* machine : machines) {
        const Machine& run = *machine;
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

// Seconds by the model with these links; which pair is the slowest of a ring stays as it was found.
double transfer(const sim::Cluster& cluster, const TimedGroup& group) {
    sim::Spread spread = group.spread;
    const sim::Spread now = sim::spread_of(*group.mesh, group.ranks, cluster, {});
    spread.hop = now.hop;
    spread.hop_across = now.hop_across;
    return sim::collective_seconds(cluster, spread, group.operation, group.bytes);
}

// Links of one byte per second without latency, if their pairs are alike; between nodes, bytes are the slower
// part.
sim::Cluster unit_links(sim::Cluster cluster) {
    cluster.collectives.latency = cluster.intra.latency = cluster.inter.latency = 0;
    cluster.intra.bandwidth = cluster.inter.bandwidth = 1;
    cluster.intra.bandwidth_share = cluster.inter.bandwidth_share = {};
    cluster.links = {};
    return cluster;
}

// Only the latencies.
sim::Cluster without_bytes(sim::Cluster cluster) {
    cluster.intra.bandwidth = cluster.inter.bandwidth = 1e30;
    return cluster;
}

// Fits the bandwidth by size that reproduces the groups' times; returns the number of collectives used.
// `pairs`: the bandwidths of the link's pairs, if they were `measured`: then the curve is the share of those
// that collectives reach, and what is more than all of them raises them.
std::int64_t fit_link(const std::vector<const TimedGroup*>& groups, const sim::Cluster& unit, sim::Link& link,
                      bool measured, sim::PairFigures& pairs, const sim::Cluster& latencies) {
    constexpr double kLeastPart = 0.1;  // of the time that bytes take: else they do not show
    std::vector<RateSample> samples;
    std::int64_t count = 0, largest = 0;
    for (const TimedGroup* own : groups) largest = std::max(largest, own->bytes);
    for (const TimedGroup* own : groups) {
        // The time without the latencies.
        double time = own->time - transfer(latencies, *own);
        if (time < kLeastPart * own->time && own->bytes < largest) continue;
        time = std::max(time, kLeastPart * own->time);
        const double at_one = transfer(unit, *own);  // at 1 byte per second
        if (!(at_one > 0) || !(time > 0)) continue;
        samples.push_back({static_cast<double>(own->bytes), at_one / time, own->weight()});
        count += std::ssize(own->transfers);
    }
    const RateCurve curve = rate_curve(samples, Shape::any);
    if (!(curve.best > 0)) return 0;
    const double raised = measured ? std::max(1.0, curve.best / link.bandwidth) : 1;
    for (double& pair : pairs.values) pair *= raised;
    link.bandwidth = measured ? raised * link.bandwidth : curve.best;
    link.bandwidth_share = curve.share;
    for (sim::Curve::Point& point : link.bandwidth_share.points)
        point.share = std::min(1.0, point.share * curve.best / link.bandwidth);
    return count;
}

// What is unknown of the latencies as one number: the factor of the base model's or, if those of messages
// between pairs were measured, the part of the shortest of them that every collective takes once.
class Latencies {
  public:
    Latencies(const sim::Cluster& cluster, const LinkFit& links)
        : cluster_(cluster), links_(links), shortest_(links.shortest) {
        const double once = cluster.collectives.latency, step = cluster.intra.latency;
        if (!of_pairs()) return;
        first_ = links.latency_of_plan >= 0 ? std::min(1.0, links.latency_of_plan / shortest_)
                 : step > 0                 ? once / (once + step)
                                            : 0;
    }
    bool of_pairs() const { return shortest_ > 0; }
    double first() const { return first_; }
    std::vector<double> all() const {
        std::vector<double> values;
        for (double scale = 0.01; !of_pairs() && scale < 1000; scale *= 1.02) values.push_back(scale);
        for (int percent = 0; of_pairs() && percent <= 100; ++percent) values.push_back(percent / 100.0);
        return values;
    }
    sim::Cluster at(double value) const {
        sim::Cluster cluster = cluster_;
        if (!of_pairs()) {
            cluster.collectives.latency *= value;
            cluster.intra.latency *= value;
            cluster.inter.latency *= value;
            return cluster;
        }
        cluster.collectives.latency = value * shortest_;
        const auto without = [&](double& latency) { latency = std::max(0.0, latency - value * shortest_); };
        if (links_.inside) without(cluster.intra.latency);
        if (links_.between) without(cluster.inter.latency);
        for (double& latency : cluster.links.latency.values) without(latency);
        for (double& latency : cluster.links.node_latency.values) without(latency);
        return cluster;
    }

  private:
    const sim::Cluster& cluster_;
    const LinkFit& links_;
    double shortest_, first_ = 1;
};

// The mean relative error of latencies + bytes / bandwidth, with the best bandwidth, against the times; 1 is
// an error as large as the times.
double misfit(const std::vector<const TimedGroup*>& groups, const sim::Cluster& unit,
              const sim::Cluster& latencies) {
    std::vector<Weighted> rates;
    for (const TimedGroup* own : groups) {
        const double left = own->time - transfer(latencies, *own);
        if (left <= 0) return 1e30;
        rates.push_back({transfer(unit, *own) / left, own->weight()});
    }
    const double rate = weighted_median(rates);
    double misfit = 0, weight = 0;
    for (const TimedGroup* own : groups) {
        const double model = transfer(latencies, *own) + transfer(unit, *own) / rate;
        misfit += own->weight() * std::abs(model - own->time) / own->time;
        weight += own->weight();
    }
    return misfit / weight;
}

// The value with which one bandwidth explains the times best; the first if none is better.
double fit_latency(const std::vector<const TimedGroup*>& groups, const sim::Cluster& unit,
                   const Latencies& latencies) {
    constexpr double kDifference = 0.005;  // of the misfit; smaller ones are noise
    double best = latencies.first();
    double least = misfit(groups, unit, without_bytes(latencies.at(best))) - kDifference;
    for (const double value : latencies.all()) {
        const double own = misfit(groups, unit, without_bytes(latencies.at(value)));
        if (own >= least) continue;
        least = own;
        best = value;
    }
    return best;
}

// All groups of some runs and benchmarks.
class TimedGroups {
  public:
    void add(const plan::Mesh& mesh, std::vector<int> ranks, const sim::Spread& spread,
             plan::Operation operation, std::int64_t bytes, double seconds) {
        TimedGroup& group = groups_[{operation, spread.key(), bytes}];
        if (group.transfers.empty()) group = {operation, &mesh, std::move(ranks), spread, bytes, {}, 0};
        group.transfers.push_back(seconds);
    }
    bool empty() const { return groups_.empty(); }
    // Those within one node, those on several, or all; with their mean times.
    enum class Which : std::uint8_t { inside, across, all };
    std::vector<const TimedGroup*> of(Which which) {
        std::vector<const TimedGroup*> found;
        for (auto& [key, own] : groups_) {
            own.time = trimmed_mean(own.transfers);
            if (which == Which::all || (own.spread.nodes > 1) == (which == Which::across))
                found.push_back(&own);
        }
        return found;
    }

  private:
    std::map<std::tuple<plan::Operation, decltype(sim::Spread().key()), std::int64_t>, TimedGroup> groups_;
};

std::vector<int> ranks_of(const plan::Mesh& mesh, plan::Group group, int rank) {
    std::vector<int> ranks(static_cast<std::size_t>(mesh.size(group)));
    for (std::size_t place = 0; place < ranks.size(); ++place)
        ranks[place] = mesh.member(group, rank, static_cast<int>(place));
    return ranks;
}

// As a cluster numbers them whose nodes have `devices`, of which the benchmark may use a part.
std::vector<int> ranks_of(const MeasuredBench& bench, plan::Operation operation, int devices) {
    std::map<int, int> on_node;  // ranks so far
    std::vector<int> ranks;
    for (const int node : bench.node_of) ranks.push_back(node * devices + on_node[node]++);
    if (operation == plan::Operation::send) ranks.resize(2);
    return ranks;
}

plan::Mesh mesh_of(const MeasuredBench& bench, int devices) {
    plan::Mesh mesh;
    mesh.ranks = mesh.shard = bench.nodes * devices;
    return mesh;
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

sim::Spread spread_of(const MeasuredBench& bench, plan::Operation operation, const sim::Cluster& cluster) {
    // Devices that the benchmark does not use take no part of a node's link.
    std::map<int, int> on_node;
    sim::Cluster used = cluster;
    used.devices = 1;
    for (const int node : bench.node_of) used.devices = std::max(used.devices, ++on_node[node]);
    return sim::spread_of(mesh_of(bench, used.devices), ranks_of(bench, operation, used.devices), used, {});
}

void fit_collectives(const Runs& runs, const Benches& benches, Calibration& into) {
    sim::Cluster& cluster = into.cluster;
    std::vector<const Machine*> machines;
    for (const MeasuredRun& run : runs) machines.push_back(&run);
    for (const MeasuredBench& bench : benches) machines.push_back(&bench);
    const bool shared = share_memory(machines);
    if (shared) cluster.collectives.inside = sim::Algorithm::shared_memory;
    const std::string from_base = "from " + into.base + ": no trace has such a collective";
    for (const char* key :
         {"collectives.latency", "intra.latency", "inter.latency", "intra.bandwidth", "inter.bandwidth"})
        into.notes[key] = from_base;
    int devices = 1;
    for (const Machine* machine : machines) devices = std::max(devices, machine->devices_of_a_node);
    LinkFit links = fit_links(benches, shared ? 2 : 1, devices, into);
    into.pairs = links.pairs;
    const std::string by_pairs = "as of the pairs of ranks";
    for (const auto& [section, known] :
         {std::pair("intra", links.inside), std::pair("inter", links.between)}) {
        if (!known) continue;
        into.notes[fmt::format("{}.latency", section)] = by_pairs;
        into.notes[fmt::format("{}.bandwidth", section)] = by_pairs;
    }

    TimedGroups groups;
    std::vector<double> rests;  // time from the first member that has its data to the last, seconds
    for (const MeasuredRun& run : runs) {
        const plan::Mesh& mesh = run.program->mesh();
        for (const CollectiveTime& own : collective_times(run, into)) {
            const plan::Op& op = *own.op;
            std::vector<int> ranks = ranks_of(mesh, op.collective().group, own.rank);
            const bool alone = ranks.size() == 1;
            if (op.collective().operation == plan::Operation::barrier || op.bytes == 0) continue;
            if (alone && !shared) continue;  // a local copy on one device
            if (own.finds_cores && !alone) rests.push_back(std::max(0.0, own.whole - own.transfer));
            const sim::Spread spread = sim::spread_of(mesh, ranks, cluster, {});
            groups.add(mesh, std::move(ranks), spread, op.collective().operation, op.bytes, own.transfer);
        }
    }
    // The transfers of threads do not contain it, but for those of a benchmark.
    const bool apart = shared && (!rests.empty() || benches.empty());
    if (shared) {
        cluster.intra.latency = 0;
        cluster.links.latency = {};
        links.shortest = 0;
        into.notes["intra.latency"] = "in collectives.latency";
    }
    if (apart) {
        cluster.collectives.latency = percentile(rests, 0.25);
        into.notes["collectives.latency"] =
            fmt::format("from the first member that has its data to the last; a quarter of {} took no longer",
                        rests.size());
    }
    std::list<plan::Mesh> meshes;
    const auto add = [&](const MeasuredBench& bench, const std::vector<BenchedTime>& times) {
        const plan::Mesh& mesh = meshes.emplace_back(mesh_of(bench, cluster.devices));
        for (const BenchedTime& own : times) {
            const double seconds = own.seconds - (apart ? cluster.collectives.latency : 0);
            if (seconds <= 0) continue;
            groups.add(mesh, ranks_of(bench, own.operation, cluster.devices),
                       spread_of(bench, own.operation, cluster), own.operation, own.bytes, seconds);
        }
    };
    for (const MeasuredBench& bench : benches) add(bench, bench.collectives);
    const bool collectives = !groups.empty();
    if (!collectives) {
        for (const MeasuredBench& bench : benches) add(bench, bench.messages);
    }
    if (groups.empty()) return;

    const char* what = collectives ? "collectives" : "messages, since no trace has collectives";
    const std::vector<const TimedGroup*> all = groups.of(TimedGroups::Which::all);
    if (!apart) {
        const sim::Cluster measured = cluster;
        const Latencies latencies(measured, links);
        // Messages do not tell what of their latency is of a step.
        const double value = collectives || !latencies.of_pairs()
                                 ? fit_latency(all, unit_links(cluster), latencies)
                                 : latencies.first();
        cluster = latencies.at(value);
        const std::string scaled =
            fmt::format("{}'s times {:.3g}: what {} of all sizes have in common", into.base, value, what);
        into.notes["collectives.latency"] =
            latencies.of_pairs() ? fmt::format("{:.0f} % of the shortest message's latency", 100 * value)
                                 : scaled;
        if (!latencies.of_pairs() && !shared) into.notes["intra.latency"] = scaled;
        if (!links.between) into.notes["inter.latency"] = latencies.of_pairs() ? from_base : scaled;
    }
    sim::Cluster latencies = without_bytes(cluster), unit = unit_links(cluster);
    if (apart) latencies.collectives.latency = 0;
    const auto fit = [&](TimedGroups::Which which, const char* where, const char* key, sim::Link& link,
                         bool measured, sim::PairFigures& pairs) {
        const std::int64_t count = fit_link(groups.of(which), unit, link, measured, pairs, latencies);
        if (count > 0) {
            into.notes[key] =
                fmt::format("{}{} {} {}", measured ? by_pairs + ", and " : "", count, what, where);
        }
    };
    fit(TimedGroups::Which::inside, "inside a node", "intra.bandwidth", cluster.intra, links.inside,
        cluster.links.bandwidth);
    // For links between nodes, those inside are assumed to be infinitely fast.
    unit.intra.bandwidth = 1e30;
    fit(TimedGroups::Which::across, "between nodes", "inter.bandwidth", cluster.inter, links.between,
        cluster.links.node_bandwidth);
}

}  // namespace shardscope::trainer::calibrate
