// Links that differ from pair to pair: read from a cost model's [links], and the slowest of a ring decides.
#include <array>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan_jobs.h"
#include "sim_testing.h"
#include "traces/analysis/topology/pair_traffic.h"
#include "traces/store/columns/column_sink.h"
#include "trainer/sim/collective_cost.h"
#include "trainer/sim/rank_classes.h"
#include "trainer/sim/sim_trace.h"

namespace shardscope::trainer::sim {
namespace TEST_FILE {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Four devices of a node: 0 and 1, 2 and 3 at 2e9 bytes/s, all others at 0.5e9.
constexpr std::array kBandwidths = {0.0,   2e9,   0.5e9, 0.5e9, 2e9,   0.0,   0.5e9, 0.5e9,
                                    0.5e9, 0.5e9, 0.0,   2e9,   0.5e9, 0.5e9, 2e9,   0.0};

Cluster with_links() {
    Cluster cluster = testing::round_cluster(4);
    cluster.collectives = {1e-6, Algorithm::ring, Algorithm::ring};
    cluster.intra = {1e-5, 1e9, false};
    cluster.inter = {1e-4, 1e8, false};
    cluster.links.bandwidth = {4, {kBandwidths.begin(), kBandwidths.end()}};
    return cluster;
}

double us_of(const Cluster& cluster, const std::vector<int>& ranks, int world, std::int64_t bytes) {
    return collective_seconds(cluster, spread_of({world, world}, ranks, cluster, {}),
                              plan::Operation::all_gather, bytes) *
           1e6;
}

TEST(SimLinks, TheSlowestOfTheRingDecides) {
    const Cluster cluster = with_links();
    // 1 us, (p - 1) steps of 10 us, (p - 1)/p of 8000 bytes at the ring's slowest link.
    EXPECT_NEAR(us_of(cluster, {0, 1, 2, 3}, 4, 8'000), 1 + 30 + 12, 1e-9);  // 6000 at 0.5e9
    EXPECT_NEAR(us_of(cluster, {0, 1}, 4, 8'000), 1 + 10 + 2, 1e-9);         // 4000 at 2e9
    EXPECT_NEAR(us_of(cluster, {1, 2}, 4, 8'000), 1 + 10 + 8, 1e-9);         // 4000 at 0.5e9
    // Without pairs of their own, or with equal ones, the time is that of [intra].
    Cluster plain = cluster;
    plain.links = {};
    EXPECT_NEAR(us_of(plain, {0, 1, 2, 3}, 4, 8'000), 1 + 30 + 6, 1e-9);
    Cluster equal = plain;
    equal.links.bandwidth = {4, std::vector<double>(16, 1e9)};
    equal.links.latency = {4, std::vector<double>(16, 1e-5)};
    EXPECT_EQ(us_of(equal, {0, 1, 2, 3}, 4, 8'000), us_of(plain, {0, 1, 2, 3}, 4, 8'000));
}

TEST(SimLinks, ARingWithinItsFastPairsIsFasterThanOneThroughSlowOnes) {
    Cluster cluster = with_links();
    for (const auto& [a, b] : {std::pair(0, 2), std::pair(2, 0), std::pair(1, 3), std::pair(3, 1)})
        cluster.links.bandwidth.values[static_cast<std::size_t>(a * 4 + b)] = 2e9;
    // Now 0-1-3-2-0 has fast links alone, and 0-1-2-3-0 has two slow ones.
    EXPECT_NEAR(us_of(cluster, {0, 1, 3, 2}, 4, 8'000), 1 + 30 + 3, 1e-9);
    EXPECT_NEAR(us_of(cluster, {0, 1, 2, 3}, 4, 8'000), 1 + 30 + 12, 1e-9);
}

TEST(SimLinks, LatenciesOfPairsReplaceTheStep) {
    Cluster cluster = with_links();
    cluster.links.latency = {4, std::vector<double>(16, 2e-6)};
    cluster.links.latency.values[2 * 4 + 3] = 7e-6;  // from device 2 to device 3
    EXPECT_NEAR(us_of(cluster, {0, 1}, 4, 8'000), 1 + 2 + 2, 1e-9);
    EXPECT_NEAR(us_of(cluster, {0, 1, 2, 3}, 4, 8'000), 1 + 3 * 7 + 12, 1e-9);
}

TEST(SimLinks, BetweenNodesTheirPairDecides) {
    Cluster cluster = with_links();
    cluster.nodes = 3;
    cluster.links.node_bandwidth = {3, {0, 1e8, 0.25e8, 1e8, 0, 1e8, 0.25e8, 1e8, 0}};
    cluster.links.node_latency = {3, {0, 5e-5, 1e-3, 5e-5, 0, 1e-4, 1e-3, 1e-4, 0}};
    // One device of each of two nodes: 4000 bytes at 1e8, and at a quarter of it.
    EXPECT_NEAR(us_of(cluster, {0, 4}, 12, 8'000), 1 + 50 + 40, 1e-9);
    EXPECT_NEAR(us_of(cluster, {0, 8}, 12, 8'000), 1 + 1000 + 160, 1e-9);
    // sim.slow_link halves what the pair has.
    const Spread slow = spread_of({12, 12}, {0, 4}, cluster, {{true, -1, 0.5}});
    EXPECT_NEAR(collective_seconds(cluster, slow, plan::Operation::all_gather, 8'000) * 1e6, 1 + 50 + 80,
                1e-9);
}

// Groups of two: {0, 1} and {2, 3} are alike, {0, 2} and {1, 3} would not be if one link differed.
TEST(SimLinks, RanksOfDifferentLinksAreNotOneClass) {
    Cluster cluster = with_links();
    EXPECT_EQ(classify({4, 2}, cluster, {}, {}).classes.size(), 1u);
    cluster.links.bandwidth.values[1] = 1e9;  // from device 0 to device 1
    EXPECT_EQ(classify({4, 2}, cluster, {}, {}).classes.size(), 2u);
}

// --- the trace -------------------------------------------------------------------------------------------

TEST(SimLinks, TheTraceHasThemAsTheTopologyOfItsNodes) {
    Cluster cluster = load_cluster("h200_nvlink");
    cluster.devices = 4;
    cluster.links.bandwidth = {4, {kBandwidths.begin(), kBandwidths.end()}};
    cluster.links.bandwidth.values[1] = 1e9;  // from device 0 to device 1; 2e9 back
    job::Job job = testing::with_wrap(testing::mlp_job(2, 256, 64, 4), "module:Linear");
    job.run.device = job::DeviceKind::sim;
    job.run.steps = 2;
    const auto trace_of = [&](const Cluster& on) {
        const sharding::Program program(placed_on(job, on));
        traces::store::ColumnSink sink;
        SimTrace trace(sink, program, on, 4, 0);
        trace.summarise(simulate(program, on, {}, &trace));
        return sink.take();
    };
    const traces::analysis::TopologyReport report = traces::analysis::topology_report(*trace_of(cluster));
    ASSERT_EQ(report.hosts.size(), 1u);
    const traces::analysis::HostTopology& node = report.hosts.front();
    EXPECT_EQ(node.host, "node-0");
    EXPECT_EQ(node.nodes.size(), 4u);
    EXPECT_EQ(node.links.size(), 7u);  // six pairs, one of them in both directions
    EXPECT_EQ(node.link(0, 1)->bytes_per_second, 1e9);
    EXPECT_EQ(node.link(1, 0)->bytes_per_second, 2e9);
    EXPECT_EQ(node.link(3, 0)->bytes_per_second, 0.5e9);
    ASSERT_NE(report.pair(0, 1), nullptr);
    EXPECT_EQ(report.pair(0, 1)->nominal_gbps, 1);
    EXPECT_EQ(report.pair(0, 1)->from_device, "GPU0");
    EXPECT_GT(report.pair(0, 1)->bytes, 0);
    cluster.links = {};
    EXPECT_TRUE(trace_of(cluster)->topology.empty());
}

// --- the file --------------------------------------------------------------------------------------------

// Two nodes of two devices, and `links` at the end.
std::string file_with(const std::string& links) {
    std::string text = testing::kClusterFile;
    const std::string devices = "devices = 4";
    text.replace(text.find(devices), devices.size(), "nodes = 2\ndevices = 2");
    return text + links;
}
std::string error_of(const std::string& links) {
    try {
        parse_cluster(file_with(links), "c.toml");
    } catch (const ClusterError& error) {
        return error.what();
    }
    return "none";
}

TEST(SimLinks, AreReadFromTheFile) {
    const Cluster cluster = parse_cluster(file_with("[links]\nbandwidth = [[0, 3e9], [2e9, 0]]\n"
                                                    "node_latency = [[0, 1e-4], [2e-4, 0]]\n"),
                                          "c.toml");
    EXPECT_EQ(cluster.links.bandwidth.of(0, 1), 3e9);
    EXPECT_EQ(cluster.links.bandwidth.of(1, 0), 2e9);
    EXPECT_FALSE(cluster.links.latency.known());
    EXPECT_FALSE(cluster.links.node_bandwidth.known());
    EXPECT_EQ(cluster.links.node_latency.of(1, 0), 2e-4);
    EXPECT_EQ(parse_cluster(file_with(""), "c.toml").links, PairLinks());
}

TEST(SimLinks, ErrorsNameFileLineFigureAndRow) {
    EXPECT_THAT(
        error_of("[links]\nbandwidth = 3e9\n"),
        AllOf(StartsWith("c.toml:43: links.bandwidth: this is not a list of rows; give the bytes per second"),
              HasSubstr("2 rows of 2 figures, as cluster.devices says")));
    EXPECT_THAT(error_of("[links]\nbandwidth = [[0, 1e9]]\n"), HasSubstr("links.bandwidth: this has 1 rows"));
    EXPECT_THAT(error_of("[links]\nbandwidth = [[0, 1e9],\n[1e9]]\n"),
                StartsWith("c.toml:44: links.bandwidth: row 2 has 1 figures"));
    EXPECT_THAT(error_of("[links]\nbandwidth = [[0, 1e9],\n1e9]\n"),
                StartsWith("c.toml:44: links.bandwidth: row 2 is not a list"));
    EXPECT_THAT(error_of("[links]\nbandwidth = [[0, 0], [1e9, 0]]\n"),
                StartsWith("c.toml:43: links.bandwidth: figure 2 of row 1 is not a number from 1 to 1e+18"));
    EXPECT_THAT(error_of("[links]\nlatency = [[0, 'x'], [1e-6, 0]]\n"), HasSubstr("figure 2 of row 1"));
    EXPECT_THAT(error_of("[links]\nlatency = [[0, nan], [1e-6, 0]]\n"), HasSubstr("figure 2 of row 1"));
    EXPECT_THAT(error_of("[links]\nlatencies = [[0, 1], [1, 0]]\n"),
                HasSubstr("did you mean links.latency?"));
    EXPECT_THAT(error_of("[links]\nnode_latency = [[0]]\n"),
                HasSubstr("links.node_latency: this has 1 rows"));
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::sim
