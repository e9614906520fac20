// See counter_fold.h.
#include "viewer/timeline/counter_fold.h"

#include <algorithm>
#include <optional>

namespace shardscope::viewer::timeline {
namespace {

using Points = std::vector<std::pair<std::int64_t, double>>;

void add_column(std::vector<CounterRun>& runs, int column, double lowest, double highest) {
    if (!runs.empty() && runs.back().first + runs.back().count == column && runs.back().lowest == lowest &&
        runs.back().highest == highest) {
        ++runs.back().count;
    } else {
        runs.push_back({column, 1, lowest, highest});
    }
}

}  // namespace

std::vector<CounterRun> fold_counter(const CounterTrack& counter, const model::TimeView& view, int columns) {
    std::vector<CounterRun> runs;
    const Points& points = counter.points;
    const auto time = [&](std::size_t i) { return points[i].first; };
    const auto value = [&](std::size_t i) { return points[i].second; };
    std::size_t next = counter.index.first_from(0, view.from, time);
    for (int c = 0; c < columns; ++c) {
        const std::int64_t from = view.column_start(c, columns), to = view.column_start(c + 1, columns);
        if (from >= to) continue;  // narrower than a nanosecond
        const std::size_t last = counter.index.first_from(next, to, time);
        // The value carried in counts unless it is replaced at the column's first instant.
        const bool carried = next > 0 && (next == points.size() || points[next].first > from);
        if (carried || next < last) {
            const std::size_t first = next < last ? next : next - 1;
            const auto found = counter.index.of(first, std::max(last, first + 1), value);
            const double held = carried ? points[next - 1].second : found.lowest;
            add_column(runs, c, std::min(held, found.lowest), std::max(held, found.highest));
        }
        next = last;
    }
    return runs;
}

std::vector<CounterRun> fold_counter(const Points& points, const model::TimeView& view, int columns) {
    std::vector<CounterRun> runs;
    if (points.empty() || columns <= 0) return runs;
    auto next = std::partition_point(points.begin(), points.end(),
                                     [&](const auto& point) { return point.first < view.from; });
    std::optional<double> held;
    if (next != points.begin()) held = std::prev(next)->second;
    for (int c = 0; c < columns; ++c) {
        const std::int64_t from = view.column_start(c, columns), to = view.column_start(c + 1, columns);
        if (from >= to) continue;
        std::optional<double> low, high;
        if (held && (next == points.end() || next->first > from)) low = high = held;
        for (; next != points.end() && next->first < to; ++next) {
            held = next->second;
            low = std::min(low.value_or(*held), *held);
            high = std::max(high.value_or(*held), *held);
        }
        if (low) add_column(runs, c, *low, *high);
    }
    return runs;
}

void CounterRows::update(const Tracks& tracks, const std::vector<const Row*>& rows,
                         const model::TimeView& view) {
    if (tracks_ != &tracks || view_.from != view.from || view_.to != view.to || view_.width != view.width) {
        rows_.clear();
        tracks_ = &tracks;
        view_ = view;
    }
    columns_ = std::max(1, static_cast<int>(view.width / 2));
    std::map<int, std::vector<CounterRun>> shown;
    for (const Row* row : rows) {
        if (row->kind != Row::Kind::counter || shown.contains(row->track)) continue;
        const auto kept = rows_.find(row->track);
        shown[row->track] =
            kept != rows_.end()
                ? std::move(kept->second)
                : fold_counter(tracks.counters[static_cast<std::size_t>(row->track)], view, columns_);
    }
    rows_ = std::move(shown);
}

const std::vector<CounterRun>* CounterRows::find(int counter) const {
    const auto found = rows_.find(counter);
    return found == rows_.end() ? nullptr : &found->second;
}

}  // namespace shardscope::viewer::timeline
