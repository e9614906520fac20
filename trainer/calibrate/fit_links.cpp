// Links of pairs: of the devices of a node and of the nodes, from the messages of a benchmark between all
// pairs of its ranks. Pairs that are alike become one figure.
#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include <fmt/core.h>

#include "trainer/calibrate/fit.h"
#include "trainer/calibrate/fit_curve.h"

namespace shardscope::trainer::calibrate {

namespace {

constexpr double kLeastSpread = 0.1;   // figures within twice their spread of each other are not told apart
constexpr double kLeastLatency = 0.1;  // of a message's time; what is less is lost in that of its bytes
constexpr double kContradiction = 2;   // factor between two measurements of the same pair of ranks

// What a benchmark measured of a link.
struct LinkSample {
    double bandwidth = 0, latency = 0;
    const MeasuredBench* bench = nullptr;
};
// By place: from a device of a node, or a node, to another one.
using LinkSamples = std::map<std::pair<int, int>, std::vector<LinkSample>>;

// Ranks per node, if rank r is on node r / devices, as in a cluster.
int devices_of(const MeasuredBench& bench) {
    const std::vector<int>& node_of = bench.node_of;
    const int devices = static_cast<int>(std::count(node_of.begin(), node_of.end(), node_of.front()));
    for (std::size_t rank = 0; rank < node_of.size(); ++rank) {
        if (node_of[rank] == static_cast<int>(rank) / devices) continue;
        throw CalibrationError(fmt::format(
            "{}: rank {} is not on the host that has its neighbours, and a cluster's file has equally many "
            "consecutive ranks on each node; record the benchmark with ranks placed so",
            bench.file, rank));
    }
    return devices;
}

double LinkSample::*const kFigures[] = {&LinkSample::bandwidth, &LinkSample::latency};

double median_of(const std::vector<LinkSample>& samples, double LinkSample::*figure,
                 const MeasuredBench* only) {
    std::vector<double> values;
    for (const LinkSample& sample : samples) {
        if (!only || sample.bench == only) values.push_back(sample.*figure);
    }
    return median(std::move(values));
}

// Benchmarks of one cluster measure the same of each of its pairs.
void check_repeated(const LinkSamples& samples, const char* what) {
    for (const auto& [place, own] : samples) {
        const MeasuredBench* first = own.front().bench;
        for (const LinkSample& sample : own) {
            for (double LinkSample::*figure : kFigures) {
                const double one = median_of(own, figure, first),
                             other = median_of(own, figure, sample.bench);
                if (std::max(one, other) <= kContradiction * std::min(one, other)) continue;
                throw CalibrationError(fmt::format(
                    "from {0} {1} to {0} {2} {3} measured {4:.3g} {7}, and {5} {6:.3g}, which contradict "
                    "each "
                    "other; calibrate with benchmarks of one placement of the ranks, on an otherwise idle "
                    "machine",
                    what, place.first, place.second, first->file, one, sample.bench->file, other,
                    figure == &LinkSample::latency ? "s of latency" : "bytes/s"));
            }
        }
    }
}

// Figures of which the largest is within twice the spread of the smallest become their median.
std::vector<double> settled(const std::vector<double>& figures, double spread) {
    std::vector<std::size_t> order(figures.size());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return figures[a] < figures[b]; });
    std::vector<double> result(figures.size());
    for (std::size_t first = 0; first < order.size();) {
        std::vector<double> alike;
        std::size_t last = first;
        for (; last < order.size() && figures[order[last]] <= (1 + 2 * spread) * figures[order[first]];
             ++last)
            alike.push_back(figures[order[last]]);
        for (const double one = median(alike); first < last; ++first) result[order[first]] = one;
    }
    return result;
}

// The figures as a square of `size` rows. Empty: all are alike, and `one` is their median.
sim::PairFigures square(const LinkSamples& samples, int size, double spread, double LinkSample::*figure,
                        double& one) {
    std::vector<double> figures;
    for (const auto& [place, own] : samples) figures.push_back(median_of(own, figure, nullptr));
    one = median(figures);
    figures = settled(figures, spread);
    if (std::all_of(figures.begin(), figures.end(), [&](double own) { return own == figures.front(); })) {
        one = figures.front();
        return {};
    }
    sim::PairFigures pairs{.size = size, .values = {}};
    pairs.values.resize(static_cast<std::size_t>(size) * static_cast<std::size_t>(size));
    auto next = figures.begin();
    for (const auto& [place, own] : samples)
        pairs.values[static_cast<std::size_t>(place.first) * static_cast<std::size_t>(size) +
                     static_cast<std::size_t>(place.second)] = *next++;
    return pairs;
}

