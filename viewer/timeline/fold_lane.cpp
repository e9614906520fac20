// See fold_lane.h.
#include "viewer/timeline/fold_lane.h"

#include <algorithm>
#include <cmath>

namespace shardscope::viewer {
namespace {

// Folds items [first, last), all shorter than a bar, into columns of the view.
void fold_items(const Lane& lane, const TimeView& view, int columns, std::size_t first, std::size_t last,
                std::vector<FoldedPixel>& out) {
    std::size_t i = first;
    std::int64_t column = -1;
    while (i < last) {
        column = std::max({column + 1, view.column_of(lane.start(i), columns), std::int64_t{0}});
        if (column >= columns) return;
        const std::int64_t from = view.column_start(static_cast<int>(column), columns);
        const std::int64_t to = view.column_start(static_cast<int>(column) + 1, columns);
        const std::size_t end = std::min(last, std::max(i + 1, lane.first_starting_from(i, to)));
        std::int64_t busy = lane.busy(i, end);
        // Only the first can reach in from the left and only the last out to the right: they do not overlap.
        busy -= std::clamp(from - lane.start(i), std::int64_t{0}, lane.end(i) - lane.start(i));
        busy -= std::clamp(lane.end(end - 1) - to, std::int64_t{0}, lane.end(end - 1) - lane.start(end - 1));
        if (!out.empty() && out.back().column == column) {  // a bar's neighbours to both sides
            out.back().busy_ns += busy;
            out.back().last = static_cast<std::uint32_t>(end);
        } else {
            out.push_back({static_cast<int>(column), lane.dominant(i, end), busy, to - from,
                           static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(end)});
        }
        i = lane.end(end - 1) > to ? end - 1 : end;
    }
}

bool is_bar(const Lane& lane, std::size_t i, std::int64_t shortest) {
    return lane.end(i) - lane.start(i) >= shortest;
}

// Of items [first, last) the one that holds `time`, else the nearest.
std::size_t nearest(const Lane& lane, std::size_t first, std::size_t last, std::int64_t time) {
    std::size_t best = first;
    std::int64_t distance = INT64_MAX;
    for (std::size_t i = first; i < last; ++i) {
        // Half-open: at its end an event is over, so that of two that touch the later one holds the instant.
        const std::int64_t d = std::max({lane.start(i) - time, time + 1 - lane.end(i), std::int64_t{0}});
        if (d < distance) {
            distance = d;
            best = i;
        }
        if (lane.start(i) > time) break;
    }
    return best;
}

std::int64_t shortest_bar(const TimeView& view, int columns) {
    const double ns_per_column = static_cast<double>(view.to - view.from) / columns;
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(kShortestBar * ns_per_column)));
}

}  // namespace

FoldedLane fold_lane(const Lane& lane, const TimeView& view, int columns) {
    FoldedLane folded;
    folded.columns = std::max(1, columns);
    const std::int64_t shortest = shortest_bar(view, folded.columns);
    std::size_t i = lane.first_ending_after(view.from);
    // An event without length at the very edge ends at view.from and is seen all the same.
    while (i > 0 && lane.start(i - 1) >= view.from) --i;
    const std::size_t stop = lane.first_starting_from(i, view.to);
    while (i < stop) {
        if (is_bar(lane, i, shortest)) {
            const double x0 = std::max(0.0, view.pixel(lane.start(i)));
            const double x1 = std::min(view.width, view.pixel(lane.end(i)));
            folded.bars.push_back(
                {static_cast<float>(x0), static_cast<float>(x1), static_cast<std::uint32_t>(i)});
            ++i;
            continue;
        }
        const std::size_t next = std::min(stop, lane.next_lasting(i, shortest));
        fold_items(lane, view, folded.columns, i, next, folded.pixels);
        i = next;
    }
    return folded;
}

std::optional<Hit> hit_lane(const Lane& lane, const FoldedLane& folded, const TimeView& view, double x) {
    const auto bar = std::partition_point(folded.bars.begin(), folded.bars.end(),
                                          [x](const Bar& b) { return static_cast<double>(b.x1) <= x; });
    if (bar != folded.bars.end() && static_cast<double>(bar->x0) <= x) return Hit{bar->item};
    const int column = static_cast<int>(std::floor(x * folded.columns / view.width));
    const auto pixel = std::partition_point(folded.pixels.begin(), folded.pixels.end(),
                                            [column](const FoldedPixel& p) { return p.column < column; });
    if (pixel == folded.pixels.end() || pixel->column != column) return std::nullopt;
    // A column's items may have a bar among them (short, bar, short): it is not one of the folded.
    const std::int64_t shortest = shortest_bar(view, folded.columns);
    int events = 0;
    for (std::uint32_t i = pixel->first; i < pixel->last; ++i) events += is_bar(lane, i, shortest) ? 0 : 1;
    const std::size_t item = nearest(lane, pixel->first, pixel->last, view.time(x));
    return Hit{static_cast<std::uint32_t>(item), events, pixel->share()};
}

}  // namespace shardscope::viewer
