// See fold_lane.h.
#include "viewer/timeline/fold_lane.h"

#include <algorithm>
#include <cmath>

namespace shardscope::viewer::timeline {
namespace {

// Folds items [first, last), all shorter than a bar, into columns of the view.
void fold_items(const Lane& lane, const LanePaints& paints, const model::TimeView& view, int columns,
                std::size_t first, std::size_t last, std::vector<FoldedPixel>& out) {
    constexpr std::size_t kFarApart = 64;  // events between columns
    if (first == last) return;
    const auto column_of = [&](std::size_t event) {
        return static_cast<int>(
            std::clamp<std::int64_t>(view.column_of(lane.start(event), columns), 0, columns));
    };
    const int begin = column_of(first), reached = column_of(last - 1) + 1 - begin;
    if ((last - first) / kFarApart > static_cast<std::size_t>(reached))
        lane.prefetch(paints, first, last, reached,
                      [&](int c) { return view.column_start(begin + c + 1, columns); });
    std::size_t i = first;
    std::int64_t column = begin - 1;
    while (i < last) {
        column = std::max({column + 1, view.column_of(lane.start(i), columns), std::int64_t{0}});
        if (column >= columns) return;
        const std::int64_t from = view.column_start(static_cast<int>(column), columns);
        const std::int64_t to = view.column_start(static_cast<int>(column) + 1, columns);
        const std::size_t end = std::min(last, std::max(i + 1, lane.first_starting_from(i, to)));
        std::int64_t busy = lane.busy(i, end);
        // Items do not overlap: only the first can begin before the column and only the last can end after
        // it.
        busy -= std::clamp(from - lane.start(i), std::int64_t{0}, lane.end(i) - lane.start(i));
        busy -= std::clamp(lane.end(end - 1) - to, std::int64_t{0}, lane.end(end - 1) - lane.start(end - 1));
        if (!out.empty() && out.back().column == column) {  // the events before and after a bar
            out.back().busy_ns += busy;
            out.back().last = static_cast<std::uint32_t>(end);
        } else {
            out.push_back({static_cast<int>(column), paints.dominant(lane, i, end), busy, to - from,
                           static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(end)});
        }
        i = lane.end(end - 1) > to ? end - 1 : end;
    }
}

bool is_bar(const Lane& lane, std::size_t i, std::int64_t shortest) {
    return lane.end(i) - lane.start(i) >= shortest;
}

// The one of items [first, last) that contains `time`, else the nearest.
std::size_t nearest(const Lane& lane, std::size_t first, std::size_t last, std::int64_t time) {
    std::size_t best = first;
    std::int64_t distance = INT64_MAX;
    for (std::size_t i = first; i < last; ++i) {
        // Half-open: an event is over at its end, so that if two touch, the later one contains the instant.
        const std::int64_t d = std::max({lane.start(i) - time, time + 1 - lane.end(i), std::int64_t{0}});
        if (d < distance) {
            distance = d;
            best = i;
        }
        if (lane.start(i) > time) break;
    }
    return best;
}

// The first event that is visible from `time` on.
std::size_t first_in(const Lane& lane, std::int64_t time) {
    std::size_t i = lane.first_ending_after(time);
    // An event of zero length at the very edge ends at `time` and is still visible.
    while (i > 0 && lane.start(i - 1) >= time) --i;
    return i;
}

// The paint with the most time in [from, to) over all members; `at` is each member's position, which advances
// to its first event there.
Paint strip_paint(const std::vector<StripMember>& members, std::vector<std::size_t>& at, std::int64_t from,
                  std::int64_t to) {
    PaintTimes times{};
    Paint any = 0;
    for (std::size_t m = 0; m < members.size(); ++m) {
        const Lane& lane = *members[m].lane;
        const LanePaints& paints = *members[m].paints;
        // Skips events that end before the column.
        std::size_t first = lane.first_starting_from(at[m], from);
        if (first > at[m] && lane.end(first - 1) > from) --first;
        const std::size_t last = lane.first_starting_from(first, to);
        at[m] = first;
        if (first >= last) continue;
        paints.add_times(lane, first, last, times);
        times[paints.paint(first)] -= std::max<std::int64_t>(0, from - lane.start(first));
        times[paints.paint(last - 1)] -= std::max<std::int64_t>(0, lane.end(last - 1) - to);
        any = paints.paint(first);
    }
    const auto most = std::max_element(times.begin(), times.end());
    return *most > 0 ? static_cast<Paint>(most - times.begin()) : any;
}

std::int64_t shortest_bar(const model::TimeView& view, int columns) {
    const double ns_per_column = static_cast<double>(view.to - view.from) / columns;
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(kShortestBar * ns_per_column)));
}

}  // namespace

