// Topology: the devices of each host, which GPU a rank uses, and the bytes and bandwidth from rank to rank.
#include "traces/report/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/traces/run_builder.h"
#include "tests/traces/topology_tables.h"
#include "traces/analysis/topology/pair_traffic.h"
#include "traces/import/topology/topology_text.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

using report::Format;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using Json = nlohmann::json;

void add(RunBuilder& run, std::string_view text, const std::string& host) {
    const importer::Topology topology = importer::read_topology_text(text, "topo.txt", host);
    for (const schema::DeviceRow& row : topology.devices) run.sink().add(row);
    for (const schema::TopologyRow& row : topology.topology) run.sink().add(row);
}

// A collective of all ranks from 0 ns to `end`.
void collective(RunBuilder& run, int ranks, schema::Operation operation, std::int64_t bytes,
                std::int64_t start, std::int64_t end, std::int64_t sequence) {
    for (int rank = 0; rank < ranks; ++rank)
        run.collective(
            rank, start, end,
            {.operation = operation, .bytes = bytes, .sequence = sequence, .group = 1, .group_size = ranks});
}

TEST(Topology, OfAPasteIsPrintedAsItWasPasted) {
    RunBuilder run(4);
    add(run, kFourGpus, "host");
    add(run, "nvidia-smi topo -p2p w\n" + std::string(kAllReach), "other");
    const std::string text = render(topology_report(*run.take()), Format::table);
    EXPECT_THAT(text, HasSubstr("Host host\n"
                                "\n"
                                "Links (nvidia-smi topo -m)\n"
                                "      GPU0  GPU1  GPU2  GPU3  NIC0  NIC1  CPU Affinity  NUMA Affinity\n"
                                "GPU0  X     NV4   SYS   SYS   PIX   SYS   0-15,32-47    0\n"
                                "GPU1  NV4   X     SYS   SYS   PXB   SYS   0-15,32-47    0\n"
                                "GPU2  SYS   SYS   X     NV4   SYS   PHB   16-31,48-63   1\n"
                                "GPU3  SYS   SYS   NV4   X     SYS   NODE  16-31,48-63   1\n"
                                "NIC0  PIX   PXB   SYS   SYS   X     SYS\n"
                                "NIC1  SYS   SYS   PHB   NODE  SYS   X\n"));
    EXPECT_THAT(text, HasSubstr("Peer access: writes (nvidia-smi topo -p2p w)\n"
                                "      GPU0  GPU1  GPU2  GPU3\n"
                                "GPU0  X     OK    OK    OK\n"));
    EXPECT_THAT(text, AllOf(HasSubstr("NIC1: mlx5_1"), HasSubstr("NV#"),
                            HasSubstr("through the link between NUMA"), Not(HasSubstr("topo -p2p r"))));
    // What was printed is read again as the same rows.
    const importer::Topology again = importer::read_topology_text(text, "again.txt", "");
    const importer::Topology pasted = importer::read_topology_text(kFourGpus, "topo.txt", "host");
    ASSERT_THAT(again.topology, SizeIs(pasted.topology.size() + 6));
    for (std::size_t i = 0; i < pasted.topology.size(); ++i) {
        EXPECT_EQ(again.topology[i].order(), pasted.topology[i].order());
        EXPECT_EQ(again.topology[i].link, pasted.topology[i].link);
    }
    ASSERT_THAT(again.devices, SizeIs(pasted.devices.size() + 4));
    EXPECT_EQ(again.devices[5].name, "mlx5_1");
    EXPECT_EQ(again.devices[3].cpus, pasted.devices[3].cpus);
}

TEST(Topology, TheTwoMatricesOfPeerAccessArePrintedAsTheyWerePasted) {
    for (const std::string_view table : {kNeighbours, kAllReach}) {
        RunBuilder run(1);
        add(run, table, "host");
        std::string pasted;  // modulo blanks
        for (const char c : table.substr(0, table.find("\n\n"))) pasted += c == '\t' ? ' ' : c;
        std::string text = render(topology_report(*run.take()), Format::table);
        text = text.substr(text.find("-p2p r)\n") + 8);
        const auto words = [](const std::string& from) {
            std::istringstream in(from);
            std::vector<std::string> all;
            for (std::string word; in >> word && word != "Legend";) all.push_back(word);
            return all;
        };
        EXPECT_EQ(words(text), words(pasted));
    }
}

