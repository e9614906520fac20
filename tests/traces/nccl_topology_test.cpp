// NCCL's dumps of a topology and of graphs: devices, links, rings, and damaged XML.
#include "traces/import/topology/nccl_topology.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/outcome.h"
#include "traces/import/topology/topology_file.h"

namespace shardscope::traces::importer {
namespace TEST_FILE {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::StartsWith;

// Two processors. On the first, GPUs 0 and 1 and an adapter behind one switch, GPU 2 in a slot of its own; on
// the second, GPU 3 and an adapter behind two switches. NVLinks join 0 with 1, and 2 and 3 with switches.
constexpr std::string_view kSystem = R"(<system version="1">
  <cpu host_hash="0x1" numaid="0" affinity="0000ffff,0000ffff" arch="x86_64">
    <pci busid="0000:10:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
      <pci busid="0000:11:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="80" rank="0" gdr="1">
          <nvlink target="0000:12:00.0" count="4" tclass="0x030200"/>
        </gpu>
      </pci>
      <pci busid="0000:12:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
        <gpu dev="1" sm="80" rank="1" gdr="1">
          <nvlink target="0000:11:00.0" count="4" tclass="0x030200"/>
        </gpu>
      </pci>
      <pci busid="0000:13:00.0" class="0x020700" link_speed="16.0 GT/s PCIe" link_width="8">
        <nic>
          <net name="mlx5_0" dev="0" speed="200000" port="1" gdr="1"/>
        </nic>
      </pci>
    </pci>
    <pci busid="0000:18:00.0" class="0x030200" link_speed="2.5 GT/s PCIe" link_width="16">
      <gpu dev="2" sm="90" rank="2" gdr="1">
        <nvlink target="0000:40:00.0" count="3" tclass="0x068000"/>
        <nvlink target="0000:41:00.0" count="3" tclass="0x068000"/>
      </gpu>
    </pci>
  </cpu>
  <cpu numaid="1" affinity="ffff0000,ffff0000">
    <pci busid="0000:80:00.0" class="0x060400">
      <pci busid="0000:81:00.0" class="0x030200">
        <gpu dev="3" sm="90" rank="3" gdr="1">
          <nvlink target="0000:40:00.0" count="2" tclass="0x068000"/>
        </gpu>
      </pci>
      <pci busid="0000:82:00.0" class="0x060400">
        <pci busid="0000:83:00.0" class="0x020700">
          <nic>
            <net name="mlx5_1" dev="1" speed="400000" port="1" gdr="1"/>
          </nic>
        </pci>
      </pci>
    </pci>
    <nic>
      <net name="eth0" dev="2" speed="10000" port="0" gdr="0"/>
    </nic>
  </cpu>
</system>
)";

constexpr std::string_view kGraphs = R"(<?xml version="1.0"?>
<graphs version="1">
  <graph id="0" pattern="4" crossnic="0" nchannels="2" speedintra="20" typeintra="NVL">
    <channel>
      <net dev="0"/>
      <gpu dev="0"/>
      <gpu dev="2"/>
      <gpu dev="1"/>
      <gpu dev="3"/>
      <net dev="0"/>
    </channel>
    <channel> <gpu dev="3"/> <gpu dev="1"/> <gpu dev="2"/> <gpu dev="0"/> </channel>
    <channel> <gpu dev="0"/> <gpu dev="2"/> <gpu dev="1"/> <gpu dev="3"/> </channel>
  </graph>
  <graph id="1" pattern="3"><channel><gpu dev="0"/><gpu dev="1"/></channel></graph>
</graphs>
)";

Topology read(std::string_view text) {
    return read_nccl_topology(text, "topo.xml", "node0");
}
std::string refusal(const std::string& text) {
    return refusal_of([&] { read(text); });
}
const schema::TopologyRow& pair(const Topology& topology, std::string_view from, std::string_view to) {
    const auto at = std::find_if(topology.topology.begin(), topology.topology.end(),
                                 [&](const auto& row) { return row.from == from && row.to == to; });
    EXPECT_NE(at, topology.topology.end()) << from << " " << to;
    static const schema::TopologyRow none;
    return at == topology.topology.end() ? none : *at;
}

TEST(NcclTopology, HasTheDevicesWithTheirPlaces) {
    const Topology topology = read(kSystem);
    ASSERT_THAT(topology.devices, SizeIs(9));  // two NUMA nodes, four GPUs, three adapters
    EXPECT_EQ(topology.devices[0].kind, "numa");
    EXPECT_EQ(topology.devices[0].cpus, "0-15,32-47");
    EXPECT_EQ(topology.devices[1].cpus, "16-31,48-63");
    const schema::DeviceRow& gpu3 = topology.devices[5];
    EXPECT_EQ(gpu3.kind, "gpu");
    EXPECT_EQ(gpu3.number, 3);
    EXPECT_EQ(gpu3.bus, "0000:81:00.0");
    EXPECT_EQ(gpu3.numa, 1);
    EXPECT_EQ(gpu3.cpus, "16-31,48-63");
    EXPECT_EQ(gpu3.host, "node0");
    const auto named = [&](std::string_view name) {
        return *std::find_if(topology.devices.begin(), topology.devices.end(),
                             [&](const schema::DeviceRow& row) { return row.name == name; });
    };
    EXPECT_EQ(named("mlx5_1").kind, "infiniband");
    EXPECT_EQ(named("mlx5_1").bytes_per_second, 50e9);
    EXPECT_EQ(named("eth0").kind, "ethernet");
}