std::size_t events_in(const Lane& lane, const model::TimeView& view) {
    const std::size_t first = lane.first_ending_after(view.from);
    return lane.first_starting_from(first, view.to) - first;
}

std::vector<FoldedPixel> fold_strip(const Lane& busy, const std::vector<StripMember>& members,
                                    const model::TimeView& view, int columns) {
    std::vector<FoldedPixel> pixels;
    columns = std::max(1, columns);
    std::vector<std::size_t> at(members.size());
    for (std::size_t m = 0; m < members.size(); ++m) at[m] = members[m].lane->first_ending_after(view.from);
    std::size_t i = first_in(busy, view.from);
    std::int64_t column = -1;
    while (i < busy.size() && busy.start(i) < view.to) {
        column = std::max({column + 1, view.column_of(busy.start(i), columns), std::int64_t{0}});
        if (column >= columns) break;
        const std::int64_t from = view.column_start(static_cast<int>(column), columns);
        const std::int64_t to = view.column_start(static_cast<int>(column) + 1, columns);
        const std::size_t end = std::max(i + 1, busy.first_starting_from(i, to));
        const std::int64_t outside = std::max<std::int64_t>(0, from - busy.start(i)) +
                                     std::max<std::int64_t>(0, busy.end(end - 1) - to);
        const std::int64_t inside = std::max<std::int64_t>(0, busy.busy(i, end) - outside);
        pixels.push_back({static_cast<int>(column), strip_paint(members, at, from, to), inside, to - from,
                          static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(end)});
        i = busy.end(end - 1) > to ? end - 1 : end;
    }
    return pixels;
}

FoldedLane fold_lane(const Lane& lane, const model::TimeView& view, int columns, const LanePaints* given) {
    const LanePaints& paints = given != nullptr ? *given : lane.paints();
    FoldedLane folded;
    folded.columns = std::max(1, columns);
    const std::int64_t shortest = shortest_bar(view, folded.columns);
    std::size_t i = first_in(lane, view.from);
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
        fold_items(lane, paints, view, folded.columns, i, next, folded.pixels);
        i = next;
    }
    return folded;
}

std::optional<Hit> hit_lane(const Lane& lane, const FoldedLane& folded, const model::TimeView& view,
                            double x) {
    const auto bar = std::partition_point(folded.bars.begin(), folded.bars.end(),
                                          [x](const Bar& b) { return static_cast<double>(b.x1) <= x; });
    if (bar != folded.bars.end() && static_cast<double>(bar->x0) <= x) return Hit{bar->item};
    const int column = static_cast<int>(std::floor(x * folded.columns / view.width));
    const auto pixel = std::partition_point(folded.pixels.begin(), folded.pixels.end(),
                                            [column](const FoldedPixel& p) { return p.column < column; });
    if (pixel == folded.pixels.end() || pixel->column != column) return std::nullopt;
    // A bar may be among a column's items (short, bar, short): it does not count as folded.
    const std::int64_t shortest = shortest_bar(view, folded.columns);
    int events = 0;
    for (std::uint32_t i = pixel->first; i < pixel->last; ++i) events += is_bar(lane, i, shortest) ? 0 : 1;
    const std::size_t item = nearest(lane, pixel->first, pixel->last, view.time(x));
    return Hit{static_cast<std::uint32_t>(item), events, pixel->share()};
}

}  // namespace shardscope::viewer::timeline