// A square has no gaps.
void check_whole(const LinkSamples& samples, int size, const char* what) {
    for (int from = 0; from < size; ++from) {
        for (int to = 0; to < size; ++to) {
            if (from == to || samples.contains({from, to})) continue;
            throw CalibrationError(
                fmt::format("the pairs are not alike, so [links] needs all of them, and no trace has that of "
                            "{0} {1} and {0} "
                            "{2}; record --bench-collectives --pairs with all {3} of them",
                            what, from, to, size));
        }
    }
}

// All that the benchmarks measured of pairs.
struct Measured {
    LinkSamples inside, between;
    int devices = 0, nodes = 1;  // of a node, of the cluster
    double shortest = 0;         // the least latency
    std::vector<double> bandwidth_spreads, latency_spreads;
};

void add_pairs(const MeasuredBench& bench, double bytes_factor, Measured& into) {
    const BenchedPairs& pairs = *bench.pairs;
    const int devices = devices_of(bench);
    into.devices = std::max(into.devices, devices);
    into.nodes = std::max(into.nodes, bench.nodes);
    into.bandwidth_spreads.push_back(pairs.spread);
    into.latency_spreads.push_back(pairs.latency_spread);
    for (int from = 0; from < pairs.ranks; ++from) {
        for (int to = 0; to < pairs.ranks; ++to) {
            if (from == to) continue;
            const bool same = from / devices == to / devices;
            const std::pair place =
                same ? std::pair(from % devices, to % devices) : std::pair(from / devices, to / devices);
            // The small message has bytes, too.
            const double whole = pairs.latency[pairs.at(from, to)];
            const double bytes = static_cast<double>(pairs.small_bytes) / pairs.rate(from, to);
            const double latency = std::max(whole - bytes, kLeastLatency * whole);
            if (into.shortest == 0 || latency < into.shortest) into.shortest = latency;
            (same ? into.inside : into.between)[place].push_back(
                {bytes_factor * pairs.rate(from, to), latency, &bench});
        }
    }
}

}  // namespace

LinkFit fit_links(const Benches& benches, double bytes_factor, int devices, Calibration& into) {
    Measured measured;
    LinkFit fit;
    for (const MeasuredBench& bench : benches) {
        if (!bench.pairs) continue;
        add_pairs(bench, bytes_factor, measured);
        if (bench.latency_of_plan >= 0) fit.latency_of_plan = bench.latency_of_plan;
    }
    fit.shortest = measured.shortest;
    if (measured.devices == 0) return fit;
    devices = std::max(devices, measured.devices);
    const double bandwidth_spread = std::max(kLeastSpread, median(measured.bandwidth_spreads));
    const double latency_spread = std::max(kLeastSpread, median(measured.latency_spreads));
    // Returns whether pairs are not alike.
    const auto read = [&](const LinkSamples& samples, int size, const char* what, sim::Link& link,
                          sim::PairFigures& bandwidth, sim::PairFigures& latency) {
        if (samples.empty()) return false;
        check_repeated(samples, what);
        bandwidth = square(samples, size, bandwidth_spread, &LinkSample::bandwidth, link.bandwidth);
        latency = square(samples, size, latency_spread, &LinkSample::latency, link.latency);
        if (!bandwidth.known() && !latency.known()) return false;
        check_whole(samples, size, what);
        return true;
    };
    sim::Cluster& cluster = into.cluster;
    sim::PairLinks& links = cluster.links;
    fit.inside = !measured.inside.empty();
    fit.between = !measured.between.empty();
    fit.pairs = std::ssize(measured.inside) + std::ssize(measured.between);
    if (read(measured.inside, devices, "device", cluster.intra, links.bandwidth, links.latency)) {
        cluster.devices = devices;
        into.notes["cluster.devices"] = "of a node: all whose pairs were measured";
    }
    if (read(measured.between, measured.nodes, "node", cluster.inter, links.node_bandwidth,
             links.node_latency))
        cluster.nodes = measured.nodes;
    into.notes["links"] = fmt::format(
        "{} pairs by messages; bandwidths within {:.0f} % of each other, and latencies within {:.0f} %, are "
        "one",
        fit.pairs, 200 * bandwidth_spread, 200 * latency_spread);
    return fit;
}

}  // namespace shardscope::trainer::calibrate