// An all-gather of 4000 bytes over 4 ranks in 100 ns: each sends 4000 · 3/4 = 3000 bytes to the next, at 30
// GB/s. An all-reduce of 8000 bytes in 300 ns: 8000 · 2 · 3/4 = 12000 bytes, at 40 GB/s. Together 15000 in
// 400 ns.
TEST(Topology, CollectivesGoAroundTheirRing) {
    RunBuilder run(4);
    add(run, kFourGpus, "host");
    collective(run, 4, schema::Operation::all_gather, 4000, 0, 100, 0);
    collective(run, 4, schema::Operation::all_reduce, 8000, 200, 500, 1);
    const TopologyReport report = topology_report(*run.take());
    ASSERT_THAT(report.pairs, SizeIs(4));
    const PairTraffic& pair = report.pairs[0];
    EXPECT_EQ(pair.from_rank, 0);
    EXPECT_EQ(pair.to_rank, 1);
    EXPECT_EQ(pair.bytes, 15000);
    EXPECT_EQ(pair.collectives, 2);
    EXPECT_EQ(pair.messages, 0);
    EXPECT_DOUBLE_EQ(pair.transfer_us, 0.4);
    EXPECT_DOUBLE_EQ(pair.bus_gbps, 37.5);
    EXPECT_EQ(pair.link, "NV4");
    EXPECT_EQ(pair.from_device, "GPU0");
    EXPECT_EQ(pair.path, "GPU0 -NV4- GPU1");
    ASSERT_NE(report.pair(3, 0), nullptr);
    EXPECT_EQ(report.pair(3, 0)->link, "SYS");
    EXPECT_EQ(report.pair(0, 2), nullptr);
    EXPECT_EQ(report.most_bytes, 15000);
    EXPECT_DOUBLE_EQ(report.fastest_gbps, 37.5);
    EXPECT_THAT(report.notes,
                ElementsAre(HasSubstr("order of the ranks"), HasSubstr("Which GPU a rank uses")));
}

TEST(Topology, ACollectiveOfRanksThatAreNotInTheTraceIsNotCounted) {
    RunBuilder run(2);
    for (const int rank : {0, 1}) run.collective(rank, 0, 100, {.bytes = 4000, .group = 1, .group_size = 8});
    const TopologyReport report = topology_report(*run.take());
    EXPECT_THAT(report.pairs, IsEmpty());
    EXPECT_THAT(report.notes,
                ::testing::Contains(HasSubstr("1 collective or message is not counted: bytes")));
}

// NCCL's ring of the host is GPU0, GPU2, GPU1, GPU3; counters tell that rank r uses GPU 3 - r.
TEST(Topology, FollowsNcclsRingAndTheGpusThatCountersTell) {
    RunBuilder run(4);
    add(run, kFourGpus, "host");
    run.sink().add(schema::RunInfoRow{.key = "nccl.rings.host", .value = "0,1;0,2,1,3"});
    for (int rank = 0; rank < 4; ++rank)
        run.sink().add(schema::CounterRow{.time = 1,
                                          .rank = rank,
                                          .name = run.sink().intern("gpu_power_watts"),
                                          .value = 300,
                                          .host = run.sink().intern("host"),
                                          .device = 3 - rank});
    collective(run, 4, schema::Operation::all_gather, 4000, 0, 100, 0);
    const TopologyReport report = topology_report(*run.take());
    ASSERT_THAT(report.pairs, SizeIs(4));
    EXPECT_NE(report.pair(3, 1), nullptr);  // GPU0 to GPU2
    EXPECT_NE(report.pair(1, 2), nullptr);
    EXPECT_NE(report.pair(2, 0), nullptr);
    ASSERT_NE(report.pair(0, 3), nullptr);
    EXPECT_EQ(report.pair(0, 3)->from_device, "GPU3");
    EXPECT_THAT(report.hosts.front().nodes[3].ranks, ElementsAre(0));
    EXPECT_THAT(report.notes, IsEmpty());
}

