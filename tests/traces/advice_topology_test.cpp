// Advice about where ranks stand: each rule once with a trace that shows its evidence, and with ones that do
// not.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"
#include "tests/traces/topology_tables.h"
#include "traces/analysis/advice/advice.h"
#include "traces/analysis/topology/better_ring.h"
#include "traces/analysis/topology/pair_traffic.h"
#include "traces/import/topology/topology_text.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Run {
    std::string links = std::string(kFourGpus), access;  // texts of nvidia-smi topo
    std::vector<std::pair<std::string, std::string>> facts;
    std::vector<std::string> cpus = {"", "", "", ""};  // of each rank
    int ranks_per_host = 4;
};

// Four ranks; a step of 100 us with an all-gather of 4 MiB by all.
AdviceReport advice_of(const Run& run) {
    RunBuilder builder(0);
    for (int r = 0; r < 4; ++r) {
        const std::string host = "node" + std::to_string(r / run.ranks_per_host);
        builder.sink().add(schema::RankRow{.rank = r,
                                           .device = r,
                                           .global_pid = RunBuilder::pid(r),
                                           .global_tid = RunBuilder::tid(r),
                                           .host = host,
                                           .device_name = "GPU",
                                           .local_rank = r % run.ranks_per_host,
                                           .cpus = run.cpus[static_cast<std::size_t>(r)]});
        builder.sink().add(schema::ThreadRow{.global_tid = RunBuilder::tid(r), .name = "rank", .rank = r});
        builder.step(r, 1, 0, 100'000);
        builder.kernel(r, 1'000, 50'000, 10);
        builder.collective(r, 50'000, 99'000,
                           {.bytes = 4 << 20, .group = 1, .group_size = 4, .launched = 20});
        if (r % run.ranks_per_host != 0) continue;
        std::string text = run.links;
        if (!run.access.empty()) text += "\n$ nvidia-smi topo -p2p r\n" + run.access;
        const importer::Topology topology = importer::read_topology_text(text, "topo.txt", host);
        for (const schema::DeviceRow& row : topology.devices) builder.sink().add(row);
        for (const schema::TopologyRow& row : topology.topology) builder.sink().add(row);
    }
    for (const auto& [key, value] : run.facts) builder.sink().add(schema::RunInfoRow{key, value});
    return advice(*builder.take());
}

const Finding* find(const AdviceReport& report, std::string_view id) {
    const auto at = std::find_if(report.findings.begin(), report.findings.end(),
                                 [id](const Finding& f) { return f.id == id; });
    return at == report.findings.end() ? nullptr : &*at;
}

std::string replaced(std::string_view text, std::string_view what, std::string_view by) {
    std::string changed(text);
    for (std::size_t at = 0; (at = changed.find(what, at)) != changed.npos; at += by.size())
        changed.replace(at, what.size(), by);
    return changed;
}

// The ring 0-1-2-3-0 goes over the pairs 1-2 and 3-0, which have no access: 3 MiB each.
TEST(AdviceTopology, FindsPairsWithoutThePeerAccessThatOthersHave) {
    const AdviceReport report = advice_of({.access = std::string(kNeighbours)});
    const Finding* finding = find(report, "p2p-missing");
    ASSERT_NE(finding, nullptr);
    EXPECT_THAT(
        finding->what,
        AllOf(
            HasSubstr("Rank 1 (GPU1) and rank 2 (GPU2) of \"node0\" exchange data without peer access (CNS: "
                      "not supported by the chipset), while GPU0 and GPU1 have it."),
            HasSubstr("With all such pairs (2) that is 6.0 MiB per step.")));
    EXPECT_EQ(finding->figures[0].value, 2);
    EXPECT_EQ(finding->figures[1].value, 6 << 20);
    EXPECT_EQ(finding->figures[2].value, 49);  // us
    EXPECT_EQ(finding->weight, FindingWeight::notable);
    EXPECT_THAT(finding->change, HasSubstr("order the job's GPUs"));
    EXPECT_EQ(find(advice_of({.access = std::string(kAllReach)}), "p2p-missing"), nullptr);
    EXPECT_EQ(find(advice_of({}), "p2p-missing"), nullptr);
}

TEST(AdviceTopology, SaysNothingOfAccessThatTheHardwareHasNowhere) {
    const std::string none = replaced(kNeighbours, "\tOK", "\tGNS");
    const std::string far = replaced(kFourGpus, "NV4", "PHB");
    EXPECT_EQ(find(advice_of({.links = far, .access = none}), "p2p-missing"), nullptr);
    // But GPUs that NVLink joins could have it, as those behind one PCIe switch.
    const Finding* finding = nullptr;
    const AdviceReport joined = advice_of({.access = none});
    finding = find(joined, "p2p-missing");
    ASSERT_NE(finding, nullptr);
    EXPECT_THAT(finding->what,
                AllOf(HasSubstr("Rank 0 (GPU0) and rank 1 (GPU1)"), HasSubstr("joined through 4 NVLinks")));
    EXPECT_THAT(finding->change, HasSubstr("IOMMU"));
    const AdviceReport off = advice_of({.links = far, .access = replaced(none, "GNS", "DR")});
    finding = find(off, "p2p-missing");
    ASSERT_NE(finding, nullptr);
    EXPECT_THAT(finding->change, HasSubstr("driver's settings"));
}

TEST(AdviceTopology, FindsARankThatMayNotRunNextToItsGpu) {
    const AdviceReport report = advice_of({.cpus = {"0-15", "0,1", "0-15", "40-47"}});
    const Finding* finding = find(report, "cross-numa");
    ASSERT_NE(finding, nullptr);
    EXPECT_EQ(finding->what,
              "Rank 2 of \"node0\" may run on the processors 0-15 alone, and its GPU GPU2 is next to NUMA "
              "node 1. So it "
              "is with ranks 2,3.");
    EXPECT_THAT(finding->pytorch, HasSubstr("numactl --cpunodebind=1"));
    EXPECT_EQ(find(advice_of({.cpus = {"0-15", "0-63", "16", "48-63"}}), "cross-numa"), nullptr);
    EXPECT_EQ(find(advice_of({}), "cross-numa"), nullptr);
}

TEST(AdviceTopology, FollowsARingOnlyIfItIsKnown) {
    const std::vector<std::pair<std::string, std::string>> across = {{"nccl.rings.node0", "0,2,1,3"}};
    // NVLinks form the ring 0-1-3-2-0, and NCCL's takes two diagonals.
    const std::string square =
        "\tGPU0\tGPU1\tGPU2\tGPU3\n"
        "GPU0\tX\tNV4\tNV4\tSYS\n"
        "GPU1\tNV4\tX\tSYS\tNV4\n"
        "GPU2\tNV4\tSYS\tX\tNV4\n"
        "GPU3\tSYS\tNV4\tNV4\tX\n";
    const AdviceReport report = advice_of({.links = square, .facts = across});
    const Finding* finding = find(report, "ring-over-slow-link");
    ASSERT_NE(finding, nullptr);
    EXPECT_EQ(finding->what,
              "A ring of \"node0\" goes GPU0-GPU2-GPU1-GPU3-GPU0, from GPU2 to GPU1 through the link between "
              "NUMA nodes "
              "(SYS), although GPU0-GPU1-GPU3-GPU2-GPU0 avoids such links.");
    EXPECT_EQ(finding->pytorch, "CUDA_VISIBLE_DEVICES=0,1,3,2");
    // The order of ranks is a simulation's ring, and not NCCL's.
    EXPECT_EQ(find(advice_of({.links = square}), "ring-over-slow-link"), nullptr);
    EXPECT_NE(find(advice_of({.links = square, .facts = {{"sim.cluster", "c.toml"}}}), "ring-over-slow-link"),
              nullptr);
    // A good ring; and two sockets, which every ring crosses.
    EXPECT_EQ(
        find(advice_of({.links = square, .facts = {{"nccl.rings.node0", "0,1,3,2"}}}), "ring-over-slow-link"),
        nullptr);
    EXPECT_EQ(find(advice_of({.facts = across}), "ring-over-slow-link"), nullptr);
}

// --- the search --------------------------------------------------------------------------------------------

HostTopology ring_of(int n) {  // neighbours have NVLink, all others PHB
    HostTopology host;
    for (int i = 0; i < n; ++i) {
        TopologyNode node;
        node.label = "GPU" + std::to_string(i);
        host.nodes.push_back(node);
    }
    for (std::size_t a = 0; a < host.nodes.size(); ++a)
        for (std::size_t b = a + 1; b < host.nodes.size(); ++b) {
            const bool next = b == a + 1 || (a == 0 && b + 1 == host.nodes.size());
            host.links[{a, b}].link = next ? "NV1" : "PHB";
        }
    return host;
}

TEST(AdviceTopology, TheSearchFindsAnOrderOfNearLinksOrNone) {
    const HostTopology host = ring_of(6);
    EXPECT_EQ(farthest(host, {0, 1, 2, 3, 4, 5}, true), 0);
    EXPECT_EQ(farthest(host, {0, 2, 4, 1, 3, 5}, true), 3);
    EXPECT_EQ(farthest(host, {0, 1, 2}, false), 0);
    EXPECT_EQ(farthest(host, {0, 1, 2}, true), 3);
    const auto order = order_nearer_than(host, {0, 2, 4, 1, 3, 5}, 3, true);
    ASSERT_TRUE(order);
    EXPECT_EQ(order->front(), 0u);
    EXPECT_EQ(farthest(host, *order, true), 0);
    EXPECT_FALSE(order_nearer_than(host, {0, 1, 2}, 3, true));  // 2 and 0 are no neighbours
    EXPECT_TRUE(order_nearer_than(host, {1, 0, 2}, 3, false));  // 0-1-2 is a way
    EXPECT_FALSE(order_nearer_than(host, {0, 2}, 3, false));
    EXPECT_FALSE(order_nearer_than(host, {0}, 3, true));
    // The largest that is searched.
    const HostTopology large = ring_of(static_cast<int>(kMostOfRing));
    std::vector<std::size_t> nodes;
    for (std::size_t i = 0; i < kMostOfRing; ++i) nodes.push_back(i * 7 % kMostOfRing);
    const auto found = order_nearer_than(large, nodes, 3, true);
    ASSERT_TRUE(found);
    EXPECT_EQ(farthest(large, *found, true), 0);
    nodes.push_back(0);
    EXPECT_FALSE(order_nearer_than(large, nodes, 3, true));
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
