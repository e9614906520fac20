// Links of GPUs by a played NVML, of adapters by a played /sys, and the matrices that are printed of them.
#include "profiler/nvml/links.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/temporary_folder.h"
#include "traces/analysis/topology/pair_traffic.h"
#include "traces/report/topology.h"
#include "traces/store/columns/column_sink.h"

namespace shardscope::profiler::nvml {
namespace TEST_FILE {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using Rows = std::vector<traces::schema::TopologyRow>;

// The played library's rows.
Rows rows_of(const char* board) {
    ::setenv("SHARDSCOPE_PLAYED_NVML", board, 1);
    std::string why;
    const std::unique_ptr<Library> nvml = Library::open(&why);
    EXPECT_NE(nvml, nullptr) << why;
    if (nvml == nullptr) return {};
    std::vector<std::string> failures;
    std::vector<LinkEnd> ends;
    for (const Gpu& gpu : nvml->gpus(&failures))
        ends.push_back({"GPU" + std::to_string(gpu.number), nvml->facts(gpu).bus, gpu.device});
    EXPECT_THAT(ends, SizeIs(4));
    return links_between(nvml.get(), ends, "/nowhere");
}
std::string printed(const Rows& rows) {
    traces::store::ColumnSink sink;
    for (traces::schema::TopologyRow row : rows) {
        row.host = row.to_host = "node0";
        sink.add(row);
    }
    return render(traces::analysis::topology_report(*sink.take()), traces::report::Format::table);
}

TEST(NvmlLinks, OfABoardWhereNeighboursAloneReachEachOther) {
    const std::string text = printed(rows_of("neighbours"));
    EXPECT_THAT(text, HasSubstr("Peer access: reads (nvidia-smi topo -p2p r)\n"
                                "      GPU0  GPU1  GPU2  GPU3\n"
                                "GPU0  X     OK    CNS   CNS\n"
                                "GPU1  OK    X     CNS   CNS\n"
                                "GPU2  CNS   CNS   X     OK\n"
                                "GPU3  CNS   CNS   OK    X\n"));
    EXPECT_THAT(text, HasSubstr("GPU0  X     NS    NS    NS\n"));  // NVLink, atomics
    EXPECT_THAT(text, HasSubstr("GPU0  X     PHB   SYS   SYS   N/A           N/A\n"));
}

TEST(NvmlLinks, OfABoardWhereAllReachOneAnother) {
    const Rows rows = rows_of("all");
    ASSERT_THAT(rows, SizeIs(6));
    for (const traces::schema::TopologyRow& row : rows) {
        EXPECT_EQ(row.link, "NV5");  // the sixth link is down
        EXPECT_EQ(row.lanes, 5);
        EXPECT_DOUBLE_EQ(row.bytes_per_second, 5 * 25e9);
        EXPECT_EQ(row.atomics, "OK");
        EXPECT_EQ(row.source, "nvml");
    }
    EXPECT_THAT(printed(rows), HasSubstr("Peer access: reads (nvidia-smi topo -p2p r)\n"
                                         "      GPU0  GPU1  GPU2  GPU3\n"
                                         "GPU0  X     OK    OK    OK\n"
                                         "GPU1  OK    X     OK    OK\n"
                                         "GPU2  OK    OK    X     OK\n"
                                         "GPU3  OK    OK    OK    X\n"));
}

TEST(NvmlLinks, AGpuThatIsLostLeavesItsPairsOut) {
    const Rows rows = rows_of("half");
    EXPECT_THAT(rows, SizeIs(3));
    for (const traces::schema::TopologyRow& row : rows)
        EXPECT_THAT(row.from + row.to, Not(HasSubstr("GPU2")));
}

// --- /sys --------------------------------------------------------------------------------------------------

class SysLinks : public ::testing::Test {
  protected:
    // A device at the end of the folders below /sys/devices, with the link to it.
    void device(const std::string& path, const std::string& numa, const std::string& speed = "",
                const std::string& width = "") const {
        const fs::path folder = fs::path(folder_ / "sys/devices") / path;
        fs::create_directories(folder);
        std::ofstream(folder / "numa_node") << numa << "\n";
        if (!speed.empty()) std::ofstream(folder / "max_link_speed") << speed << "\n";
        if (!width.empty()) std::ofstream(folder / "max_link_width") << width << "\n";
        const fs::path list = folder_ / "sys/bus/pci/devices";
        fs::create_directories(list);
        fs::create_directory_symlink(folder, list / folder.filename());
    }
    std::string link(const std::string& a, const std::string& b) const {
        const Rows rows = links_between(nullptr, {{"GPU0", a, nullptr}, {"NIC0", b, nullptr}}, root());
        return rows.empty() ? "" : rows.front().link;
    }
    std::string root() const { return std::string(folder_ / ""); }

    traces::TemporaryFolder folder_;
};

TEST_F(SysLinks, AreByTheBridgeThatTwoDevicesShare) {
    // Two switches of two ports below one host bridge, one of them behind another; a second bridge of node 0,
    // and one of node 1.
    device("pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:00.0/0000:13:00.0", "0");
    device("pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:01.0/0000:14:00.0", "0");
    device("pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:02.0/0000:15:00.0/0000:16:00.0/0000:17:00.0", "0");
    device("pci0000:10/0000:10:02.0/0000:18:00.0", "0");
    device("pci0000:20/0000:20:01.0/0000:21:00.0", "0");
    device("pci0000:80/0000:80:01.0/0000:81:00.0", "1");
    EXPECT_EQ(link("0000:13:00.0", "0000:14:00.0"), "PIX");
    EXPECT_EQ(link("0000:13:00.0", "0000:17:00.0"), "PXB");
    EXPECT_EQ(link("0000:13:00.0", "0000:18:00.0"), "PHB");
    EXPECT_EQ(link("0000:13:00.0", "0000:21:00.0"), "NODE");
    EXPECT_EQ(link("0000:13:00.0", "0000:81:00.0"), "SYS");
    EXPECT_EQ(link("0000:13:00.0", "0000:99:00.0"), "");  // there is none
    EXPECT_EQ(link("0000:13:00.0", ""), "");
    EXPECT_EQ(link("0000:13:00.0", "../../../../etc"), "");
}

TEST_F(SysLinks, ASlotAndTheSlowerOfTwoDevicesLimitTheRate) {
    device("pci0000:10/0000:10:01.0", "0", "16.0 GT/s PCIe", "8");
    device("pci0000:10/0000:10:01.0/0000:11:00.0", "0", "32.0 GT/s PCIe", "16");
    device("pci0000:10/0000:12:00.0", "0", "32.0 GT/s PCIe", "16");
    const Rows rows = links_between(
        nullptr, {{"GPU0", "0000:11:00.0", nullptr}, {"NIC0", "0000:12:00.0", nullptr}}, root());
    ASSERT_THAT(rows, SizeIs(1));
    EXPECT_EQ(rows[0].lanes, 8);
    EXPECT_NEAR(rows[0].bytes_per_second, 16e9 * 8 / 8 * 128 / 130, 1);  // 15.75 GB/s
    EXPECT_EQ(rows[0].source, "sys");
    EXPECT_EQ(rows[0].read, "");
}

TEST_F(SysLinks, WithoutSysNothingIsKnown) {
    EXPECT_THAT(links_between(nullptr, {{"GPU0", "0000:11:00.0", nullptr}, {"NIC0", "0000:12:00.0", nullptr}},
                              root()),
                IsEmpty());
}

}  // namespace TEST_FILE
}  // namespace shardscope::profiler::nvml
