// See plan_picture.h.
#include "viewer/panels/plan/plan_picture.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace shardscope::viewer::panels {
namespace {

using traces::schema::PlanRow;

// The range of the values with a margin, and whether they are so far apart that they need a logarithmic
// scale.
struct Extent {
    double low = 0, high = 1;
    bool log = false;
};
Extent extent_of(double least, double most, double far) {
    if (!(most > 0)) return {0, 1, false};
    if (least > 0 && most / least > far) return {least / 1.15, most * 1.15, true};
    if (least > most / 2 && least < most) {  // close together: from zero they would form one cluster
        const double air = (most - least) * 0.12;
        return {least - air, most + air, false};
    }
    return {0, most * 1.08, false};
}

}  // namespace

PlanPicture plan_picture(const PlanList& list, const std::vector<std::size_t>& items, PlanTime time,
                         PlanMemory memory) {
    PlanPicture picture;
    double x_least = 0, x_most = 0, y_least = 0, y_most = 0;
    const auto reach = [](double value, double& least, double& most) {
        least = least == 0 ? value : std::min(least, value);
        most = std::max(most, value);
    };
    constexpr std::size_t kMostLimits = 4;
    for (const std::size_t i : items) {
        const PlanItem& item = list.items[i];
        const PlanRow& row = *item.row;
        if (!is_known(item.fate)) continue;
        PlanPoint point{
            i, time == PlanTime::step ? row.step_us * 1e3 : ns_per_sample(row),
            static_cast<double>(memory == PlanMemory::peak ? row.peak_bytes : row.reserved_bytes)};
        const auto limit = static_cast<double>(row.limit_bytes);
        if (limit > 0 && picture.limits.size() < kMostLimits &&
            std::find(picture.limits.begin(), picture.limits.end(), limit) == picture.limits.end())
            picture.limits.push_back(limit);
        if (point.bytes <= 0) continue;  // only the simulation knows the reserved bytes
        reach(point.bytes, y_least, y_most);
        if (!row.simulated() || !is_time(point.ns)) {
            point.ns = 0;
            picture.untimed.push_back(point);
            continue;
        }
        reach(point.ns, x_least, x_most);
        picture.points.push_back(point);
        if (item.fate == PlanFate::front) picture.front.push_back(point);
    }
    std::reverse(picture.points.begin(), picture.points.end());  // the list has the front first
    std::sort(picture.front.begin(), picture.front.end(), [](const PlanPoint& a, const PlanPoint& b) {
        return std::make_pair(a.bytes, -a.ns) < std::make_pair(b.bytes, -b.ns);
    });
    // The front counts both kinds of memory, the picture one: some points of the front are not on the stair.
    for (const PlanPoint& point : picture.front)
        if (picture.stair.empty() || point.ns < picture.stair.back().ns) picture.stair.push_back(point);
    // A limit far above everything is not drawn; one within reach always is.
    for (const double limit : picture.limits)
        if (limit <= y_most * 1.5) reach(limit, y_least, y_most);
    constexpr double kFarTimes = 12, kFarBytes = 24;
    const Extent x = extent_of(x_least, x_most, kFarTimes), y = extent_of(y_least, y_most, kFarBytes);
    std::tie(picture.x_low, picture.x_high, picture.x_log) = std::make_tuple(x.low, x.high, x.log);
    std::tie(picture.y_low, picture.y_high, picture.y_log) = std::make_tuple(y.low, y.high, y.log);
    return picture;
}

}  // namespace shardscope::viewer::panels
