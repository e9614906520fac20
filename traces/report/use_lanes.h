// One lane a device over the whole job, the devices of a host together: as a part of a page, which is as wide
// as its window, and as a picture of its own. Internal to traces/report.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/job/utilization.h"
#include "traces/report/html_parts.h"

namespace shardscope::traces::report {

// With these a page of a thousand devices, or of days, has at most some two megabytes of lanes.
inline constexpr analysis::UtilizationOptions kPageLanes = {
    .price_per_device_hour = 0, .lane_points = 480, .all_lane_points = 120'000};

// A mark of a time axis: its place from 0 to 1, and "0", "20 s".
struct TimeMark {
    double place = 0;
    std::string text;
};
std::vector<TimeMark> time_marks(double seconds, std::size_t most);

// Empty if no device has samples.
std::string html_use_lanes(const analysis::UtilizationReport& report, const Redactor& redact);
// An SVG file. Empty if no device has samples.
std::string svg_use_lanes(const analysis::UtilizationReport& report, std::string_view title,
                          const Redactor& redact);

// For the style sheet of pages with lanes.
extern const std::string_view kLaneStyle;

}  // namespace shardscope::traces::report
