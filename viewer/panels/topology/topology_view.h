// Draws the topology: the picture and the matrix, with a legend, and what is known of the chosen pair.
// Drawing layer (Dear ImGui); frame thread only.
#pragma once

#include <optional>
#include <string>

#include <imgui.h>

#include "viewer/panels/topology/topology_rows.h"

namespace shardscope::viewer::panels {

// The chosen points: one after the first click, two after the second.
struct TopologyChoice {
    std::optional<std::size_t> first, second;

    void click(std::size_t point);
    void click_pair(std::size_t a, std::size_t b) { *this = {a, b}; }
    bool is(std::size_t point) const { return first == point || second == point; }
};

// From orange (far, slow, little) to blue (near, fast, much).
ImU32 share_color(double share);

void draw_topology_picture(const TopologyPicture& picture, EdgeColor by, TopologyChoice& choice, ImVec2 size);
// Of one box, or of the GPUs and ranks of all boxes.
void draw_topology_matrix(const TopologyPicture& picture, std::optional<std::size_t> box, EdgeColor by,
                          TopologyChoice& choice, ImVec2 size);
void draw_topology_legend(const TopologyPicture& picture, EdgeColor by);
void draw_topology_choice(const TopologyPicture& picture, const TopologyChoice& choice);

}  // namespace shardscope::viewer::panels
