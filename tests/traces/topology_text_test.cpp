// Pasted tables of nvidia-smi topo: devices, links and peer access of them, what is not kept, and damaged
// text.
#include "traces/import/topology/topology_text.h"

#include <algorithm>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/outcome.h"
#include "tests/traces/topology_tables.h"

namespace shardscope::traces::importer {
namespace TEST_FILE {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

Topology read(std::string_view text) {
    return read_topology_text(text, "topo.txt", "node0");
}
std::string refusal(const std::string& text) {
    return refusal_of([&] { read(text); });
}
std::string joined(std::initializer_list<std::string_view> parts) {
    std::string text;
    for (const std::string_view part : parts) text += std::string(part) + "\n";
    return text;
}
const schema::TopologyRow& pair(const Topology& topology, std::string_view from, std::string_view to) {
    const auto at = std::find_if(topology.topology.begin(), topology.topology.end(),
                                 [&](const auto& row) { return row.from == from && row.to == to; });
    EXPECT_NE(at, topology.topology.end()) << from << " " << to;
    static const schema::TopologyRow none;
    return at == topology.topology.end() ? none : *at;
}

TEST(TopologyText, HasDevicesAndEachPairOnce) {
    const Topology topology = read(kFourGpus);
    ASSERT_THAT(topology.devices, SizeIs(6));
    const schema::DeviceRow &gpu3 = topology.devices[3], &nic1 = topology.devices[5];
    EXPECT_EQ(gpu3.host, "node0");
    EXPECT_EQ(gpu3.kind, "gpu");
    EXPECT_EQ(gpu3.number, 3);
    EXPECT_EQ(gpu3.cpus, "16-31,48-63");
    EXPECT_EQ(gpu3.numa, 1);
    EXPECT_EQ(nic1.kind, "infiniband");
    EXPECT_EQ(nic1.name, "mlx5_1");
    EXPECT_EQ(nic1.numa, -1);
    EXPECT_THAT(topology.topology, SizeIs(15));  // 6 · 5 / 2
    EXPECT_EQ(pair(topology, "GPU0", "GPU1").link, "NV4");
    EXPECT_EQ(pair(topology, "GPU0", "GPU1").lanes, 4);
    EXPECT_EQ(pair(topology, "GPU0", "GPU1").source, "nvidia-smi");
    EXPECT_EQ(pair(topology, "GPU3", "NIC1").link, "NODE");
    EXPECT_EQ(pair(topology, "GPU3", "NIC1").lanes, -1);
    EXPECT_EQ(pair(topology, "GPU0", "GPU1").read, "");
    EXPECT_THAT(topology.notes, IsEmpty());
}

TEST(TopologyText, ReadsEveryKindOfPeerAccessOfOneFile) {
    const Topology topology =
        read(joined({"$ nvidia-smi topo -m", kFourGpus, "$ nvidia-smi topo -p2p r", kNeighbours,
                     "$ nvidia-smi topo -p2p w", kAllReach, "$ nvidia-smi topo -p2p n",
                     with(kNeighbours, "OK", "NS"), "$ nvidia-smi topo -p2p a", kNeighbours}));
    const schema::TopologyRow& neighbours = pair(topology, "GPU2", "GPU3");
    EXPECT_EQ(neighbours.link, "NV4");
    EXPECT_EQ(neighbours.read, "OK");
    EXPECT_EQ(neighbours.write, "OK");
    EXPECT_EQ(neighbours.nvlink, "OK");
    EXPECT_EQ(neighbours.atomics, "OK");
    EXPECT_EQ(pair(topology, "GPU0", "GPU2").read, "CNS");
    EXPECT_EQ(pair(topology, "GPU0", "GPU2").write, "OK");
    // One direction differs: both are kept.
    EXPECT_EQ(pair(topology, "GPU0", "GPU1").nvlink, "NS");
    EXPECT_EQ(pair(topology, "GPU1", "GPU0").nvlink, "OK");
    EXPECT_THAT(topology.notes, IsEmpty());
}

TEST(TopologyText, TakesATableOfPeerAccessWithoutItsCommandForReadsAndSaysSo) {
    const Topology topology = read(kNeighbours);
    EXPECT_EQ(pair(topology, "GPU0", "GPU1").read, "OK");
    EXPECT_EQ(pair(topology, "GPU0", "GPU1").write, "");
    EXPECT_THAT(topology.notes, ElementsAre(AllOf(StartsWith("topo.txt: "), HasSubstr("taken for reads"))));
    EXPECT_THAT(refusal(joined({kNeighbours, kAllReach})),
                AllOf(StartsWith("topo.txt, line 13: "), HasSubstr("\"nvidia-smi topo -p2p w\" before it")));
}

TEST(TopologyText, KnowsOlderDriversWords) {
    const Topology topology = read(
        "\tGPU0\tGPU1\tmlx5_0\tCPU Affinity\n"
        "GPU0\t X \tSOC\tPHB\t0-9\n"
        "GPU1\tSOC\t X \tSOC\t10-19\n"
        "mlx5_0\tPHB\tSOC\t X \t\n");
    EXPECT_EQ(pair(topology, "GPU0", "GPU1").link, "SYS");
    EXPECT_EQ(pair(topology, "GPU0", "NIC0").link, "PHB");
    ASSERT_THAT(topology.devices, SizeIs(3));
    EXPECT_EQ(topology.devices[2].name, "mlx5_0");
    EXPECT_EQ(topology.devices[1].cpus, "10-19");
    EXPECT_EQ(topology.devices[1].numa, -1);
}

TEST(TopologyText, ReadsBlanksInsteadOfTabsAndLinesOfWindows) {
    std::string text(kFourGpus);
    std::replace(text.begin(), text.end(), '\t', ' ');
    for (std::size_t at = 0; (at = text.find('\n', at)) != text.npos; at += 2) text.insert(at, "\r");
    const Topology topology = read(text);
    EXPECT_EQ(pair(topology, "GPU1", "NIC0").link, "PXB");
    EXPECT_EQ(topology.devices[0].cpus, "0-15,32-47");
}

TEST(TopologyText, LeavesOutPairsThatAreNotKnown) {
    const Topology topology = read("\tGPU0\tGPU1\tNIC0\nGPU0\tX\t-\tPIX\nGPU1\t-\tX\t-\nNIC0\tPIX\t-\tX\n");
    ASSERT_THAT(topology.topology, SizeIs(1));
    EXPECT_EQ(topology.topology[0].link, "PIX");
}

TEST(TopologyText, BeginsAnotherHostWhereALineNamesIt) {
    const Topology topology = read(joined({"Host node7", kNeighbours, "Host node8", kAllReach}));
    ASSERT_THAT(topology.topology, SizeIs(12));
    EXPECT_EQ(topology.topology.front().host, "node7");
    EXPECT_EQ(topology.topology.back().to_host, "node8");
    EXPECT_THAT(refusal(joined({"Host node7", kNeighbours, "Host node7", kAllReach})),
                HasSubstr("host \"node7\" begins a second time"));
}

TEST(TopologyText, SaysWhatItCannotKeep) {
    EXPECT_THAT(read(with(kFourGpus, "0-15,32-47\t0\t\tN/A", "0-15,32-47\t0-1\t\t2")).notes,
                ElementsAre(HasSubstr("several NUMA nodes"), HasSubstr("GPU NUMA ID")));
    EXPECT_THAT(read(joined({"nvidia-smi topo -p2p p", kAllReach})).notes, ElementsAre(HasSubstr("-p2p p")));
    EXPECT_THAT(read(joined({"nvidia-smi topo -p2p p", kAllReach})).topology, IsEmpty());
}

TEST(TopologyText, OneSentenceNamesTheDamagedLine) {
    EXPECT_THAT(refusal("Hello\n"),
                AllOf(StartsWith("topo.txt has no table"), HasSubstr("paste the whole output")));
    EXPECT_THAT(refusal(""), StartsWith("topo.txt has no table"));
    EXPECT_THAT(
        refusal(with(kFourGpus, "GPU1\tNV4\t X \tSYS", "GPU1\tNV4\tSYS\tSYS")),
        AllOf(StartsWith("topo.txt, line 3: "), HasSubstr("\"SYS\" is between GPU1 and GPU1, where X is")));
    EXPECT_THAT(refusal(with(kFourGpus, "\tSYS\tPIX", "\tSYX\tPIX")),
                AllOf(StartsWith("topo.txt, line 2: "), HasSubstr("\"SYX\" is neither a link")));
    EXPECT_THAT(refusal(with(kFourGpus, "GPU2\tSYS", "GPU7\tSYS")),
                AllOf(StartsWith("topo.txt, line 4: "), HasSubstr("where the row of GPU2 should be")));
    EXPECT_THAT(refusal("\tGPU0\tGPU1\nGPU0\tX\n"), HasSubstr("line 2: the row of GPU0 has 1 of 2 cells"));
    EXPECT_THAT(refusal("\tGPU0\tGPU1\nGPU0\tX\tOK\n\n"),
                HasSubstr("line 3: the table that begins in line 1 has 1 of 2"));
    EXPECT_THAT(refusal("\tGPU0\tGPU1\nGPU0\tX\tOK\nGPU1\tOK\tX\nGPU2\tOK\tOK\n"),
                HasSubstr("line 4: the table has a row"));
    EXPECT_THAT(refusal("\tGPU0\tGPU0\nGPU0\tX\tOK\nGPU0\tOK\tX\n"), HasSubstr("\"GPU0\" is twice"));
    EXPECT_THAT(refusal("\tGPU0\tGPU1\nGPU0\tX\tOK\nGPU1\tPIX\tX\n"),
                HasSubstr("line 3: \"PIX\" is in a table of"));
    EXPECT_THAT(refusal(with(kFourGpus, "16-31,48-63", "all")),
                HasSubstr("\"all\" is not a list of processors"));
    EXPECT_THAT(refusal(with(kFourGpus, "\t0\t\tN/A", "\tzero\t\tN/A")),
                HasSubstr("\"zero\" is not a NUMA node"));
    EXPECT_THAT(refusal(joined({kFourGpus, kFourGpus})), HasSubstr("second table of links of one host"));
    std::string head;
    for (int i = 0; i < 300; ++i) head += " GPU" + std::to_string(i);
    EXPECT_THAT(refusal(head), HasSubstr("300 devices"));
}

TEST(TopologyText, IsRecognizedByItsHead) {
    EXPECT_TRUE(is_topology_text(kFourGpus));
    EXPECT_TRUE(is_topology_text("[me@node ~]$ nvidia-smi topo -p2p r\n \tGPU0\tGPU1\t\n"));
    EXPECT_FALSE(is_topology_text("GPU0 X NV4\n{\"GPU0\": 1}\n"));
    EXPECT_FALSE(is_topology_text("GPU0 is warm\n"));
}

// The seeds of the fuzz target fuzz_topology, whole and cut everywhere.
TEST(TopologyText, EverySeedAndEveryCutOfItIsATopologyOrAnError) {
    int seeds = 0;
    for (const auto& entry : std::filesystem::directory_iterator(SHARDSCOPE_FUZZ_CORPUS "/topology")) {
        ++seeds;
        const std::string bytes = bytes_of(entry.path());
        ASSERT_FALSE(bytes.empty());
        for (std::size_t size = 0; size <= bytes.size(); ++size) {
            try {
                read(std::string_view(bytes).substr(0, size));
            } catch (const store::StoreError& error) {
                EXPECT_THAT(error.what(), StartsWith("topo.txt"));
            }
        }
    }
    EXPECT_GE(seeds, 4);
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::importer
