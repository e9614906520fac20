// Cost models: files, errors, collectives calculated by hand, and classes of equivalent ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim_testing.h"
#include "trainer/sim/collective_cost.h"

namespace shardscope::trainer::sim {
namespace TEST_FILE {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string error_of(const std::string& toml) {
    try {
        parse_cluster(toml, "c.toml");
    } catch (const ClusterError& error) {
        return error.what();
    }
    return "none";
}

// The text with one line changed, or omitted.
std::string with(const std::string& line, const std::string& instead) {
    std::string text = testing::kClusterFile;
    const auto at = text.find(line);
    EXPECT_NE(at, std::string::npos) << line;
    return text.replace(at, line.size(), instead);
}

TEST(SimCluster, IsReadWithDefaultsForOmittedFigures) {
    const Cluster cluster = parse_cluster(testing::kClusterFile, "c.toml");
    EXPECT_EQ(cluster.nodes, 0);
    EXPECT_EQ(cluster.node_of(9), 2);
    const DeviceModel& device = cluster.device;
    EXPECT_EQ(device.rates(plan::KernelClass::matmul).flops, (std::array<double, 4>{1e12, 1e12, 4e12, 1e12}));
    EXPECT_EQ(parse_cluster(with("bf16 = 4e12", "fp16 = 8e12"), "c.toml")
                  .device.rates(plan::KernelClass::matmul)
                  .flops,
              (std::array<double, 4>{1e12, 1e12, 1e12, 8e12}));  // a V100 has no bf16
    EXPECT_EQ(device.rates(plan::KernelClass::attention).flops,
              device.rates(plan::KernelClass::matmul).flops);
    EXPECT_EQ(device.rates(plan::KernelClass::optimizer).flops[0], 2e11);
    EXPECT_EQ(device.rates(plan::KernelClass::copy).bandwidth_share.at(123), 0.8);
    const Curve& curve = device.rates(plan::KernelClass::attention).efficiency;
    EXPECT_EQ(curve.at(1), 0.1);
    EXPECT_NEAR(curve.at(1e4), 0.3, 1e-12);
    EXPECT_EQ(curve.at(1e9), 0.5);
    EXPECT_EQ(Curve{}.at(7), 1);
    EXPECT_EQ(cluster.collectives.across, Algorithm::tree);
    EXPECT_TRUE(cluster.inter.shared);
    EXPECT_EQ(cluster.disk.read, 3e9);
    EXPECT_EQ(cluster.disk.capacity, 0);
}

TEST(SimCluster, HasTheDisksOfANode) {
    const DiskModel disk =
        parse_cluster(with("[collectives]", "[disk]\nread = 25e9\ncapacity = 15e12\n[collectives]"), "c.toml")
            .disk;
    EXPECT_EQ(disk.read, 25e9);
    EXPECT_EQ(disk.write, 1.5e9) << "left out";
    EXPECT_EQ(disk.capacity, 15e12);
    EXPECT_THAT(error_of(with("[collectives]", "[disk]\nwrite = 0\n[collectives]")),
                StartsWith("c.toml:31: disk.write: "));
    for (const std::string& name : shipped_clusters()) {
        const Cluster cluster = load_cluster(name);
        EXPECT_GE(cluster.disk.read, cluster.disk.write) << name;
    }
}

TEST(SimCluster, HasFiguresOfSingleKernels) {
    const DeviceModel device = parse_cluster(with("[host]", R"([kernels.linear_backward_weight]
fp32 = 5e11
[kernels.gelu_forward]
bandwidth_share = 0.25
[host])"),
                                             "c.toml")
                                   .device;
    EXPECT_EQ(device.rates(plan::Kernel::linear_backward_weight).flops[0], 5e11);
    EXPECT_EQ(device.rates(plan::Kernel::linear_backward_weight).efficiency.at(1e9), 0.5);  // as in its class
    EXPECT_EQ(device.rates(plan::Kernel::linear_forward).flops[0], 1e12);
    EXPECT_EQ(device.rates(plan::Kernel::gelu_forward).bandwidth_share.at(1), 0.25);
    EXPECT_EQ(device.rates(plan::Kernel::gelu_forward).flops[0], 2e11);
    EXPECT_EQ(device.rates(plan::Kernel::gelu_backward).bandwidth_share.at(1), 0.8);
    for (int k = 1; k <= static_cast<int>(plan::Kernel::novograd); ++k)
        EXPECT_FALSE(kernel_info(static_cast<plan::Kernel>(k)).name.empty()) << k;
    EXPECT_EQ(kernel_info(plan::Kernel::adamw).name, "adamw");
    EXPECT_THAT(error_of(with("[host]", "[kernels.gelu_forwards]\nfp32 = 1e9\n[host]")),
                HasSubstr("there is no figure kernels.gelu_forwards.fp32"));
}

TEST(SimCluster, ReadsOptionalFigures) {
    const Cluster plain = parse_cluster(testing::kClusterFile, "c.toml");
    EXPECT_EQ(plain.host.wake, 0);
    EXPECT_EQ(plain.device.wake, 0);
    std::string text =
        with("type = \"gpu\"", "type = \"cpu\"\ncores = 4\nbusy_share = [[1, 1], [4, 0.5]]\nwake = 3e-6");
    text += "bandwidth_share = 0.5\n";
    EXPECT_THAT(error_of(text), "none");
    const Cluster cluster = parse_cluster(text, "c.toml");
    EXPECT_EQ(cluster.device.busy_share.at(4), 0.5);
    EXPECT_EQ(cluster.device.wake, 3e-6);
    EXPECT_EQ(cluster.inter.bandwidth_share.at(1), 0.5);
    EXPECT_EQ(cluster.intra.bandwidth_share.at(1), 1);
}

TEST(SimCluster, ErrorsNameFileLineAndFigure) {
    EXPECT_EQ(error_of(testing::kClusterFile), "none");
    EXPECT_EQ(error_of(with("memory = 1e9\n", "")),
              "c.toml:4: device.memory: the figure is missing; give the bytes of a device's memory");
    EXPECT_EQ(error_of(with("memory = 1e9", "memory = 0")),
              "c.toml:7: device.memory: 0 is impossible; give the bytes of a device's memory, above 0");
    EXPECT_EQ(error_of(with("memory = 1e9", "memory = 'much'")),
              "c.toml:7: device.memory: this is not a number; give the bytes of a device's memory");
    EXPECT_THAT(error_of(with("memory = 1e9", "memory = nan")),
                StartsWith("c.toml:7: device.memory: nan is impossible"));
    EXPECT_THAT(error_of(with("launch = 1e-6", "launch = -1")),
                StartsWith("c.toml:19: host.launch: -1 is impossible"));
    EXPECT_THAT(error_of(with("launch = 1e-6", "launch = 1000")), HasSubstr("0 to 10"));
    EXPECT_THAT(error_of(with("devices = 4", "devices = 4.5")), HasSubstr("4.5 is not a whole number"));
    EXPECT_THAT(error_of(with("inside = \"ring\"", "inside = \"star\"")),
                StartsWith("c.toml:32: collectives.inside: \"star\" is not known; use \"direct\" or"));
    EXPECT_THAT(error_of(with("launch = 1e-6", "launch = 1e-6\nlanch = 1")),
                StartsWith("c.toml:20: there is no figure host.lanch; did you mean host.launch?"));
    EXPECT_THAT(error_of("cluster = 1"), StartsWith("c.toml:1: cluster is a section; "));
    EXPECT_THAT(error_of("[cluster"), StartsWith("c.toml:1: not TOML: "));
    EXPECT_THAT(
        error_of(with("efficiency = [[1e3, 0.1], [1e5, 0.5]]", "efficiency = [[1e3, 0.1], [1e2, 0.5]]")),
        HasSubstr("the size 100 does not rise"));
    EXPECT_THAT(error_of(with("efficiency = [[1e3, 0.1], [1e5, 0.5]]", "efficiency = 1.5")),
                HasSubstr("the share 1.5 is impossible"));
    EXPECT_THAT(error_of(with("efficiency = [[1e3, 0.1], [1e5, 0.5]]", "efficiency = [1, 2]")),
                HasSubstr("this is not a point"));
    EXPECT_THAT(error_of(with("type = \"gpu\"", "type = \"gpu\"\ncores = 4")), HasSubstr("omit the figure"));
    EXPECT_THAT(error_of(with("type = \"gpu\"", "type = \"cpu\"")),
                HasSubstr("device.cores: the figure is missing"));
}

TEST(SimCluster, ShippedModelsAreCompleteAndFoundByName) {
    const std::vector<std::string> names = shipped_clusters();
    EXPECT_EQ(names, (std::vector<std::string>{"a100", "h100_ib", "h200_nvlink", "laptop", "v100_pcie"}));
    for (const std::string& name : names) EXPECT_EQ(load_cluster(name).name, name);
    EXPECT_EQ(load_cluster("laptop").device.type, DeviceType::cpu);
    const auto error = [](const std::string& name) -> std::string {
        try {
            load_cluster(name);
        } catch (const ClusterError& refused) {
            return refused.what();
        }
        return "none";
    };
    EXPECT_THAT(error("h200"), StartsWith("sim.cluster: there is no cost model \"h200\"; "));
    EXPECT_THAT(error("lapotp"), HasSubstr("did you mean laptop?"));
    EXPECT_THAT(error("none/of/these.toml"), HasSubstr("cannot be read"));
}

// --- collectives -----------------------------------------------------------------------------------------

Cluster with_algorithms(Algorithm inside, Algorithm across) {
    Cluster cluster = testing::round_cluster();
    cluster.collectives = {1e-6, inside, across};
    cluster.intra = {1e-5, 1e9, false};  // a, b
    cluster.inter = {1e-4, 1e8, false};  // A; B is this times the group's share
    return cluster;
}

// 8 ranks of a node, 8000 bytes: 7/8 of them at 1e9 bytes per second take 7 us.
TEST(SimCollectives, InsideANode) {
    const Spread eight{8, 1, 8, 1, 0};
    const auto us = [&](Algorithm algorithm, plan::Operation operation) {
        return collective_seconds(with_algorithms(algorithm, algorithm), eight, operation, 8'000) * 1e6;
    };
    EXPECT_NEAR(us(Algorithm::direct, plan::Operation::all_gather), 1 + 10 + 7, 1e-9);
    EXPECT_NEAR(us(Algorithm::direct, plan::Operation::all_reduce), 1 + 2 * (10 + 7), 1e-9);
    EXPECT_NEAR(us(Algorithm::ring, plan::Operation::all_gather), 1 + 70 + 7, 1e-9);
    EXPECT_NEAR(us(Algorithm::ring, plan::Operation::reduce_scatter), 1 + 70 + 7, 1e-9);
    EXPECT_NEAR(us(Algorithm::ring, plan::Operation::all_reduce), 1 + 140 + 14, 1e-9);
    EXPECT_NEAR(us(Algorithm::ring, plan::Operation::broadcast), 1 + 70 + 8, 1e-9);
    EXPECT_NEAR(us(Algorithm::ring, plan::Operation::barrier), 1 + 140, 1e-9);
    EXPECT_NEAR(us(Algorithm::tree, plan::Operation::all_gather), 1 + 30 + 7, 1e-9);
    EXPECT_NEAR(us(Algorithm::tree, plan::Operation::all_reduce), 1 + 60 + 16, 1e-9);
    EXPECT_NEAR(us(Algorithm::tree, plan::Operation::broadcast), 1 + 30 + 8, 1e-9);
    // A node's links at half their bandwidth; a group of one only copies, reading and writing at 1e12 bytes
    // per second.
    EXPECT_NEAR(collective_seconds(with_algorithms(Algorithm::ring, Algorithm::ring), {8, 1, 8, 0.5, 0},
                                   plan::Operation::all_gather, 8'000),
                85e-6, 1e-12);
    EXPECT_NEAR(collective_seconds(with_algorithms(Algorithm::ring, Algorithm::ring), {},
                                   plan::Operation::all_gather, 500'000'000),
                1.001e-3, 1e-12);
}

// Threads that move each other's memory: 4 members, 8000 bytes, 1e9 bytes per second read and written.
TEST(SimCollectives, AmongThreads) {
    Cluster cluster = with_algorithms(Algorithm::shared_memory, Algorithm::ring);
    const auto us = [&](plan::Operation operation, int members) {
        return collective_seconds(cluster, {members, 1, members, 1, 0}, operation, 8'000) * 1e6;
    };
    EXPECT_NEAR(us(plan::Operation::all_gather, 4), 1 + 10 + 16, 1e-9);  // all are read, all are written
    EXPECT_NEAR(us(plan::Operation::reduce_scatter, 4), 1 + 10 + 10,
                1e-9);  // all are read, a piece is written
    // A piece of every input is read, and written to every output.
    EXPECT_NEAR(us(plan::Operation::all_reduce, 4), 1 + 10 + 16, 1e-9);
    EXPECT_NEAR(us(plan::Operation::broadcast, 4), 1 + 10 + 16, 1e-9);
    EXPECT_NEAR(us(plan::Operation::all_gather, 1), 1 + 10 + 16, 1e-9);
    cluster.intra.bandwidth_share.points = {{8'000, 0.5}};
    EXPECT_NEAR(us(plan::Operation::all_gather, 4), 1 + 10 + 32, 1e-9);
}

// 16 ranks on 2 nodes, 16000 bytes. Each node's 8 adapters together: 8e8 bytes per second, less than the 1e9
// inside.
TEST(SimCollectives, AcrossNodes) {
    const Spread two{16, 2, 8, 1, 8};
    const auto us = [&](Algorithm algorithm, plan::Operation operation) {
        return collective_seconds(with_algorithms(Algorithm::ring, algorithm), two, operation, 16'000) * 1e6;
    };
    // 14 steps inside, 1 between nodes; 15000 bytes at 8e8.
    EXPECT_NEAR(us(Algorithm::ring, plan::Operation::all_gather), 1 + 140 + 100 + 18.75, 1e-9);
    EXPECT_NEAR(us(Algorithm::tree, plan::Operation::all_gather), 1 + 30 + 100 + 18.75, 1e-9);
    EXPECT_NEAR(us(Algorithm::tree, plan::Operation::all_reduce), 1 + 2 * 130 + 2 * 20, 1e-9);
    // Between nodes half of the bytes at 8e8 (each of 8 devices an eighth), inside 7/8 of them at 1e9.
    EXPECT_NEAR(us(Algorithm::hierarchical, plan::Operation::all_gather), 1 + 100 + 10 + 70 + 14, 1e-9);
    EXPECT_NEAR(us(Algorithm::hierarchical, plan::Operation::all_reduce), 1 + 2 * (100 + 10 + 70 + 14), 1e-9);
    EXPECT_NEAR(us(Algorithm::hierarchical, plan::Operation::broadcast), 1 + 100 + 20 + 30 + 16, 1e-9);
    EXPECT_NEAR(us(Algorithm::direct, plan::Operation::all_gather), 1 + 100 + 18.75, 1e-9);
}

// --- placement -------------------------------------------------------------------------------------------

TEST(SimRanks, SpreadCountsNodesAndTheLinksThatFallToAGroup) {
    Cluster cluster = testing::round_cluster(8);
    const plan::Mesh mesh{64, 8};
    EXPECT_EQ(spread_of(mesh, plan::Group::world, 0, cluster, {}), (Spread{64, 8, 8, 1, 8}));
    EXPECT_EQ(spread_of(mesh, plan::Group::shard, 9, cluster, {}), (Spread{8, 1, 8, 1, 0}));
    EXPECT_EQ(spread_of(mesh, plan::Group::replicate, 9, cluster, {}), (Spread{8, 8, 1, 1, 1}));
    cluster.inter.shared = true;  // one link for the 8 ranks of a node
    EXPECT_EQ(spread_of(mesh, plan::Group::world, 0, cluster, {}).across, 1);
    EXPECT_EQ(spread_of(mesh, plan::Group::replicate, 9, cluster, {}).across, 0.125);
    // A single communicator, on any number of nodes.
    EXPECT_EQ(spread_of({12, 12}, plan::Group::world, 0, cluster, {}), (Spread{12, 2, 8, 1, 1}));
    const std::vector<job::SlowLink> slow = {{true, 1, 0.5}, {false, -1, 0.25}};
    EXPECT_EQ(spread_of(mesh, plan::Group::world, 0, cluster, slow), (Spread{64, 8, 8, 0.25, 0.5}));
}

TEST(SimRanks, EqualOnesFormOneClass) {
    const Cluster cluster = testing::round_cluster(8);
    EXPECT_EQ(classify({1024, 1024}, cluster, {}, {}).classes.size(), 1u);
    EXPECT_EQ(classify({1024, 8}, cluster, {}, {}).classes.size(), 1u);
    EXPECT_EQ(classify({12, 12}, cluster, {}, {}).classes.size(),
              1u);  // one communicator, whatever the number of nodes

    // One rank is slow: it is one class, and all others, which share a communicator with it, are the other.
    const RankClasses world = classify({1024, 1024}, cluster, {{3, 2}}, {});
    ASSERT_EQ(world.classes.size(), 2u);
    EXPECT_EQ(world.classes[0].ranks, 1023);
    EXPECT_EQ(world.classes[1].representative, 3);
    EXPECT_EQ(world.classes[1].slowdown, 2);
    EXPECT_EQ(world.communicators[static_cast<std::size_t>(world.classes[0].communicators[0])].ranks, 1024);

    // In a mesh: the slow rank, the other ranks of its shard group, those of its replication group, and the
    // rest.
    const RankClasses mesh = classify({1024, 8}, cluster, {{3, 2}}, {});
    ASSERT_EQ(mesh.classes.size(), 4u);
    std::map<int, int> sizes;
    for (const int c : mesh.class_of) ++sizes[c];
    EXPECT_EQ(sizes[mesh.class_of[3]], 1);
    EXPECT_EQ(sizes[mesh.class_of[0]], 7);
    EXPECT_EQ(sizes[mesh.class_of[11]], 127);
    EXPECT_EQ(sizes[mesh.class_of[8]], 1024 - 1 - 7 - 127);

    // One node is slow: its shard groups differ from the others'.
    EXPECT_EQ(classify({64, 8}, cluster, {}, {{false, 2, 0.5}}).classes.size(), 2u);
    EXPECT_EQ(classify({64, 64}, cluster, {}, {{false, 2, 0.5}}).classes.size(), 1u);

    // A class for each place of a pipeline, each with a channel to and from both neighbours.
    const RankClasses stages = classify({1024, 32, 8, 4}, cluster, {}, {});
    EXPECT_EQ(stages.classes.size(), 4u);
    for (const RankClass& c : stages.classes) {
        EXPECT_EQ(c.ranks, 256);
        EXPECT_EQ(c.channels.size(), 4u);
        for (const auto& [channel, communicator] : c.channels)
            EXPECT_EQ(stages.communicators[static_cast<std::size_t>(communicator)].ranks, 512);
    }
}

TEST(SimRanks, AreRefusedIfTheyDoNotFit) {
    Cluster cluster = testing::round_cluster(4);
    cluster.nodes = 2;
    testing::HandPlan plan;
    plan.kernel("a", 1);
    const auto error = [&](int ranks, const SimOptions& options = {}) -> std::string {
        try {
            simulate(testing::script_of(plan, {ranks, ranks}), cluster, options);
        } catch (const ClusterError& refused) {
            return refused.what();
        }
        return "none";
    };
    EXPECT_EQ(error(8), "none");
    EXPECT_EQ(error(9),
              "run.ranks: 9 ranks do not fit the 8 devices of the cluster round (2 nodes of 4); use fewer, "
              "or another sim.cluster");
    SimOptions slow;
    slow.slow_links = {{true, 1, 0.5}};
    EXPECT_EQ(error(8, slow), "none");
    EXPECT_THAT(error(4, slow),
                StartsWith("sim.slow_link: there is no node 1; the 4 ranks fill nodes 0 to 0"));
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::sim
