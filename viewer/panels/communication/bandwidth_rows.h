// Bus bandwidth over size: the axes of its chart and its tables. No drawing; any thread.
#pragma once

#include <memory>
#include <string>

#include "traces/analysis/communication/bus_bandwidth.h"
#include "viewer/tables/table_model.h"

namespace shardscope::viewer::panels {

struct BandwidthAxes {
    double x_low = 1, x_high = 2;  // bytes
    double y_high = 1;             // GB/s
};
// All points, and those bounds that leave the points at least a third of the height.
BandwidthAxes bandwidth_axes(const traces::analysis::BusBandwidthReport& report);

// A sentence that names the bounds that are higher than the chart; empty: none is.
std::string bounds_beyond(const traces::analysis::BusBandwidthReport& report);

std::shared_ptr<const tables::CellTable> bandwidth_table(const traces::analysis::BusBandwidthReport& report);
std::shared_ptr<const tables::CellTable> pair_bandwidth_table(
    const traces::analysis::BusBandwidthReport& report);

}  // namespace shardscope::viewer::panels
