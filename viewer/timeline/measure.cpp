// See measure.h.
#include "viewer/timeline/measure.h"

#include <cstdlib>

#include <fmt/core.h>

#include "viewer/draw/format.h"

namespace shardscope::viewer::timeline {
namespace {

// Keeps the nearer one; if they are equally near, the earlier.
void keep_nearer(std::optional<std::int64_t>& best, std::int64_t edge, std::int64_t time,
                 std::int64_t reach) {
    const std::int64_t distance = std::abs(edge - time);
    if (distance > reach || (best && distance >= std::abs(*best - time))) return;
    best = edge;
}

}  // namespace

std::optional<std::int64_t> nearest_edge(const Lane& lane, std::int64_t time, std::int64_t reach) {
    // Events of a lane do not overlap: its nearest edge belongs to the event at the instant or to one of its
    // neighbours.
    std::optional<std::int64_t> best;
    const std::size_t after = lane.first_ending_after(time);
    const std::size_t first = after > 0 ? after - 1 : 0;
    for (std::size_t i = first; i < lane.size() && i < after + 2; ++i) {
        keep_nearer(best, lane.start(i), time, reach);
        keep_nearer(best, lane.end(i), time, reach);
    }
    return best;
}

std::optional<std::int64_t> nearest_of(std::span<const std::int64_t> times, std::int64_t time,
                                       std::int64_t reach) {
    std::optional<std::int64_t> best;
    for (const std::int64_t edge : times) keep_nearer(best, edge, time, reach);
    return best;
}

std::string instant_text(std::int64_t ns) {
    return draw::format_decimal(static_cast<double>(ns) / 1e6, 6) + " ms";
}

std::string measure_text(const Measure& measure) {
    return fmt::format("{} from {} to {}", instant_text(measure.length()), instant_text(measure.first()),
                       instant_text(measure.last()));
}

}  // namespace shardscope::viewer::timeline