TEST(Topology, MessagesGoFromTheirSenderAndAllToAllFromEachToEach) {
    RunBuilder run(3);
    for (const int rank : {0, 2}) {
        run.collective(rank, 0, 50,
                       {.operation = rank == 0 ? schema::Operation::send : schema::Operation::recv,
                        .bytes = 1000,
                        .group = 7,
                        .group_size = 2});
    }
    collective(run, 3, schema::Operation::all_to_all, 3000, 100, 200, 0);
    const TopologyReport report = topology_report(*run.take());
    ASSERT_THAT(report.pairs, SizeIs(6));
    ASSERT_NE(report.pair(0, 2), nullptr);
    EXPECT_EQ(report.pair(0, 2)->bytes, 1000 + 1000);  // the message, and a third of 3000
    EXPECT_EQ(report.pair(0, 2)->messages, 1);
    EXPECT_EQ(report.pair(0, 2)->collectives, 1);
    EXPECT_EQ(report.pair(2, 0)->bytes, 1000);
    EXPECT_EQ(report.pair(2, 0)->link, "");  // nothing is known of the host's links
    EXPECT_THAT(report.hosts, IsEmpty());
}

TEST(Topology, BetweenHostsThePathLeadsOverTheNearestAdapters) {
    RunBuilder run(2, 1);
    for (const std::string host : {"node0", "node1"}) {
        add(run, kFourGpus, host);
        run.sink().add(schema::RunInfoRow{.key = "sim.inter_bandwidth", .value = "12.5e9"});
    }
    collective(run, 2, schema::Operation::all_gather, 2000, 0, 100, 0);
    const TopologyReport report = topology_report(*run.take());
    ASSERT_THAT(report.pairs, SizeIs(2));
    EXPECT_EQ(report.pairs[0].link, "network");
    EXPECT_EQ(report.pairs[0].path, "node0 GPU0 -PIX- NIC0 -network- node1 NIC0 -PIX- GPU0");
    EXPECT_DOUBLE_EQ(report.pairs[0].nominal_gbps, 12.5);
    EXPECT_EQ(report.pairs[0].nominal_from, "cluster");
}

TEST(Topology, TheBandwidthOfAnAdapterIsTheNominalOneBetweenHosts) {
    RunBuilder run(2, 1);
    for (const std::string host : {"node0", "node1"}) {
        for (schema::DeviceRow row : importer::read_topology_text(kFourGpus, "topo.txt", host).devices) {
            if (row.kind == "infiniband") row.bytes_per_second = host == "node0" ? 50e9 : 25e9;
            run.sink().add(row);
        }
        for (const schema::TopologyRow& row :
             importer::read_topology_text(kFourGpus, "topo.txt", host).topology)
            run.sink().add(row);
    }
    collective(run, 2, schema::Operation::all_gather, 2000, 0, 100, 0);
    const TopologyReport report = topology_report(*run.take());
    ASSERT_THAT(report.pairs, SizeIs(2));
    EXPECT_DOUBLE_EQ(report.pairs[0].nominal_gbps, 25);
    EXPECT_EQ(report.pairs[0].nominal_from, "adapter");
}

TEST(Topology, ARankUsesTheGpuOfItsPlaceAmongThoseThatTheJobMayUse) {
    RunBuilder run(2);
    for (int gpu = 0; gpu < 4; ++gpu)
        run.sink().add(schema::DeviceRow{.host = "host", .kind = "gpu", .number = gpu, .visible = gpu >= 2});
    const auto trace = run.take();
    const std::vector<RankGpu> gpus = gpus_of_ranks(*trace, host_topologies(*trace));
    EXPECT_EQ(gpus[0].number, 2);
    EXPECT_EQ(gpus[1].number, 3);
    EXPECT_FALSE(gpus[0].told);
}

