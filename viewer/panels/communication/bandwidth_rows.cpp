// See bandwidth_rows.h.
#include "viewer/panels/communication/bandwidth_rows.h"

#include <algorithm>
#include <vector>

#include <fmt/core.h>

#include "viewer/draw/axis.h"
#include "viewer/draw/format.h"
#include "viewer/tables/result_model.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::BandwidthCurve;
using traces::analysis::BandwidthPoint;
using traces::analysis::BusBandwidthReport;

constexpr double kMostOfPoints = 3;  // a bound higher than this times the points would flatten them

double highest_point(const BusBandwidthReport& report) {
    double highest = 0;
    for (const BandwidthCurve& curve : report.curves) {
        for (const BandwidthPoint& point : curve.points)
            highest = std::max({highest, point.busbw_gbps, point.high_gbps});
    }
    return highest;
}

}  // namespace

BandwidthAxes bandwidth_axes(const BusBandwidthReport& report) {
    double low = 0, high = 0;
    for (const BandwidthCurve& curve : report.curves) {
        for (const BandwidthPoint& point : curve.points) {
            const auto bytes = static_cast<double>(point.bytes);
            if (bytes <= 0) continue;
            low = low == 0 ? bytes : std::min(low, bytes);
            high = std::max(high, bytes);
        }
    }
    BandwidthAxes axes;
    if (high > 0) {
        axes.x_low = low / 1.5;
        axes.x_high = high * 1.5;
    }
    const double points = highest_point(report);
    double top = points;
    for (const BandwidthCurve& curve : report.curves) {
        if (curve.bound.gbps <= points * kMostOfPoints) top = std::max(top, curve.bound.gbps);
    }
    axes.y_high = draw::axis_top(top);
    return axes;
}

std::string bounds_beyond(const BusBandwidthReport& report) {
    const double top = bandwidth_axes(report).y_high;
    std::string text;
    for (const BandwidthCurve& curve : report.curves) {
        if (curve.bound.gbps <= top) continue;
        if (!text.empty()) text += "; ";
        text += fmt::format("{}: {} GB/s ({})", curve_name(curve), draw::format_decimal(curve.bound.gbps, 1),
                            curve.bound.of);
    }
    return text.empty() ? text : "Bounds above the chart: " + text + ".";
}

std::shared_ptr<const tables::CellTable> bandwidth_table(const BusBandwidthReport& report) {
    return tables::whole_model(traces::analysis::result_table(traces::analysis::bandwidth_fields(),
                                                              traces::analysis::bandwidth_rows(report)),
                               {"busbw_gbps"});
}

std::shared_ptr<const tables::CellTable> pair_bandwidth_table(const BusBandwidthReport& report) {
    return tables::whole_model(
        traces::analysis::result_table(traces::analysis::pair_bandwidth_fields(), report.pairs),
        {"busbw_gbps"});
}

}  // namespace shardscope::viewer::panels
