// Network adapters and NUMA nodes, from a /sys that the test plays.
#include "profiler/sampler/adapters.h"

#include <cmath>
#include <cstdint>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/profiler/sampler/played_files.h"

namespace shardscope::profiler {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

void play_ethernet(const PlayedFiles& played, const std::string& name, const std::string& state = "up",
                   int type = 1) {
    const std::string folder = "/sys/class/net/" + name;
    played.write(folder + "/type", std::to_string(type) + "\n");
    played.write(folder + "/operstate", state + "\n");
    played.write(folder + "/statistics/tx_bytes", "0\n");
    played.write(folder + "/statistics/rx_bytes", "0\n");
}

void give_device(const PlayedFiles& played, const std::string& name, const std::string& bus, int node) {
    const std::string device = "/sys/bus/pci/devices/" + bus;
    played.write(device + "/numa_node", std::to_string(node) + "\n");
    played.write(device + "/local_cpulist", "0-15\n");
    played.link("/sys/class/net/" + name + "/device", played.root() + device);
}

void play_infiniband(const PlayedFiles& played, const std::string& name, const std::string& port,
                     const std::string& state = "4: ACTIVE") {
    const std::string folder = "/sys/class/infiniband/" + name + "/ports/" + port;
    played.write(folder + "/rate", "200 Gb/sec (4X HDR)\n");
    played.write(folder + "/state", state + "\n");
    played.write(folder + "/counters/port_xmit_data", "1000\n");
    played.write(folder + "/counters/port_rcv_data", "1000\n");
}

std::vector<std::string> names_of(const std::vector<Adapter>& adapters) {
    std::vector<std::string> names;
    for (const Adapter& adapter : adapters) names.push_back(adapter.row.name);
    return names;
}

TEST(EthernetAdapters, are_those_with_hardware) {
    const PlayedFiles played;
    play_ethernet(played, "lo", "unknown", 772);
    play_ethernet(played, "docker0");
    play_ethernet(played, "ib0", "up", 32);
    play_ethernet(played, "eth10");
    play_ethernet(played, "eth2", "down");
    give_device(played, "eth10", "0000:17:00.1", 1);
    give_device(played, "eth2", "0000:17:00.0", -1);
    give_device(played, "ib0", "0000:18:00.0", 1);
    played.write("/sys/class/net/eth10/speed", "25000\n");
    played.write("/sys/class/net/eth2/speed", "-1\n");
    const std::vector<Adapter> adapters = ethernet_adapters(played.files());
    ASSERT_THAT(names_of(adapters), ElementsAre("eth2", "eth10"));
    const traces::schema::DeviceRow& row = adapters[1].row;
    EXPECT_EQ(row.kind, "ethernet");
    EXPECT_EQ(row.number, 1);
    EXPECT_EQ(row.bus, "0000:17:00.1");
    EXPECT_EQ(row.numa, 1);
    EXPECT_EQ(row.cpus, "0-15");
    EXPECT_EQ(row.bytes_per_second, 25e9 / 8);
    EXPECT_TRUE(adapters[1].is_up);
    EXPECT_FALSE(adapters[0].is_up);
    EXPECT_EQ(adapters[0].row.numa, -1);
    EXPECT_EQ(adapters[0].row.bytes_per_second, -1);
}

TEST(EthernetAdapters, of_a_container_are_those_that_are_up) {
    const PlayedFiles played;
    play_ethernet(played, "lo", "unknown", 772);
    play_ethernet(played, "veth7", "up");
    play_ethernet(played, "ifb0", "down");
    EXPECT_THAT(names_of(ethernet_adapters(played.files())), ElementsAre("veth7"));
}

TEST(InfinibandAdapters, are_ports_with_their_rate) {
    const PlayedFiles played;
    play_infiniband(played, "mlx5_10", "1");
    play_infiniband(played, "mlx5_2", "1", "1: DOWN");
    play_infiniband(played, "mlx5_10", "2");
    const std::vector<Adapter> adapters = infiniband_adapters(played.files());
    ASSERT_THAT(names_of(adapters), ElementsAre("mlx5_2", "mlx5_10", "mlx5_10:2"));
    EXPECT_EQ(adapters[2].row.number, 2);
    EXPECT_EQ(adapters[1].row.bytes_per_second, 25e9);
    EXPECT_FALSE(adapters[0].is_up);
    EXPECT_TRUE(adapters[1].is_up);
}

TEST(AdapterCounters, count_bytes_and_words) {
    const PlayedFiles played;
    play_infiniband(played, "mlx5_0", "1");
    play_ethernet(played, "eth0");
    std::vector<Adapter> adapters = infiniband_adapters(played.files());
    adapters.push_back(ethernet_adapters(played.files()).at(0));
    AdapterCounters counters(played.files(), adapters);
    Samples samples;
    counters.sample(samples);
    EXPECT_TRUE(samples.counters.empty());  // a rate needs two readings
    counters.sample(samples);
    played.write("/sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data", "251000\n");
    played.write("/sys/class/net/eth0/statistics/rx_bytes", "4000000\n");
    counters.sample(samples);
    EXPECT_NEAR(counted(samples, "infiniband_sent_bytes_per_second", 0), 250000 * 4, 1e-3);
    EXPECT_EQ(value_of(samples, "infiniband_received_bytes_per_second", 0), 0);
    EXPECT_NEAR(counted(samples, "ethernet_received_bytes_per_second", 0), 4e6, 1e-3);
    EXPECT_EQ(value_of(samples, "ethernet_sent_bytes_per_second", 0), 0);
    EXPECT_TRUE(samples.notes.empty());
}

TEST(AdapterCounters, say_once_that_an_adapter_is_gone) {
    const PlayedFiles played;
    play_ethernet(played, "eth0");
    play_ethernet(played, "eth1");
    AdapterCounters counters(played.files(), ethernet_adapters(played.files()));
    Samples samples;
    counters.sample(samples);
    played.remove("/sys/class/net/eth0");
    for (int i = 0; i < 3; ++i) counters.sample(samples);
    ASSERT_EQ(samples.notes.size(), 1u);
    EXPECT_EQ(samples.notes[0].text,
              "the traffic of eth0 is not recorded from here on: /sys/class/net/eth0/statistics/tx_bytes "
              "cannot be read: "
              "No such file or directory");
    EXPECT_TRUE(std::isnan(value_of(samples, "ethernet_sent_bytes_per_second", 0)));
    EXPECT_EQ(value_of(samples, "ethernet_sent_bytes_per_second", 1), 0);
}

TEST(AdapterCounters, say_once_that_a_counter_of_32_bits_is_full) {
    const PlayedFiles played;
    play_infiniband(played, "mthca0", "1");
    played.write("/sys/class/infiniband/mthca0/ports/1/counters/port_xmit_data", "4294967295\n");
    AdapterCounters counters(played.files(), infiniband_adapters(played.files()));
    Samples samples;
    for (int i = 0; i < 4; ++i) counters.sample(samples);
    ASSERT_EQ(samples.notes.size(), 1u);
    EXPECT_THAT(samples.notes[0].text, HasSubstr("port_xmit_data has 32 bits and is full"));
    EXPECT_TRUE(std::isnan(value_of(samples, "infiniband_sent_bytes_per_second", 0)));
    EXPECT_EQ(value_of(samples, "infiniband_received_bytes_per_second", 0), 0);
}

TEST(NumaNodes, have_processors_and_memory) {
    const PlayedFiles played;
    const std::string nodes = "/sys/devices/system/node/";
    played.write(nodes + "node0/cpulist", "0-15,32-47\n");
    played.write(nodes + "node0/meminfo", "Node 0 MemTotal:       2048 kB\nNode 0 MemFree: 1 kB\n");
    played.write(nodes + "node1/cpulist", "16-31\n");
    played.write(nodes + "nodes", "0-1\n");
    played.write(nodes + "node", "\n");
    const std::vector<traces::schema::DeviceRow> rows = numa_nodes(played.files());
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(rows[0].cpus, "0-15,32-47");
    EXPECT_EQ(rows[0].memory_bytes, 2 << 20);
    EXPECT_EQ(rows[1].number, 1);
    EXPECT_EQ(rows[1].memory_bytes, -1);
}

}  // namespace TEST_FILE
}  // namespace shardscope::profiler