TEST(Topology, ConsecutiveRanksUseOneGpuWhereTheRunSaysSo) {
    RunBuilder run(4);
    run.sink().add(schema::RunInfoRow{"run.ranks_per_device", "2"});
    for (int gpu = 0; gpu < 2; ++gpu)
        run.sink().add(schema::DeviceRow{.host = "host", .kind = "gpu", .number = gpu, .visible = true});
    const auto trace = run.take();
    const std::vector<HostTopology> hosts = host_topologies(*trace);
    EXPECT_THAT(hosts[0].nodes[0].ranks, ElementsAre(0, 1));
    EXPECT_THAT(hosts[0].nodes[1].ranks, ElementsAre(2, 3));
}

TEST(Topology, RanksThatComputeOnProcessorsUseNoGpu) {
    const auto run_on = [](const char* device) {
        RunBuilder run(4);
        run.sink().add(schema::RunInfoRow{"run.device", device});
        run.sink().add(schema::RunInfoRow{"run.ranks_per_device", "2"});
        collective(run, 4, schema::Operation::all_gather, 4000, 0, 100, 0);
        return run.take();
    };
    const auto gpus = run_on("cuda"), processors = run_on("cpu");
    EXPECT_EQ(gpus_of_ranks(*gpus, {})[3].number, 1);
    EXPECT_EQ(gpus_of_ranks(*processors, {})[3].number, -1);
    const auto guess = Contains(HasSubstr("Which GPU a rank uses"));
    EXPECT_THAT(topology_report(*gpus).notes, guess);
    EXPECT_THAT(topology_report(*processors).notes, Not(guess));
}

TEST(Topology, DistancesAndMeaningsAreOfTheWordsAlone) {
    EXPECT_EQ(link_distance("NV18"), 0);
    EXPECT_LT(link_distance("PIX"), link_distance("PXB"));
    EXPECT_LT(link_distance("PHB"), link_distance("NODE"));
    EXPECT_LT(link_distance("NODE"), link_distance("SYS"));
    EXPECT_EQ(link_distance("NVX"), kUnknownDistance);
    EXPECT_EQ(link_distance(""), kUnknownDistance);
    EXPECT_EQ(link_meaning("NV1"), "through 1 NVLink");
    EXPECT_EQ(access_meaning("GNS"), "not supported by the GPU");
    EXPECT_EQ(access_meaning("yes"), "");
}

TEST(Topology, JsonCsvAndPictureHaveTheLinks) {
    RunBuilder run(4);
    add(run, std::string(kFourGpus) + "\n$ nvidia-smi topo -p2p r\n" + std::string(kNeighbours), "a<b>&");
    const TopologyReport report = topology_report(*run.take());
    const Json json = Json::parse(render(report, Format::json));
    EXPECT_EQ(json["hosts"][0]["host"], "a<b>&");
    EXPECT_EQ(json["hosts"][0]["devices"][4]["device"], "NIC0");
    EXPECT_EQ(json["hosts"][0]["links"].size(), 15u);
    EXPECT_EQ(json["hosts"][0]["links"][0]["lanes"], 4);
    EXPECT_EQ(json["hosts"][0]["links"][0]["read"], "OK");
    EXPECT_THAT(
        render(report, Format::csv),
        AllOf(HasSubstr("host,from,to,link,lanes,bytes_per_second,read,write,nvlink,atomics,source\n"),
              HasSubstr(",GPU0,NIC0,PIX,,,,,,,nvidia-smi\n")));
    EXPECT_THAT(report::topology_svg(report), AllOf(HasSubstr("<svg "), HasSubstr("a&lt;b&gt;&amp;"),
                                                    HasSubstr(">CNS<"), Not(HasSubstr("a<b>"))));
}

TEST(Topology, WithoutOneASentenceSaysHowToGetIt) {
    const TopologyReport report = topology_report(*RunBuilder(2).take());
    EXPECT_THAT(render(report, Format::table), HasSubstr("shardscope-trace topology FILE --from TEXT"));
    EXPECT_EQ(Json::parse(render(report, Format::json))["hosts"], Json::array());
    EXPECT_THAT(report::topology_svg(report), HasSubstr("has no topology"));
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
