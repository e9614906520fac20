// The shard map's picture: units from top to bottom; on the left one cell per rank, coloured by the unit's
// state at the cursor's time; on the right the lane of the unit on the chosen rank over time. It returns what
// the mouse did. Drawing layer (Dear ImGui); frame thread only. Times in nanoseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <imgui.h>

#include "viewer/panels/shardmap/shard_rows.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::viewer::panels {

class ShardGrid {
  public:
    struct Input {
        const traces::store::Trace* trace = nullptr;
        const traces::analysis::ShardStates* states = nullptr;
        const std::vector<StateLane>* lanes = nullptr;  // of the chosen rank, by unit
        traces::store::RankIndex rank;                  // the chosen one
        const ShardShares* shares = nullptr;
        std::int64_t from = 0, to = 1;  // the visible range of the lanes
        std::int64_t cursor = 0;
        traces::store::UnitIndex selected_unit;
        float lanes_left = 0, lanes_right = 0;  // on the screen
    };
    struct Events {
        traces::store::UnitIndex unit;       // clicked
        traces::store::RankIndex rank;       // clicked
        std::optional<std::int64_t> scrub;   // the mouse is held down on a lane at this time
        std::optional<std::int32_t> opened;  // DeviceEvents row of the collective double-clicked
        bool hovers_lanes = false;
    };

    // Takes `height` pixels of the current window; scrolls if the units need more.
    Events draw(const Input& input, float height);

    void forget() { folded_.clear(); }  // to be called when the lanes change
    // Whether this number of units needs scrolling at this height.
    static bool scrolls(std::size_t units, float height);

    // The width of names and cells in a panel of this width.
    static float left_width(const Input& input, float panel_width);

  private:
    struct Row {
        traces::store::UnitIndex unit;
        float top = 0, height = 0, cell = 0;  // cell: width of one rank's
    };
    struct Folded {  // the source of a lane's folded runs
        const StateLane* lane = nullptr;
        std::int64_t from = 0, to = 0;
        int columns = 0;
        bool operator==(const Folded&) const = default;
    };
    void draw_rank_numbers(const Input& input, float cell, Events& events) const;
    void draw_name(const Input& input, const Row& row, float width, Events& events) const;
    void draw_cells(const Input& input, const Row& row, float left, Events& events) const;
    void draw_lane(const Input& input, const Row& row, Events& events);
    static void draw_allocated(const Input& input, const Row& row);

    int first_rank_ = 0, shown_ranks_ = 0;
    // Pixels for each column of the lanes: increased if one-pixel columns would need too many rectangles for
    // a frame.
    int column_pixels_ = 1, rectangles_ = 0;
    std::int64_t from_ = 0, to_ = 0;
    std::vector<std::pair<Folded, std::vector<StateRun>>> folded_;  // by unit
};

}  // namespace shardscope::viewer::panels
