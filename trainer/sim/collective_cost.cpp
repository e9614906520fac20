#include "trainer/sim/collective_cost.h"

#include <algorithm>
#include <cmath>

namespace shardscope::trainer::sim {

namespace {

// The terms of the formulas, named as in the header.
struct Terms {
    double n = 0, p = 1, m = 1, k = 1;
    double a = 0, b = 1, A = 0, B = 1;

    double w() const { return m > 1 ? std::min(b, B) : b; }
    double others() const { return (p - 1) / p * n; }  // bytes that each member lacks
    double latency() const { return m > 1 ? A : a; }   // for one step
};

double log2_up(double x) {
    return std::ceil(std::log2(std::max(x, 1.0)));
}

// The time of all_gather or reduce_scatter; all_reduce is one of each.
double half(Algorithm algorithm, const Terms& t) {
    switch (algorithm) {
        case Algorithm::direct:
            return t.latency() + t.others() / t.w();
        case Algorithm::ring:
            return (t.p - t.m) * t.a + (t.m - 1) * t.A + t.others() / t.w();
        case Algorithm::tree:
            return log2_up(t.k) * t.a + log2_up(t.m) * t.A + t.others() / t.w();
        case Algorithm::hierarchical:
            return (t.m - 1) * t.A + (t.m - 1) / t.m * t.n / t.B + (t.k - 1) * t.a +
                   (t.k - 1) / t.k * t.n / t.b;
        case Algorithm::shared_memory:
            return t.latency() + 2 * t.n / t.w();
    }
    return 0;
}

double reduce_scatter(Algorithm algorithm, const Terms& t) {
    if (algorithm != Algorithm::shared_memory) return half(algorithm, t);
    return t.latency() + (1 + 1 / t.p) * t.n / t.w();
}

double all_reduce(Algorithm algorithm, const Terms& t) {
    if (algorithm == Algorithm::shared_memory) return half(algorithm, t);
    if (algorithm != Algorithm::tree) return 2 * half(algorithm, t);
    return 2 * (log2_up(t.k) * t.a + log2_up(t.m) * t.A) + 2 * t.n / t.w();
}

double broadcast(Algorithm algorithm, const Terms& t) {
    switch (algorithm) {
        case Algorithm::direct:
            return t.latency() + t.n / t.w();
        case Algorithm::ring:
            return (t.p - t.m) * t.a + (t.m - 1) * t.A + t.n / t.w();
        case Algorithm::tree:
            return log2_up(t.k) * t.a + log2_up(t.m) * t.A + t.n / t.w();
        case Algorithm::hierarchical:
            return log2_up(t.m) * t.A + t.n / t.B + log2_up(t.k) * t.a + t.n / t.b;
        case Algorithm::shared_memory:
            return t.latency() + 2 * t.n / t.w();
    }
    return 0;
}

double message(Algorithm algorithm, const Terms& t) {
    return t.latency() + (algorithm == Algorithm::shared_memory ? 2 : 1) * t.n / t.w();
}

}  // namespace

double bus_share(plan::Operation operation, double members) {
    switch (operation) {
        case plan::Operation::all_reduce:
            return 2 * (members - 1) / members;
        case plan::Operation::all_gather:
        case plan::Operation::reduce_scatter:
        case plan::Operation::all_to_all:
        case plan::Operation::gather:
        case plan::Operation::scatter:
            return (members - 1) / members;
        default:
            return 1;
    }
}

double collective_seconds(const Cluster& cluster, const Spread& spread, plan::Operation operation,
                          std::int64_t bytes) {
    Terms t;
    t.n = static_cast<double>(bytes);
    t.p = spread.members;
    t.m = spread.nodes;
    t.k = spread.fullest;
    t.a = spread.hop >= 0 ? spread.hop : cluster.intra.latency;
    t.b = cluster.intra.bandwidth * cluster.intra.bandwidth_share.at(t.n) * spread.intra;
    if (spread.nodes > 1) {
        t.A = spread.hop_across >= 0 ? spread.hop_across : cluster.inter.latency;
        t.B = cluster.inter.bandwidth * cluster.inter.bandwidth_share.at(t.n) * spread.across;
    }
    const Algorithm algorithm = spread.nodes > 1 ? cluster.collectives.across : cluster.collectives.inside;
    double seconds = cluster.collectives.latency;
    if (spread.members == 1 && algorithm != Algorithm::shared_memory)
        return seconds + 2 * t.n / cluster.device.memory_bandwidth;  // a copy
    if (const auto& own = cluster.collectives.measured[static_cast<std::size_t>(operation)];
        own.bandwidth > 0)
        return own.latency + t.n * bus_share(operation, t.p) / own.bandwidth;
    switch (operation) {
        case plan::Operation::reduce_scatter:
            return seconds + reduce_scatter(algorithm, t);
        case plan::Operation::all_gather:
        case plan::Operation::gather:
        case plan::Operation::scatter:
        case plan::Operation::all_to_all:
            return seconds + half(algorithm, t);
        case plan::Operation::all_reduce:
            return seconds + all_reduce(algorithm, t);
        case plan::Operation::barrier:
            t.n = 0;
            return seconds + all_reduce(algorithm, t);
        case plan::Operation::broadcast:
        case plan::Operation::reduce:
            return seconds + broadcast(algorithm, t);
        case plan::Operation::send:
        case plan::Operation::recv:
            return seconds + message(algorithm, t);
        case plan::Operation::other:
            break;
    }
    return seconds + t.latency() + t.n / t.w();
}

}  // namespace shardscope::trainer::sim
