// Fitting the links of pairs: those of a known cluster are recovered from the benchmark that it gives, and
// figures that cannot be used are refused.
#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "played_run.h"
#include "trainer/calibrate/bench_facts.h"
#include "trainer/calibrate/calibration.h"
#include "trainer/sim/bench.h"
#include "trainer/sim/collective_cost.h"
#include "trainer/sim/rank_classes.h"

namespace shardscope::trainer::calibrate {
namespace TEST_FILE {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kTolerance = 0.02;  // of a bandwidth, or of a collective's time

// Four GPUs of a node: 0 and 1, 2 and 3 have NVLink, the others PCIe, which takes longer, too.
sim::Cluster nvlink_pairs() {
    sim::Cluster cluster = sim::load_cluster("a100");
    cluster.devices = 4;
    cluster.nodes = 1;
    cluster.device.name = "a GPU";
    cluster.collectives = {4e-6, sim::Algorithm::ring, sim::Algorithm::ring};
    cluster.links.bandwidth = cluster.links.latency = {4, std::vector<double>(16)};
    for (int from = 0; from < 4; ++from) {
        for (int to = 0; to < 4; ++to) {
            const auto at = static_cast<std::size_t>(4 * from + to);
            cluster.links.bandwidth.values[at] = from == to ? 0 : from / 2 == to / 2 ? 2e11 : 1.2e10;
            cluster.links.latency.values[at] = from == to ? 0 : from / 2 == to / 2 ? 3e-6 : 9e-6;
        }
    }
    return cluster;
}

job::Job job_of(int ranks, int width = 64) {
    job::Job job = testing::with_wrap(testing::mlp_job(2, width, 8, ranks), "module:Linear");
    job.run.device = job::DeviceKind::cuda;
    job.run.steps = 3;
    return job;
}

// The trace of the benchmark, as if the cluster had been measured.
std::unique_ptr<traces::store::Trace> bench_of(const sim::Cluster& cluster, int ranks, bool pairs = true,
                                               bool collectives = true, std::int64_t smallest = 8) {
    sharding::Program program(sim::placed_on(job_of(ranks), cluster));
    program.let_talk(ranks);
    executor::CollectiveBenchOptions options;
    options.pairs = pairs;
    options.collectives = collectives;
    options.smallest = smallest;
    auto trace = testing::played(job_of(ranks), cluster);
    for (const auto& fact : bench_facts(sim::simulate_bench(program, cluster, options), ranks, pairs))
        trace->config.emplace_back(fact.key, fact.value);
    return trace;
}

Calibration fitted_to(const std::vector<const traces::store::Trace*>& traces, const sim::Cluster& base) {
    std::vector<MeasuredBench> benches;
    for (const traces::store::Trace* trace : traces) benches.push_back(measure_bench(*trace));
    return calibrate({}, benches, base, "fitted");
}

// Another cluster, with the known one's algorithms.
sim::Cluster base_of(const sim::Cluster& known) {
    sim::Cluster base = sim::load_cluster("a100");
    base.collectives.inside = known.collectives.inside;
    base.collectives.across = known.collectives.across;
    return base;
}

void expect_near(const sim::PairFigures& found, const sim::PairFigures& known, double tolerance) {
    ASSERT_EQ(found.size, known.size);
    for (int from = 0; from < known.size; ++from) {
        for (int to = 0; to < known.size; ++to) {
            if (from == to) continue;
            EXPECT_NEAR(found.of(from, to), known.of(from, to), tolerance * known.of(from, to))
                << from << " " << to;
        }
    }
}

// Each collective and message of the benchmark takes as long on the one cluster as on the other.
void expect_same_times(const sim::Cluster& found, const sim::Cluster& known, int ranks) {
    plan::Mesh mesh;
    mesh.ranks = mesh.shard = ranks;
    std::vector<int> all;
    for (int rank = 0; rank < ranks; ++rank) all.push_back(rank);
    for (const plan::Operation operation :
         {plan::Operation::all_gather, plan::Operation::reduce_scatter, plan::Operation::all_reduce,
          plan::Operation::broadcast, plan::Operation::send}) {
        for (const std::int64_t bytes : {std::int64_t{64}, std::int64_t{1} << 16, std::int64_t{1} << 24}) {
            const bool message = operation == plan::Operation::send;
            const auto seconds = [&](const sim::Cluster& cluster) {
                return collective_seconds(
                    cluster, sim::spread_of(mesh, message ? std::vector<int>{1, 2} : all, cluster, {}),
                    operation, bytes);
            };
            EXPECT_NEAR(seconds(found), seconds(known), kTolerance * seconds(known))
                << name(operation) << " of " << bytes;
        }
    }
}

// --- round trips -----------------------------------------------------------------------------------------

TEST(CalibrateLinks, RecoversThoseOfAKnownCluster) {
    const sim::Cluster known = nvlink_pairs();
    const auto trace = bench_of(known, 4);
    const Calibration fitted = fitted_to({trace.get()}, base_of(known));
    const sim::Cluster& found = fitted.cluster;
    EXPECT_EQ(found.devices, 4);
    EXPECT_EQ(fitted.pairs, 12);
    expect_near(found.links.bandwidth, known.links.bandwidth, kTolerance);
    expect_near(found.links.latency, known.links.latency, 0.05);
    EXPECT_NEAR(found.collectives.latency, known.collectives.latency, 0.05 * known.collectives.latency);
    expect_same_times(found, known, 4);
    EXPECT_THAT(model_file(fitted), AllOf(HasSubstr("[links]\n# 12 pairs by messages"),
                                          HasSubstr("bandwidth = [[0, "), HasSubstr("\nlatency = [[0, ")));
    // Of runs of the job on both, too.
    EXPECT_NEAR(sim::simulate(sharding::Program(job_of(4)), found).of(0).steps.back().communication_s,
                sim::simulate(sharding::Program(job_of(4)), known).of(0).steps.back().communication_s, 2e-6);
}

// Without collectives; the smallest message of a benchmark may have many bytes, whose time is not latency.
TEST(CalibrateLinks, RecoversThoseOfAKnownClusterFromMessages) {
    const sim::Cluster known = nvlink_pairs();
    for (const std::int64_t smallest : {8, 65536}) {
        SCOPED_TRACE(smallest);
        const auto trace = bench_of(known, 4, true, false, smallest);
        const sim::Cluster found = fitted_to({trace.get()}, base_of(known)).cluster;
        expect_near(found.links.bandwidth, known.links.bandwidth, kTolerance);
        for (const auto& [from, to] : {std::pair(0, 1), std::pair(1, 2)}) {
            EXPECT_NEAR(found.collectives.latency + found.links.latency.of(from, to),
                        known.collectives.latency + known.links.latency.of(from, to),
                        smallest == 8 ? 1e-7 : 2e-7);
        }
    }
}

// Beside a trace of a node with more devices its ranks are still those of two nodes.
TEST(CalibrateLinks, OfOneRankOnEachNodeAreThoseBetweenNodes) {
    sim::Cluster known = nvlink_pairs();
    known.links = {};
    known.nodes = 2;
    known.devices = 1;
    known.inter = {.latency = 1e-5, .bandwidth = 1e10, .shared = false, .bandwidth_share = {}};
    const auto trace = bench_of(known, 2);
    std::vector<MeasuredRun> runs;
    runs.push_back(measure(*testing::played(job_of(4, 2048), nvlink_pairs())));
    std::vector<MeasuredBench> benches;
    benches.push_back(measure_bench(*trace));
    const sim::Cluster found = calibrate(runs, benches, base_of(known), "x").cluster;
    EXPECT_EQ(found.devices, 4);
    EXPECT_NEAR(found.inter.bandwidth, 1e10, kTolerance * 1e10);
    const auto seconds = [](const sim::Cluster& cluster, int other) {
        plan::Mesh mesh;
        mesh.ranks = mesh.shard = 2 * other;
        return collective_seconds(cluster, sim::spread_of(mesh, {0, other}, cluster, {}),
                                  plan::Operation::all_gather, 1 << 24);
    };
    EXPECT_NEAR(seconds(found, 4), seconds(known, 1), kTolerance * seconds(known, 1));
}

// The other devices of its nodes do not communicate, so its ranks have the whole of a link that all share.
TEST(CalibrateLinks, OfOneRankOnEachNodeHaveTheWholeOfASharedLink) {
    sim::Cluster known = nvlink_pairs();
    known.links = {};
    known.nodes = 2;
    known.devices = 1;
    known.inter = {.latency = 1e-5, .bandwidth = 1e10, .shared = true, .bandwidth_share = {}};
    const auto trace = bench_of(known, 2, false);
    std::vector<MeasuredRun> runs;
    runs.push_back(measure(*testing::played(job_of(4, 2048), nvlink_pairs())));
    std::vector<MeasuredBench> benches;
    benches.push_back(measure_bench(*trace));
    sim::Cluster base = base_of(known);
    base.inter.shared = true;
    const sim::Cluster found = calibrate(runs, benches, base, "x").cluster;
    EXPECT_EQ(found.devices, 4);
    EXPECT_NEAR(found.inter.bandwidth, 1e10, kTolerance * 1e10);
}

TEST(CalibrateLinks, AreThoseOfAllPairsIfTheyAreAlike) {
    sim::Cluster known = nvlink_pairs();
    known.links = {};
    known.intra = {.latency = 3e-6, .bandwidth = 5e10, .shared = false, .bandwidth_share = {}};
    const auto trace = bench_of(known, 4);
    // The pair of ranks 1 and 0 is slower by a twelfth, as noise makes it.
    for (auto& [key, value] : trace->config) {
        if (key != kPairFact) continue;
        const std::size_t begin = value.find(';') + 1, end = value.find(' ', begin);
        value.replace(begin, end - begin, std::to_string(std::stod(value.substr(begin)) * 13 / 12));
    }
    const Calibration fitted = fitted_to({trace.get()}, base_of(known));
    EXPECT_EQ(fitted.cluster.links, sim::PairLinks());
    EXPECT_NEAR(fitted.cluster.intra.bandwidth, 5e10, kTolerance * 5e10);
    expect_same_times(fitted.cluster, known, 4);
    EXPECT_THAT(model_file(fitted), Not(HasSubstr("[links]")));
}

TEST(CalibrateLinks, RecoversThoseBetweenNodes) {
    sim::Cluster known = nvlink_pairs();
    known.nodes = 3;
    known.devices = 2;
    known.links = {};
    known.intra = {.latency = 2e-6, .bandwidth = 1e11, .shared = false, .bandwidth_share = {}};
    known.inter = {.latency = 1e-5, .bandwidth = 1e10, .shared = false, .bandwidth_share = {}};
    known.links.node_bandwidth = {3, {0, 1e10, 2e9, 1e10, 0, 1e10, 2e9, 1e10, 0}};
    const auto trace = bench_of(known, 6);
    const Calibration fitted = fitted_to({trace.get()}, base_of(known));
    EXPECT_EQ(fitted.cluster.devices, 2);
    EXPECT_EQ(fitted.cluster.nodes, 3);
    EXPECT_FALSE(fitted.cluster.links.bandwidth.known());
    expect_near(fitted.cluster.links.node_bandwidth, known.links.node_bandwidth, kTolerance);
    expect_same_times(fitted.cluster, known, 6);
}

TEST(CalibrateLinks, KeepThemselvesBesideTheRunsOfAJob) {
    const sim::Cluster known = nvlink_pairs();
    const auto trace = bench_of(known, 4);
    std::vector<MeasuredRun> runs;
    runs.push_back(measure(*testing::played(job_of(4), known)));
    std::vector<MeasuredBench> benches;
    benches.push_back(measure_bench(*trace));
    const Calibration fitted = calibrate(runs, benches, base_of(known), "both");
    expect_near(fitted.cluster.links.bandwidth, known.links.bandwidth, kTolerance);
    EXPECT_EQ(fitted.steps.size(), 1u);
    EXPECT_LT(std::abs(fitted.steps[0].error()), 0.1);
}

// --- what nothing can be learned from --------------------------------------------------------------------

std::string complaint(const std::function<void()>& call) {
    try {
        call();
    } catch (const CalibrationError& error) {
        return error.what();
    }
    return "no complaint";
}

std::string complaint_of(const std::function<void(traces::store::Trace&)>& change) {
    const auto trace = bench_of(nvlink_pairs(), 4);
    change(*trace);
    return complaint([&] { (void)measure_bench(*trace); });
}

void set(traces::store::Trace& trace, std::string_view fact, const std::string& text) {
    for (auto& [key, value] : trace.config) {
        if (key == fact) value = text;
    }
}

TEST(CalibrateLinks, RefusesFactsThatAreNotWhole) {
    using traces::store::Trace;
    EXPECT_THAT(complaint_of([](Trace& t) { set(t, kPairFact, "0 1 1 1;1 0 1 1;1 1 0 1"); }),
                HasSubstr("bench.pair_us has no time of a message from rank 3 to rank 0, and [links] needs "
                          "that of each pair of its 4 ranks"));
    EXPECT_THAT(complaint_of([](Trace& t) { set(t, kPairLatencyFact, "0 1 1 1;1 0 0 1;1 1 0 1;1 1 1 0"); }),
                HasSubstr("bench.pair_latency_us has no time of a message from rank 1 to rank 2"));
    for (const char* text : {"0 x 1 1;1 0 1 1;1 1 0 1;1 1 1 0", "0 nan 1 1;", "0 -1 1 1;", "0 inf 1 1;"}) {
        EXPECT_THAT(complaint_of([&](Trace& t) { set(t, kPairFact, text); }),
                    HasSubstr("its fact bench.pair_us is not what a benchmark writes"))
            << text;
    }
    EXPECT_THAT(complaint_of([](Trace& t) { set(t, kPairBytesFact, "8"); }),
                HasSubstr("its fact bench.pair_bytes is not"));
    EXPECT_THAT(complaint_of([](Trace& t) { set(t, kPairBytesFact, "8 8"); }),
                HasSubstr("its pairs have messages of one size"));
    EXPECT_THAT(complaint_of([](Trace& t) { set(t, bench_fact(plan::Operation::all_gather), "8"); }),
                HasSubstr("its fact bench.all_gather_us is not"));
    EXPECT_THAT(complaint_of([](Trace& t) { set(t, kPairSpreadFact, ""); }), HasSubstr("bench.pair_spread"));
    EXPECT_THAT(complaint_of([](Trace& t) {
                    for (auto& [key, value] : t.config)
                        if (key.starts_with(kBenchFacts)) value.clear();
                }),
                HasSubstr("its benchmark recorded no times"));
}

TEST(CalibrateLinks, RefusesOneRank) {
    const sim::Cluster known = nvlink_pairs();
    EXPECT_THAT(complaint_of([](traces::store::Trace& t) { t.ranks.resize(1); }),
                HasSubstr("it has 1 of the job's 4 ranks; merge the parts"));
    const auto alone = testing::played(job_of(1), known);
    alone->config.emplace_back(kMessageFact, "8:1");
    alone->config.emplace_back(kPairBytesFact, "8 4194304");
    EXPECT_THAT(complaint([&] { (void)measure_bench(*alone); }),
                HasSubstr("it is of one rank, which has no links"));
}

TEST(CalibrateLinks, RefusesFiguresThatContradictEachOther) {
    // Less time for 4 MiB than for 8 bytes.
    EXPECT_THAT(complaint_of([&](traces::store::Trace& t) {
                    set(t, kPairFact, "0 0.1 900 900;900 0 900 900;900 900 0 900;900 900 900 0");
                }),
                HasSubstr("from rank 0 to rank 1 a message of 4194304 bytes took 0.1 µs and one of 8 bytes"));
    // Two benchmarks of the same ranks.
    const sim::Cluster known = nvlink_pairs();
    sim::Cluster other = known;
    other.links.bandwidth.values[1] = 5e9;  // from device 0 to device 1
    const auto one = bench_of(known, 4), two = bench_of(other, 4);
    one->path = "one.sqlite";
    two->path = "two.sqlite";
    EXPECT_THAT(
        complaint([&] {
            (void)fitted_to({one.get(), two.get()}, base_of(known));
        }),
        HasSubstr("from device 0 to device 1 one.sqlite measured 2e+11 bytes/s, and two.sqlite 5e+09, "
                  "which contradict each other"));
    // Equal ones do not.
    const Calibration twice = fitted_to({one.get(), one.get()}, base_of(known));
    expect_near(twice.cluster.links.bandwidth, known.links.bandwidth, kTolerance);
}

TEST(CalibrateLinks, RefusesPairsThatNoBenchmarkHas) {
    // Two ranks of a node, and one of another with four: the pair of devices 2 and 3 is missing there.
    sim::Cluster known = nvlink_pairs();
    const auto three = bench_of(known, 3);
    std::vector<MeasuredRun> runs;
    runs.push_back(measure(*testing::played(job_of(4), known)));
    std::vector<MeasuredBench> benches;
    benches.push_back(measure_bench(*three));
    EXPECT_THAT(
        complaint([&] { (void)calibrate(runs, benches, base_of(known), "x"); }),
        HasSubstr("the pairs are not alike, so [links] needs all of them, and no trace has that of device "
                  "0 and device 3; record --bench-collectives --pairs with all 4 of them"));
}

TEST(CalibrateLinks, RefusesRanksThatAreNotPlacedAsInACluster) {
    sim::Cluster known = nvlink_pairs();
    known.nodes = 2;
    known.devices = 2;
    known.links = {};
    const auto trace = bench_of(known, 4);
    std::swap(trace->ranks[0].host, trace->ranks[3].host);
    EXPECT_THAT(complaint([&] { (void)fitted_to({trace.get()}, base_of(known)); }),
                HasSubstr("rank 1 is not on the host that has its neighbours"));
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::calibrate
