// The Topology panel: picture, colours and facts computed without drawing, and the panel drawn without a
// screen.
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"
#include "tests/viewer/panel_fixture.h"
#include "traces/store/columns/column_sink.h"
#include "viewer/panels/topology/topology_rows.h"

namespace shardscope::viewer::panels {
namespace TEST_FILE {

using testing::HasSubstr;
using namespace traces;
using analysis::PairTraffic;
using analysis::TopologyReport;

void add_gpu(store::ColumnSink& sink, const std::string& host, int number, int numa) {
    sink.add(schema::DeviceRow{.host = host,
                               .kind = "gpu",
                               .number = number,
                               .name = "GPU of a test",
                               .numa = numa,
                               .visible = true});
}
void add_link(store::ColumnSink& sink, const std::string& host, const std::string& from,
              const std::string& to, const std::string& link, const std::string& access = "") {
    sink.add(schema::TopologyRow{.host = host,
                                 .from = from,
                                 .to_host = host,
                                 .to = to,
                                 .link = link,
                                 .read = access,
                                 .write = access});
}

// Two GPUs of one NUMA node joined by NV12, a third of another node behind SYS without peer access; an
// adapter on a PCIe switch with GPU 0. Ranks 0 to 2 gather together.
std::unique_ptr<store::Trace> three_gpus() {
    RunBuilder run(3);
    store::ColumnSink& sink = run.sink();
    for (int g = 0; g < 3; ++g) add_gpu(sink, "host", g, g == 2 ? 1 : 0);
    sink.add(
        schema::DeviceRow{.host = "host", .kind = "infiniband", .number = 0, .name = "mlx5_0", .numa = 0});
    add_link(sink, "host", "GPU0", "GPU1", "NV12", "OK");
    add_link(sink, "host", "GPU0", "GPU2", "SYS", "CNS");
    add_link(sink, "host", "GPU1", "GPU2", "SYS", "CNS");
    add_link(sink, "host", "GPU0", "NIC0", "PIX");
    add_link(sink, "host", "GPU1", "NIC0", "NODE");
    add_link(sink, "host", "GPU2", "NIC0", "SYS");
    for (int rank = 0; rank < 3; ++rank)
        run.collective(rank, 1000, 2000, {.bytes = 3000, .group = 1, .group_size = 3});
    return run.take();
}

TopologyPicture picture_of(const store::Trace& trace) {
    return topology_picture(std::make_shared<const TopologyReport>(analysis::topology_report(trace)));
}

std::string fact(const std::vector<TopologyFact>& facts, const std::string& label) {
    for (const TopologyFact& f : facts) {
        if (f.label == label) return f.text;
    }
    return "-";
}

TEST(TopologyPicture, HasGpusOnACircleAndAdaptersByTheNearest) {
    const auto trace = three_gpus();
    const TopologyPicture picture = picture_of(*trace);
    ASSERT_EQ(picture.boxes.size(), 1U);
    ASSERT_EQ(picture.points.size(), 4U);
    EXPECT_EQ(picture.points[0].label, "GPU0");
    EXPECT_EQ(picture.points[3].label, "NIC0");
    const auto far = [&](std::size_t a, std::size_t b) {
        return std::hypot(picture.points[a].x - picture.points[b].x,
                          picture.points[a].y - picture.points[b].y);
    };
    EXPECT_NEAR(far(0, 1), far(1, 2), 1e-5) << "three on a circle";
    EXPECT_LT(far(3, 0), far(3, 1));
    EXPECT_LT(far(3, 0), far(3, 2));
    ASSERT_EQ(picture.boxes[0].numas.size(), 2U);
    EXPECT_EQ(picture.boxes[0].numas[1].number, 1);
    ASSERT_NE(picture.edge(3, 0), nullptr);
    EXPECT_TRUE(picture.edge(3, 0)->nearest);
    EXPECT_EQ(picture.edge(0, 0), nullptr);
}

TEST(TopologyPicture, ColoursByDistanceAndByBytes) {
    const auto trace = three_gpus();
    const TopologyPicture picture = picture_of(*trace);
    EXPECT_EQ(edge_share(picture, *picture.edge(0, 1), EdgeColor::link), 1);
    EXPECT_EQ(edge_share(picture, *picture.edge(0, 2), EdgeColor::link), 0);
    EXPECT_EQ(edge_text(*picture.edge(0, 1), EdgeColor::link), "NV12");
    // A ring of three: each rank sends 2/3 of 3,000 bytes to the next.
    EXPECT_EQ(picture.edge(0, 1)->bytes, 2000);
    EXPECT_EQ(edge_share(picture, *picture.edge(0, 1), EdgeColor::bytes), 1);
    EXPECT_EQ(edge_share(picture, *picture.edge(0, 3), EdgeColor::bytes), std::nullopt) << "unknown is not 0";
}

TEST(TopologyPicture, NamesThePathBetweenTwo) {
    const auto trace = three_gpus();
    const TopologyPicture picture = picture_of(*trace);
    const std::vector<TopologyFact> near = pair_facts(picture, 1, 0), far = pair_facts(picture, 0, 2);
    EXPECT_THAT(fact(near, "Link"), HasSubstr("NV12: "));
    EXPECT_EQ(fact(near, "Peer read"), "OK");
    EXPECT_EQ(fact(near, "NUMA nodes"), "both 0");
    EXPECT_EQ(fact(far, "NUMA nodes"), "0 and 1");
    EXPECT_THAT(fact(far, "Peer read"), HasSubstr("CNS: "));
    EXPECT_EQ(fact(pair_facts(picture, 1, 3), "Traffic"), "none in the trace");
}

TEST(TopologyPicture, RanksStandForUnknownDevices) {
    RunBuilder run(4, 2);
    for (int rank = 0; rank < 4; ++rank)
        run.collective(rank, 1000, 2000, {.bytes = 4096, .group = 1, .group_size = 4});
    const auto trace = run.take();
    const TopologyPicture picture = picture_of(*trace);
    ASSERT_EQ(picture.boxes.size(), 2U) << "a box for each host";
    EXPECT_EQ(picture.boxes[1].host, "node1");
    ASSERT_EQ(picture.points.size(), 4U);
    EXPECT_EQ(picture.name(3), "node1 rank 3");
}

class TopologyPanelTest : public PanelsTest {
  protected:
    TopologyPanelTest() {
        draw::items::keep(true);
        ImGui::GetIO().BackendFlags |= ImGuiBackendFlags_RendererHasVtxOffset;  // as in the OpenGL backend
    }
    std::unique_ptr<model::Panel> panel_ = make_panel("topology");
};

TEST_F(TopologyPanelTest, ClicksOnTwoPointsShowThePath) {
    session_.add_trace(three_gpus(), "job.sqlite");
    draw(*panel_);
    EXPECT_EQ(item("topology.node.host/GPU2"), "GPU2");
    EXPECT_EQ(item("topology.edge.host/GPU0-host/GPU1"), "NV12");
    click(*panel_, "topology.node.host/GPU0");
    click(*panel_, "topology.node.host/GPU2");
    EXPECT_EQ(item("topology.pair"), "GPU0 and GPU2");
    EXPECT_THAT(item("topology.pair.Link"), HasSubstr("SYS"));
    click(*panel_, "topology.view.matrix");
    EXPECT_EQ(item("topology.cell.host/GPU0-host/NIC0"), "PIX");
    click(*panel_, "topology.cell.host/GPU0-host/GPU1");
    EXPECT_EQ(item("topology.pair"), "GPU0 and GPU1");
    click(*panel_, "topology.colors.bytes");
    EXPECT_EQ(item("topology.cell.host/GPU0-host/GPU1"), "2.0 KiB");
    click(*panel_, "topology.view.pairs");
    EXPECT_EQ(item("topology.pairs.rows"), "3");
}

TEST_F(TopologyPanelTest, IsReadableOfManyHostsAndInAnySize) {
    store::ColumnSink sink;
    for (int h = 0; h < 16; ++h) {
        const std::string host = "node" + std::to_string(h);
        for (int g = 0; g < 8; ++g) add_gpu(sink, host, g, g / 4);
        for (int a = 0; a < 8; ++a) {
            for (int b = a + 1; b < 8; ++b)
                add_link(sink, host, "GPU" + std::to_string(a), "GPU" + std::to_string(b), "NV18");
        }
    }
    session_.add_trace(sink.take(), "many.sqlite");
    draw(*panel_);
    EXPECT_LT(ImGui::GetDrawData()->TotalVtxCount, 4 * 12'000);
    for (const float size : {1.0F, 60.0F, 300.0F, 1000.0F}) {
        draw(*panel_, size, size);
    }
    click(*panel_, "topology.view.matrix");
    for (const float size : {1.0F, 60.0F, 300.0F, 1000.0F}) draw(*panel_, size, size);
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::panels
