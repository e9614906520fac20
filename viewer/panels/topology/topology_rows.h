// The picture of a job's topology: each host a box with its GPUs on a circle, by NUMA node, and each adapter
// beyond the GPU that is nearest to it; what joins two of them, and what the trace sent between them. Ranks
// whose device the trace does not tell stand for themselves. Pure; any thread. Within a box positions are
// between 0 and 1, angles in radians, clockwise from the top.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/topology/pair_traffic.h"
#include "viewer/tables/table_model.h"

namespace shardscope::viewer::panels {

struct TopologyPoint {
    enum class Kind : std::uint8_t { gpu, adapter, rank };
    Kind kind = Kind::gpu;
    std::size_t box = 0;
    std::string label;  // "GPU0", "NIC1", "rank 3"
    std::string name;   // of the device; empty: unknown
    int numa = -1;
    bool visible = true;
    std::vector<int> ranks;  // numbers of those that use it
    float x = 0, y = 0;
};

struct TopologyEdge {
    std::size_t a = 0, b = 0;  // points, a < b
    // From a to b and back; null: unknown.
    const traces::analysis::TopologyLink* there = nullptr;
    const traces::analysis::TopologyLink* back = nullptr;
    std::vector<const traces::analysis::PairTraffic*> traffic;  // of their ranks, in both directions
    std::int64_t bytes = 0;                                     // of both directions
    double bus_gbps = 0;                                        // the highest of both; 0: unknown
    double nominal_gbps = 0;                                    // in one direction; 0: unknown
    int distance = 0;                                           // link_distance()
    bool nearest = false;  // of a GPU and the adapter that is nearest to it

    std::string_view link() const {
        const traces::analysis::TopologyLink* known = there != nullptr ? there : back;
        return known != nullptr ? std::string_view(known->link) : std::string_view();
    }
};

struct TopologyBox {
    std::string host;  // empty: unknown
    struct Numa {
        int number = 0;
        double from = 0, to = 0;  // of its GPUs on the circle
    };
    std::vector<Numa> numas;
    std::size_t first = 0, points = 0;  // its points are neighbours
};

struct TopologyPicture {
    std::shared_ptr<const traces::analysis::TopologyReport> report;  // what the edges point into
    std::vector<TopologyBox> boxes;
    std::vector<TopologyPoint> points;
    std::vector<TopologyEdge> edges;  // by (a, b)
    std::int64_t most_bytes = 0;      // of an edge

    const TopologyEdge* edge(std::size_t a, std::size_t b) const;  // in either order; null: nothing is known
    std::string name(std::size_t point) const;                     // "node0 GPU3"
};

TopologyPicture topology_picture(std::shared_ptr<const traces::analysis::TopologyReport> report);

// What colours an edge.
enum class EdgeColor : std::uint8_t { link, bandwidth, bytes };
// From 0 (far, slow, little) to 1 (near, fast, much); nothing: unknown, or no bytes went there.
std::optional<double> edge_share(const TopologyPicture& picture, const TopologyEdge& edge, EdgeColor by);
// "NV12", "23.4 GB/s", "1.2 GiB"; empty: unknown.
std::string edge_text(const TopologyEdge& edge, EdgeColor by);

// What is known of a pair, a line each: "Link" "NV12: 12 NVLinks".
struct TopologyFact {
    std::string label, text;
};
std::vector<TopologyFact> pair_facts(const TopologyPicture& picture, std::size_t a, std::size_t b);
std::vector<TopologyFact> point_facts(const TopologyPicture& picture, std::size_t point);

// One row for each pair of ranks between which bytes went, in each direction.
std::shared_ptr<const tables::CellTable> pair_table(const traces::analysis::TopologyReport& report);

}  // namespace shardscope::viewer::panels
