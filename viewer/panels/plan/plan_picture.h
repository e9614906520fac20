// The places of a plan's rows in the picture of memory against time. No Dear ImGui; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "viewer/panels/plan/plan_rows.h"

namespace shardscope::viewer::panels {

enum class PlanTime : std::uint8_t { step, sample };
enum class PlanMemory : std::uint8_t { peak, reserved };

struct PlanPoint {
    std::size_t item = 0;
    double ns = 0;  // of a step or a sample
    double bytes = 0;
};
struct PlanPicture {
    std::vector<PlanPoint> points;   // the front last, so that it is painted over the others
    std::vector<PlanPoint> untimed;  // not simulated: only their memory is known
    std::vector<PlanPoint> front;    // sorted from the smallest
    std::vector<PlanPoint> stair;    // points of the front that no point here beats in both size and time
    std::vector<double> limits;      // bytes; if the rows have several, four at most
    double x_low = 0, x_high = 1, y_low = 0, y_high = 1;
    bool x_log = false, y_log = false;  // the values are far apart
};
// The picture of these items (of PlanTable::items).
PlanPicture plan_picture(const PlanList& list, const std::vector<std::size_t>& items, PlanTime time,
                         PlanMemory memory);

}  // namespace shardscope::viewer::panels