TEST(NcclTopology, LinksAreByWhatTwoWaysShare) {
    const Topology topology = read(kSystem);
    EXPECT_THAT(topology.topology, SizeIs(15));  // four GPUs and two adapters: 6 · 5 / 2
    EXPECT_EQ(pair(topology, "GPU0", "GPU1").link, "NV4");
    EXPECT_EQ(pair(topology, "GPU0", "GPU1").bytes_per_second, 4 * 25e9);
    EXPECT_EQ(pair(topology, "GPU2", "GPU3").link, "NV2");  // the fewer of both to switches
    EXPECT_EQ(pair(topology, "GPU0", "NIC0").link, "PIX");
    EXPECT_EQ(pair(topology, "GPU0", "NIC0").lanes, 8);
    EXPECT_NEAR(pair(topology, "GPU0", "NIC0").bytes_per_second, 16e9 * 128 / 130, 1);
    EXPECT_EQ(pair(topology, "GPU0", "GPU2").link, "PHB");
    EXPECT_NEAR(pair(topology, "GPU0", "GPU2").bytes_per_second, 2.5e9 * 16 / 8 * 0.8, 1);  // 8b/10b
    EXPECT_EQ(pair(topology, "GPU3", "NIC1").link, "PXB");
    EXPECT_EQ(pair(topology, "GPU3", "NIC1").lanes, -1);
    EXPECT_EQ(pair(topology, "GPU1", "NIC1").link, "SYS");
    EXPECT_EQ(pair(topology, "GPU0", "GPU1").source, "nccl");
}

TEST(NcclTopology, RingsAreFactsAndEachIsThereOnce) {
    const Topology topology = read(kGraphs);
    EXPECT_THAT(topology.facts, ElementsAre(Pair("nccl.rings.node0", "0,2,1,3;3,1,2,0")));
    EXPECT_THAT(topology.devices, IsEmpty());
    Topology unnamed = read_nccl_topology(kGraphs, "graph.xml", "");
    name_hosts(unnamed, {"a", "b"});
    EXPECT_THAT(unnamed.facts,
                ElementsAre(Pair("nccl.rings.a", "0,2,1,3;3,1,2,0"), Pair("nccl.rings.b", testing::_)));
}

TEST(NcclTopology, OneSentenceNamesTheDamagedLine) {
    EXPECT_THAT(refusal(std::string(kSystem.substr(0, 700))), StartsWith("topo.xml, line "));
    EXPECT_THAT(refusal(with(kSystem, "dev=\"1\" sm", "sm")),
                AllOf(StartsWith("topo.xml, line 10: "), HasSubstr("no number")));
    EXPECT_THAT(refusal(with(kSystem, "dev=\"1\" sm", "dev=\"0\" sm")), HasSubstr("gpu 0 is there twice"));
    EXPECT_THAT(refusal(with(kSystem, "count=\"4\"", "count=\"many\"")), HasSubstr("an nvlink has no count"));
    EXPECT_THAT(refusal("<system></system>"), HasSubstr("has no gpu"));
    EXPECT_THAT(refusal("<graphs/>"), HasSubstr("has no ring"));
    EXPECT_THAT(refusal("<html/>"), HasSubstr("\"html\" is neither"));
    EXPECT_THAT(refusal("<system>&lol;</system>"), StartsWith("topo.xml, line 1: "));
    EXPECT_THAT(refusal("<!DOCTYPE system [<!ENTITY a \"b\">]><system/>"), HasSubstr("document type"));
    std::string deep = "<system>";
    for (int i = 0; i < 100; ++i) deep += "<pci>";
    EXPECT_THAT(refusal(deep), HasSubstr("nested too deeply"));
}

TEST(NcclTopology, IsRecognizedByItsRoot) {
    EXPECT_TRUE(is_nccl_topology(kSystem));
    EXPECT_TRUE(is_nccl_topology(kGraphs));
    EXPECT_FALSE(is_nccl_topology("<html><body>GPU0</body></html>"));
    EXPECT_FALSE(is_nccl_topology("system"));
}

TEST(NcclTopology, EveryCutIsATopologyOrAnError) {
    for (const std::string_view text : {kSystem, kGraphs}) {
        for (std::size_t size = 0; size < text.size(); size += 3) {
            const std::string said = refusal(std::string(text.substr(0, size)));
            if (said.empty()) continue;
            EXPECT_THAT(said, StartsWith("topo.xml"));
        }
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::importer
